"""What the loop asks of a robot, be it a simulator or a machine of metal.

    tau = torque + stiffness (position - q) + damping (velocity - v)        the motors' own law

The motors evaluate this law at their own rate, with their own measurements, and saturate at their
torque limits. All times are on the loop's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from cito.dynamics.robot import Robot
from cito.dynamics.types import Array


class RobotState(NamedTuple):
    """What was measured.

    time: when [s]; q (nq,), v (nv,): in cito's conventions; forces: on the feet in their contact
    frames (T1, T2, N), (number of feet, 3) [N], NaN where they are not measured.
    """

    time: float
    q: Array
    v: Array
    forces: Array


@dataclass(frozen=True, eq=False)
class Command:
    """What every motor is told, each (nu,): torque [N m], position [rad], velocity [rad/s],
    stiffness [N m/rad] and damping [N m s/rad]; in N, m and so on for joints that slide."""

    torque: Array
    position: Array
    velocity: Array
    stiffness: Array
    damping: Array

    def at(self, q: Array, v: Array) -> Array:
        """The motors' law at positions and speeds of the drives, (nu,), before they saturate."""
        return self.torque + self.by_gains(q, v)

    def by_gains(self, q: Array, v: Array) -> Array:
        """The part of the law that stiffness and damping make."""
        return self.stiffness * (self.position - q) + self.damping * (self.velocity - v)

    @classmethod
    def of_torque(cls, torque: Array) -> Command:
        """Torques alone, (nu,)."""
        zero = np.zeros(len(torque))
        return cls(torque, zero, zero, zero, zero)

    @classmethod
    def of_damping(cls, damping: Array) -> Command:
        """tau = -damping v, whatever was measured."""
        zero = np.zeros(len(damping))
        return cls(zero, zero, zero, zero, damping)


class RobotFault(Exception):
    """The robot or the link to it failed; the sentence goes into the log of the run."""


class RobotInterface(Protocol):
    """A robot as the loop sees it. `read` and `write` return at once, and may raise RobotFault."""

    model: Robot

    def reset(self, now: float, x: Array | None = None) -> None:
        """Go to the state x (nx,), the stance by default, as far as the robot can."""

    def read(self, now: float) -> RobotState | None:
        """The newest state that has arrived by `now`; None where there was none yet."""

    def write(self, now: float, command: Command) -> None:
        """Hand the command to the motors, which keep it until the next one."""

    def close(self) -> None:
        """Leave the motors in damping and let go of the robot."""
