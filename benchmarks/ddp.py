"""What one iteration of DDP costs on the planar tasks and on a Go2, on one thread, and where the
time goes.

    linearize   the steps at frozen impulse, and the cost's expansion
    gradient    the contact solves of f_x, f_u
    riccati     the backward pass
    rollouts    the first block of step sizes: four at once, of the Go2 the full step alone, as the
                controller tries it

All times are medians. `iteration_ms` is the sum of the parts, one plain iteration;
`solve_ms_per_iteration` is the time of a whole solve by its iterations, which may try eight
regularizations and twelve step sizes each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any, NamedTuple

from cito.dynamics.gradients import Exact, FullCone, Gradient, Signorini
from cito.dynamics.types import Array
from cito.mpc_iteration import STEP_SIZES as MPC_STEP_SIZES
from cito.problems.objective import Objective
from cito.problems.problem import Problem
from cito.problems.registry import make
from cito.solvers.ddp import solve_ddp
from cito.solvers.search import STEP_SIZES, Iterate, Neighbourhood, roll_out


class Work(NamedTuple):
    """Gradients, the time below which one plain iteration should stay [ms], step sizes."""

    gradients: tuple[Gradient, ...]
    bar: float = 0.3
    alphas: Array = STEP_SIZES[0]


TASKS = {
    "lift-off": Work((Exact(), Signorini(0.1), FullCone(0.1))),
    "traverse": Work((Exact(), Signorini(0.1), FullCone(0.1))),
    "friction-braking": Work((Exact(), Signorini(0.1), FullCone(1.0))),
    "base-pose": Work((Exact(), Signorini(0.4), FullCone(0.4)), 1.5, MPC_STEP_SIZES[0]),
}
PARTS = ("linearize", "gradient", "riccati", "rollouts")


def run(quick: bool) -> list[dict[str, Any]]:
    """One row per task and gradient."""
    repeats = 5 if quick else 50
    return [
        _row(make(task), gradient, work, repeats)
        for task, work in TASKS.items()
        for gradient in work.gradients
    ]


def milliseconds(number: float) -> str:
    """A time in five characters, whether the machine is idle or not."""
    return f"{number:.3f}" if number < 10 else f"{number:.1f}"


def tables(rows: list[dict[str, Any]]) -> list[tuple[list[str], list[list[Any]]]]:
    """The rows as a person reads them, in milliseconds."""
    headers = ["task", "gradient", "model", "riccati", "rollouts", "total", "solve"]
    cells = []
    for row in rows:
        rho = "" if row["rho"] is None else f" {row['rho']:g} J"
        times = (
            row["linearize_ms"] + row["gradient_ms"],
            row["riccati_ms"],
            row["rollouts_ms"],
            row["iteration_ms"],
            row["solve_ms_per_iteration"],
        )
        cells.append([row["task"], row["gradient"] + rho, *map(milliseconds, times)])
    legend = [
        ["model", "linearization, expansion of the cost, contact gradient"],
        ["total", "a plain iteration; below 0.3 where all is well, of a Go2 1.5"],
        ["solve", "a whole solve divided by its iterations, which may try many steps"],
    ]
    return [(headers, cells), (["", "milliseconds for an iteration"], legend)]


def _row(problem: Problem, gradient: Gradient, work: Work, repeats: int) -> dict[str, Any]:
    laps: dict[str, list[float]] = {part: [] for part in PARTS}
    for _ in range(repeats):
        _iterate(problem, gradient, work.alphas, laps)
    parts = {part: 1e3 * statistics.median(times) for part, times in laps.items()}
    solutions = [solve_ddp(problem, gradient) for _ in range(max(repeats // 5, 1))]
    iterations = solutions[0].iterations
    return {
        "task": problem.name,
        "gradient": gradient.name,
        "rho": getattr(gradient, "rho", None),
        "iterations": iterations,
        **{f"{part}_ms": value for part, value in parts.items()},
        "iteration_ms": sum(parts.values()),
        "bar_ms": work.bar,
        "least_ms": sum(1e3 * min(times) for times in laps.values()),
        "solve_ms_per_iteration": 1e3
        * statistics.median(s.solve_time for s in solutions)
        / iterations,
    }


def _iterate(
    problem: Problem,
    gradient: Gradient,
    alphas: Array,
    laps: dict[str, list[float]],
    iterations: int = 8,
) -> None:
    """Plain iterations from the initial guess, each part timed."""
    objective = Objective(problem)
    assert problem.initial_controls is not None
    iterate: Iterate | None = roll_out(problem, objective, problem.initial_controls)
    assert iterate is not None
    for _ in range(iterations):
        neighbourhood = Neighbourhood(problem, objective, iterate)
        ticks = [time.perf_counter()]
        neighbourhood.linearization, neighbourhood.expansion  # noqa: B018  (formed on first use)
        ticks.append(time.perf_counter())
        neighbourhood.transition(gradient)
        ticks.append(time.perf_counter())
        policy = neighbourhood.backward(gradient, 0.0)
        ticks.append(time.perf_counter())
        assert policy is not None
        candidates = neighbourhood.forward(policy, alphas)
        ticks.append(time.perf_counter())
        for part, begin, end in zip(PARTS, ticks, ticks[1:]):
            laps[part].append(end - begin)
        iterate = min(
            (c for c in candidates if c is not None), key=lambda c: c.merit, default=iterate
        )


def main() -> None:
    """Print the rows as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    print(json.dumps({"rows": run(parser.parse_args().quick)}, indent=1))


if __name__ == "__main__":
    main()
