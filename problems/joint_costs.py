"""Costs on joints and controls: posture, speed, torque, soft limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.base import Dynamics
from cito.dynamics.types import as_limits, as_vector
from cito.problems.costs import Knots, NativeTerm, knot_rows
from cito.problems.robot_cost import RobotCost
from cito.problems.robot_parts import Parts


@dataclass(frozen=True, eq=False)
class Posture(RobotCost):
    """r = q_j - q_ref of joints.

    Args:
        position: q_ref, (nj,) or (N+1, nj) [rad or m].
        weight: (nj,) or one for all [1/rad^2 or 1/m^2].
        joints: their names; None: those that a control drives.
        knots: where the term is active.
    """

    position: ArrayLike
    weight: ArrayLike
    joints: Sequence[str] | None = None
    knots: Knots = "running"

    def native(self, name: str, dynamics: Dynamics, horizon: int) -> NativeTerm:
        """See `NativeCost.native`."""
        joints = Parts.of(name, dynamics).joints(f"{name}.joints", self.joints)
        rows = knot_rows(f"{name}.position", np.asarray(self.position), len(joints.q), horizon + 1)
        weight = as_vector(f"{name}.weight", self.weight, len(joints.q))
        return NativeTerm("entries", weight, rows, joints.positions)


@dataclass(frozen=True, eq=False)
class JointVelocity(RobotCost):
    """r = v_j - v_ref of joints.

    Args:
        weight: (nj,) or one for all [s^2/rad^2 or s^2/m^2].
        velocity: v_ref, (nj,) or (N+1, nj) [rad/s or m/s]; None: zero.
        joints: their names; None: those that a control drives.
        knots: where the term is active.
    """

    weight: ArrayLike
    velocity: ArrayLike | None = None
    joints: Sequence[str] | None = None
    knots: Knots = "running"

    def native(self, name: str, dynamics: Dynamics, horizon: int) -> NativeTerm:
        """See `NativeCost.native`."""
        joints = Parts.of(name, dynamics).joints(f"{name}.joints", self.joints)
        velocity = np.zeros(len(joints.q)) if self.velocity is None else np.asarray(self.velocity)
        rows = knot_rows(f"{name}.velocity", velocity, len(joints.q), horizon + 1)
        weight = as_vector(f"{name}.weight", self.weight, len(joints.q))
        return NativeTerm("entries", weight, rows, joints.velocities)


@dataclass(frozen=True, eq=False)
class Torque(RobotCost):
    """r = u - u_ref over k = 0..N-1.

    Args:
        weight: (nu,) or one for all [1/(N m)^2 or 1/N^2].
        reference: u_ref, (nu,) or (N, nu) [N m or N]; None: zero.
    """

    weight: ArrayLike
    reference: ArrayLike | None = None
    in_controls = True

    @property
    def weighs_controls(self) -> bool:
        """Whether any weight is positive."""
        return bool((np.asarray(self.weight) > 0).any())

    def native(self, name: str, dynamics: Dynamics, horizon: int) -> NativeTerm:
        """See `NativeCost.native`."""
        nu = dynamics.nu
        reference = np.zeros(nu) if self.reference is None else np.asarray(self.reference)
        rows = knot_rows(f"{name}.reference", reference, nu, horizon)
        return NativeTerm("control", as_vector(f"{name}.weight", self.weight, nu), rows)


@dataclass(frozen=True, eq=False)
class TorqueSmoothness(Torque):
    """r = u - u_ref against the controls of a plan that is being followed, (N, nu).

    A term sees one knot, so the difference to the previous knot's control, which would couple two,
    is taken against a plan instead: in MPC the previous one, shifted to the present time. It keeps
    the torque sent from jumping between plans; for one smooth trajectory weigh `JointVelocity`,
    or solve again about a smoothed solution.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reference is None:
            raise ValueError("`reference` must be the controls of a plan, (N, nu), got None")


@dataclass(frozen=True, eq=False)
class SoftLimit(RobotCost):
    """r = how far a joint's position or speed, or a control, is beyond its bound; 0 within.

    Args:
        of: "position" [rad or m], "velocity" [rad/s or m/s] or "control" [N m or N].
        lower, upper: (n,) or one for all; None: no bound.
        weight: (n,) or one for all [1/unit^2].
        joints: names; None: those that a control drives. Of controls always all.
        knots: where the term is active.
    """

    of: Literal["position", "velocity", "control"]
    weight: ArrayLike
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    joints: Sequence[str] | None = None
    knots: Knots = "running"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.of not in ("position", "velocity", "control"):
            raise ValueError(f"`of` must be position, velocity or control, got {self.of!r:.80}")
        if self.of == "control" and self.joints is not None:
            raise ValueError("`joints` must be None for limits of controls")

    @property
    def in_controls(self) -> bool:  # type: ignore[override]
        """Whether controls are limited."""
        return self.of == "control"

    def native(self, name: str, dynamics: Dynamics, horizon: int) -> NativeTerm:
        """See `NativeCost.native`."""
        count, index = dynamics.nu, np.zeros(0, np.int32)
        if not self.in_controls:
            joints = Parts.of(name, dynamics).joints(f"{name}.joints", self.joints)
            count = len(joints.q)
            index = joints.positions if self.of == "position" else joints.velocities
        lower = as_limits(f"{name}.lower", self.lower, count)
        upper = as_limits(f"{name}.upper", self.upper, count)
        lower = np.full(count, -np.inf) if lower is None else lower
        upper = np.full(count, np.inf) if upper is None else upper
        if (lower > upper).any():
            raise ValueError(f"`{name}.lower` must not exceed `{name}.upper`")
        kind = "control limits" if self.in_controls else "entry limits"
        weight = as_vector(f"{name}.weight", self.weight, count)
        return NativeTerm(kind, weight, np.concatenate([lower, upper])[None], index)
