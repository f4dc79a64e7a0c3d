"""Figures 6, 9, 10 and 11: what is trained, how it is counted, and that it can be drawn."""

from __future__ import annotations

from pathlib import Path

import joblib
import numpy as np
import pytest

from cito.benchmarks import learning, newton_training
from cito.dynamics.contact import solve_batch
from cito.figures import figure_6, figure_9, figure_10, figure_11, runs
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
    made |= {"tasks": ["trot"], "seeds": 1, "share": 0.006, "seconds": 1.2}
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


def test_problems_of_a_training_are_those_that_were_solved() -> None:
    """b is taken from the solution: the hard law gives the same impulses again."""
    p = newton_training.problems(16 * 16, 0.2)
    assert len(p.b) > 20 and abs(p.impulse).max() > 0.1
    hard = solve_batch(p.A, p.b, p.mu)
    assert np.allclose(hard.impulse, p.impulse, atol=1e-8)
    found = newton_training.ours(p, 0.05)
    assert not found.infeasible.any() and found.iterations.max() <= 8


def test_raw_newton_has_the_derivative_of_its_residual_and_may_leave_the_cones() -> None:
    random = np.random.default_rng(0)
    M = random.standard_normal((6, 6))
    A, b, mu = M @ M.T + np.eye(6), random.standard_normal(6), np.array([0.5, 0.9])
    impulse, d, h = abs(random.standard_normal(6)), random.standard_normal(6), 1e-6
    _, D = newton_training.residual(A, b, mu, impulse, 0.1)
    ends = [newton_training.residual(A, b, mu, impulse + s * h * d, 0.1)[0] for s in (1, -1)]
    assert np.allclose(D @ d, (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-7)
    one = np.array([[0.0, 0.0, 1.0], [0.3, 0.0, 0.5], [0.0, 0.0, 1.0]])
    velocity = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, -0.1]])
    out = newton_training.outside(one, velocity, np.full((3, 1), 0.5))
    assert out.tolist() == [False, True, True]


def test_figure_11_is_drawn_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {**figure_11.settings(True), "steps": 256, "share": 0.1, "rhos": (0.01, 0.05)}
    monkeypatch.setattr(figure_11, "settings", lambda quick: made)
    monkeypatch.setattr(figure_11, "PART", 40)
    solved = dict(figure_11.METHODS)

    def stops(p: newton_training.Problems, rho: float) -> newton_training.Counts:
        if rho > 0.04:
            raise KeyboardInterrupt
        return solved["raw"](p, rho)

    with joblib.parallel_config(backend="sequential"):
        monkeypatch.setitem(figure_11.METHODS, "raw", stops)
        with pytest.raises(KeyboardInterrupt):
            figure_11.make(tmp_path, quick=True)
        done = len(list((tmp_path / "figure_11-quick.parts").glob("*.json")))
        assert done >= 3
        monkeypatch.setitem(figure_11.METHODS, "raw", solved["raw"])
        monkeypatch.setattr(figure_11, "problems", None)  # these are there
        picture, run = figure_11.make(tmp_path, quick=True)
    assert picture.stat().st_size > 10_000
    assert {p.name for p in tmp_path.iterdir()} == {picture.name, run.name}
    arrays = runs.load(run).arrays
    assert (np.diff(arrays["shares"], axis=2) >= 0).all()
    assert (arrays["shares"][0, :, 8] == 1).all() and (arrays["unsolved"][0] == 0).all()
    assert (arrays["outside"][0] == 0).all()


def test_a_target_is_reached_where_the_cost_is_first_below_it() -> None:
    cost, at = np.array([3.0, 1.4, 1.6, 1.2]), np.array([10.0, 20.0, 30.0, 40.0])
    assert learning.reached(cost, at, 1.5) == 20.0
    assert np.isnan(learning.reached(cost, at, 1.0))


def test_figures_9_and_10_put_both_algorithms_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [t.config for _, t in figure_9.experiments(figure_9.settings(False))]
    assert {c["envs"] for c in asked if c["algorithm"] == "ppo"} == {64, 128, 256, 512, 1024}
    made = {**figure_9.settings(True), "seconds": 1.1, "snapshots": 3}
    made |= {name: {"envs": (2,), "steps": 384} for name in ("bptt", "ppo")}
    monkeypatch.setattr(figure_9, "settings", lambda quick: made)
    script = figure_9.SCRIPT._replace(settings=figure_9.settings)
    monkeypatch.setattr(figure_9, "SCRIPT", script)
    monkeypatch.setattr(learning, "SNAPSHOT_SECONDS", 0.1)
    with joblib.parallel_config(backend="sequential"):
        picture, run = figure_9.make(tmp_path, quick=True)
    table = Table.load(run)
    assert table.columns["algorithm"].tolist() == ["bptt", "ppo"]
    assert (table.numbers("curve_steps")[:, -1] == 384).all()
    assert (table.numbers("cost") > 0).all() and picture.stat().st_size > 10_000
    assert table.numbers("at_steps").tolist() == [[128, 256, 384], [128, 256, 384]]
    assert (np.diff(table.numbers("at_seconds")) > 0).all()
    assert (table.numbers("at_cost") > 0).all() and (table.numbers("at_falls") <= 1).all()
    monkeypatch.setattr(figure_9, "swept", None)  # it is there
    other, same = figure_10.make(tmp_path, quick=True)
    assert other.name == "figure_10-quick.png" and other.stat().st_size > 10_000 and same == run
