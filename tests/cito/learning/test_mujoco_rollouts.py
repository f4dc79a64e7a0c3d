"""A policy that stands, in MuJoCo: states, contacts, falls."""

import numpy as np
import pytest

from cito.learning.mujoco_rollouts import Worlds, evaluate_in_mujoco
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


def test_a_robot_that_stands_does_not_fall() -> None:
    found = evaluate_in_mujoco(TASK, lambda o: np.zeros((len(o), 12)), seconds=0.2)
    assert found["rollouts"] == 450 and found["mild"]["fall_rate"] == 0
    assert found["cost"] > 0


def test_a_model_of_other_joints_is_refused() -> None:
    with pytest.raises(ValueError, match="`model` must have the joints of go2"):
        Worlds(TASK, MODELS / "hopper.xml", np.ones(1))
