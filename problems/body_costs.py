"""Costs on the motion of a body: pose, position, velocity; and on the centre of mass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.base import Dynamics
from cito.dynamics.types import as_array, as_vector
from cito.problems.costs import Knots, NativeTerm, knot_rows
from cito.problems.robot_cost import RobotCost, side_by_side, vector_pair
from cito.problems.robot_parts import Parts

FRAMES = ("world", "yaw", "body")


@dataclass(frozen=True, eq=False)
class BasePose(RobotCost):
    """r = (p - p_ref, log(R_ref' R)) of the base, or of a point fixed to any body.

    The logarithm is smooth for errors below pi, half a turn.

    Args:
        position: p_ref in the world, (3,), or (N+1, 3) for a moving target [m].
        orientation: R_ref as a unit quaternion x y z w, (4,) or (N+1, 4).
        position_weight: (3,) along the world's axes, or one for all [1/m^2].
        orientation_weight: (3,) about the body's axes, or one for all [1/rad^2].
        body: name of a body; None: the base.
        point: in the body's frame, (3,) [m].
        knots: where the term is active.
    """

    position: ArrayLike = (0.0, 0.0, 0.0)
    orientation: ArrayLike = (0.0, 0.0, 0.0, 1.0)
    position_weight: ArrayLike = 0.0
    orientation_weight: ArrayLike = 0.0
    body: str | None = None
    point: ArrayLike = (0.0, 0.0, 0.0)
    knots: Knots = "running"

    def __post_init__(self) -> None:
        super().__post_init__()
        lengths = np.linalg.norm(np.asarray(self.orientation), axis=-1)
        if np.ndim(self.orientation) == 0 or np.abs(lengths - 1).max(initial=0) > 1e-6:
            raise ValueError(
                f"`orientation` must be unit quaternions x y z w, got {self.orientation!r:.80}"
            )

    def native(self, name: str, dynamics: Dynamics, horizon: int) -> NativeTerm:
        """See `NativeCost.native`."""
        weight = vector_pair(
            self.position_weight,
            self.orientation_weight,
            (f"{name}.position_weight", f"{name}.orientation_weight"),
        )
        reference = side_by_side(
            knot_rows(f"{name}.position", np.asarray(self.position), 3, horizon + 1),
            knot_rows(f"{name}.orientation", np.asarray(self.orientation), 4, horizon + 1),
        )
        body = Parts.of(name, dynamics).body(f"{name}.body", self.body)
        point = as_array(f"{name}.point", self.point, (3,))
        return NativeTerm("pose", weight, reference, np.array([body], np.int32), point)


@dataclass(frozen=True, eq=False)
class PointPosition(RobotCost):
    """r = p - p_ref of a foot's centre, or of a point fixed to a body.

    Args:
        position: p_ref in the world, (3,) or (N+1, 3) [m].
        weight: (3,) along the world's axes, or one for all [1/m^2].
        foot: name of a contact, whose centre is meant; or
        body: name of a body; None: the base.
        point: in the body's frame, (3,) [m].
        knots: where the term is active.
    """

    position: ArrayLike
    weight: ArrayLike
    foot: str | None = None
    body: str | None = None
    point: ArrayLike = (0.0, 0.0, 0.0)
    knots: Knots = "running"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.foot is not None and self.body is not None:
            raise ValueError("`foot` and `body` exclude each other: a foot has its own body")

    def native(self, name: str, dynamics: Dynamics, horizon: int) -> NativeTerm:
        """See `NativeCost.native`."""
        body, point = self.body, as_array(f"{name}.point", self.point, (3,))
        if self.foot is not None:
            body, point = Parts.of(name, dynamics).foot_place(f"{name}.foot", self.foot)
        pose = BasePose(self.position, position_weight=self.weight, body=body, point=point)
        return pose.native(name, dynamics, horizon)


@dataclass(frozen=True, eq=False)
class CenterOfMass(RobotCost):
    """r = c - c_ref of the centre of all masses.

    Args:
        position: c_ref in the world, (3,) or (N+1, 3) [m].
        weight: (3,) along the world's axes, or one for all [1/m^2].
        knots: where the term is active.
    """

    position: ArrayLike
    weight: ArrayLike
    knots: Knots = "running"

    def native(self, name: str, dynamics: Dynamics, horizon: int) -> NativeTerm:
        """See `NativeCost.native`."""
        Parts.of(name, dynamics)
        rows = knot_rows(f"{name}.position", np.asarray(self.position), 3, horizon + 1)
        return NativeTerm("com", as_vector(f"{name}.weight", self.weight, 3), rows)


@dataclass(frozen=True, eq=False)
class BaseVelocity(RobotCost):
    """r = (v, omega) - (v_ref, omega_ref) of the base, or of a point fixed to any body.

    Args:
        linear, angular: v_ref [m/s] and omega_ref [rad/s], (3,) or (N+1, 3).
        linear_weight: (3,) or one for all [s^2/m^2].
        angular_weight: (3,) or one for all [s^2/rad^2].
        frame: axes of v and omega: "body", "world", or "yaw": z up, x along the projection of the
            body's x axis on the horizontal plane (the world's while the body's is vertical).
        body: name of a body; None: the base.
        point: in the body's frame, (3,) [m].
        knots: where the term is active.
    """

    linear: ArrayLike = (0.0, 0.0, 0.0)
    angular: ArrayLike = (0.0, 0.0, 0.0)
    linear_weight: ArrayLike = 0.0
    angular_weight: ArrayLike = 0.0
    frame: Literal["body", "yaw", "world"] = "body"
    body: str | None = None
    point: ArrayLike = (0.0, 0.0, 0.0)
    knots: Knots = "running"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.frame not in FRAMES:
            raise ValueError(f"`frame` must be one of {', '.join(FRAMES)}, got {self.frame!r:.80}")

    def native(self, name: str, dynamics: Dynamics, horizon: int) -> NativeTerm:
        """See `NativeCost.native`."""
        weight = vector_pair(
            self.linear_weight,
            self.angular_weight,
            (f"{name}.linear_weight", f"{name}.angular_weight"),
        )
        reference = side_by_side(
            knot_rows(f"{name}.linear", np.asarray(self.linear), 3, horizon + 1),
            knot_rows(f"{name}.angular", np.asarray(self.angular), 3, horizon + 1),
        )
        body = Parts.of(name, dynamics).body(f"{name}.body", self.body)
        index = np.array([body, FRAMES.index(self.frame)], np.int32)
        point = as_array(f"{name}.point", self.point, (3,))
        return NativeTerm("twist", weight, reference, index, point)
