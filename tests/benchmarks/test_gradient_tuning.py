"""The search over settings of learning: fair, and it takes the best."""

from typing import Any

import pytest

from cito.benchmarks import gradient_tuning
from cito.benchmarks.gradient_tuning import GRADIENTS, TUNED, config, grid, rows, summarize, tables
from cito.solvers.learning.training import ALGORITHMS, TrainingConfig


def test_each_gradient_has_the_same_budget() -> None:
    tried = {gradient: list(grid(gradient)) for gradient in GRADIENTS}
    assert {len(settings) for settings in tried.values()} == {4}
    assert gradient_tuning.total(False) == 12
    assert all(TUNED[gradient] in tried[gradient] for gradient in GRADIENTS)


@pytest.mark.parametrize(("task", "rate"), [("trot", 8e-3), ("gait-free", 5e-3)])
def test_settings_reach_the_learner(task: str, rate: float) -> None:
    made = config(task, "exact", {"rate": 0.5, "clip": 4.0})
    learner: Any = ALGORITHMS["bptt"](TrainingConfig(**made, envs=1))
    assert learner.settings.rate == 0.5 * rate and learner.settings.clip == 4.0
    made = config(task, "full-cone", {"rate": 2.0, "rho": 0.1})
    learner = ALGORITHMS["bptt"](TrainingConfig(**made, envs=1))
    assert learner.settings.gradient.rho == 0.1 and learner.settings.clip == 1.0


def test_the_best_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs are least at the larger of the rates, but there all fall with the first rho or clip."""

    def outcome(made: TrainingConfig) -> dict[str, float | None]:
        rate = made.settings["rate"] / 8e-3
        falls = rate == 1 and (made.rho == 0.01 or made.settings.get("clip") == 1)
        cost = None if falls else 1 + (rate - 1) ** 2 + made.rho
        norms = {"gradient_norm": 1.0, "gradient_norm_p95": 2.0}
        return {"cost": cost, "fall_rate": 1.0 * falls, **norms}

    monkeypatch.setattr(gradient_tuning, "outcome", outcome)
    found = list(rows(False))
    assert summarize(found) == {
        "exact": {"rate": 1.0, "clip": 4.0},
        "signorini": {"rate": 1.0, "rho": 0.1},
        "full-cone": {"rate": 1.0, "rho": 0.1},
    }
    assert all(row["cost"] is None or row["cost"] > 1 for row in found)
    [(headers, cells)] = tables(found)
    assert len(cells) == 12 and {len(row) for row in cells} == {len(headers)}


def test_a_training_is_measured() -> None:
    made = TrainingConfig("trot", envs=2, steps=96, threads=1, settings={"hidden": [8]})
    found = gradient_tuning.outcome(made)
    assert 0 < found["gradient_norm"] <= found["gradient_norm_p95"]
    assert found["cost"] > 0 and 0 <= found["fall_rate"] <= 1
