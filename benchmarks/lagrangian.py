"""Learned dynamics: how well five kinds of models learn an arm, and what can be done with them.

    uniform/KIND       two-link arm, samples drawn uniformly; judged on samples of the same kind and
                       on motions without forces
    characters/KIND    the same arm writing; judged on the characters e, q and v, which were not learned
    TASK/METHOD        swing-up of the true system by control on a learned model
    two-link-arm/floor the learned arm falls on a floor that it was never taught of

Measures are explained in lagrangian_measures.py and lagrangian_control.py. Which kind is best
differs between the data, and between the measures: no order is asserted.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cito.benchmarks.lagrangian_control import Size, attempts, fall
from cito.benchmarks.lagrangian_measures import (
    ARM,
    RELEASE_TIME,
    forecast,
    released,
    torque_errors,
    written,
)
from cito.dynamics.learned.model_file import KINDS, new_model
from cito.dynamics.learned.motions import Motions, joined
from cito.problems.handwriting import CHARACTERS, write
from cito.problems.model_data import uniform_motions
from cito.solvers.model_learning import Training, learn

TESTED = "eqv"  # characters that are not learned
UNSEEN, RELEASED = 1000, 3  # samples and motions to judge by
TASKS = ("cart-pole", "furuta")
FULL = Size(4000, 48, Training(steps=500, rounds=40, samples=2000))
QUICK = Size(1000, 24, Training(steps=150, batch=64, rounds=10, samples=800))
SEEDS, QUICK_SEEDS = 5, 1
MEASURES = (
    "torque_error", "inertial_error", "coriolis_error", "gravity_error", "energy_drift",
    "valid_time", "unsolved", "success", "up_after", "position_error",
)  # fmt: skip


def datasets(quick: bool) -> tuple[str, ...]:
    """Of the arm."""
    return ("uniform",) if quick else ("uniform", "characters")


def total(quick: bool) -> int:
    """Number of rows."""
    seeds = QUICK_SEEDS if quick else SEEDS
    return len(datasets(quick)) * len(KINDS) * seeds + (2 * len(TASKS) + 1) * (
        1 if quick else SEEDS
    )


def rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Row by row, one for each model or task and seed."""
    size, seeds = (QUICK, QUICK_SEEDS) if quick else (FULL, SEEDS)
    for data in datasets(quick):
        for seed in range(seeds):
            for kind in KINDS:
                yield model_row(data, kind, seed, size)
    for seed in range(1 if quick else SEEDS):
        for task in TASKS:
            for attempt in attempts(task, seed, size):
                yield attempt.row
        yield fall(seed, size)


def run(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    return list(rows(quick))


def model_row(data: str, kind: str, seed: int, size: Size) -> dict[str, Any]:
    """Train one model and judge it."""
    tree = ARM.tree
    if data == "uniform":
        motions = uniform_motions("two-link-arm", size.samples, seed)
        unseen = uniform_motions("two-link-arm", UNSEEN, 10_000 + seed)
        trials = []
    else:
        motions = handwriting("".join(c for c in CHARACTERS if c not in TESTED))
        unseen, trials = handwriting(TESTED), written(TESTED)
    model = new_model(kind, motions, ARM.periodic, seed=seed, width=size.width)
    started = time.perf_counter()
    history = learn(model, motions, replace(size.training, seed=seed)).history
    seconds = time.perf_counter() - started
    free = forecast(
        model, released(RELEASED, seed, RELEASE_TIME if data == "uniform" else 1.0), tree
    )
    times = [forecast(model, t).valid_times for t in trials] or [free.valid_times]
    return {
        "name": f"{data}/{kind}",
        "seed": seed,
        **torque_errors(model, tree, unseen),
        "energy_drift": free.energy_drift,
        "valid_time": float(np.mean(np.concatenate(times))),
        "training_loss": float(history[-1]),
        "training_seconds": seconds,
    }


def handwriting(characters: str) -> Motions:
    """The samples of some characters."""
    return joined([write(c).motions for c in characters])


def summarize(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation of each measure by name, and what the bars are about."""
    names = list(dict.fromkeys(row["name"] for row in rows))
    groups = {name: [row for row in rows if row["name"] == name] for name in names}
    summary: dict[str, Any] = {
        name: {key: _spread(group, key) for key in MEASURES if key in group[0]}
        for name, group in groups.items()
    }
    plain, structured = (
        groups.get(f"uniform/{kind}") for kind in ("network", "lagrangian-structured")
    )
    if plain and structured:
        ratios = [p["torque_error"] / s["torque_error"] for p, s in zip(plain, structured)]
        summary["network_over_structured"] = [float(ratio) for ratio in ratios]
    return summary


def _spread(group: list[dict[str, Any]], key: str) -> dict[str, float]:
    values = np.array([float(row[key]) for row in group])
    finite = values[np.isfinite(values)]
    if len(finite) == 0:
        return {"mean": float("inf"), "std": 0.0, "median": float("inf")}
    return {
        "mean": float(finite.mean()),
        "std": float(finite.std()),
        "median": float(np.median(values)),
    }


def tables(rows: list[dict[str, Any]]) -> list[tuple[list[str], list[list[Any]]]]:
    """Means and standard deviations over the seeds."""
    summary = summarize(rows)
    ratios = summary.pop("network_over_structured", [])
    models = {name: m for name, m in summary.items() if "torque_error" in m}
    headers = ["model", "torque", "inertial", "Coriolis", "gravity", "energy drift", "valid [s]"]
    headers.append("unsolved")
    keys = MEASURES[:7]
    found = [(headers, [[name, *(_told(m[key]) for key in keys)] for name, m in models.items()])]
    swings = {name: m for name, m in summary.items() if "success" in m}
    if swings:
        cells = [
            [name, f"{100 * m['success']['mean']:.0f} %", _told(m["up_after"])]
            for name, m in swings.items()
        ]
        found.append((["swing-up of the true system", "succeeded", "up after [s]"], cells))
    falls = [m for m in summary.values() if "position_error" in m]
    legend = [
        ["errors", "squared, over the variance; mean and standard deviation over seeds"],
        ["unsolved", "share of samples without an inverse model, left out of the errors"],
    ]
    legend += [["network / structured", ", ".join(f"{r:.3g}" for r in ratios)]] if ratios else []
    legend += [["arm on the floor", f"{_told(m['position_error'])} rad off"] for m in falls]
    found.append((["", "notes"], legend))
    return found


def _told(spread: dict[str, float]) -> str:
    return f"{spread['mean']:.2g} +- {spread['std']:.1g}"


def main() -> None:
    """Print the rows as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer seeds, smaller networks")
    print(json.dumps({"rows": run(parser.parse_args().quick)}, indent=1))


if __name__ == "__main__":
    main()
