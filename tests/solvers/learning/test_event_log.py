"""Events are read back by TensorBoard itself, and are the metrics of the run."""

import sys
from pathlib import Path
from typing import Any

import pytest

from cito.solvers.learning.event_log import FOLDER, tag
from cito.solvers.learning.run_folder import RunFolder
from cito.solvers.learning.training import Learner, TrainingConfig, train

pytest.importorskip("tensorboardX")
UPDATES = 13


def events(out: Path) -> dict[str, list[tuple[int, float]]]:
    """Steps and values by name, as TensorBoard shows them."""
    module = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    reader: Any = module.EventAccumulator(str(out / FOLDER))
    reader.Reload()
    return {
        name: [(event.step, event.value) for event in reader.Scalars(name)]
        for name in reader.Tags()["scalars"]
    }


def asked(algorithm: str) -> TrainingConfig:
    horizon = {"bptt": 16, "ppo": 32}[algorithm]
    return TrainingConfig(
        "trot", algorithm=algorithm, envs=2, steps=horizon * 2 * UPDATES, threads=1
    )


def same(out: Path) -> None:
    """All columns of all rows are there, once."""
    rows, found = RunFolder(out).metrics(), events(out)
    assert len(rows) == UPDATES
    assert set(found) == {tag(name) for name in rows[0] if name != "steps"}
    for name, values in found.items():
        column = next(column for column in rows[0] if tag(column) == name)
        assert [step for step, _ in values] == [row["steps"] for row in rows]
        assert [v for _, v in values] == pytest.approx([row[column] for row in rows], rel=1e-6)


@pytest.mark.parametrize("algorithm", ["bptt", "ppo"])
def test_events_are_the_metrics(tmp_path: Path, algorithm: str) -> None:
    train(asked(algorithm), tmp_path / "run", tensorboard=True)
    same(tmp_path / "run")
    assert {"cost/total", "cost/height", "training/falls", "training/gradient_norm"} <= set(
        events(tmp_path / "run")
    )


def test_what_came_after_the_checkpoint_is_dropped(tmp_path: Path) -> None:
    out = tmp_path / "run"

    def die(learner: Learner, row: object) -> None:
        if learner.counters()["updates"] == UPDATES - 1:
            raise OSError("the machine goes down")

    with pytest.raises(OSError, match="the machine goes down"):
        train(asked("bptt"), out, told=die, tensorboard=True)
    train(asked("bptt"), out, resume=True, tensorboard=True)
    same(out)


def test_without_the_library_nothing_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ImportError, match=r"need tensorboardX: pip install '.\[tensorboard\]'"):
        train(asked("bptt"), tmp_path / "run", tensorboard=True)
    assert not (tmp_path / "run").exists()
