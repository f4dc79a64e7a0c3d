"""Rigid bodies, the joints that move them against their parents, and what acts on the joints.

A joint with one coordinate q may carry, beside the controls, the force [N m or N]

    - damping v - stiffness (q - rest) - dry_friction tanh(v / slip_speed)

The step takes it at its end, q + h v+ and v+: stiff springs and drives, heavy damping and dry
friction on light joints are stable at every time step (dynamics/native/joint_forces.inc).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.types import Array, as_array, as_limits, as_vector, freeze, positive

Joint = Literal["free", "revolute", "prismatic", "spherical"]
JOINTS: tuple[Joint, ...] = ("free", "revolute", "prismatic", "spherical")  # as in tree.hpp
NQ = {"free": 7, "revolute": 1, "prismatic": 1, "spherical": 4}
NV = {"free": 6, "revolute": 1, "prismatic": 1, "spherical": 3}


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body and the joint that moves it.

    Args:
        name: of the body.
        parent: name of the parent body; None is the world.
        joint: "free" (only on the world), "revolute", "prismatic" or "spherical".
        mass: [kg], >= 0.
        com: centre of mass in the body frame, (3,) [m].
        inertia: about the centre of mass in body axes, (3, 3) [kg m^2].
        position, rotation: joint frame in the parent's body frame, (3,) [m] and (3, 3).
        axis: of the joint in its frame, (3,); normalized here.
        armature: reflected inertia of the drive [kg m^2 or kg].
        damping: [N m s/rad or N s/m].
        stiffness, rest: of a spring [N m/rad or N/m], and where it is slack [rad or m].
        dry_friction: the torque or force that it takes to keep the joint sliding [N m or N].
        lower, upper: limits of the joint [rad or m]; infinite by default, always of joints
            with several coordinates, which carry no spring either.
    """

    name: str
    parent: str | None
    joint: Joint
    mass: float
    com: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    position: Array = field(default_factory=lambda: np.zeros(3))
    rotation: Array = field(default_factory=lambda: np.eye(3))
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    armature: float = 0.0
    damping: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf
    stiffness: float = 0.0
    rest: float = 0.0
    dry_friction: float = 0.0

    def __post_init__(self) -> None:
        set_, label = object.__setattr__, f"body {self.name!r}"
        if self.joint not in JOINTS:
            raise ValueError(f"`joint` of {label} must be one of {JOINTS}, got {self.joint!r}")
        if self.joint == "free" and self.parent is not None:
            raise ValueError(f"`parent` of {label} must be None: a free joint has no parent body")
        for name in ("mass", "armature", "damping", "stiffness", "dry_friction"):
            set_(self, name, positive(f"{name} of {label}", getattr(self, name), allow_zero=True))
        for name in ("com", "position", "axis"):
            set_(self, name, as_array(f"{name} of {label}", getattr(self, name), (3,)))
        for name in ("inertia", "rotation"):
            set_(self, name, as_array(f"{name} of {label}", getattr(self, name), (3, 3)))
        length = float(np.linalg.norm(self.axis))
        if length == 0:
            raise ValueError(f"`axis` of {label} must not be zero")
        set_(self, "axis", self.axis / length)
        if not np.allclose(self.rotation @ self.rotation.T, np.eye(3), atol=1e-9):
            raise ValueError(f"`rotation` of {label} must be a rotation matrix")
        if not np.allclose(self.inertia, self.inertia.T, rtol=1e-9, atol=1e-15):
            raise ValueError(f"`inertia` of {label} must be symmetric")
        if np.linalg.eigvalsh(self.inertia)[0] < -1e-12:
            raise ValueError(f"`inertia` of {label} must be positive semidefinite")
        set_(self, "rest", float(as_array(f"rest of {label}", self.rest, ())))
        if self.joint == "free" and self.dry_friction != 0:
            raise ValueError(f"`dry_friction` of {label} must be 0: its joint is free")
        if self.nv > 1 and self.stiffness != 0:
            raise ValueError(f"`stiffness` of {label} must be 0: its joint is {self.joint}")
        limits = as_limits(f"lower and upper of {label}", (self.lower, self.upper), 2)
        assert limits is not None
        if not limits[0] <= limits[1]:
            raise ValueError(
                f"`lower` of {label} must be <= upper, got {limits[0]:g}, {limits[1]:g}"
            )
        if self.nv > 1 and np.isfinite(limits).any():
            raise ValueError(
                f"`lower` and `upper` of {label} must be infinite: its joint is {self.joint}"
            )
        set_(self, "lower", float(limits[0]))
        set_(self, "upper", float(limits[1]))
        freeze(self)

    @property
    def nq(self) -> int:
        """Coordinates of the joint."""
        return NQ[self.joint]

    @property
    def nv(self) -> int:
        """Velocities of the joint."""
        return NV[self.joint]


@dataclass(frozen=True, eq=False)
class PositionDrive:
    """Drives that take target positions: u_i - q - h v+ enters the step, with v+ at its end.

        force = kp (u - q - h v+) - kd v+

    which is stable for any gains and time step; for kp -> infinity a free joint is at its target
    after one step. The force has no limit of its own.

    Args:
        kp: one number, or one for each drive, (nu,) [N m/rad or N/m].
        kd: the same [N m s/rad or N s/m].
    """

    kp: ArrayLike
    kd: ArrayLike = 0.0

    def __post_init__(self) -> None:
        for name in ("kp", "kd"):
            gains = as_array(name, getattr(self, name))
            if gains.ndim > 1 or (gains < 0).any():
                raise ValueError(f"`{name}` must be >= 0, one number or (nu,), got {gains!r:.80}")
            object.__setattr__(self, name, gains)
        freeze(self)

    def gains(self, nu: int) -> tuple[Array, Array]:
        """kp, kd (nu,)."""
        return as_vector("kp", self.kp, nu), as_vector("kd", self.kd, nu)
