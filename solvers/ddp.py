"""Differential dynamic programming over hard contact, with Gauss-Newton Hessians (iLQR).

    linearize   the hard rollout at frozen impulses
    gradient    f_x, f_u under an exact or relaxed contact law
    backward    Riccati recursion -> k, K                        (native)
    forward     hard rollouts u = U + alpha k + K (x (-) X)      (native), the best is kept

How these are sequenced is a strategy: `FixedGradient` (solvers/fixed_gradient.py) for one kernel,
`Portfolio` (solvers/portfolio.py) for several, `Adaptive` (solvers/adaptive.py) by default. Neither
the recursion nor the rollout of a policy knows of contact, and the best iterate is never lost.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from cito.dynamics.base import Rollout
from cito.dynamics.gradients import Gradient
from cito.dynamics.types import as_array
from cito.problems.objective import Objective
from cito.problems.problem import Problem, as_problem
from cito.solvers.adaptive import Adaptive
from cito.solvers.descent import Callback, DDPSettings, Descent, LimitReached
from cito.solvers.fixed_gradient import FixedGradient
from cito.solvers.portfolio import Portfolio
from cito.solvers.search import Iterate, multiple_shooting_iterate, roll_out
from cito.solvers.solution import Solution, Status

Strategy = Adaptive | Portfolio


def solve_ddp(
    problem: Problem,
    gradient: Gradient | Strategy | None = None,
    settings: DDPSettings | None = None,
    *,
    initial_controls: ArrayLike | None = None,
    initial_states: ArrayLike | None = None,
    callback: Callback | None = None,
) -> Solution:
    """Solve `problem` by DDP.

    Args:
        problem: the optimal-control problem.
        gradient: a contact gradient, `Portfolio()` of several, or `Adaptive()` (the default).
        settings: limits and tolerance.
        initial_controls: (N, nu); the problem's own by default.
        initial_states: (N+1, nx); starts multiple shooting with the gaps between them.
        callback: called with each entry of the history.

    Returns:
        The best rollout found, with a status that says why the solver stopped.

    Raises:
        ValueError: arguments of the wrong kind or shape.
    """
    started = time.perf_counter()
    problem = as_problem(problem)
    settings = settings or DDPSettings()
    gradient = Adaptive() if gradient is None else gradient
    if not isinstance(gradient, Gradient | Strategy):
        raise ValueError(
            f"`gradient` must be a contact gradient, Portfolio() or Adaptive(), got {gradient!r}"
        )
    objective = Objective(problem)
    iterate = _initial_iterate(problem, objective, initial_controls, initial_states)
    if iterate is None:
        return _diverged(problem, gradient, time.perf_counter() - started)

    descent = Descent(problem, objective, iterate, settings, callback)
    strategy = gradient if isinstance(gradient, Strategy) else FixedGradient(gradient)
    try:
        with threadpool_limits(limits=1, user_api="blas"):  # its threads only spin: small matrices
            status = strategy.run(descent, iterate)
    except LimitReached as limit:
        status = limit.status
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    if descent.best.gaps is not None:  # never closed: what these controls really do
        rolled_out = roll_out(problem, objective, descent.best.rollout.controls)
        if rolled_out is None:
            return _diverged(problem, gradient, time.perf_counter() - started)
        descent.best = rolled_out
    return _solution(problem, gradient, descent, status, time.perf_counter() - started)


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


def _solution(
    problem: Problem,
    gradient: Gradient | Strategy,
    descent: Descent,
    status: Status,
    seconds: float,
) -> Solution:
    best, rollout = descent.best, descent.best.rollout
    return Solution.of_rollout(
        problem,
        rollout,
        best.cost,
        solver="ddp",
        gradient=gradient.name,
        status=status,
        iterations=descent.iterations,
        solve_time=seconds,
        history=tuple(descent.history),
    )


def _diverged(problem: Problem, gradient: Gradient | Strategy, seconds: float) -> Solution:
    """The start held still, controls as near zero as their limits allow, at infinite cost."""
    N, dynamics = problem.horizon, problem.dynamics
    lower = -np.inf if problem.control_lower is None else problem.control_lower
    upper = np.inf if problem.control_upper is None else problem.control_upper
    rollout = Rollout(
        np.tile(problem.start, (N + 1, 1)),
        np.clip(np.zeros((N, dynamics.nu)), lower, upper),
        np.zeros((N, dynamics.n)),
        np.zeros((N, dynamics.n)),
        np.zeros((N, dynamics.nc), dtype=np.int32),
        np.array(np.inf),
    )
    iterate = Iterate(rollout, None, np.inf, np.inf)
    descent = Descent(problem, Objective(problem), iterate, DDPSettings())
    return _solution(problem, gradient, descent, Status.DIVERGED, seconds)
