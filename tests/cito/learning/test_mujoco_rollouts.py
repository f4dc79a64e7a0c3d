"""A policy that stands, in MuJoCo: states, contacts, falls."""

import numpy as np
import pytest

from cito.learning.mujoco_rollouts import (
    BUMPS,
    FREE,
    Bumps,
    Worlds,
    draw_bumps,
    evaluate_in_mujoco,
)
from cito.problems.locomotion import LocomotionEnvironment, locomotion_task
from cito.problems.robots import MODELS

TASK = locomotion_task("gait-free")


def test_states_go_in_and_come_out() -> None:
    e = LocomotionEnvironment(TASK, 3)
    worlds = Worlds(TASK, MODELS / "go2.xml", np.full(3, 0.8), threads=2)
    worlds.put(e.state)
    assert np.allclose(worlds.states(), e.state, atol=1e-12)


def test_a_step_in_the_air_is_that_of_our_simulator() -> None:
    """Where nothing touches, both integrate the same law of motors in the same steps."""
    task = locomotion_task("gait-free", time_step=0.002, substeps=10)
    e = LocomotionEnvironment(task, 3)
    x = e.state.copy()
    x[:, 2] += 0.5
    e.put(np.ones(3, bool), x, e.command, e.phase)
    worlds = Worlds(task, MODELS / "go2.xml", np.full(3, 0.8))
    worlds.put(x)
    after = e.advance(np.zeros((3, 12))).state
    worlds.step(np.tile(task.nominal, (3, 1)))
    moved = abs(after[:, 7:19] - x[:, 7:19]).max()
    assert abs(worlds.states() - after)[:, :19].max() < 0.02 * moved
    assert not worlds.touching()[0].any()


def test_what_touches_is_seen() -> None:
    worlds = Worlds(TASK, MODELS / "go2.xml", np.full(2, 0.8))
    x = np.zeros((2, 37))
    x[:, 2], x[:, 6], x[:, 7:19] = [0.31, 0.05], 1.0, TASK.nominal
    worlds.put(x)
    for _ in range(10):
        worlds.step(np.tile(TASK.nominal, (2, 1)))
    feet, _ = worlds.touching()
    assert feet[0].all()


def test_bumps_lie_about_but_not_where_robots_start() -> None:
    bumps = draw_bumps(0.03, 5.0)
    radius = np.linalg.norm(bumps.place, axis=1)
    assert len(radius) == round(BUMPS * np.pi * (25 - FREE**2))
    assert radius.min() >= FREE and radius.max() <= 5.0
    assert np.mean(radius < 3.5) == pytest.approx(0.49, abs=0.1)  # uniform over the disk
    assert 0.01 <= bumps.size[:, 2].min() < 0.012 and 0.028 < bumps.size[:, 2].max() <= 0.03
    assert all(np.array_equal(a, b) for a, b in zip(bumps, draw_bumps(0.03, 5.0)))
    assert len(draw_bumps(0.0, 5.0).yaw) == 0


def test_who_stands_on_a_bump_stands_higher() -> None:
    """A box 3 cm high under all feet, turned; and its friction is that of the ground."""
    path, x = MODELS / "go2.xml", np.zeros((1, 37))
    x[:, 2], x[:, 6], x[:, 7:19] = 0.33, 1.0, TASK.nominal
    box = Bumps(np.zeros((1, 2)), np.array([[1.0, 0.8, 0.03]]), np.array([0.4]))
    height = []
    for bumps in (None, box):
        worlds = Worlds(TASK, path, np.full(1, 0.45), bumps=bumps)
        worlds.put(x)
        for _ in range(40):
            worlds.step(TASK.nominal[None])
        feet, other = worlds.touching()
        assert feet.all() and not other.any()
        assert (worlds.models[0].geom_friction[:, 0] == 0.45).all()
        height.append(worlds.states()[0, 2])
    assert height[1] - height[0] == pytest.approx(0.03, abs=0.002)


def test_a_robot_that_stands_does_not_fall() -> None:
    found = evaluate_in_mujoco(TASK, lambda o: np.zeros((len(o), 12)), seconds=0.2, bumps=0.02)
    assert found["rollouts"] == 450 and found["mild"]["fall_rate"] == 0
    assert found["cost"] > 0


def test_misuse_is_told() -> None:
    with pytest.raises(ValueError, match="`bumps` must"):
        evaluate_in_mujoco(TASK, lambda o: np.zeros((len(o), 12)), bumps=-0.01)
    with pytest.raises(ValueError, match="`model` must have the joints of go2"):
        Worlds(TASK, MODELS / "hopper.xml", np.ones(1))
