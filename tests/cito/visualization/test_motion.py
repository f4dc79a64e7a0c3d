"""Motions of runs and solutions: contact modes, resampling, and files that are neither."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cito
from cito.problems import registry
from cito.realtime.run_file import load_run
from cito.visualization.motion import CLAMPING, SEPARATING, SLIDING, load_motion, motion_of_run


def test_the_motion_of_a_run(run_file: Path) -> None:
    motion, run = load_motion(run_file), load_run(run_file)
    assert motion.name == "pushed" and (motion.states == run.states).all()
    np.testing.assert_array_equal(motion.poses.positions[:, 0], run.states[:, :3])
    np.testing.assert_allclose(motion.contacts[0, :, 2], 0, atol=1e-6)  # it stands
    closed = motion.forces[:, :, 2] > 1
    assert (motion.contacts[closed, 2] < 1e-3).all()


def test_modes_follow_the_push(run_file: Path) -> None:
    modes, times = load_motion(run_file).modes, load_motion(run_file).times
    assert (modes[times < 0.19][2:] == CLAMPING).all()
    assert {SEPARATING, SLIDING, CLAMPING} == set(modes[times > 0.2].ravel())
    assert load_motion(run_file).mode_switches == (modes[1:] != modes[:-1]).sum() > 4


def test_forces_in_the_world_are_those_in_the_contact_frames(run_file: Path) -> None:
    motion = load_motion(run_file)  # over a plane these are the axes of the world
    np.testing.assert_allclose(motion.world_forces, motion.forces, atol=1e-12)


def test_other_times(run_file: Path) -> None:
    motion = load_motion(run_file)
    shown = motion.at(np.array([-1.0, 0.0, 0.0079, 0.008, 99.0]))
    expected = motion.states[[0, 0, 1, 2, -1]]
    np.testing.assert_array_equal(shown.states, expected)


def test_a_run_without_a_tick_cannot_be_shown(run_file: Path) -> None:
    run = load_run(run_file)
    object.__setattr__(run, "ticks", run.ticks[:0])
    with pytest.raises(ValueError, match="not a single tick"):
        motion_of_run(run)


def test_a_solution_of_a_planar_task_cannot_be_shown(tmp_path: Path) -> None:
    path = cito.solve(cito.make("lift-off")).save(tmp_path / "s.npz")
    with pytest.raises(ValueError, match="its system is no kinematic tree"):
        load_motion(path)


def test_files_that_hold_no_motion(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_motion(tmp_path / "none")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match="not a run of cito"):
        load_motion(tmp_path / "text")


def test_the_motion_of_a_solution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))  # the task is for here only
    robot = cito.load_robot("hopper")

    @cito.task("hopper-rests", "stands still, for a test of pictures")
    def rest(horizon: int = 6) -> cito.Problem:
        dynamics = cito.ContactDynamics(robot, 0.02, 0.6)
        start = np.append(robot.stance, np.zeros(robot.native.nv))
        costs = [cito.ControlCost(np.full(robot.native.nu, 1e-3))]
        return cito.Problem("hopper-rests", dynamics, start=start, horizon=horizon, costs=costs)

    solution = cito.solve(cito.make("hopper-rests"), "exact", max_iterations=1)
    motion = load_motion(solution.save(tmp_path / "s.npz"))
    nc = len(robot.contacts)
    assert motion.name == "hopper-rests" and motion.source == robot.source
    np.testing.assert_array_equal(motion.states, solution.states)
    np.testing.assert_allclose(motion.times, 0.02 * np.arange(7))
    forces = solution.impulses[:, : 3 * nc].reshape(6, nc, 3) / 0.02
    np.testing.assert_allclose(motion.forces[1:], forces)
    assert (motion.friction == 0.6).all() and (motion.modes[0] == SEPARATING).all()
