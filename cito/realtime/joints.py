"""Where the joints and drives of a robot are in q, v and u."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.robot import Robot
from cito.dynamics.types import Array

Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Joints:
    """Indices of a robot's joints.

    Args:
        q, v: of the joints that are not free, in the robot's order, (nj,).
        driven: which of these joints have a drive, in the order of u, (nu,).
        floating: whether the first body is free.
    """

    q: Index
    v: Index
    driven: Index
    floating: bool

    @classmethod
    def of(cls, robot: Robot) -> Joints:
        """The indices, from the order of the tree's bodies."""
        free = np.array([body.joint == "free" for body in robot.system.bodies])
        widths_q, widths_v = np.where(free, 7, 1), np.where(free, 6, 1)
        driven = [robot.joints.index(name) for name in robot.actuated]
        return cls(
            (np.cumsum(widths_q) - widths_q)[~free],
            (np.cumsum(widths_v) - widths_v)[~free],
            np.array(driven, dtype=np.intp),
            bool(free[0]),
        )

    def drives(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Positions and speeds of the drives, each (nu,)."""
        return q[self.q[self.driven]], v[self.v[self.driven]]

    def tilt(self, q: Array) -> float:
        """Angle between the base's z axis and the vertical [rad]; 0 where the base is fixed."""
        if not self.floating:
            return 0.0
        x, y, z, w = q[3:7]
        upright = 1.0 - 2.0 * (x * x + y * y) / (x * x + y * y + z * z + w * w)
        return math.acos(min(max(upright, -1.0), 1.0))
