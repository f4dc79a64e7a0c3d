"""The simulator's derivatives in reinforcement learning: samples to the plain learner's return.

One row for each TASK/METHOD and seed: a pendulum of 1 to 5 driven links that shall stand up, and a
leg that shall hop along, learned by

    sac      Stable-Baselines3's soft actor-critic
    policy   the same; its actor climbs by the simulator's derivatives
    sample   the same; each transition of a batch brings neighbours

with one setting for all, that of `SacConfig`. A sample is a control step of the learner's
environment. What is to be reached is the median over seeds of what sac returned in the end; it is
reached where the mean of three judgements in a row is no worse, for sac as for the others.
`simulated` counts what was asked of the simulator in all, derivatives at states of batches, too.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cito.benchmarks.sweep import sweep
from cito.dynamics.types import Array
from cito.problems.episodic import EPISODIC
from cito.solvers.learning.run_folder import RunFolder

BASELINE, METHODS = "sac", ("sac", "policy", "sample")
TAIL = 3  # judgements in a row whose mean counts


@dataclass(frozen=True)
class Size:
    """Which tasks, how many seeds, and what of `SacConfig` is changed for all runs."""

    tasks: tuple[str, ...]
    seeds: int
    config: Mapping[str, Any]

    def configs(self, task: str) -> list[dict[str, Any]]:
        """Of all runs of a task, the baseline's first."""
        return [
            {"task": task, "method": method, "seed": seed, **self.config}
            for method in METHODS
            for seed in range(self.seeds)
        ]


FULL = Size(tuple(EPISODIC), 5, {"steps": 2000, "judged": 100})
QUICK = Size(("links-2", "hopper-run"), 2, {"steps": 800, "judged": 50})


@dataclass(frozen=True)
class Run:
    """A run to be done, by the arguments of its `SacConfig`."""

    config: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"config": dict(self.config)}


def outcome(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """Learn.

    Args:
        experiment: `config`, the arguments of a `SacConfig`.

    Returns:
        steps, returns (m,) of the judgements; final_return, the mean of the last of them;
        simulated, steps asked of the simulator in all; seconds.
    """
    from cito.solvers.learning.sac_training import METHODS as PARTS
    from cito.solvers.learning.sac_training import SacConfig, train_sac

    config = SacConfig(**experiment["config"])
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        summary = train_sac(config, out)
        rows = RunFolder(out).metrics()
    by_policy, by_samples = PARTS[config.method]
    of_each = config.batch * (by_policy + config.neighbours * by_samples)
    updates = max(config.steps - config.warm_up, 0) // config.every
    returns = [row["return"] for row in rows]
    return {
        "steps": [int(row["steps"]) for row in rows],
        "returns": returns,
        "final_return": float(np.mean(returns[-TAIL:])),
        "simulated": summary["steps"] + updates * of_each,
        "seconds": summary["seconds"],
    }


def samples_to(level: float, steps: Array, returns: Array) -> float:
    """Steps until the mean of TAIL judgements in a row is at least `level`; infinite if never."""
    means = np.convolve(returns, np.full(TAIL, 1 / TAIL), mode="valid")
    reached = np.flatnonzero(means >= level)
    return float(steps[reached[0] + len(returns) - len(means)]) if len(reached) else np.inf


def total(quick: bool) -> int:
    """Number of rows."""
    size = QUICK if quick else FULL
    return len(size.tasks) * len(METHODS) * size.seeds


def rows(quick: bool, folder: Path) -> Iterator[dict[str, Any]]:
    """Task by task; what is done is kept in `folder`, where the figure finds it, too."""
    size, parts = QUICK if quick else FULL, folder / parts_of(quick)
    for task in size.tasks:
        configs = size.configs(task)
        found = sweep(outcome, [Run(config).as_dict() for config in configs], parts)
        yield from measured(configs, found)


def parts_of(quick: bool) -> str:
    """Name of the folder of outcomes."""
    return "rl-gradients-quick.parts" if quick else "rl-gradients.parts"


def measured(
    configs: list[dict[str, Any]], outcomes: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Rows of the runs of one task."""
    level = baseline_return(
        [o["final_return"] for c, o in zip(configs, outcomes) if c["method"] == BASELINE]
    )
    for config, found in zip(configs, outcomes):
        samples = samples_to(level, np.array(found["steps"]), np.array(found["returns"]))
        yield {
            "name": f"{config['task']}/{config['method']}",
            "seed": config["seed"],
            "final_return": found["final_return"],
            "baseline_return": level,
            "samples": samples if np.isfinite(samples) else None,
            "steps": found["steps"][-1],
            "simulated": found["simulated"],
            "seconds": found["seconds"],
        }


def baseline_return(finals: list[float]) -> float:
    """What is to be reached."""
    return float(np.median(finals))


def run(quick: bool) -> list[dict[str, Any]]:
    """All rows, with nothing kept."""
    with tempfile.TemporaryDirectory() as folder:
        return list(rows(quick, Path(folder)))


def summarize(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over seeds by name; `of_baseline`: samples over those in which the plain learner was
    there first; `of_all`: over all that it had.

    None stands for samples that were not enough.
    """
    names = list(dict.fromkeys(row["name"] for row in rows))
    summary: dict[str, Any] = {}
    for name in names:
        own = [row for row in rows if row["name"] == name]
        samples = median_samples(own)
        base = [r for r in rows if r["name"] == f"{name.split('/')[0]}/{BASELINE}"]
        first = median_samples(base) if base else np.inf
        compared = np.isfinite(samples) and np.isfinite(first)
        summary[name] = {
            "final_return": float(np.median([row["final_return"] for row in own])),
            "samples": samples if np.isfinite(samples) else None,
            "of_baseline": samples / first if compared else None,
            "of_all": samples / own[0]["steps"] if np.isfinite(samples) else None,
            "simulated": float(np.median([row["simulated"] for row in own])),
            "seconds": float(np.median([row["seconds"] for row in own])),
            "seeds": len(own),
        }
    return summary


def median_samples(rows: list[dict[str, Any]]) -> float:
    """Over seeds, infinite where more than half of them never got there."""
    return float(np.median([np.inf if r["samples"] is None else r["samples"] for r in rows]))


def tables(rows: list[dict[str, Any]]) -> list[tuple[list[str], list[list[Any]]]]:
    """Medians over seeds."""
    headers = ["task/method", "final return", "samples", "of sac's first", "of all"]
    headers += ["simulated", "seconds"]
    cells = [
        [
            name,
            f"{m['final_return']:.1f}",
            "never" if m["samples"] is None else f"{m['samples']:.0f}",
            *("" if m[k] is None else f"{m[k]:.2f}" for k in ("of_baseline", "of_all")),
            f"{m['simulated']:.0f}",
            f"{m['seconds']:.0f}",
        ]
        for name, m in summarize(rows).items()
    ]
    return [(headers, cells)]


def main() -> None:
    """Print the rows as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer tasks, seeds and steps")
    print(json.dumps({"rows": run(parser.parse_args().quick)}, indent=1))


if __name__ == "__main__":
    main()
