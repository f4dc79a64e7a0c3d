"""Figure 6: what is trained, how it is counted, and that it can be drawn."""

from __future__ import annotations

from pathlib import Path

import joblib
import numpy as np
import pytest

from cito.benchmarks import learning
from cito.figures import figure_6
from cito.figures.sweeps import Table
from cito.solvers.learning.evaluation import FRICTIONS, Rollouts


def rollouts(T: int = 4) -> Rollouts:
    """One rollout on each friction; the last one falls after one step of cost 5."""
    mu = np.linspace(*learning.FRICTION_RANGE, FRICTIONS)
    B, cost = len(mu), np.ones((T, len(mu)))
    alive = np.ones((T, B), bool)
    alive[1:, -1] = False
    cost[0, -1], cost[1:, -1] = 5.0, 99.0
    empty = np.zeros((T, B, 6))
    return Rollouts(empty, np.ones((T, B, 4), bool), cost, np.zeros((B, 3)), mu, alive)


def test_costs_and_falls_are_those_before_a_fall() -> None:
    r = rollouts()
    assert learning.mean_costs(r).tolist() == [1.0] * (FRICTIONS - 1) + [5.0]
    assert learning.falls_by_friction(r).tolist() == [0.0] * (FRICTIONS - 1) + [1.0]


def test_a_curve_is_smooth_but_true_at_its_ends() -> None:
    rows = [{"steps": 10.0 * k, "cost": 5.0 - k / 100, "seconds": k / 7} for k in range(1, 301)]
    found = learning.curve(rows)
    assert len(found["curve_cost"]) == learning.POINTS
    assert found["curve_steps"][0] == 10 and found["curve_steps"][-1] == 3000
    line = 5.0 - np.array(found["curve_steps"]) / 1000
    assert np.allclose(found["curve_cost"], line, atol=0.03)


def test_full_settings_are_four_tasks_and_ten_seeds() -> None:
    made = figure_6.settings(False)
    asked = [training.config for _, training in figure_6.experiments(made)]
    assert len(asked) == 4 * 3 * 10
    assert {c["steps"] for c in asked} == {100_000, 160_000}
    assert {(c["task"], c["gradient"], c["seed"]) for c in asked[:12]} == {
        (task, gradient, 0) for task in figure_6.TASKS for gradient in figure_6.GRADIENTS
    }


def test_it_is_trained_kept_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {**figure_6.settings(True), "gradients": ["exact", "full-cone"]}
    made |= {"seeds": 1, "share": 0.006, "seconds": 1.2}
    monkeypatch.setattr(figure_6, "settings", lambda quick: made)
    with joblib.parallel_config(backend="sequential"):
        figure_6.compute(tmp_path / "run.npz", True)
    table = Table.load(tmp_path / "run.npz")
    assert table.columns["gradient"].tolist() == ["exact", "full-cone"]
    assert table.numbers("curve_cost").shape == (2, learning.POINTS)
    assert (table.numbers("cost") > 0).all() and (table.numbers("wall_time") > 0).all()
    picture = figure_6.draw(tmp_path / "run.npz", tmp_path / "run.png")
    assert picture.stat().st_size > 10_000
    assert {p.name for p in tmp_path.iterdir()} == {"run.npz", "run.csv", "run.png"}
