"""The three planar tasks: every gradient and every solver against the proven optimum.

All solves start from zero control. A method has the same settings in all tasks but for `full-cone`,
whose one rho [J] has to fit the task: that is what `adaptive` does away with.
`ratio` is cost / optimum, the optimum being the mixed-integer reference's, with its proven bound.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from cito import api
from cito.dynamics.gradients import Bundled, Exact, FullCone, Gradient, Randomized, Signorini
from cito.problems.problem import Problem
from cito.results import compress_modes, uninterrupted
from cito.solvers.adaptive import Adaptive
from cito.solvers.solution import Solution

TASKS = ("lift-off", "traverse", "friction-braking")
RHO_SIGNORINI = 0.1  # [J]
RHO_FULL_CONE = {"lift-off": 0.1, "traverse": 0.03, "friction-braking": 1.0}  # [J]
RANDOMIZED = Randomized(std=2.0)  # wide enough to see the ground when braking
BUNDLED = Bundled(offset=0.1, threshold=0.0)  # a mass at rest is loaded below the usual threshold
REPEATS = 5  # of a DDP solve, for the median of its time
COLUMNS = {
    "task": "task",
    "method": "method",
    "cost": "cost",
    "ratio": "cost / optimum",
    "modes": "contact modes",
    "iterations": "iterations",
    "solve_time": "seconds",
    "status": "status",
}
WIDTHS = (16, 33, 10, 14, 24, 10, 7, 0)  # of the columns where rows are printed one by one


def rows(quick: bool) -> Iterator[dict[str, Any]]:
    """One row per task and method; the optimum of a task comes first."""
    from cito.solvers.miqp import reference  # pulls in cvxpy

    for task in TASKS:
        problem = api.make(task)
        best = uninterrupted(reference(problem))
        yield _row(best, best.cost)
        for gradient in gradients(task):
            yield _row(_timed(problem, gradient, 1 if quick else REPEATS), best.cost, gradient)
        if not quick:
            yield _row(uninterrupted(api.solve(problem, solver="mpcc")), best.cost)


def run(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    return list(rows(quick))


def gradients(task: str) -> list[Gradient | Adaptive]:
    """The contact gradients compared on `task`, with their settings."""
    return [
        Exact(),
        Signorini(RHO_SIGNORINI),
        FullCone(RHO_FULL_CONE[task]),
        RANDOMIZED,
        BUNDLED,
        Adaptive(),
    ]


def total(quick: bool) -> int:
    """How many rows there will be."""
    return len(TASKS) * (1 + len(gradients(TASKS[0])) + (not quick))


def tables(rows: list[dict[str, Any]]) -> list[tuple[list[str], list[list[Any]]]]:
    """The rows as a person reads them."""
    cells = []
    for row in rows:
        shown = row | {
            "cost": f"{row['cost']:.6f}",
            "ratio": f"{row['ratio']:.5f}",
            "modes": ", ".join(compress_modes(modes) for modes in row["modes"]),
            "solve_time": f"{row['solve_time']:.4f}",
        }
        cells.append([shown[key] for key in COLUMNS])
    return [(list(COLUMNS.values()), cells)]


def method_name(solver: str, gradient: Gradient | Adaptive | None) -> str:
    """Solver or gradient, with the settings that differ from the defaults or have to be chosen."""
    match gradient:
        case None:
            return "miqp (optimum)" if solver == "miqp" else solver
        case Signorini() | FullCone():
            return f"{gradient.name} {gradient.rho:g} J"
        case Randomized():
            return f"{gradient.name} {gradient.std:g} m/s, {gradient.samples} samples"
        case Bundled():
            trigger = "" if gradient.threshold is None else f", threshold {gradient.threshold:g}"
            return f"{gradient.name} {gradient.offset:g} m{trigger}"
    return gradient.name


def _timed(problem: Problem, gradient: Gradient | Adaptive, repeats: int) -> Solution:
    """The solution under `gradient`, with the median time of several solves that are all alike."""
    solutions = [uninterrupted(api.solve(problem, gradient)) for _ in range(repeats)]
    median = statistics.median(solution.solve_time for solution in solutions)
    return replace(solutions[0], solve_time=median)


def _row(
    solution: Solution, optimum: float, gradient: Gradient | Adaptive | None = None
) -> dict[str, Any]:
    return {
        "task": solution.task,
        "method": method_name(solution.solver, gradient),
        "solver": solution.solver,
        "gradient": solution.gradient or None,
        "rho": getattr(gradient, "rho", None),
        "delta": getattr(gradient, "delta", None),
        "settings": None if gradient is None else str(gradient),
        "cost": solution.cost,
        "optimum": optimum,
        "ratio": solution.cost / optimum,
        "modes": solution.mode_strings(),
        "iterations": solution.iterations,
        "solve_time": solution.solve_time,
        "status": solution.status.name.lower(),
        "converged": solution.converged,
        "contact_residual": solution.contact_residual,
        "bound": solution.bound,
        "gap": solution.gap,
        "nodes": solution.nodes,
    }
