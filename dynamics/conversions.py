"""States of a robot in the conventions of MuJoCo and Pinocchio, and back.

                          here and in Pinocchio     MuJoCo
    quaternion            x y z w                   w x y z
    free joint, v         linear, angular, both     linear in the world frame,
                          in the body frame         angular in the body frame
    spherical joint       a quaternion; v angular   the same
                          in the body frame
    continuous joint, q   the angle; in Pinocchio   the angle
                          (cos, sin)

All joints but these are the same everywhere. The joints must come in the same order, as they do
where a robot and the other library's model were read from one file. Leading batch axes are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.tree import Body, TreeSystem
from cito.dynamics.types import Array, as_array, batch_axes

if TYPE_CHECKING:
    from cito.dynamics.robot import Robot


class Coordinates(NamedTuple):
    """Configuration (..., nq) and velocity (..., nv) as another library writes them."""

    q: Array
    v: Array


def from_mujoco(robot: Robot | TreeSystem, qpos: ArrayLike, qvel: ArrayLike) -> Array:
    """The state x (..., nx) of MuJoCo's qpos (..., nq) and qvel (..., nv).

    Quaternions come out with length 1.

    Raises:
        ValueError: a shape that does not fit the robot, a value that is not finite, or a
            quaternion of zero.
    """
    q, v = _coordinates("qpos", qpos, "qvel", qvel, _sizes(robot))
    for turn, linear in _quaternions(robot):
        quaternion = np.roll(q[..., turn], -1, axis=-1)
        length = np.linalg.norm(quaternion, axis=-1, keepdims=True)
        if not (length > 0).all():
            raise ValueError("`qpos` must not hold a quaternion of zero")
        q[..., turn] = quaternion / length
        if linear.stop > linear.start:
            R = rotation_matrix(q[..., turn])
            v[..., linear] = np.einsum("...ba,...b->...a", R, v[..., linear])
    return np.concatenate([q, v], axis=-1)


def to_mujoco(robot: Robot | TreeSystem, x: ArrayLike) -> Coordinates:
    """MuJoCo's qpos (..., nq) and qvel (..., nv) of a state x (..., nx).

    Raises:
        ValueError: a shape that does not fit the robot, or a value that is not finite.
    """
    q, v = _split(x, *_sizes(robot))
    for turn, linear in _quaternions(robot):
        if linear.stop > linear.start:
            R = rotation_matrix(q[..., turn])
            v[..., linear] = np.einsum("...ab,...b->...a", R, v[..., linear])
        q[..., turn] = np.roll(q[..., turn], 1, axis=-1)
    return Coordinates(q, v)


def from_pinocchio(model: Any, q: ArrayLike, v: ArrayLike) -> Array:
    """The state x (..., nx) of Pinocchio's q (..., model.nq) and v (..., model.nv).

    Continuous joints come out with angles in (-pi, pi]; everything else is the same.

    Args:
        model: the `pinocchio.Model` that the robot was read from, or one of the same joints.
        q, v: as Pinocchio has them.

    Raises:
        ValueError: a shape that does not fit the model, or a value that is not finite.
    """
    q_in, v_in = _coordinates("q", q, "v", v, (int(model.nq), int(model.nv)))
    parts = []
    for i, width, continuous in _pinocchio_joints(model):
        part = q_in[..., i : i + width]
        parts.append(np.arctan2(part[..., 1:], part[..., :1]) if continuous else part)
    return np.concatenate([*parts, v_in], axis=-1)


def to_pinocchio(model: Any, x: ArrayLike) -> Coordinates:
    """Pinocchio's q (..., model.nq) and v (..., model.nv) of a state x (..., nx).

    Args:
        model: the `pinocchio.Model` that the robot was read from, or one of the same joints.
        x: state of the robot.

    Raises:
        ValueError: a shape that does not fit the model, or a value that is not finite.
    """
    joints = list(_pinocchio_joints(model))
    nq = sum(1 if continuous else width for _, width, continuous in joints)
    q, v = _split(x, nq, int(model.nv))
    parts, i = [], 0
    for _, width, continuous in joints:
        taken = 1 if continuous else width
        part = q[..., i : i + taken]
        parts.append(np.concatenate([np.cos(part), np.sin(part)], axis=-1) if continuous else part)
        i += taken
    return Coordinates(np.concatenate(parts, axis=-1), v)


def rotation_matrix(quaternion: Array) -> Array:
    """R (..., 3, 3) of unit quaternions x y z w, (..., 4)."""
    x, y, z, w = (quaternion[..., i] for i in range(4))
    R = np.empty((*quaternion.shape[:-1], 3, 3))
    R[..., 0, 0], R[..., 0, 1] = 1 - 2 * (y * y + z * z), 2 * (x * y - z * w)
    R[..., 0, 2], R[..., 1, 0] = 2 * (x * z + y * w), 2 * (x * y + z * w)
    R[..., 1, 1], R[..., 1, 2] = 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)
    R[..., 2, 0], R[..., 2, 1] = 2 * (x * z - y * w), 2 * (y * z + x * w)
    R[..., 2, 2] = 1 - 2 * (x * x + y * y)
    return R


def _bodies(robot: Robot | TreeSystem) -> tuple[Body, ...]:
    return tuple((robot if isinstance(robot, TreeSystem) else robot.system).bodies)


def _sizes(robot: Robot | TreeSystem) -> tuple[int, int]:
    """nq, nv."""
    bodies = _bodies(robot)
    return sum(body.nq for body in bodies), sum(body.nv for body in bodies)


def _quaternions(robot: Robot | TreeSystem) -> Iterator[tuple[slice, slice]]:
    """Where in q each quaternion is, and where in v the linear velocity in its frame, if any."""
    i = j = 0
    for body in _bodies(robot):
        if body.nq > 1:
            yield slice(i + body.nq - 4, i + body.nq), slice(j, j + body.nv - 3)
        i, j = i + body.nq, j + body.nv


def _pinocchio_joints(model: Any) -> Iterator[tuple[int, int, bool]]:
    """Where in q each joint begins, how many coordinates it has, whether they are (cos, sin)."""
    for joint in list(model.joints)[1:]:  # the first is the universe
        yield int(joint.idx_q), int(joint.nq), (joint.nq, joint.nv) == (2, 1)


def _split(x: ArrayLike, nq: int, nv: int) -> tuple[Array, Array]:
    states = as_array("x", x)
    if states.ndim < 1 or states.shape[-1] != nq + nv:
        raise ValueError(f"`x` must have shape (..., {nq + nv}), got {states.shape}")
    return states[..., :nq].copy(), states[..., nq:].copy()


def _coordinates(
    name: str, q: ArrayLike, other: str, v: ArrayLike, sizes: tuple[int, int]
) -> tuple[Array, Array]:
    """Copies of q (..., nq) and v (..., nv) with the batch axes that they have in common."""
    arrays = as_array(name, q), as_array(other, v)
    for label, array, size in zip((name, other), arrays, sizes):
        if array.ndim < 1 or array.shape[-1] != size:
            raise ValueError(f"`{label}` must have shape (..., {size}), got {array.shape}")
    if arrays[0].shape[:-1] == arrays[1].shape[:-1]:
        return arrays[0].copy(), arrays[1].copy()
    batch = batch_axes(name, arrays[0].shape[:-1], other, arrays[1].shape[:-1])
    q_out, v_out = (np.broadcast_to(a, (*batch, a.shape[-1])).copy() for a in arrays)
    return q_out, v_out
