"""`cito train --algorithm sac-...` on the command line."""

import json
from pathlib import Path

import pytest

from cito.cli import main

pytest.importorskip("stable_baselines3")
TINY = [part for s in ("judged=30", "warm_up=20", "width=4") for part in ("--set", s)]


def test_train_and_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run")
    asked = ["train", "links-1", "--algorithm", "sac-policy", "--steps", "60", "--out", out, *TINY]
    assert main([*asked, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["steps"] == 60 and row["method"] == "policy" and row["width"] == 4
    assert row["final_return"] < 0
    assert main(asked) == 2
    assert "--resume" in capsys.readouterr().err
    assert main([*asked, "--resume"]) == 0  # nothing is left to do
    assert "final_return" in capsys.readouterr().out
    for others in (
        ["eval", out],
        ["walk", out],
        ["export", out, "--onnx", str(tmp_path / "policy.onnx")],
        ["train", "trot", "--envs", "1", "--steps", "16", "--out", out, "--resume"],
    ):
        assert main(others) == 2
        told = capsys.readouterr().err
        assert f"{out} holds a run of sac-policy, wanted is one of bptt or ppo" in told
    (tmp_path / "run" / "metrics.csv").unlink()
    assert main([*asked, "--resume"]) == 2
    assert "metrics.csv is damaged: it has 0 whole rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    "changed, told",
    [
        (["--algorithm", "sac-sideways"], "--algorithm must be bptt, ppo, sac, sac-policy"),
        (["--algorithm", "sac", "--envs", "4"], "--envs is for bptt and ppo, not for sac"),
        (["--algorithm", "sac", "--envs", "0"], "--envs is for bptt and ppo, not for sac"),
        (["--algorithm", "sac", "--rho", "0"], "--rho is for bptt and ppo, not for sac"),
        (["--algorithm", "sac", "--robot", "a1"], "--robot is for bptt and ppo, not for sac"),
        (["--algorithm", "sac", "--gradient", "exact"], "--gradient is for bptt and ppo, not"),
        (["--algorithm", "sac", "--tensorboard"], "--tensorboard is for bptt and ppo, not for sac"),
        (["--algorithm", "sac", "--steps", "0"], "`steps` must be a whole number >= 1, got 0"),
        (["--algorithm", "sac", "--seed", str(2**70)], "`seed` must be <= 9223372036854775807"),
        (["--algorithm", "sac", "--out", ""], "argument --out: it must name a folder, got ''"),
        (["--algorithm", "sac", "--set", "speed=3"], "`settings` must be named task, method"),
    ],
)
def test_misuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: list[str], told: str
) -> None:
    assert main(["train", "links-1", "--out", str(tmp_path / "run"), *changed]) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_tasks_of_others_are_not_its(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "trot", "--algorithm", "sac", "--out", str(tmp_path / "run")]) == 2
    assert "`task` must be one of links-1" in " ".join(capsys.readouterr().err.split())
