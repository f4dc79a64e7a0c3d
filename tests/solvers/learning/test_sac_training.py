"""Soft actor-critic runs in folders: the same again from a seed, and gone on with bit by bit."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cito.problems.episodic import episodic_task
from cito.problems.episodic.links import RUNAWAY_COST
from cito.problems.locomotion import NotFinite
from cito.solvers.learning.run_folder import RunFolder
from cito.solvers.learning.training import TrainingConfig, load_policy, train

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from cito.solvers.learning.sac_training import (  # noqa: E402
    SacConfig,
    SacLearner,
    judged_return,
    train_sac,
)

SMALL = SacConfig(
    "links-2",
    "both",
    steps=120,
    judged=30,
    warm_up=30,
    every=3,
    batch=8,
    width=8,
    neighbours=1,
    seed=3,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    train_sac(SMALL, out)
    return out


def rows(out: Path) -> list[dict[str, float]]:
    return [{k: v for k, v in r.items() if k != "seconds"} for r in RunFolder(out).metrics()]


def same(one: Path, other: Path) -> None:
    assert rows(one) == rows(other) and len(rows(one)) == 4
    a, b = RunFolder(one).checkpoint(), RunFolder(other).checkpoint()
    assert a is not None and b is not None and a.arrays.keys() == b.arrays.keys()
    for name in a.arrays:
        assert np.array_equal(a.arrays[name], b.arrays[name]), name
    assert {**a.counters, "seconds": 0} == {**b.counters, "seconds": 0}


def test_a_run_says_what_it_was(whole: Path) -> None:
    summary = json.loads((whole / "summary.json").read_text())
    returns = [row["return"] for row in rows(whole)]
    assert summary["steps"] == 120 and summary["method"] == "both"
    assert summary["final_return"] == pytest.approx(np.mean(returns[-3:]))
    assert [row["steps"] for row in rows(whole)] == [30, 60, 90, 120]
    assert len(set(returns)) == 4


def test_a_seed_makes_the_same_run_again_and_leaves_the_generator_of_others(
    whole: Path, tmp_path: Path
) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    train_sac(SMALL, tmp_path / "again")
    assert torch.equal(torch.get_rng_state(), before)
    same(whole, tmp_path / "again")
    train_sac(replace(SMALL, seed=4), tmp_path / "other")
    assert rows(whole) != rows(tmp_path / "other")


@pytest.mark.parametrize("saves", (0, 1, 2, 3))
def test_a_run_that_was_killed_ends_as_if_it_had_not_been(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saves: int
) -> None:
    """Killed between a row of the metrics and its checkpoint, after so many checkpoints."""
    real, made = RunFolder.save, []

    def dies(self: RunFolder, *given: Mapping[str, object]) -> None:
        if len(made) == saves:
            raise SystemError("killed")
        made.append(1)
        real(self, *given)  # type: ignore[arg-type]

    with monkeypatch.context() as patched, pytest.raises(SystemError):
        patched.setattr(RunFolder, "save", dies)
        train_sac(SMALL, tmp_path / "run")
    assert len(rows(tmp_path / "run")) == saves + 1
    train_sac(SMALL, tmp_path / "run", resume=True)
    same(whole, tmp_path / "run")


def test_weights_that_are_no_numbers_end_a_run(tmp_path: Path) -> None:
    learner = SacLearner(replace(SMALL, method="sac"))
    with torch.no_grad():
        next(learner.model.critic.parameters())[0, 0] = torch.nan
    with pytest.raises(NotFinite, match="a weight of critic.* is no finite number at step 30"):
        learner.update()
    with pytest.raises(NotFinite, match="a weight of .* is no finite number"):  # the actor's, now
        learner.update()


def test_judged_episodes_end_where_they_have_fallen() -> None:
    task = episodic_task("links-1")
    hanging = judged_return(task, lambda o: np.zeros((len(o), 1)))
    assert hanging == pytest.approx(-100, abs=1)
    task.scale = np.array([1000.0])
    spinning = judged_return(task, lambda o: np.ones((len(o), 1)))
    assert -2 * RUNAWAY_COST < spinning < -RUNAWAY_COST


def test_what_cannot_be_is_refused(whole: Path) -> None:
    with pytest.raises(ValueError, match="`seed` must be 3 as in the run in .*, got 9"):
        train_sac(replace(SMALL, seed=9), whole, resume=True)
    with pytest.raises(ValueError, match="`out` must be a new folder"):
        train_sac(SMALL, whole)
    with pytest.raises(ValueError, match="`method` must be one of sac, policy, sample, both, got"):
        SacConfig("links-2", "ppo")
    with pytest.raises(ValueError, match="`judged` must be a multiple of `every`, 3, got 31"):
        replace(SMALL, judged=31)
    with pytest.raises(ValueError, match="`discount` must be at most 1, got 1.5"):
        replace(SMALL, discount=1.5)


Change = Callable[[dict[str, Any], dict[str, Any]], object]


def longer(arrays: dict[str, Any], counters: dict[str, Any]) -> None:
    """A replay of more transitions than the memory has room for; counters that agree."""
    n = 300
    for name in [name for name in arrays if name.startswith("replay/")]:
        arrays[name] = np.resize(arrays[name], (n, *arrays[name].shape[1:]))
    counters |= {"steps": n, "position": n, "updates": n // SMALL.judged}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda a, c: a.clear(), r"policy/actor\S+ is missing"),
        (
            lambda a, c: [a.pop(k) for k in [*a] if k.startswith("adam/")],
            "adam/actor/0/step is missing",
        ),
        (lambda a, c: a.pop("adam/critic/3/exp_avg"), "adam/critic/3/exp_avg is missing"),
        (
            lambda a, c: a.update({"adam/critic/3/exp_avg": np.zeros(5, np.float32)}),
            r"adam/critic/3/exp_avg must be float32 of shape \(8,\), got float32 of shape \(5,\)",
        ),
        (lambda a, c: a.update({"adam/critic/99/step": np.zeros(())}), "99/step is not of this"),
        (lambda a, c: a.pop("log_alpha"), "log_alpha is missing"),
        (
            lambda a, c: a.update({"policy/actor.mu.bias": np.zeros(9, np.float32)}),
            r"policy/actor.mu.bias must be float32 of shape \(2,\), got float32 of shape \(9,\)",
        ),
        (
            lambda a, c: a.update({"policy/actor.mu.bias": np.zeros(2)}),
            "must be float32 .* got float64",
        ),
        (lambda a, c: a["log_alpha"].fill(np.nan), "log_alpha must be finite"),
        (lambda a, c: a["generator"].fill(255), "generator: "),
        (lambda a, c: a.update({"replay/dones": a["replay/dones"][:9]}), "replay/dones must be"),
        (longer, "counters steps must be from 1 to 149, got 300"),
        (lambda a, c: c.clear(), "counters: steps is missing"),
        (lambda a, c: c.pop("position"), "counters: position is missing"),
        (lambda a, c: c.pop("updates"), "counters: updates is missing"),
        (lambda a, c: c.update(position=-1), "counters position must be a whole number >= 0"),
        (lambda a, c: c.update(position=7), "counters position must be 120 after 120 steps, got 7"),
        (lambda a, c: c.update(updates=3), "counters updates must be 4 after 120 steps, got 3"),
        (lambda a, c: c.update(network_updates=0), "counters network_updates must be 30 after"),
        (lambda a, c: c.update(steps=121), "counters steps must be a multiple of 30, got 121"),
        (lambda a, c: c.update(full=1), "counters full must be true or false, got 1"),
        (lambda a, c: c.update(seconds=None), "counters seconds must be a number >= 0, got None"),
        (lambda a, c: c["memory_random"].update(bit_generator="X"), "must be 'PCG64', got 'X'"),
        (lambda a, c: c["action_random"]["state"].update(inc=2**128), r"inc must be .* < 2\^128"),
        (lambda a, c: c["environment"].update(state=[0.0]), "environment state must be 4 finite"),
    ],
)
def test_a_damaged_checkpoint_is_named(
    whole: Path, tmp_path: Path, change: Change, told: str
) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    checkpoint = RunFolder(out).checkpoint()
    assert checkpoint is not None
    change(*checkpoint)
    RunFolder(out).save(*checkpoint)
    with pytest.raises(ValueError, match=rf"run/checkpoint\.npz is damaged: .*{told}"):
        train_sac(SMALL, out, resume=True)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("metrics.csv", None, "it has 0 whole rows, checkpoint.npz is of 4"),
        ("metrics.csv", b"\xff\xfe\x00\x81", "it is no text"),
        ("metrics.csv", b"steps,return\n" + 4 * b"x,y\n", "could not convert string to float"),
        ("metrics.csv", b"steps,return\n" + 4 * b"1,2\n", "the column seconds is missing"),
        ("checkpoint.npz", b"no archive", ""),
        ("config.json", b'{"schema": 1, "config": {}}', "`task` is missing"),
        ("config.json", b'{"schema": 1, "config": {"task": "links-2", "odd": 1}}', ".*'odd'"),
        ("config.json", b"\x80", ""),
    ],
)
def test_a_damaged_file_is_named(
    whole: Path, tmp_path: Path, name: str, content: bytes | None, told: str
) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    if content is None:
        (out / name).unlink()
    else:
        (out / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"run/{name} is damaged: {told}"):
        train_sac(SMALL, out, resume=True)


def test_one_array_is_no_checkpoint(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    with (out / "checkpoint.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match="checkpoint.npz is damaged: it is one array, not an"):
        train_sac(SMALL, out, resume=True)


def test_a_run_of_another_algorithm_is_named(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="whole holds a run of sac-both, wanted is one of bptt or"):
        load_policy(whole)
    with pytest.raises(ValueError, match="whole holds a run of sac-both, wanted is one of bptt or"):
        train(TrainingConfig("trot", envs=1, steps=16), whole, resume=True)
    RunFolder(tmp_path).create({"task": "trot", "algorithm": "ppo"})
    with pytest.raises(ValueError, match="holds a run of ppo, wanted is one of sac or sac-policy"):
        train_sac(SMALL, tmp_path, resume=True)


def test_seeds_up_to_the_largest(tmp_path: Path) -> None:
    assert SacLearner(replace(SMALL, seed=2**63 - 1)).steps == 0
    with pytest.raises(ValueError, match="`seed` must be <= 9223372036854775807, got 9223"):
        replace(SMALL, seed=2**63)
    with pytest.raises(ValueError, match="`seed` must be <= 9223372036854775807, got 9223"):
        TrainingConfig("trot", seed=2**63)
    for algorithm, gradient in (("bptt", "randomized"), ("bptt", "bundled"), ("ppo", "exact")):
        asked = TrainingConfig(
            "trot", algorithm=algorithm, gradient=gradient, envs=1, steps=32, seed=2**63 - 1
        )
        assert train(asked, tmp_path / f"{algorithm}-{gradient}")["steps"] == 32
