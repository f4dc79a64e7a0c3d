"""Figure rl-gradients: what is run, and that it can be drawn."""

from pathlib import Path

import joblib
import pytest

from cito.benchmarks import rl_gradients as benchmark
from cito.figures import rl_gradients
from cito.figures.sweeps import Table
from cito.problems.episodic import EPISODIC


def test_full_settings_are_all_tasks_and_methods_and_five_seeds() -> None:
    asked = [run.as_dict()["config"] for _, run in rl_gradients.experiments(benchmark.FULL)]
    assert len(asked) == 6 * 3 * 5
    assert {config["task"] for config in asked} == set(EPISODIC)
    assert {config["method"] for config in asked} == {"sac", "policy", "sample"}
    assert {config["steps"] for config in asked} == {benchmark.FULL.config["steps"]}


def test_it_is_run_kept_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    small = {"steps": 80, "judged": 20, "warm_up": 20, "batch": 4, "width": 4}
    monkeypatch.setattr(benchmark, "QUICK", benchmark.Size(("links-1", "hopper-run"), 2, small))
    with joblib.parallel_config(backend="sequential"):
        picture, run = rl_gradients.make(tmp_path, quick=True)
    table = Table.load(run)
    assert len(table.columns["seed"]) == 2 * 3 * 2
    assert table.numbers("steps")[0].tolist() == [20, 40, 60, 80]
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 20_000
    assert run.with_suffix(".csv").is_file() and not run.with_suffix(".parts").exists()
