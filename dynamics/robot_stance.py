"""How a robot stands: where its bodies are, and the height at which it touches the ground."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cito.dynamics import _native
from cito.dynamics.conversions import rotation_matrix
from cito.dynamics.tree import Body, TreeSystem
from cito.dynamics.types import Array


class Pose(NamedTuple):
    """rotation: (3, 3), position: (3,) [m] of a body in the world."""

    rotation: Array
    position: Array


def rest(bodies: Sequence[Body], limits: Array) -> Array:
    """q (nq,) with every joint at zero or at the limit nearest to it, quaternions at 1."""
    values: list[float] = []
    joints = iter(limits)
    for body in bodies:
        single = body.nq == 1
        values += [float(np.clip(0.0, *next(joints)))] if single else [0.0] * (body.nq - 1) + [1.0]
    return np.array(values, float)


def body_poses(bodies: Sequence[Body], q: Array) -> dict[str, Pose]:
    """Where each body is in the world at q (nq,)."""
    poses: dict[str | None, Pose] = {None: Pose(np.eye(3), np.zeros(3))}
    i = 0
    for body in bodies:
        parent = poses[body.parent]
        place = Pose(parent.rotation @ body.rotation, parent.position)
        place = place._replace(position=place.position + parent.rotation @ body.position)
        if body.joint == "free":
            poses[body.name] = Pose(rotation_matrix(q[i + 3 : i + 7]), q[i : i + 3])
        elif body.joint == "revolute":
            turn = axis_rotation(body.axis, q[i])
            poses[body.name] = place._replace(rotation=place.rotation @ turn)
        elif body.joint == "spherical":
            turn = rotation_matrix(q[i : i + 4])
            poses[body.name] = place._replace(rotation=place.rotation @ turn)
        else:
            along = place.rotation @ (q[i] * body.axis)
            poses[body.name] = place._replace(position=place.position + along)
        i += body.nq
    del poses[None]
    return {str(name): pose for name, pose in poses.items()}


def on_the_ground(system: TreeSystem, q: Array) -> Array:
    """q (nq,) lifted or lowered so that the lowest contact touches, where anything can lift it."""
    q, nc, still = q.copy(), len(system.contacts), np.zeros(system.native.nv)
    if not nc:
        return q
    *_, J, _ = _native.system_terms(system.native, None, q, still)
    floats = system.bodies[0].joint == "free"
    if floats:
        vertical = 2
    else:  # a joint that lifts all contacts alike
        lifts = np.flatnonzero((np.abs(J[2 : 3 * nc : 3] - 1) < 1e-9).all(axis=0))
        if not len(lifts):
            return q
        vertical = int(lifts[0])
    for _ in range(30):  # once over a plane
        *_, J, phi = _native.system_terms(system.native, None, q, still)
        up = J[:, :3] @ rotation_matrix(q[3:7])[2] if floats else J[:, vertical]
        q[vertical] -= (phi[:nc] / np.maximum(up[2 : 3 * nc : 3], 0.1)).min()
        if abs(phi[:nc].min()) < 1e-9:
            break
    return q


def axis_rotation(axis: Array, angle: float) -> Array:
    """R (3, 3) by an angle [rad] about a unit axis (3,): 1 + sin [axis] + (1 - cos) [axis]^2."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross)
