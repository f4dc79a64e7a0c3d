"""Differential dynamic programming over hard contact, with Gauss-Newton Hessians (iLQR).

    repeat   linearize the rollout at frozen impulses
             choose a gradient: f_x, f_u                     (solvers/adaptive.py)
             backward: Riccati recursion -> k, K              (native)
             forward: hard rollouts u = U + alpha k + K dx    (native), the best is kept
    until    no improvement is expected, none is found, or a limit is reached

Neither the loop nor the recursion knows of contact. The best iterate is never lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.base import Rollout
from cito.dynamics.gradients import Gradient
from cito.dynamics.types import as_array, positive
from cito.problems.objective import Objective
from cito.problems.problem import Problem
from cito.solvers.adaptive import Adaptive, Portfolio
from cito.solvers.search import Iterate, Neighbourhood, multiple_shooting_iterate, roll_out
from cito.solvers.solution import Solution, Status
from cito.solvers.strategy import FixedGradient, Move, Strategy

Callback = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class DDPSettings:
    """When to stop.

    Args:
        max_iterations: of backward and forward passes.
        tolerance: relative decrease (and expected decrease) of the cost below which to stop.
        time_limit: wall clock [s].
    """

    max_iterations: int = 200
    tolerance: float = 1e-9
    time_limit: float = np.inf

    def __post_init__(self) -> None:
        if int(self.max_iterations) != self.max_iterations or self.max_iterations < 0:
            raise ValueError(f"`max_iterations` must be >= 0, got {self.max_iterations!r}")
        positive("tolerance", self.tolerance)
        if not self.time_limit > 0:
            raise ValueError(f"`time_limit` must be > 0, got {self.time_limit!r}")


def solve_ddp(
    problem: Problem,
    gradient: Gradient | Adaptive | None = None,
    settings: DDPSettings | None = None,
    *,
    initial_controls: ArrayLike | None = None,
    initial_states: ArrayLike | None = None,
    callback: Callback | None = None,
) -> Solution:
    """Solve `problem` by DDP.

    Args:
        problem: the optimal-control problem.
        gradient: a contact gradient, or `Adaptive()` (the default).
        settings: limits and tolerance.
        initial_controls: (N, nu); the problem's own by default.
        initial_states: (N+1, nx); starts multiple shooting with the gaps between them.
        callback: called with each entry of the history.

    Returns:
        The best rollout found, with a status that says why the solver stopped.
    """
    started = time.perf_counter()
    settings = settings or DDPSettings()
    gradient = Adaptive() if gradient is None else gradient
    objective = Objective(problem)
    iterate = _initial_iterate(problem, objective, initial_controls, initial_states)
    if iterate is None:
        return _diverged(problem, gradient, time.perf_counter() - started)

    strategy: Strategy = (
        Portfolio(gradient)
        if isinstance(gradient, Adaptive)
        else FixedGradient(gradient)
    )
    best, history, status = iterate, [_record(0, iterate, None)], Status.MAX_ITERATIONS
    try:
        for iteration in range(1, settings.max_iterations + 1):
            neighbourhood = Neighbourhood(problem, objective, iterate)
            move = strategy.move(neighbourhood)
            verdict = _verdict(move, neighbourhood.current_merit, iteration, settings)
            if move.trial is not None and move.trial.best is not None:
                iterate = move.trial.best
                best = _better(best, iterate)
                history.append(_record(iteration, iterate, move))
                if callback is not None:
                    callback(history[-1])
            if verdict is not None:
                status = verdict
                break
            if time.perf_counter() - started > settings.time_limit:
                status = Status.TIME_LIMIT
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return _solution(problem, gradient, best, history, status, time.perf_counter() - started)


def _initial_iterate(
    problem: Problem,
    objective: Objective,
    controls: ArrayLike | None,
    states: ArrayLike | None,
) -> Iterate | None:
    N, dynamics = problem.horizon, problem.dynamics
    assert problem.initial_controls is not None
    U = problem.initial_controls
    if controls is not None:
        U = as_array("initial_controls", controls, (N, dynamics.nu))
    if states is None:
        return roll_out(problem, objective, U)
    X = as_array("initial_states", states, (N + 1, dynamics.nx)).copy()
    X[0] = problem.start
    return multiple_shooting_iterate(problem, objective, X, U)


def _better(best: Iterate, iterate: Iterate) -> Iterate:
    """A rollout without gaps beats one with gaps; among equals the lower merit wins."""
    if (best.gaps is None) != (iterate.gaps is None):
        return iterate if iterate.gaps is None else best
    return iterate if iterate.merit <= best.merit else best


def _verdict(move: Move, merit: float, iteration: int, settings: DDPSettings) -> Status | None:
    """Why to stop after this move, or None to go on."""
    small = settings.tolerance * max(abs(merit), 1e-12)
    stationary = -move.expected <= small
    if move.trial is None:
        if stationary:
            return Status.NO_GRADIENT if iteration == 1 else Status.CONVERGED
        return Status.STALLED
    if move.escape or move.trial.decrease(merit) > small:
        return None
    return Status.CONVERGED if stationary else Status.STALLED


def _record(iteration: int, iterate: Iterate, move: Move | None) -> dict[str, Any]:
    """One line of the history."""
    record: dict[str, Any] = {"iteration": iteration, "cost": iterate.cost, "merit": iterate.merit}
    if move is not None and move.trial is not None:
        gradient = move.trial.gradient
        record |= {
            "gradient": gradient.name,
            "rho": getattr(gradient, "rho", 0.0),
            "delta": getattr(gradient, "delta", 0.0),
            "alpha": move.trial.alpha,
            "regularization": move.trial.regularization,
            "expected": move.trial.expected,
            "escape": move.escape,
            "trials": move.trials,
        }
    return record


def _solution(
    problem: Problem,
    gradient: Gradient | Adaptive,
    best: Iterate,
    history: list[dict[str, Any]],
    status: Status,
    seconds: float,
) -> Solution:
    rollout = best.rollout
    return Solution(
        task=problem.name,
        solver="ddp",
        gradient=gradient.name,
        states=rollout.states,
        controls=rollout.controls,
        impulses=rollout.impulses,
        modes=rollout.modes,
        cost=best.cost,
        status=status,
        iterations=int(history[-1]["iteration"]),
        solve_time=seconds,
        contact_residual=float(np.max(rollout.residual)),
        time_step=problem.dynamics.time_step,
        parameters=problem.parameters,
        history=tuple(history),
    )


def _diverged(problem: Problem, gradient: Gradient | Adaptive, seconds: float) -> Solution:
    """The start held still with zero controls: finite, infinitely expensive, and said so."""
    N, dynamics = problem.horizon, problem.dynamics
    rollout = Rollout(
        np.tile(problem.start, (N + 1, 1)),
        np.zeros((N, dynamics.nu)),
        np.zeros((N, dynamics.n)),
        np.zeros((N, dynamics.n)),
        np.zeros((N, dynamics.nc), dtype=np.int32),
        np.array(np.inf),
    )
    iterate = Iterate(rollout, None, np.inf, np.inf)
    record = [_record(0, iterate, None)]
    return _solution(problem, gradient, iterate, record, Status.DIVERGED, seconds)
