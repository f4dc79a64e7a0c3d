"""Costs on feet: slip that falls with height, time in the air."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.base import Dynamics
from cito.dynamics.types import as_vector, positive
from cito.problems.costs import Knots, NativeTerm, knot_rows
from cito.problems.robot_cost import RobotCost
from cito.problems.robot_parts import Parts


@dataclass(frozen=True, eq=False)
class FootSlip(RobotCost):
    """r = sqrt(S(phi)) sigma_T: feet shall not move sideways while they are near the ground.

        S = 2 / (1 + exp(sharpness phi)) for phi > 0, 1 below

    with phi the distance of the foot from the ground and sigma_T its tangential velocity. A foot
    that moves pays less the higher it is, so it lifts while it swings.

    Args:
        weight: one, or one for each foot [s^2/m^2].
        feet: names of contacts; None: the robot's feet.
        sharpness: how fast S falls with height [1/m]; at 50 it is 0.5 at 2.2 cm, 0.01 at 10.6 cm.
        knots: where the term is active.
    """

    weight: ArrayLike
    feet: Sequence[str] | None = None
    sharpness: float = 50.0
    knots: Knots = "running"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sharpness", positive("sharpness", self.sharpness))

    def native(self, name: str, dynamics: Dynamics, horizon: int) -> NativeTerm:
        """See `NativeCost.native`."""
        feet = Parts.of(name, dynamics).feet(f"{name}.feet", self.feet)
        weight = as_vector(f"{name}.weight", self.weight, len(feet))
        return NativeTerm("slip", weight, np.zeros((1, 0)), feet, np.array([self.sharpness]))


@dataclass(frozen=True, eq=False)
class AirTime(RobotCost):
    """r = tanh(phi / length) - target: what a knot with the foot off the ground costs or earns.

    phi is the foot's distance from the ground, so the residual is about 0 on the ground and 1 in
    the air, smooth between: a foot pays weight / 2 for each knot that it spends in the air
    (target 0), or for each that it spends on the ground (target 1).

    Args:
        weight: one, or one for each foot [-].
        feet: names of contacts; None: the robot's feet.
        length: height over which the residual grows [m].
        target: 0 keeps feet down, 1 lifts them; one, one for each foot, or (N+1, feet).
        knots: where the term is active.
    """

    weight: ArrayLike
    feet: Sequence[str] | None = None
    length: float = 0.02
    target: ArrayLike = 0.0
    knots: Knots = "running"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "length", positive("length", self.length))

    def native(self, name: str, dynamics: Dynamics, horizon: int) -> NativeTerm:
        """See `NativeCost.native`."""
        feet = Parts.of(name, dynamics).feet(f"{name}.feet", self.feet)
        target = np.asarray(self.target)
        target = np.full(len(feet), target) if target.ndim == 0 else target
        rows = knot_rows(f"{name}.target", target, len(feet), horizon + 1)
        weight = as_vector(f"{name}.weight", self.weight, len(feet))
        return NativeTerm("air", weight, rows, feet, np.array([self.length]))
