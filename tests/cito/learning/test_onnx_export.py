"""Exported policies: what ONNX Runtime makes of them, and files that would be wrong."""

import json
from pathlib import Path

import numpy as np
import pytest

from cito.cli import main
from cito.learning import onnx_export
from cito.problems.locomotion import locomotion_task
from cito.solvers.learning.policy import Policy
from cito.solvers.learning.training import TrainingConfig, load_policy, train

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")


def lively(seed: int = 0) -> Policy:
    """A policy whose actions are not small."""
    policy = Policy((11, 32, 16, 3), seed)
    policy.weights[-1] *= 100.0
    policy.biases[-1][:] = [0.1, -0.2, 0.3]
    return policy


def test_the_file_acts_as_the_policy_does(tmp_path: Path) -> None:
    policy, file = lively(), tmp_path / "policy.onnx"
    told = onnx_export.export(policy, file)
    session = onnxruntime.InferenceSession(file)
    o = np.random.default_rng(1).standard_normal((5, 11)).astype(np.float32)
    (action,) = session.run(None, {"observation": o})
    assert action.shape == (5, 3) and abs(action).max() > 0.3
    assert np.allclose(action, policy(o.astype(float)), atol=1e-5) and 0 < told < 1e-5
    assert [p.name for p in tmp_path.iterdir()] == ["policy.onnx"]


def test_a_file_that_acts_otherwise_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = onnx_export.serialized(lively(1), {})
    monkeypatch.setattr(onnx_export, "serialized", lambda *_: wrong)
    with pytest.raises(ArithmeticError, match="the exported actions differ by"):
        onnx_export.export(lively(0), tmp_path / "policy.onnx")
    assert not list(tmp_path.iterdir())


def test_a_run_is_exported_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, file = tmp_path / "run", tmp_path / "trot.onnx"
    train(TrainingConfig("trot", envs=2, steps=64, threads=1), run)
    assert main(["export", str(run), "--onnx", str(file), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["onnx"] == str(file) and row["largest_difference"] < 1e-5
    session = onnxruntime.InferenceSession(file)
    about = json.loads(session.get_modelmeta().custom_metadata_map["cito"])
    task = locomotion_task("trot")
    assert about["joints"] == list(task.robot.joints) and about["kp"] == task.kp
    assert np.allclose(about["nominal"], task.nominal)
    o = np.ones((1, 49), np.float32)
    expected = load_policy(run)[1](np.ones((1, 49)))
    assert np.allclose(session.run(None, {"observation": o})[0], expected, atol=1e-5)
    assert main(["export", str(tmp_path / "none"), "--onnx", str(file)]) == 2
    assert "there is no training run in" in capsys.readouterr().err
