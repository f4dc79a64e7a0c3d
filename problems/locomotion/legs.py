"""Where the feet of a robot are in its base frame, for batches of joint angles.

    p(q),  J(q) = d p / d q      of every foot, along its chain of revolute joints

Legs of different lengths share one table: a shorter one is filled up with joints that never turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.robot import Robot
from cito.dynamics.types import Array


class Feet(NamedTuple):
    """position (..., L, 3) [m] of the centres of the feet, columns (..., L, D, 3) of their
    Jacobians joint by joint; knee, knee_columns: the same of where the last joint of a leg is."""

    position: Array
    columns: Array
    knee: Array
    knee_columns: Array


class Legs:
    """Forward kinematics of the feet of a robot.

    Args:
        robot: with a free base, and feet at the ends of chains of revolute joints.

    Raises:
        ValueError: the base is not free, there are no feet, or a joint of a leg slides.
    """

    def __init__(self, robot: Robot) -> None:
        bodies = {body.name: body for body in robot.system.bodies}
        base = robot.system.bodies[0]
        if base.joint != "free":
            raise ValueError(f"`robot` must have a free base, got a {base.joint} joint")
        if not robot.feet:
            raise ValueError("`robot` must have feet, got none")
        single = [body.name for body in robot.system.bodies if body.joint != "free"]
        chains = []
        for contact in robot.contacts[: len(robot.feet)]:
            chain, body = [], bodies[contact.body]
            while body.parent is not None:
                if body.joint != "revolute":
                    raise ValueError(f"`robot` must have revolute legs, {body.name} is not")
                chain.append(body)
                body = bodies[body.parent]
            chains.append(chain[::-1])
        L, D = len(chains), max(map(len, chains))
        self.count, self.depth, self.joints = L, D, len(single)
        self.index = np.full((L, D), self.joints)  # of a joint that never turns
        self.axis, self.place = np.zeros((L, D, 3)), np.zeros((L, D, 3))
        self.axis[..., 2] = 1.0
        self.rotation = np.tile(np.eye(3), (L, D, 1, 1))
        for i, chain in enumerate(chains):
            for k, body in enumerate(chain, D - len(chain)):
                self.index[i, k] = single.index(body.name)
                self.axis[i, k], self.place[i, k] = body.axis, body.position
                self.rotation[i, k] = body.rotation
        feet = robot.contacts[:L]
        self.tip = np.array([contact.position for contact in feet])
        self.radius = np.array([contact.radius for contact in feet])
        self.roll = _rolls(self)
        x, y, z = np.moveaxis(self.axis, -1, 0)
        zero = 0 * x
        self._cross = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(L, D, 3, 3)
        self._outer = self.axis[..., :, None] * self.axis[..., None, :]
        self._plain = [bool((self.rotation[:, k] == np.eye(3)).all()) for k in range(D)]
        q = np.random.default_rng(0).uniform(-np.pi, np.pi, (1000, self.joints))
        hips = self.place[:, 0]
        reach = np.linalg.norm(self(q).knee - hips, axis=-1).max()
        self._drop = 1.01 * float(reach) - float(hips[:, 2].min())
        self._span = float(np.linalg.norm(hips[:, :2], axis=1).max())

    def __call__(self, q: Array) -> Feet:
        """Feet at joint angles q (..., nj) [rad]."""
        angle = np.concatenate([q, np.zeros((*q.shape[:-1], 1))], axis=-1)[..., self.index]
        sine, cosine = np.sin(angle)[..., None, None], np.cos(angle)[..., None, None]
        turns = cosine * np.eye(3) + sine * self._cross + (1 - cosine) * self._outer
        R = np.broadcast_to(np.eye(3), (*q.shape[:-1], self.count, 3, 3))
        origin = np.zeros((*q.shape[:-1], self.count, 3))
        origins, axes = [], []
        for k in range(self.depth):
            origin = origin + (R @ self.place[:, k, :, None])[..., 0]
            if not self._plain[k]:
                R = R @ self.rotation[:, k]
            origins.append(origin)
            axes.append((R @ self.axis[:, k, :, None])[..., 0])
            R = R @ turns[..., k, :, :]
        tip = origin + (R @ self.tip[:, :, None])[..., 0]
        joints, axis = np.stack(origins, -2), np.stack(axes, -2)
        columns = cross(axis, tip[..., None, :] - joints)
        return Feet(tip, columns, origin, cross(axis, origin[..., None, :] - joints))

    def knee_heights(self, q: Array, up: Array) -> Array:
        """Heights (..., L) of the knees over the base [m], with up (..., 3) as of `Features`.

        The vertical is turned down the legs, v <- R(q)' v, rather than the points up: this is what
        every control step asks for.
        """
        angle = np.concatenate([q, np.zeros((*q.shape[:-1], 1))], axis=-1)[..., self.index]
        sine, cosine = np.sin(angle), np.cos(angle)
        v = np.broadcast_to(up[..., None, :], (*up.shape[:-1], self.count, 3))
        height = (v * self.place[:, 0]).sum(-1)
        for k in range(self.depth - 1):
            if not self._plain[k]:
                v = (v[..., None, :] @ self.rotation[:, k])[..., 0, :]
            a = self.axis[:, k]
            c, s = cosine[..., k, None], sine[..., k, None]
            along = (v * a).sum(-1, keepdims=True) * a
            v = along + c * (v - along) + s * cross(v, a)
            height = height + (v * self.place[:, k + 1]).sum(-1)
        return np.asarray(height)

    def knees_above(self, height: Array, up: Array) -> NDArray[np.bool_]:
        """Whether the knees are above the ground for sure, (...), wherever the joints are: with the
        base at a height (...) [m] and up (..., 3), by how far they are from the hips."""
        tilt = np.sqrt(np.maximum(0.0, 1 - up[..., 2] ** 2))
        return np.asarray((up[..., 2] > 0) & (height > self._drop + self._span * tilt))

    def transposed(self, columns: Array, g: Array) -> Array:
        """J' g (..., nj) for a gradient g (..., L, 3) with respect to positions with `columns`."""
        along = (columns @ g[..., None])[..., 0]
        out = np.zeros((*g.shape[:-2], self.joints + 1))
        for i in range(self.count):
            out[..., self.index[i]] += along[..., i, :]
        return out[..., : self.joints]


def _rolls(legs: Legs) -> NDArray[np.bool_]:
    """Which joints (nj,) turn about the base's x axis at q = 0: hip rolls."""
    rolls = np.zeros(legs.joints + 1, bool)
    for i in range(legs.count):
        R = np.eye(3)
        for k in range(legs.depth):
            R = R @ legs.rotation[i, k]
            rolls[legs.index[i, k]] |= abs((R @ legs.axis[i, k])[0]) > 0.9
    return np.asarray(rolls[:-1])


def cross(a: Array, b: Array) -> Array:
    """a x b (..., 3); `numpy.cross` takes several times as long on small arrays."""
    a0, a1, a2 = a[..., 0], a[..., 1], a[..., 2]
    b0, b1, b2 = b[..., 0], b[..., 1], b[..., 2]
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    out[..., 0], out[..., 1], out[..., 2] = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0
    return out
