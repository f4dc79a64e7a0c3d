"""What a simulator may do to a controller that does not know of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cito.dynamics.types import Array, as_vector, freeze, positive
from cito.realtime.joints import Joints


@dataclass(frozen=True, eq=False)
class Pull:
    """A constant force on the origin of the base.

    Args:
        force: in the world frame, (3,) [N].
        start: after the first command [s].
        duration: [s].
    """

    force: Array = field(default_factory=lambda: np.zeros(3))
    start: float = 0.0
    duration: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "force", as_vector("force", self.force, 3))
        for name in ("start", "duration"):
            positive(name, getattr(self, name), allow_zero=True)
        freeze(self)

    def at(self, t: float) -> Array:
        """The force at time t, (3,) [N]."""
        return self.force if self.start <= t < self.start + self.duration else np.zeros(3)


@dataclass(frozen=True)
class Noise:
    """Standard deviations of white noise on what is measured.

    Args:
        position: of the base [m]; angle: of its orientation [rad].
        velocity: linear, of the base [m/s]; angular_velocity: of the base [rad/s].
        joint_position: [rad]; joint_velocity: [rad/s].
    """

    position: float = 0.0
    angle: float = 0.0
    velocity: float = 0.0
    angular_velocity: float = 0.0
    joint_position: float = 0.0
    joint_velocity: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            positive(name, value, allow_zero=True)

    def tangent(self, joints: Joints, nv: int) -> Array:
        """Standard deviation of each tangent coordinate of x, (2 nv,)."""
        std = np.zeros((2, nv))
        std[:, joints.v] = [[self.joint_position], [self.joint_velocity]]
        if joints.floating:
            std[0, :6] = [self.position] * 3 + [self.angle] * 3
            std[1, :6] = [self.velocity] * 3 + [self.angular_velocity] * 3
        return std.ravel()
