"""How weights stated for one legged robot are carried to another of other length and mass.

Lengths are measured by the height H of the base in the stance, masses by the robot's own, times by
sqrt(H/g): a residual of a given unit is worth the same where its measure is. Stated are weights of
a robot of the size of Unitree's Go2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cito.dynamics.robot import Robot

HEIGHT, MASS, GRAVITY = 0.3337, 16.085, 9.81  # of the robot that weights are stated for


class RobotSize(NamedTuple):
    """A robot's length, mass and gravity over those of the robot that weights are stated for."""

    length: float
    mass: float
    gravity: float = 1.0

    @classmethod
    def of(cls, robot: Robot) -> RobotSize:
        """The size of a robot that stands, to three digits."""
        height = float(robot.stance[2]) if robot.system.bodies[0].joint == "free" else HEIGHT
        gravity = robot.system.gravity or GRAVITY
        ratios = (height / HEIGHT, robot.system.mass / MASS, gravity / GRAVITY)
        return cls(*(float(f"{ratio:.3g}") for ratio in ratios))

    @property
    def time(self) -> float:
        """Of sqrt(H/g)."""
        return float(np.sqrt(self.length / self.gravity))

    @property
    def speed(self) -> float:
        """Of sqrt(g H)."""
        return self.length / self.time

    @property
    def torque(self) -> float:
        """Of m g H."""
        return self.mass * self.gravity * self.length
