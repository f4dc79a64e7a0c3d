"""The random suite: how close to the proven optimum each method comes, without tuning by problem.

Every problem is solved from zero control by every method; a method has one setting for all of them.
`ratio` is cost / optimum, or cost / proven bound where the proof was not completed in time. What is
done is kept after each problem, so that a run that was stopped goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cito import api
from cito.benchmarks import random_suite_optima
from cito.benchmarks.random_suite_optima import Optimum
from cito.dynamics.gradients import Exact, FullCone, Signorini
from cito.problems.random_suite import REPORT_SEEDS, generator_hash, random_problem
from cito.results import json_text, uninterrupted
from cito.solvers.adaptive import Adaptive
from cito.solvers.solution import Solution

# Each fixed rho is the one that solved most of the tuning seeds 0..99.
METHODS: dict[str, partial[Solution]] = {
    "exact": partial(api.solve, gradient=Exact()),
    "signorini 0.1 J": partial(api.solve, gradient=Signorini(0.1)),
    "full-cone 0.03 J": partial(api.solve, gradient=FullCone(0.03)),
    "adaptive": partial(api.solve, gradient=Adaptive()),
    "mpcc": partial(api.solve, solver="mpcc"),
}
QUICK_SEEDS = REPORT_SEEDS[:10]
CLOSE = 1.005  # cost / optimum up to which a problem counts as solved
PARTIAL = "random_suite.partial.json"


def rows(
    quick: bool, seeds: Sequence[int] | None = None, folder: Path | None = None
) -> Iterator[dict[str, Any]]:
    """One row per seed and method.

    Args:
        quick: fewer seeds, and without the nonlinear program.
        seeds: of the problems; 1000..1099 by default.
        folder: where an interrupted run is kept until it is complete.
    """
    methods, seeds = _chosen(quick, seeds)
    file = None if folder is None else Path(folder) / PARTIAL
    done = {} if file is None else _read(file)
    optima = _optima()
    for seed in seeds:
        for name in methods:
            row = done.get((seed, name))
            if row is None:
                best = optima.get(seed) or random_suite_optima.prove(seed)
                optima[seed] = best
                solution = uninterrupted(METHODS[name](random_problem(seed)))
                row = done[seed, name] = _row(seed, name, solution, best)
            yield row
        if file is not None:
            _write(file, list(done.values()))
    if file is not None:
        file.unlink(missing_ok=True)


def run(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    return list(rows(quick))


def total(quick: bool, seeds: Sequence[int] | None = None) -> int:
    """How many rows there will be."""
    methods, seeds = _chosen(quick, seeds)
    return len(methods) * len(seeds)


def tables(rows: list[dict[str, Any]]) -> list[tuple[list[str], list[list[Any]]]]:
    """The distribution of each method, and the problems that it did not solve."""
    headers = ["method", "problems", "within 0.1 %", "within 0.5 %", "median", "worst", "seconds"]
    summary, failures = [], []
    for entry in summarize(rows):
        summary.append(
            [
                entry["method"],
                entry["problems"],
                f"{entry['within_0.1_percent']:.0f} %",
                f"{entry['within_0.5_percent']:.0f} %",
                f"{entry['median_ratio']:.5f}",
                f"{entry['worst_ratio']:.5f}",
                f"{entry['median_time']:.3f}",
            ]
        )
        named = ", ".join(f"{seed} ({ratio:.4g})" for seed, ratio in entry["failures"].items())
        failures.append([entry["method"], named or "none"])
    unproven = ", ".join(dict.fromkeys(str(row["seed"]) for row in rows if not row["proven"]))
    return [
        (headers, summary),
        (["method", "seeds further off than 0.5 % (cost / optimum)"], failures),
        (["seeds judged by a bound, as their optimum is not proven"], [[unproven or "none"]]),
    ]


def summarize(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry per method: shares [%], cost / optimum, median time [s]."""
    entries = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        ratios = [row["ratio"] for row in own]
        entries.append(
            {
                "method": method,
                "problems": len(own),
                "within_0.1_percent": 100 * sum(r <= 1.001 for r in ratios) / len(own),
                "within_0.5_percent": 100 * sum(r <= CLOSE for r in ratios) / len(own),
                "median_ratio": statistics.median(ratios),
                "worst_ratio": max(ratios),
                "median_time": statistics.median(row["solve_time"] for row in own),
                "failures": {row["seed"]: row["ratio"] for row in own if not row["ratio"] <= CLOSE},
            }
        )
    return entries


def _chosen(quick: bool, seeds: Sequence[int] | None) -> tuple[list[str], Sequence[int]]:
    methods = [name for name in METHODS if not (quick and name == "mpcc")]
    return methods, seeds or (QUICK_SEEDS if quick else REPORT_SEEDS)


def _optima() -> dict[int, Optimum]:
    """The optima that ship with cito; those that are missing are proven when needed."""
    try:
        return random_suite_optima.load()
    except (OSError, ValueError):
        return {}


def _row(seed: int, method: str, solution: Solution, best: Optimum) -> dict[str, Any]:
    optimum = best.cost if best.proven else best.bound
    return {
        "seed": seed,
        "method": method,
        "solver": solution.solver,
        "gradient": solution.gradient or None,
        "cost": solution.cost,
        "optimum": optimum,
        "proven": best.proven,
        "ratio": solution.cost / optimum,
        "iterations": solution.iterations,
        "solve_time": solution.solve_time,
        "status": solution.status.name.lower(),
        "converged": solution.converged,
        "contact_residual": solution.contact_residual,
    }


def _settings() -> dict[str, Any]:
    """What a kept row depends on."""
    return {
        "generator": generator_hash(),
        "methods": {name: str(method.keywords) for name, method in METHODS.items()},
    }


def _read(file: Path) -> dict[tuple[int, str], dict[str, Any]]:
    """The rows of a run that was stopped; none if it was run with other settings."""
    try:
        kept = json.loads(file.read_text())
        rows = kept["rows"] if kept["settings"] == _settings() else []
        return {(row["seed"], row["method"]): row for row in rows}
    except (OSError, ValueError, KeyError, TypeError):  # missing, or not written by `_write`
        return {}


def _write(file: Path, rows: list[dict[str, Any]]) -> None:
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    temporary.write_text(json_text({"settings": _settings(), "rows": rows}))
    temporary.replace(file)
