"""General constraints by the augmented Lagrangian method around DDP.

    min J(u)   subject to   g_i <= 0,   e_j = 0        along the hard rollout of u

    J_rho(u, y) = J + rho/2 sum_i max(0, g_i + y_i / rho)^2 + rho/2 sum_j (e_j + y_j / rho)^2
    u <- argmin J_rho(., y),   y_i <- max(0, y_i + rho g_i),   y_j <- y_j + rho e_j
    rho grows where the violation has not fallen enough                      (Bertsekas 1982)

The terms are residuals like any other cost: the inner solver needs to know nothing of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from cito.dynamics.gradients import Gradient
from cito.dynamics.types import Array, positive, whole_number
from cito.problems.constraints import Constraint, padded
from cito.problems.costs import ResidualCost, ResidualJacobians
from cito.problems.objective import Objective, residual_differences
from cito.problems.problem import Problem, as_problem
from cito.solvers.adaptive import Adaptive
from cito.solvers.ddp import solve_ddp
from cito.solvers.descent import DDPSettings
from cito.solvers.solution import Solution, Status


@dataclass(frozen=True)
class AugmentedLagrangian:
    """Settings of the outer loop.

    Args:
        tolerance: largest violation, in units of each constraint's `scale`.
        outer_iterations: inner solves at most.
        penalty: first rho; None: so that the violation of the guess costs ten times its objective.
        growth: factor of rho where the violation does not fall to `progress` of what it was.
        progress: see `growth`.
    """

    tolerance: float = 1e-6
    outer_iterations: int = 30
    penalty: float | None = None
    growth: float = 5.0
    progress: float = 0.25

    def __post_init__(self) -> None:
        positive("tolerance", self.tolerance)
        whole_number("outer_iterations", self.outer_iterations, 1)
        if self.penalty is not None:
            positive("penalty", self.penalty)
        if not positive("growth", self.growth) > 1:
            raise ValueError(f"`growth` must be > 1, got {self.growth:g}")
        if not 0 < self.progress < 1:
            raise ValueError(f"`progress` must lie between 0 and 1, got {self.progress:g}")


class ConstrainedSolution(NamedTuple):
    """A solution under constraints.

    solution: at the cost J of the problem alone; its status is INFEASIBLE where the violation
        stayed above the tolerance.
    violation: the largest, in units of each constraint's `scale`.
    multipliers: y, one (N+1, m) for each constraint, zero where it does not hold.
    outer_iterations: inner solves.
    """

    solution: Solution
    violation: float
    multipliers: tuple[Array, ...]
    outer_iterations: int


def solve_constrained(
    problem: Problem,
    constraints: Sequence[Constraint],
    gradient: Gradient | Adaptive | None = None,
    settings: DDPSettings | None = None,
    outer: AugmentedLagrangian | None = None,
) -> ConstrainedSolution:
    """Solve `problem` under constraints.

    Args:
        problem: the optimal-control problem.
        constraints: what must hold besides.
        gradient, settings: of the inner solves, as of `solve_ddp`; each starts at the last's end.
        outer: settings of the outer loop.

    Raises:
        ValueError: arguments of the wrong kind, or constraints that return a wrong shape.
    """
    started = time.perf_counter()
    problem, outer = as_problem(problem), outer or AugmentedLagrangian()
    for i, constraint in enumerate(constraints):
        if not isinstance(constraint, Constraint):
            kind = type(constraint).__name__
            raise ValueError(f"`constraints[{i}]` must be a Constraint, got {kind}")
    penalized = _Penalized(problem, tuple(constraints), outer)
    controls, violation, done = problem.initial_controls, np.inf, 0
    while True:
        inner = solve_ddp(penalized.problem, gradient, settings, initial_controls=controls)
        done += 1
        if inner.status in (Status.DIVERGED, Status.NOT_POSITIVE_DEFINITE, Status.INTERRUPTED):
            break
        previous, violation = violation, penalized.violation(inner)
        if violation <= outer.tolerance or done == outer.outer_iterations:
            break
        controls = inner.controls
        penalized.update(inner, grow=violation > outer.progress * previous)
    return ConstrainedSolution(
        _without_penalty(problem, inner, violation <= outer.tolerance, started),
        violation,
        tuple(penalized.multipliers),
        done,
    )


class _Penalized:
    """J_rho(., y): the problem with a residual for each constraint."""

    def __init__(
        self, problem: Problem, constraints: tuple[Constraint, ...], outer: AugmentedLagrangian
    ) -> None:
        self._problem, self._constraints, self._outer = problem, constraints, outer
        N = problem.horizon
        self.multipliers = [np.zeros((N + 1, c.size)) for c in constraints]
        self._rho = outer.penalty or self._first_penalty()

    @property
    def problem(self) -> Problem:
        """The problem of the inner solve."""
        terms = zip(self._constraints, self.multipliers)
        extra = tuple(self._term(constraint, y / self._rho) for constraint, y in terms)
        return replace(self._problem, costs=(*self._problem.costs, *extra))

    def violation(self, solution: Solution) -> float:
        """The largest violation of any constraint, in units of its scale."""
        found = (c.violation(solution.states, solution.controls) for c in self._constraints)
        return max(found, default=0.0)

    def update(self, solution: Solution, grow: bool) -> None:
        """y <- y + rho g, not below zero for inequalities; then rho grows if it shall."""
        U = padded(solution.controls)
        for constraint, y in zip(self._constraints, self.multipliers):
            y += self._rho * constraint.evaluated(solution.states, U) / constraint.scale
            if constraint.kind == "inequality":
                np.maximum(y, 0.0, out=y)
            y[~constraint.active(self._problem.horizon)] = 0.0
        if grow:
            self._rho *= self._outer.growth

    def _first_penalty(self) -> float:
        """rho/2 sum max(0, g)^2 = 10 max(1, |J|) at the guess, within bounds."""
        problem = self._problem
        U = problem.initial_controls
        assert U is not None
        X = problem.dynamics.rollout(problem.start, U).states
        J = float(Objective(problem).value(X, U))
        total = 0.0
        for c in self._constraints:
            g = c.evaluated(X, padded(U))[c.active(problem.horizon)] / c.scale
            total += float((np.maximum(g, 0.0) ** 2 if c.kind == "inequality" else g**2).sum())
        guess = 20.0 * max(1.0, abs(J)) / total if 0 < total < np.inf and np.isfinite(J) else 10.0
        return float(np.clip(guess, 1e-3, 1e6))

    def _term(self, constraint: Constraint, shift: Array) -> ResidualCost:
        """rho/2 || r ||^2 with r = max(0, g/scale + y/rho), or g/scale + y/rho of an equality."""
        scale, inequality = constraint.scale, constraint.kind == "inequality"
        dynamics = self._problem.dynamics

        def residual(X: Array, U: Array) -> Array:
            r: Array = constraint.evaluated(X, U) / scale + shift
            return np.maximum(r, 0.0) if inequality else r

        def jacobians(X: Array, U: Array) -> ResidualJacobians:
            if constraint.jacobians is None:
                g_x, g_u = residual_differences(constraint.evaluated, X, U, dynamics)
            else:
                g_x, g_u = (np.asarray(J, float) for J in constraint.jacobians(X, U))
            on = (residual(X, U) > 0 if inequality else np.ones(shift.shape, bool))[..., None]
            return ResidualJacobians(np.where(on, g_x, 0) / scale, np.where(on, g_u, 0) / scale)

        weight = np.full(constraint.size, self._rho)
        return ResidualCost(residual, jacobians, weight, constraint.knots)


def _without_penalty(
    problem: Problem, inner: Solution, satisfied: bool, started: float
) -> Solution:
    """The inner solution at the cost of the problem itself."""
    cost = float(Objective(problem).value(inner.states, inner.controls))
    status = inner.status
    if not satisfied and status in (Status.CONVERGED, Status.STALLED, Status.NO_GRADIENT):
        status = Status.INFEASIBLE
    seconds = time.perf_counter() - started
    return replace(inner, cost=cost, status=status, solve_time=seconds)
