"""One training and what its policy is worth, as an experiment of a sweep."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cito.dynamics.types import Array
from cito.problems.locomotion.task import MILD
from cito.solvers.learning.evaluation import FRICTIONS, Rollouts, roll_out, scores
from cito.solvers.learning.policy import Policy
from cito.solvers.learning.run_folder import RunFolder
from cito.solvers.learning.training import Learner, TrainingConfig, load_policy, train

POINTS = 60  # of a training curve
SNAPSHOT_SECONDS = 3.0  # that a policy walks which is looked at while it learns [s]
QUANTILES = 41  # of the costs of rollouts
FRICTION_RANGE = (0.1, 1.3)  # over which falls are counted [-]


@dataclass(frozen=True)
class Training:
    """A training to be done: the arguments of its `TrainingConfig`, seconds of a rollout, and how
    often the policy is looked at while it learns."""

    config: Mapping[str, Any]
    seconds: float
    snapshots: int = 0

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        made: dict[str, Any] = {"config": dict(self.config), "seconds": self.seconds}
        return made | ({"snapshots": self.snapshots} if self.snapshots else {})


def outcome(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """Train, and walk over commands and frictions from mild starts.

    Args:
        experiment: `config`, the arguments of a `TrainingConfig`; `seconds` of a rollout;
            `snapshots`, none if it is missing.

    Returns:
        curve_steps, curve_cost, curve_seconds (POINTS,): of the training, the cost a mean over the
        updates about each point; updates; gradient_norm, gradient_norm_p95, gradient_norm_max:
        median, 95 % and largest before clipping; train_falls; wall_time [s]; fall_rate,
        velocity_rmse, yaw_rate_rmse, cost: of the task's frictions; cost_quantiles (QUANTILES,):
        of a rollout's mean cost before a fall; falls_by_friction (FRICTIONS,): over FRICTION_RANGE.
        With snapshots: see `Snapshots.outcome`.
    """
    config = TrainingConfig(**experiment["config"])
    watch = Snapshots(config, int(experiment.get("snapshots", 0)))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        summary = train(config, out, told=watch)
        rows = RunFolder(out).metrics()
        _, policy = load_policy(out)
    task, seconds = config.locomotion(), float(experiment["seconds"])
    own = roll_out(task, policy, MILD, task.randomization.friction, seconds, config.threads)
    wide = roll_out(task, policy, MILD, FRICTION_RANGE, seconds, config.threads)
    found, norms = scores(task, own), [row["gradient_norm"] for row in rows]
    kept = ("fall_rate", "velocity_rmse", "yaw_rate_rmse", "cost")
    return {
        **curve(rows),
        "gradient_norm": float(np.median(norms)),
        "gradient_norm_p95": float(np.quantile(norms, 0.95)),
        "gradient_norm_max": float(max(norms)),
        "updates": len(rows),
        "train_falls": summary["falls"],
        "wall_time": summary["wall_time"],
        **{name: found[name] for name in kept},
        "cost_quantiles": np.quantile(mean_costs(own), np.linspace(0, 1, QUANTILES)).tolist(),
        "falls_by_friction": falls_by_friction(wide).tolist(),
        **watch.outcome(rows),
    }


class Snapshots:
    """Policies of a training, kept whenever one more share of its steps is done.

    Args:
        config: of the training.
        count: how many, the last at its end.
    """

    def __init__(self, config: TrainingConfig, count: int) -> None:
        self.config, self.count = config, count
        self.steps: list[int] = []
        self.policies: list[Policy] = []

    def __call__(self, learner: Learner, row: Mapping[str, float]) -> None:
        """Called after each update."""
        due = (len(self.steps) + 1) / max(self.count, 1) * self.config.steps
        if self.count and (learner.steps >= due or learner.finished):
            self.steps.append(learner.steps)
            self.policies.append(copy.deepcopy(learner.policy))

    def outcome(self, rows: list[dict[str, float]]) -> dict[str, list[float]]:
        """at_steps, at_seconds [s] of training, at_cost (count,): mean cost before a fall of
        rollouts of SNAPSHOT_SECONDS over commands and frictions from mild starts, and at_falls:
        the share that falls. The last policy stands for those that never came."""
        if not self.count:
            return {}
        task = self.config.locomotion()
        friction, threads = task.randomization.friction, self.config.threads
        seconds = {int(row["steps"]): row["seconds"] for row in rows}
        found = []
        for steps, policy in zip(self.steps, self.policies):
            r = roll_out(task, policy, MILD, friction, SNAPSHOT_SECONDS, threads)
            falls = float(1 - r.alive[-1].mean())
            found.append((steps, seconds[steps], float(mean_costs(r).mean()), falls))
        found += [found[-1]] * (self.count - len(found))
        names = ("at_steps", "at_seconds", "at_cost", "at_falls")
        return {name: list(column) for name, column in zip(names, zip(*found))}


def reached(cost: Array, at: Array, target: float) -> float:
    """Where a policy was first at or below a cost, NaN if never; both (count,)."""
    below = np.flatnonzero(cost <= target)
    return float(at[below[0]]) if len(below) else float("nan")


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
