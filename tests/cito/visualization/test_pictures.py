"""Plots and frames: they are there, show something, and are whole or not there at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cito.dynamics.conversions import rotation_matrix
from cito.realtime.run_file import load_run
from cito.visualization.motion import load_motion
from cito.visualization.plot import euler_angles, plot_run, run_figure
from cito.visualization.render import render


def test_the_sheet_of_a_run(run_file: Path, tmp_path: Path) -> None:
    path = plot_run(load_run(run_file), tmp_path / "a.png")
    with Image.open(path) as picture:
        assert picture.size[0] > 800
    assert list(tmp_path.iterdir()) == [path]


def test_the_sheet_marks_where_the_robot_was_damped(run_file: Path) -> None:
    run = load_run(run_file)
    ticks = run.ticks.copy()
    ticks["damping"] = False
    ticks["damping"][[10, 11, 12, 50]] = True
    object.__setattr__(run, "ticks", ticks)
    axes = run_figure(run).axes
    for axis in axes:
        spans = [patch for patch in axis.patches if patch.get_alpha() == 0.12]
        assert len(spans) == 2
    labels = [axis.get_ylabel() for axis in axes]
    for quantity in ("base [m]", "base [rad]", "forces", "torques", "age", "time"):
        assert any(quantity in label for label in labels)


def test_other_endings_are_refused(run_file: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`path` must end in .png"):
        plot_run(load_run(run_file), tmp_path / "a.txt")
    with pytest.raises(FileNotFoundError):
        plot_run(load_run(run_file), tmp_path / "none" / "a.png")


def test_euler_angles() -> None:
    roll, pitch, yaw = 0.3, -0.4, 2.0
    half = [np.array([*np.sin(a / 2) * axis, np.cos(a / 2)])
            for a, axis in zip((yaw, pitch, roll), np.eye(3)[::-1])]  # fmt: skip
    R = np.linalg.multi_dot([rotation_matrix(q) for q in half])
    w = np.sqrt(1 + np.trace(R)) / 2
    q = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], 4 * w * w]) / (4 * w)
    np.testing.assert_allclose(euler_angles(q[None])[0], [roll, pitch, yaw], atol=1e-12)


@pytest.mark.parametrize("renderer", ["mujoco", "sticks"])
def test_frames_show_a_robot_that_moves(renderer: str, run_file: Path, tmp_path: Path) -> None:
    try:
        files = render(load_motion(run_file), tmp_path / "f", 2.0, (160, 120), renderer)
    except RuntimeError as error:
        assert renderer == "mujoco"
        pytest.skip(str(error))
    assert [file.name for file in files] == ["frame_00000.png", "frame_00001.png"]
    first, last = (pixels(file) for file in files)
    assert first.shape == (120, 160, 3)
    assert first.std() > 5 and (np.abs(first - last) > 30).any(axis=-1).mean() > 0.01


def pixels(file: Path) -> np.ndarray:
    with Image.open(file) as picture:
        return np.asarray(picture).astype(int)


def test_an_animation(run_file: Path, tmp_path: Path) -> None:
    (path,) = render(load_motion(run_file), tmp_path / "a.gif", 5.0, (80, 60), "sticks")
    with Image.open(path) as picture:
        assert picture.n_frames == 3 and picture.info["duration"] == 200
    assert list(tmp_path.iterdir()) == [path]


def test_misuse_of_render(run_file: Path, tmp_path: Path) -> None:
    motion = load_motion(run_file)
    with pytest.raises(ValueError, match="`renderer` must be"):
        render(motion, tmp_path / "f", renderer="paint")
    with pytest.raises(ValueError, match="folder or end in .gif"):
        render(motion, tmp_path / "f.mp4")
    with pytest.raises(ValueError, match="`size` must be a whole number"):
        render(motion, tmp_path / "f", size=(0, 10))
    with pytest.raises(FileNotFoundError):
        render(motion, tmp_path / "none" / "f")
