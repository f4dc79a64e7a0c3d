"""Runs in folders: resumed bit by bit, killed at any time, stopped by Ctrl-C or by a NaN."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cito.problems.locomotion import NotFinite
from cito.solvers.learning.run_folder import RunFolder
from cito.solvers.learning.training import Learner, TrainingConfig, load_policy, train

SMALL = TrainingConfig("trot", envs=2, steps=16 * 2 * 24, threads=1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    train(SMALL, out)
    return out


def same(one: Path, other: Path) -> None:
    """Equal metrics and checkpoints, but for seconds."""
    rows, others = (
        [{k: v for k, v in row.items() if k != "seconds"} for row in RunFolder(out).metrics()]
        for out in (one, other)
    )
    assert rows == others and len(rows) == 24
    a, b = RunFolder(one).checkpoint(), RunFolder(other).checkpoint()
    assert a is not None and b is not None
    assert all(np.array_equal(a.arrays[name], b.arrays[name]) for name in a.arrays)


def test_a_run_says_what_it_was(whole: Path) -> None:
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["steps"] == 768 and summary["task"] == "trot"
    parts = sum(summary[f"time_{part}"] for part in ("simulator", "jacobian", "network"))
    assert 0 < parts < summary["wall_time"]
    config = json.loads((whole / "config.json").read_text())
    assert config["config"]["seed"] == 0 and "cito" in config["versions"]
    rows = RunFolder(whole).metrics()
    assert summary["final_cost"] == pytest.approx(np.mean([row["cost"] for row in rows[-10:]]))
    assert sorted(p.name for p in whole.iterdir()) == [
        "checkpoint.npz", "config.json", "metrics.csv", "summary.json",
    ]  # fmt: skip


def test_ctrl_c_saves_and_the_run_goes_on_bit_by_bit(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"

    def press(learner: Learner, row: object) -> None:
        if learner.steps == 16 * 2 * 13:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(SMALL, out, told=press)
    assert len(RunFolder(out).metrics()) == 13
    train(SMALL, out, resume=True)
    same(whole, out)


@pytest.mark.parametrize("at", [0, 9, 17])
def test_a_killed_run_goes_on_bit_by_bit(whole: Path, tmp_path: Path, at: int) -> None:
    """The process dies without a word, after a row of the metrics has been begun."""
    out = tmp_path / "run"
    script = f"""
import os

from cito.solvers.learning.training import TrainingConfig, train
def told(learner, row):
    if learner.done > {at}:
        with open({str(out)!r} + "/metrics.csv", "a") as file:
            file.write("7,")
        os._exit(9)
train(TrainingConfig("trot", envs=2, steps=768, threads=1), {str(out)!r}, told=told)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == 9
    train(SMALL, out, resume=True)
    same(whole, out)


def test_a_run_of_ppo_goes_on_bit_by_bit(tmp_path: Path) -> None:
    asked = TrainingConfig("trot", algorithm="ppo", envs=2, steps=32 * 2 * 24, threads=1)
    whole, out = tmp_path / "whole", tmp_path / "run"
    train(asked, whole)

    def die(learner: Learner, row: object) -> None:
        if learner.steps == 32 * 2 * 14:
            raise OSError("the machine goes down")

    with pytest.raises(OSError, match="the machine goes down"):
        train(asked, out, told=die)
    train(asked, out, resume=True)
    same(whole, out)


def test_a_kill_while_saving_leaves_the_last_checkpoint(whole: Path, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.create({})
    folder.save({"a": np.ones(3)}, {"updates": 1})

    class Broken:
        def __array__(self, *_: object, **__: object) -> None:
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        folder.save({"a": Broken()}, {"updates": 2})  # type: ignore[dict-item]
    kept = folder.checkpoint()
    assert kept is not None and kept.counters == {"updates": 1}
    assert sorted(p.name for p in folder.path.iterdir()) == ["checkpoint.npz", "config.json"]


def test_a_planted_nan_stops_the_run_and_keeps_the_checkpoint(tmp_path: Path) -> None:
    out = tmp_path / "run"

    def plant(learner: Learner, row: object) -> None:
        if learner.steps == 16 * 2 * 12:
            learner.environment.state[1, 5] = np.nan  # type: ignore[attr-defined]

    with pytest.raises(NotFinite, match=r"the state of environment 1, entry 5, is nan at control"):
        train(SMALL, out, told=plant)
    kept = RunFolder(out).checkpoint()
    assert kept is not None and kept.counters["updates"] == 10
    assert all(np.isfinite(a).all() for a in kept.arrays.values())


@pytest.mark.parametrize("algorithm", ["bptt", "ppo"])
def test_a_nan_in_an_observation_is_named(tmp_path: Path, algorithm: str) -> None:
    """By the group of the observation, the robot and the control step."""
    out, horizon = tmp_path / "run", {"bptt": 16, "ppo": 32}[algorithm]
    asked = TrainingConfig("trot", algorithm=algorithm, envs=3, steps=3 * 12 * horizon, threads=1)

    def plant(learner: Learner, row: object) -> None:
        if learner.counters()["updates"] == 11:
            environment = learner.environment  # type: ignore[attr-defined]
            at = environment.observer.layout.angular_velocity
            environment.frames[2, 0, at.start + 1] = np.nan

    told = (
        r"the observation angular_velocity of environment 2, entry \(0, 1\), is nan "
        rf"at control step {11 * horizon}"
    )
    with pytest.raises(NotFinite, match=told):
        train(asked, out, told=plant)
    kept = RunFolder(out).checkpoint()
    assert kept is not None and kept.counters["updates"] == 10
    assert len(RunFolder(out).metrics()) == 11


def test_the_policy_comes_back(whole: Path) -> None:
    config, policy = load_policy(whole)
    assert config == SMALL
    assert (abs(policy(np.zeros((3, policy.sizes[0])))) < 1).all()


def test_misuse_is_told(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`out` must be a new folder"):
        train(SMALL, whole)
    with pytest.raises(ValueError, match="`seed` must be 0 as in the run"):
        train(TrainingConfig("trot", envs=2, steps=768, seed=1), whole, resume=True)
    with pytest.raises(FileNotFoundError, match="there is no training run in"):
        train(SMALL, tmp_path, resume=True)
    with pytest.raises(ValueError, match="`gradient` must be one of exact"):
        TrainingConfig("trot", gradient="steepest")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        load_policy(tmp_path)
