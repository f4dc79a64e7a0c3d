"""Kills by SIGKILL, and what would not be equal."""

from pathlib import Path

import numpy as np
import pytest

from cito.benchmarks import training_kills
from cito.solvers.learning.run_folder import RunFolder


def test_a_training_killed_a_few_times_ends_as_if_it_was_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training_kills, "WAIT", 0.3)
    row = training_kills.measure("bptt", 2, seed=1)
    assert row["kills"] >= 1 and row["resumed"] and row["equal"]


def folder(path: Path, cost: float = 1.0, weight: float = 2.0, seconds: float = 3.0) -> Path:
    run = RunFolder(path)
    run.create({})
    run.append({"cost": cost, "seconds": seconds})
    run.save({"parameters": np.array([weight])}, {"updates": 1, "seconds": {"wall_time": seconds}})
    return path


def test_what_is_equal_and_what_is_not(tmp_path: Path) -> None:
    one = folder(tmp_path / "one")
    assert training_kills.equal(one, folder(tmp_path / "later", seconds=9.0))
    assert not training_kills.equal(one, folder(tmp_path / "cost", cost=1.0 + 1e-15))
    assert not training_kills.equal(one, folder(tmp_path / "weight", weight=2.0 + 1e-15))
    assert not training_kills.equal(one, tmp_path)
