"""`cito train` and `cito eval` on the command line."""

import json
from pathlib import Path

import pytest

from cito.cli import main


def test_train_and_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run")
    asked = ["train", "pace", "--envs", "2", "--steps", "64", "--out", out]
    assert main([*asked, "--json", "--tensorboard"]) == 0
    assert list((tmp_path / "run" / "tensorboard").iterdir())
    row = json.loads(capsys.readouterr().out)
    assert row["steps"] == 64 and row["task"] == "pace" and row["final_cost"] > 0
    for name in ("wall_time", "time_simulator", "time_jacobian", "time_network"):
        assert row[name] > 0
    assert row["falls"] >= 0
    assert main(asked) == 2
    assert "--resume" in capsys.readouterr().err
    assert main([*asked, "--resume", "--set", "rate=0.001"]) == 2
    assert "`settings` must be {} as in the run" in capsys.readouterr().err
    assert main([*asked, "--resume"]) == 0  # nothing is left to do
    assert "final_cost" in capsys.readouterr().out


def test_bumps_are_of_mujoco(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run")
    assert main(["train", "trot", "--envs", "2", "--steps", "32", "--out", out, "--json"]) == 0
    capsys.readouterr()
    assert main(["eval", out, "--bumps", "0.02"]) == 2
    assert "--bumps need --robot mujoco" in capsys.readouterr().err
    assert main(["eval", out, "--robot", "mujoco", "--bumps", "-1", "--json"]) == 2
    assert "`bumps` must" in json.loads(capsys.readouterr().out)["error"]


def test_misuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "gallop", "--out", str(tmp_path / "run")]) == 2
    assert "trot" in capsys.readouterr().err
    assert main(["eval", str(tmp_path)]) == 2
    assert "there is no training run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (["--steps", "0"], "`steps` must be a whole number >= 1, got 0"),
        (["--algorithm", "ppo", "--steps", "0"], "`steps` must be a whole number >= 1, got 0"),
        (["--envs", "0"], "`envs` must be a whole number >= 1, got 0"),
        (["--algorithm", "ppo", "--envs", "0"], "`envs` must be a whole number >= 1, got 0"),
        (["--rho", "0"], "`rho` must be"),
        (["--gradient", ""], "`gradient` must be one of exact"),
        (
            ["--seed", str(2**70)],
            "`seed` must be <= 9223372036854775807, got 1180591",
        ),
        (["--out", ""], "argument --out: it must name a folder, got ''"),
    ],
)
def test_numbers_that_cannot_be_are_not_the_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: list[str], told: str
) -> None:
    assert main(["train", "trot", "--out", str(tmp_path / "run"), *changed]) == 2
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
