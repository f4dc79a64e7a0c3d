"""The figure of legged robots: motions that do what their tasks say, drawn from a saved run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cito import figures
from cito.figures import robots, runs
from cito.figures.runs import Run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    picture, run = figures.make("robots", tmp_path_factory.mktemp("robots"), quick=True)
    return picture, runs.load(run)


def test_picture_and_run(made: tuple[Path, Run]) -> None:
    picture, run = made
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert set(run.settings["scenes"]) == set(robots.QUICK) == set(run.facts)
    assert runs.holds(picture.with_suffix(".npz"), robots.settings(True))
    assert not runs.holds(picture.with_suffix(".npz"), robots.settings(False))


def test_the_hopper_jumps_and_the_go2_rises_on_all_feet(made: tuple[Path, Run]) -> None:
    run = made[1]
    jump, rise = (robots.motion_of(name, run) for name in ("hopper-jump", "go2-stand-up"))
    trunk = jump.poses.positions[:, :, 2].max(axis=1)
    assert trunk.max() > trunk[0] + 0.25 and abs(trunk[-1] - trunk[0]) < 0.05
    assert run.arrays["hopper-jump/modes"].min() == 0
    base = rise.poses.positions[:, 0, 2]
    assert base[0] < 0.2 < 0.3 < base[-1] and (run.arrays["go2-stand-up/modes"] == 2).all()
    weight = rise.system.mass * rise.system.gravity
    borne = rise.world_forces[-10:, :, 2].sum(axis=1).mean()
    assert 0.8 * weight < borne < 1.2 * weight


def test_every_part_of_a_robot_is_drawn_once_and_far_legs_first(made: tuple[Path, Run]) -> None:
    motion = robots.motion_of("go2-stand-up", made[1])
    parts = robots._outlines(motion, 10)
    assert len(parts) == 4 * 3 + 1 and sum(part.closed for part in parts) == 1
    trunk = [part.closed for part in parts].index(True)
    assert {part.color for part in parts[:trunk]} == {robots.FAR}
    assert {part.color for part in parts[trunk + 1 :]} == {robots.NEAR}
    axes: Axes = Figure().add_subplot()
    robots._draw_shots(axes, motion, np.array([0, 20, 40], np.int32))
    times = [text.get_text() for text in axes.texts if text.get_text()]
    assert times == ["0.00 s", "0.40 s", "0.80 s", "weight"]
