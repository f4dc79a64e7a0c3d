"""Soft actor-critic runs in folders: the same again from a seed, and gone on with bit by bit."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cito.problems.episodic import episodic_task
from cito.problems.episodic.links import RUNAWAY_COST
from cito.problems.locomotion import NotFinite
from cito.solvers.learning.run_folder import RunFolder

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
