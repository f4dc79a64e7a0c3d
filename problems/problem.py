"""The optimal-control problem.

    min over u_0 .. u_{N-1}   sum_k  cost terms (x_k, u_k)
    subject to                x_{k+1} = step(x_k, u_k),  x_0 = start,  lower <= u_k <= upper

The step holds the hard contact law; a problem is frozen and knows no solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from cito.dynamics.base import Dynamics
from cito.dynamics.types import Array, as_array, as_limits, freeze, whole_number
from cito.problems.costs import CostTerm, NativeCost, ResidualCost, active_knots

MAX_HORIZON = 10**6  # beyond it there is a mistake, or no memory


@runtime_checkable
class Leashed(Protocol):
    """Costs that move, and do not run away from a robot that does not come along."""

    def __call__(self, t: float, relief: Array | None = None) -> tuple[CostTerm, ...]:
        """The terms seen from time t [s], moved by a relief."""

    def relieved(self, t: float, x: Array, relief: Array | None) -> Array | None:
        """The relief after the state x (nx,) was measured at time t [s], from the one before."""


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """An optimal-control problem.

    Args:
        name: for tables and files.
        dynamics: one step of the world and its derivative.
        start: x_0, (nx,).
        horizon: number of steps N, 1 to a million.
        costs: the terms of the objective.
        control_lower, control_upper: (nu,) or one for all, may be infinite; None: no limit
            [units of u].
        initial_controls: (N, nu), where solvers start; zero by default.
        parameters: the task parameters that made this problem, for records.
        costs_at: of what moves: the terms as they are seen from a time t [s], knot k being at
            t + k h, and the same object as long as they stay the same; `costs` are those at 0.

    Raises:
        ValueError: shapes that do not fit, NaN, limits that cross.
    """

    name: str
    dynamics: Dynamics
    start: Array
    horizon: int
    costs: tuple[CostTerm, ...]
    control_lower: Array | None = None
    control_upper: Array | None = None
    initial_controls: Array | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    costs_at: Callable[[float], tuple[CostTerm, ...]] | None = None

    def __post_init__(self) -> None:
        set_, dyn = object.__setattr__, self.dynamics
        if not isinstance(dyn, Dynamics):
            raise ValueError(
                f"`dynamics` must be a Dynamics, such as ContactDynamics, got {type(dyn).__name__}"
            )
        N = whole_number("horizon", self.horizon, 1, MAX_HORIZON)
        set_(self, "horizon", N)
        set_(self, "start", as_array("start", self.start, (dyn.nx,)))
        if isinstance(self.costs, CostTerm) or not isinstance(self.costs, Iterable):
            raise ValueError(f"`costs` must be a sequence of cost terms, got {_told(self.costs)}")
        set_(self, "costs", tuple(self.costs))
        for i, term in enumerate(self.costs):
            _check_term(f"costs[{i}]", term, N, dyn)
        for name in ("control_lower", "control_upper"):
            set_(self, name, as_limits(name, getattr(self, name), dyn.nu))
        _check_limits(self.control_lower, self.control_upper)
        initial = np.zeros((N, dyn.nu)) if self.initial_controls is None else self.initial_controls
        set_(self, "initial_controls", as_array("initial_controls", initial, (N, dyn.nu)))
        if not any(isinstance(t, ResidualCost) or t.weighs_controls for t in self.costs):
            raise ValueError("`costs` must weigh the controls: no ControlCost was given")
        freeze(self)

    def seen_from(self, t: float, relief: Array | None = None) -> Problem:
        """The problem whose knot 0 is at time t [s]; itself where nothing has moved.

        relief: what a `Leashed` of its costs said.
        """
        if self.costs_at is None:
            return self
        if relief is not None and isinstance(self.costs_at, Leashed):
            costs = self.costs_at(float(t), relief)
        else:
            costs = self.costs_at(float(t))
        return self if costs is self.costs else self._with(costs=tuple(costs))

    def started_at(self, start: Array) -> Problem:
        """The same problem from another start (nx,); the rest is not checked anew."""
        x = as_array("start", start, (self.dynamics.nx,)).copy()
        x.setflags(write=False)
        return self._with(start=x)

    def _with(self, **fields: Any) -> Problem:
        """A copy with other fields, unchecked: what a controller does many times a second."""
        other = object.__new__(type(self))
        vars(other).update(vars(self) | fields)
        return other

    def __repr__(self) -> str:
        dyn = self.dynamics
        names = f"; parameters {', '.join(self.parameters)}" if self.parameters else ""
        return (
            f"<Problem {self.name}: {self.horizon} steps of {dyn.time_step:g} s, nx {dyn.nx}, "
            f"nu {dyn.nu}, contacts {dyn.nc}{names}>"
        )


def as_problem(value: object) -> Problem:
    """`value` where it is a problem.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, Problem):
        return value
    raise ValueError(
        f"`problem` must be a Problem, got {type(value).__name__}; "
        'make("traverse"), for example, makes one'
    )


def _told(costs: object) -> str:
    return "None" if costs is None else f"one {type(costs).__name__}"


def _check_limits(lower: Array | None, upper: Array | None) -> None:
    """Some finite control must lie within the limits."""
    if lower is not None and (lower == np.inf).any():
        raise ValueError("`control_lower` must be below +inf; -inf stands for no limit")
    if upper is not None and (upper == -np.inf).any():
        raise ValueError("`control_upper` must be above -inf; +inf stands for no limit")
    if lower is not None and upper is not None and (lower > upper).any():
        raise ValueError("`control_lower` must not exceed `control_upper`")


def _check_term(name: str, term: CostTerm, N: int, dyn: Dynamics) -> None:
    if isinstance(term, NativeCost):
        term.native(name, dyn, N)
    elif not isinstance(term, ResidualCost):
        raise ValueError(f"`{name}` must be a cost term, got {type(term).__name__}")
    active_knots(term.knots, N)
