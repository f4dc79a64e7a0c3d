"""One training and what its policy is worth, as an experiment of a sweep."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cito.dynamics.types import Array
from cito.problems.locomotion.task import MILD
from cito.solvers.learning.evaluation import FRICTIONS, Rollouts, roll_out, scores
from cito.solvers.learning.run_folder import RunFolder
from cito.solvers.learning.training import TrainingConfig, load_policy, train

POINTS = 60  # of a training curve
QUANTILES = 41  # of the costs of rollouts
FRICTION_RANGE = (0.1, 1.3)  # over which falls are counted [-]


@dataclass(frozen=True)
class Training:
    """A training to be done: the arguments of its `TrainingConfig`, and seconds of a rollout."""

    config: Mapping[str, Any]
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"config": dict(self.config), "seconds": self.seconds}


def outcome(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """Train, and walk over commands and frictions from mild starts.

    Args:
        experiment: `config`, the arguments of a `TrainingConfig`; `seconds` of a rollout.

    Returns:
        curve_steps, curve_cost, curve_seconds (POINTS,): of the training, the cost a mean over the
        updates about each point; gradient_norm: median; train_falls; wall_time [s]; fall_rate,
        velocity_rmse, yaw_rate_rmse, cost: of the task's frictions; cost_quantiles (QUANTILES,):
        of a rollout's mean cost before a fall; falls_by_friction (FRICTIONS,): over FRICTION_RANGE.
    """
    config = TrainingConfig(**experiment["config"])
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        summary = train(config, out)
        rows = RunFolder(out).metrics()
        _, policy = load_policy(out)
    task, seconds = config.locomotion(), float(experiment["seconds"])
    own = roll_out(task, policy, MILD, task.randomization.friction, seconds, config.threads)
    wide = roll_out(task, policy, MILD, FRICTION_RANGE, seconds, config.threads)
    found = scores(task, own)
    kept = ("fall_rate", "velocity_rmse", "yaw_rate_rmse", "cost")
    return {
        **curve(rows),
        "gradient_norm": float(np.median([row["gradient_norm"] for row in rows])),
        "train_falls": summary["falls"],
        "wall_time": summary["wall_time"],
        **{name: found[name] for name in kept},
        "cost_quantiles": np.quantile(mean_costs(own), np.linspace(0, 1, QUANTILES)).tolist(),
        "falls_by_friction": falls_by_friction(wide).tolist(),
    }


def curve(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    """The training at POINTS equally spaced numbers of control steps."""
    steps, cost, seconds = (
        np.array([row[name] for row in rows]) for name in ("steps", "cost", "seconds")
    )
    width = max(1, len(rows) // POINTS)
    sums = np.convolve(cost, np.ones(width), mode="same")
    smooth = sums / np.convolve(np.ones(len(cost)), np.ones(width), mode="same")
    at = np.linspace(steps[0], steps[-1], POINTS)
    return {
        "curve_steps": at.tolist(),
        "curve_cost": np.interp(at, steps, smooth).tolist(),
        "curve_seconds": np.interp(at, steps, seconds).tolist(),
    }


def mean_costs(r: Rollouts) -> Array:
    """Mean cost of each rollout before a fall, (B,)."""
    ticks = np.maximum(r.alive.sum(axis=0), 1)
    costs: Array = np.where(r.alive, r.cost, 0.0).sum(axis=0) / ticks
    return costs


def falls_by_friction(r: Rollouts) -> Array:
    """Share of rollouts that fell on each friction, (FRICTIONS,)."""
    mu = np.linspace(*FRICTION_RANGE, FRICTIONS)
    return np.array([1 - r.alive[-1, np.isclose(r.friction, m)].mean() for m in mu])
