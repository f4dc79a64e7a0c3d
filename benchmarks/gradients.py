"""Every contact gradient on many tasks: what it finds, how long it takes, and how far off it is.

    gradient_error      |g - g_h| / |g_h|: g = dJ/dU under the contact gradient (the mean over seeds
                        of a randomized one), g_h by central differences of the hard cost
    gradient_variance   E |g - mean g|^2 / |mean g|^2 over seeds; zero but for randomized gradients

both at the task's guess with a little noise, where the hard cost is smooth. A small error is no
merit by itself: the exact gradient has none, and does not see what lies beyond its contact modes.

On the planar tasks two other methods stand beside them: a non-smooth Newton forward law with its
implicit adjoint (`cito.dynamics.fischer_burmeister`), and an augmented Lagrangian method whose
impulses are decision variables (`cito.solvers.complementarity_augmented`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cito import api
from cito.benchmarks.planar import RHO_FULL_CONE
from cito.dynamics.base import Transition
from cito.dynamics.check import finite_difference
from cito.dynamics.fischer_burmeister import FischerBurmeisterDynamics
from cito.dynamics.gradients import Bundled, Exact, FullCone, Gradient, Randomized, Signorini
from cito.dynamics.linear import LinearSystem
from cito.dynamics.types import Array
from cito.problems.objective import CostExpansion, Objective
from cito.problems.problem import Problem
from cito.solvers.adaptive import Adaptive
from cito.solvers.solution import Solution

PLANAR = ("lift-off", "traverse", "friction-braking", "push-box-planar")
OTHERS = ("push-box", "tip-box", "hop", "mass-spring-damper", "arm-hit", "jump")
RHO = {**RHO_FULL_CONE, "jump": 0.3}  # [J]
OTHER_RHO = 0.1  # [J]
LIMITS = {False: 60.0, True: 10.0}  # of a solve, by `quick` [s]
SEEDS = 24  # of randomized gradients
NOISE = 0.05  # of the guess, relative to its largest control, or to 1
STEP = 1e-6  # of the differences, relative in the same way
SMOOTHING = 1e-2  # of the non-smooth Newton law's derivative [m^2/s^2]
COLUMNS = (
    "name", "gradient", "cost", "iterations", "seconds", "gradient_error", "gradient_variance",
    "status",
)  # fmt: skip


def rows(quick: bool) -> Iterator[dict[str, Any]]:
    """A row for each task and gradient, and on planar tasks for each other method."""
    for task in tasks(quick):
        problem = api.make(task)
        guess, numeric = near_the_guess(problem)
        for gradient in gradients(task):
            solution = api.solve(problem, gradient, time_limit=LIMITS[quick])
            error, variance = quality(problem, guess, numeric, gradient)
            yield _row(task, gradient.name, solution, error, variance)
        if task in PLANAR:
            for name, method in others().items():
                yield _row(task, name, *method(problem, guess, numeric, quick))


def run(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    return list(rows(quick))


def total(quick: bool) -> int:
    """How many rows there will be."""
    return len(tasks(quick)) * len(gradients("")) + len(PLANAR) * len(others())


def tasks(quick: bool) -> tuple[str, ...]:
    """The tasks that are compared."""
    return PLANAR if quick else PLANAR + OTHERS


def gradients(task: str) -> list[Gradient | Adaptive]:
    """Every gradient, with the relaxation that fits the task's energies."""
    rho = RHO.get(task, OTHER_RHO)
    return [
        Adaptive(),
        Exact(),
        Signorini(rho),
        FullCone(rho),
        Randomized(std=2.0),
        Bundled(offset=0.1, threshold=0.0),
    ]


def tables(rows: list[dict[str, Any]]) -> list[tuple[list[str], list[list[Any]]]]:
    """The rows as a person reads them."""
    cells = [[*(row[c] for c in COLUMNS[:-1]), row["status"].split(":")[0][:24]] for row in rows]
    return [([c.replace("_", " ") for c in COLUMNS], cells)]


# ------------------------------------------------------------------- the gradient of the cost
def near_the_guess(problem: Problem) -> tuple[Array, Array]:
    """Controls (N, nu) with noise, and dJ/dU there by central differences of the hard cost."""
    assert problem.initial_controls is not None  # its constructor sees to that
    U = problem.initial_controls
    size = max(1.0, float(np.abs(U).max()))
    U = U + NOISE * size * np.random.default_rng(0).standard_normal(U.shape)
    objective = Objective(problem)

    def cost(rows: Array) -> Array:
        motion = problem.dynamics.rollout(problem.start, rows.reshape(-1, *U.shape))
        J: Array = objective.value(motion.states, motion.controls)
        return J[:, None]

    numeric = finite_difference(cost, U.ravel(), step=STEP * size)
    return U, numeric.reshape(U.shape)


def quality(
    problem: Problem, U: Array, numeric: Array, gradient: Gradient | Adaptive
) -> tuple[float | None, float | None]:
    """Error and variance of dJ/dU; none of `adaptive`, which chooses among gradients."""
    if isinstance(gradient, Adaptive):
        return None, None
    laws: list[Gradient] = [gradient]
    if isinstance(gradient, Randomized):
        laws = [replace(gradient, seed=i) for i in range(SEEDS)]
    motion = problem.dynamics.rollout(problem.start, U)
    linearization = problem.dynamics.linearize(motion)
    expansion = Objective(problem).expansion(motion.states, motion.controls)
    found = np.array([cost_gradient(expansion, linearization.with_gradient(law)) for law in laws])
    mean = found.mean(axis=0)
    spread = np.square(found - mean).sum(axis=(1, 2)).mean() / np.square(mean).sum()
    return _off(mean, numeric), float(spread)


def cost_gradient(expansion: CostExpansion, transition: Transition) -> Array:
    """dJ/dU (N, nu) by  p_k = l_x + f_x' p_{k+1},  g_k = l_u + f_u' p_{k+1}."""
    l_x, l_u, *_ = expansion
    f_x, f_u = transition
    g, p = np.zeros_like(l_u), l_x[-1]
    for k in reversed(range(len(l_u))):
        g[k] = l_u[k] + f_u[k].T @ p
        p = l_x[k] + f_x[k].T @ p
    return g


def _off(g: Array, numeric: Array) -> float:
    return float(np.linalg.norm(g - numeric) / max(float(np.linalg.norm(numeric)), 1e-300))


# ------------------------------------------------------------------------------ other methods
Found = tuple[Solution, float | None, float | None]
Method = Callable[[Problem, Array, Array, bool], Found]


def others() -> dict[str, Method]:
    """The methods beside the gradients, by name."""
    return {"fischer-burmeister": _fischer_burmeister, "augmented-lagrangian": _augmented}


def _fischer_burmeister(problem: Problem, U: Array, numeric: Array, quick: bool) -> Found:
    """DDP on the non-smooth Newton law; the cost is of the hard rollout of its controls."""
    hard = problem.dynamics
    assert isinstance(getattr(hard, "system", None), LinearSystem)
    law = FischerBurmeisterDynamics(hard, SMOOTHING)  # type: ignore[arg-type]
    other = replace(problem, dynamics=law)
    found = api.solve(other, Exact(), time_limit=LIMITS[quick])
    motion = hard.rollout(problem.start, found.controls)
    cost = float(Objective(problem).value(motion.states, motion.controls))
    near, _ = quality(other, U, numeric, Exact())
    return replace(found, cost=cost), near, 0.0


def _augmented(problem: Problem, U: Array, numeric: Array, quick: bool) -> Found:
    """No gradient through the contact law: it is a set of constraints."""
    from cito.solvers.complementarity_augmented import solve_augmented_contact  # pulls in casadi

    return solve_augmented_contact(problem), None, None


def _row(
    task: str, gradient: str, solution: Solution, error: float | None, variance: float | None
) -> dict[str, Any]:
    return {
        "name": task,
        "gradient": gradient,
        "cost": solution.cost,
        "iterations": solution.iterations,
        "seconds": solution.solve_time,
        "gradient_error": error,
        "gradient_variance": variance,
        "status": solution.status.value,
        "converged": solution.status.converged,
    }
