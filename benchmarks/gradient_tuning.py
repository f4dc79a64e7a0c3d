"""Settings of each contact gradient, by the same small search on the trot.

Learning by back-propagation depends on the rate of Adam, and relaxed gradients on their width rho.
A comparison with settings that were found for one of them favours that one. Here each gets as many
trainings as the others, of one seed that no figure uses:

    full-cone, signorini   rate x rho        exact   rate x clip of the gradient's norm

Rates are factors on that of the task (`default_settings`). The best has the lowest score: mean cost
of rollouts before a fall, and FALL for each rollout that falls. Larger rates than the task's are
left out: twice that rate won the short trainings for `signorini`, and then two of four trainings
of full length diverged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from cito.dynamics.gradients import Exact
from cito.problems.locomotion import locomotion_task
from cito.problems.locomotion.task import MILD
from cito.solvers.learning.bptt import default_settings
from cito.solvers.learning.evaluation import roll_out, scores
from cito.solvers.learning.training import ALGORITHMS, RHO, TrainingConfig

Row = dict[str, Any]
RATES = (0.5, 1.0)  # of the task's rate
RHOS = (0.01, 0.1)  # [J]
CLIPS = (1.0, 4.0)
STEPS, SECONDS, SEED, FALL = 40_000, 2.0, 1000, 10.0
QUICK_STEPS = 10_000
GRADIENTS = ("exact", "signorini", "full-cone")
# What `cito bench gradient-tuning` found.
TUNED: dict[str, dict[str, float]] = {
    "exact": {"rate": 1.0, "clip": 4.0},
    "signorini": {"rate": 1.0, "rho": 0.01},
    "full-cone": {"rate": 1.0, "rho": 0.01},
}
WIDTHS = (10, 6, 6, 6, 8, 8, 8, 14, 14)


def grid(gradient: str) -> Iterator[dict[str, float]]:
    """The settings that are tried: factor of the rate, and rho or clip."""
    for rate in RATES:
        for value in CLIPS if gradient == "exact" else RHOS:
            yield {"rate": rate, "clip" if gradient == "exact" else "rho": value}


def config(task: str, gradient: str, tried: dict[str, float]) -> dict[str, Any]:
    """The arguments of a `TrainingConfig` with such settings."""
    rate = default_settings(locomotion_task(task), Exact()).rate
    settings = {"rate": tried["rate"] * rate}
    if "clip" in tried:
        settings["clip"] = tried["clip"]
    return {
        "task": task,
        "gradient": gradient,
        "rho": tried.get("rho", RHO),
        "settings": settings,
    }


def total(quick: bool) -> int:
    """The number of rows."""
    return len(list(_tried()))


def rows(quick: bool) -> Iterator[Row]:
    """One row for each training."""
    for gradient, tried in _tried():
        steps = QUICK_STEPS if quick else STEPS
        made = config("trot", gradient, tried) | {"steps": steps, "seed": SEED, "threads": 1}
        yield {"gradient": gradient, **tried, **outcome(TrainingConfig(**made))}


def outcome(made: TrainingConfig) -> Row:
    """Train, and walk from mild starts: cost, fall_rate, gradient_norm and gradient_norm_p95,
    median and 95 % of the norms before clipping."""
    learner = ALGORITHMS["bptt"](made)
    with threadpool_limits(1):
        norms = []
        while not learner.finished:
            norms.append(learner.update()["gradient_norm"])
        task = made.locomotion()
        walked = roll_out(task, learner.policy, MILD, task.randomization.friction, SECONDS, 1)
    found = scores(task, walked)
    kept = {name: found[name] for name in ("cost", "fall_rate")}
    median, high = np.quantile(norms, (0.5, 0.95))
    return kept | {"gradient_norm": float(median), "gradient_norm_p95": float(high)}


def run(quick: bool) -> list[Row]:
    """All rows."""
    return list(rows(quick))


def _tried() -> Iterator[tuple[str, dict[str, float]]]:
    """What is trained: gradients and settings."""
    for gradient in GRADIENTS:
        for tried in grid(gradient):
            yield gradient, tried


def score(row: Row) -> float:
    """The lower the better; who falls at once has no cost and the worst score."""
    cost = row["cost"]
    return (
        np.inf if cost is None or not np.isfinite(cost) else float(FALL * row["fall_rate"] + cost)
    )


def summarize(found: list[Row]) -> dict[str, dict[str, float]]:
    """The best settings of each gradient."""
    best = {}
    for gradient in dict.fromkeys(row["gradient"] for row in found):
        row = min((row for row in found if row["gradient"] == gradient), key=score)
        names = [str(name) for name in ("rate", "rho", "clip") if name in row]
        best[gradient] = {name: float(row[name]) for name in names}
    return best


def tables(found: list[Row]) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """The rows, with the score."""
    headers = ("gradient", "rate", "rho", "clip", "cost", "falls", "score", "norm, median", "95 %")

    def told(row: Row) -> tuple[str, ...]:
        numbers = [row.get(n) for n in ("rate", "rho", "clip", "cost", "fall_rate")]
        numbers += [score(row), row["gradient_norm"], row["gradient_norm_p95"]]
        return (row["gradient"], *("" if n is None else f"{n:.3g}" for n in numbers))

    return [(headers, [told(row) for row in found])]
