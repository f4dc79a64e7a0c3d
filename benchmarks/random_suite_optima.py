"""Proven optima of the random suite: `python -m cito.benchmarks.random_suite_optima` writes them.

`random_suite_optima.json` holds one entry for each seed: cost, bound, gap, whether the gap was
closed within the time limit, nodes and seconds. It is extended seed by seed, so that a run can be
stopped and resumed; entries of another generator are thrown away.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cito.problems.random_suite import (
    REPORT_SEEDS,
    TUNING_SEEDS,
    generator_hash,
    random_problem,
)
from cito.results import uninterrupted

FILE = Path(__file__).with_name("random_suite_optima.json")
TIME_LIMIT = 120.0  # for each proof [s]


@dataclass(frozen=True)
class Optimum:
    """What is known about one problem: bound <= optimum <= cost; proven: they agree to `gap`."""

    cost: float
    bound: float
    gap: float
    proven: bool
    nodes: int
    seconds: float


def load(file: Path = FILE) -> dict[int, Optimum]:
    """The cached optima by seed.

    Raises:
        ValueError: they were made by another generator of problems.
    """
    content = json.loads(file.read_text())
    if content["generator"] != generator_hash():
        raise ValueError(
            f"{file.name} belongs to another generator of problems; run "
            "python -m cito.benchmarks.random_suite_optima"
        )
    return {int(seed): Optimum(**entry) for seed, entry in content["optima"].items()}


def prove(seed: int, time_limit: float = TIME_LIMIT) -> Optimum:
    """The optimum of one problem of the suite."""
    from cito.solvers.miqp import reference

    solution = uninterrupted(reference(random_problem(seed), time_limit=time_limit))
    assert solution.bound is not None and solution.gap is not None
    return Optimum(
        cost=solution.cost,
        bound=solution.bound,
        gap=solution.gap,
        proven=solution.converged,
        nodes=solution.nodes or 0,
        seconds=round(solution.solve_time, 3),
    )


def save(optima: dict[int, Optimum], file: Path = FILE) -> None:
    """Write the cache, under a temporary name first."""
    content: dict[str, Any] = {
        "generator": generator_hash(),
        "optima": {str(seed): asdict(optima[seed]) for seed in sorted(optima)},
    }
    text = json.dumps(content, indent=0).replace(",\n", ", ").replace("{\n", "{")
    text = text.replace("\n}", "}").replace("}, ", "},\n") + "\n"
    temporary = file.with_suffix(".tmp")
    temporary.write_text(text)
    os.replace(temporary, file)


def main() -> None:
    """Prove what is missing."""
    parser = argparse.ArgumentParser(description="Prove the optima of the random suite.")
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT, metavar="S")
    parser.add_argument("--file", type=Path, default=FILE)
    arguments = parser.parse_args()
    try:
        optima = load(arguments.file)
    except (OSError, ValueError):
        optima = {}
    for seed in (*TUNING_SEEDS, *REPORT_SEEDS):
        if seed not in optima:
            optima[seed] = prove(seed, arguments.time_limit)
            save(optima, arguments.file)
            print(seed, optima[seed], flush=True)


if __name__ == "__main__":
    main()
