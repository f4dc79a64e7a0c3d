"""Soft bodies: derivatives, solve times, and actuation fields that make bodies take given shapes.

Rows, told apart by `name`:

- `derivatives-2d`, `-3d`: largest relative errors against central differences, of the energy's
  gradient where elements are upright and where some are inverted, of the adjoint of an equilibrium
  by K's factors (conjugate gradients and the fixed point), and its distance from the one by factors
  of the exact Hessian.
- `solve-2d`, `-3d`: bodies of about 10^4 vertices: seconds to factorize, to a residual of 1e-4 from
  rest, after a small change of actuation, and for an adjoint.
- a task's name: one `field` trained on a sequence of shapes, all fields with about as many
  parameters: RMS distance of vertices over the body's size on the mesh of the training (`error`),
  with the same network on the refined mesh (`refined_error`; a decoder has none), and at the
  middles between codes (`between_error`, beside the mean of the neighbouring targets).

All seconds are the processor's, on one thread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from cito.benchmarks.soft_body_solves import derivatives, solve_times
from cito.dynamics.soft import Equilibrium
from cito.dynamics.types import Array
from cito.problems.soft_bodies import SHAPE_TASKS, shape_task

Row = dict[str, Any]
FIELDS = ("siren", "decoder", "mlp")
SEEDS = (0,)
POSES = {2: 8, 3: 6}
STEPS = {2: 300, 3: 200}
QUICK_POSES = 3
QUICK_STEPS = {"bending-bar": 100, "twisting-bar": 100, "inflating-slab": 30, "face": 25}
BARS = {
    "derivative_error": 1e-6,
    "error": {t: shape_task(t).bar for t in SHAPE_TASKS},
    "ratio": 1.5,
}


def run(quick: bool = False) -> list[Row]:
    """All rows."""
    return list(rows(quick))


def rows(quick: bool = False) -> Iterator[Row]:
    """Row by row."""
    for d in (2, 3):
        yield derivatives(d)
    for d in (2, 3):
        yield solve_times(d)
    if find_spec("torch") is None:
        yield {"name": "shapes", "seed": 0, "note": "PyTorch is not installed (the extra learn)"}
        return
    for task, field, seed in trainings(quick):
        yield train(task, field, seed, quick)


def total(quick: bool = False) -> int:
    """How many rows there are."""
    return 4 + (len(trainings(quick)) if find_spec("torch") is not None else 1)


def trainings(quick: bool) -> list[tuple[str, str, int]]:
    """Task, field and seed of each training; the quick ones have a rival on one task only."""
    if quick:
        return [
            (t, f, 0) for t in SHAPE_TASKS for f in FIELDS[:2] if f == "siren" or t == "bending-bar"
        ]
    return [(t, f, seed) for t in SHAPE_TASKS for f in FIELDS for seed in SEEDS]


def train(name: str, field: str, seed: int, quick: bool) -> Row:
    """One field on one task: its row."""
    return measured(*trained(name, field, seed, quick))


def trained(name: str, field: str, seed: int, quick: bool) -> tuple[Any, Array, Equilibrium, float]:
    """A `ShapeLearner` after its training, times and shapes of its targets, and seconds."""
    from cito.solvers.shape_learning import ShapeLearner, ShapeTraining

    task = shape_task(name)
    d, n = task.mesh.dimension, len(task.mesh.vertices)
    times = np.linspace(0, 1, QUICK_POSES if quick else POSES[d])
    made = task.shapes(times)
    steps = QUICK_STEPS[name] if quick else STEPS[d]
    training = ShapeTraining(field=field, seed=seed, steps=steps)  # type: ignore[arg-type]
    begin = time.process_time()
    learner = ShapeLearner(task, made.positions[:, :n], training).learn()
    return learner, times, made, time.process_time() - begin


def measured(learner: Any, times: Array, made: Equilibrium, seconds: float) -> Row:
    """The row of a training."""
    task, training, targets = learner.task, learner.training, made.positions
    n = len(task.mesh.vertices)
    found = learner.shapes()
    error = learner.error(found.positions, targets[:, :n])
    row: Row = {
        "name": task.name, "seed": training.seed, "field": training.field,
        "parameters": learner.parameter_count, "elements": len(task.mesh.elements),
        "poses": len(times), "steps": training.steps,
        "seconds": seconds, "error": error, "bar": task.bar,
    }  # fmt: skip
    refined: Row = {"refined_elements": None, "refined_error": None, "refined_ratio": None}
    residual = max(float(made.residual.max()), float(found.residual.max()))
    if training.field != "decoder":
        fine = learner.shapes(level=1)
        refined_error = learner.error(fine.positions, targets[:, : fine.positions.shape[1]])
        refined = {
            "refined_elements": len(task.levels[1][0].elements),
            "refined_error": refined_error,
            "refined_ratio": refined_error / error,
        }
        residual = max(residual, float(fine.residual.max()))
    z = learner.codes.detach().numpy()
    middle = task.shapes((times[1:] + times[:-1]) / 2).positions[:, :n]
    between = learner.shapes((z[1:] + z[:-1]) / 2)
    mean = (targets[1:, :n] + targets[:-1, :n]) / 2
    return row | refined | {
        "between_error": learner.error(between.positions, middle),
        "mean_of_neighbours_error": learner.error(mean, middle),
        "residual": max(residual, float(between.residual.max())),
        "converged": bool(found.converged.all() and between.converged.all()),
    }  # fmt: skip


def summarize(found: list[Row]) -> Row:
    """Which bars are met."""
    trained = [row for row in found if "field" in row]
    siren = [row for row in trained if row["field"] == "siren"]
    slopes = [
        v for r in found for k, v in r.items() if k.endswith(("gradient_error", "_point_error"))
    ]
    slopes += [r["conjugate_error"] for r in found if "conjugate_error" in r]
    pairs = [
        (s["error"], r["error"])
        for s in siren
        for r in trained
        if r["field"] == "decoder" and (r["name"], r["seed"]) == (s["name"], s["seed"])
    ]
    return {
        "largest_derivative_error": max(slopes, default=None),
        "siren_within_bar": sum(row["error"] <= row["bar"] for row in siren),
        "siren_refined_within_ratio": sum(row["refined_ratio"] <= BARS["ratio"] for row in siren),
        "siren_trainings": len(siren),
        "siren_better_than_decoder": [sum(a < b for a, b in pairs), len(pairs)],
        "decoder_on_the_refined_mesh": "impossible: its outputs belong to the elements of one mesh",
        "bars": BARS,
    }


def tables(found: list[Row]) -> list[tuple[list[str], list[list[Any]]]]:
    """The rows as a person reads them: derivatives, solve times, fields."""
    slopes = [row for row in found if row["name"].startswith("derivatives")]
    solves = [row for row in found if row["name"].startswith("solve")]
    trained = [row for row in found if "field" in row]
    notes = [row for row in found if "note" in row]
    first = ["", "dE/dx", "inverted", "adjoint", "fixed point", "iterations"]
    second = [
        "",
        "vertices",
        "factors s",
        "from rest s",
        "steps",
        "warm s",
        "adjoint s",
        "residual",
    ]
    third = ["task", "field", "parameters", "error %", "bar %", "refined %", "ratio", "between %",
             "mean of two %", "seconds"]  # fmt: skip
    return [
        (first, [_slope_cells(row) for row in slopes]),
        (second, [_solve_cells(row) for row in solves]),
        (third, [_field_cells(row) for row in trained] + [[r["note"]] + [""] * 9 for r in notes]),
    ]


def _slope_cells(row: Row) -> list[Any]:
    keys = ("gradient_error", "inverted_gradient_error", "conjugate_error", "fixed_point_error")
    iterations = f"{row['conjugate_iterations']}, {row['fixed_point_iterations']}"
    return [row["name"], *(f"{row[key]:.0e}" for key in keys), iterations]


def _solve_cells(row: Row) -> list[Any]:
    keys = ("factor_seconds", "seconds", "iterations", "warm_seconds", "adjoint_seconds")
    texts = [f"{row[k]:.3g}" for k in keys]
    return [row["name"], row["vertices"], *texts, f"{row['residual']:.0e}"]


def _field_cells(row: Row) -> list[Any]:
    def percent(key: str) -> str:
        return "not possible" if row[key] is None else f"{100 * row[key]:.2f}"

    ratio = "" if row["refined_ratio"] is None else f"{row['refined_ratio']:.2f}"
    return [
        row["name"], row["field"], row["parameters"], percent("error"), percent("bar"),
        percent("refined_error"), ratio, percent("between_error"),
        percent("mean_of_neighbours_error"), f"{row['seconds']:.0f}",
    ]  # fmt: skip


def main() -> None:
    """Print the rows as one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short trainings")
    found = run(parser.parse_args().quick)
    print(json.dumps({"rows": found, "summary": summarize(found)}, indent=1))


if __name__ == "__main__":
    main()
