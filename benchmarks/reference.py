"""The mixed-integer reference: time to a proof, and whether independent solvers find the same.

The built-in branch and bound against every other solver that is installed, on the same statement:
the three planar tasks, the box on the ground, and a few problems of the random suite. Times include
stating the program and cvxpy's compilation, not the import of cvxpy.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from cito.problems.problem import Problem
from cito.problems.random_suite import random_problem
from cito.problems.registry import make

TASKS = ("lift-off", "traverse", "friction-braking", "push-box-planar")
SEEDS = (0, 3, 33)  # of the random suite
REPEATS = 5
TIME_LIMIT = 60.0  # [s]
COLUMNS = {
    "task": "task",
    "solver": "solver",
    "cost": "cost",
    "gap": "gap",
    "nodes": "nodes",
    "solve_time": "seconds",
    "status": "status",
}


def rows(quick: bool) -> Iterator[dict[str, Any]]:
    """One row per problem and solver; `quick`: the built-in one, and once."""
    from cito.solvers.miqp import OTHERS

    others = [] if quick else [name for name, module in OTHERS.items() if find_spec(module)]
    problems = [make(name) for name in TASKS]
    problems += [random_problem(seed) for seed in (SEEDS[:1] if quick else SEEDS)]
    for problem in problems:
        for solver in ("daqp", *others):
            yield _row(problem, solver, REPEATS if solver == "daqp" and not quick else 1)


def run(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    return list(rows(quick))


def tables(rows: list[dict[str, Any]]) -> list[tuple[list[str], list[list[Any]]]]:
    """The rows as a person reads them."""
    told = []
    for row in rows:
        shown = row | {
            "cost": f"{row['cost']:.9f}",
            "gap": f"{row['gap']:.1e}",
            "nodes": row["nodes"] or "",
            "solve_time": f"{row['solve_time']:.2f}",
        }
        told.append([shown[key] for key in COLUMNS])
    return [(list(COLUMNS.values()), told)]


def _row(problem: Problem, solver: str, repeats: int) -> dict[str, Any]:
    from cito.solvers.miqp import reference

    solutions = [reference(problem, solver, time_limit=TIME_LIMIT) for _ in range(repeats)]
    solution = solutions[0]
    return {
        "task": problem.name,
        "solver": solver,
        "cost": solution.cost,
        "bound": solution.bound,
        "gap": solution.gap,
        "nodes": solution.nodes,
        "solve_time": statistics.median(s.solve_time for s in solutions),
        "status": solution.status.name.lower(),
    }


def main() -> None:
    """Print the rows."""
    for row in rows(quick=False):
        print(*tables([row])[0][1][0], sep="  ", flush=True)


if __name__ == "__main__":
    main()
