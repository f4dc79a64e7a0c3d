"""Policies in the real-time loop: as in the environment, behind the safety layer, pulled at."""

import json
from pathlib import Path

import numpy as np
import pytest

from cito.cli import main
from cito.learning.policy_controller import PolicyController, standing, walk
from cito.problems.locomotion import LocomotionEnvironment, locomotion_task
from cito.realtime.clock import LockstepClock
from cito.realtime.disturbance import Pull
from cito.realtime.mujoco_robot import MujocoRobot
from cito.realtime.self_robot import SelfRobot
from cito.solvers.learning.policy import Policy
from cito.solvers.learning.training import TrainingConfig, train

TASK = locomotion_task("trot", history=2)
LOCKSTEP = {"inline": True}


def lively() -> Policy:
    """A policy that moves the legs a little."""
    policy = Policy((98, 16, 12), seed=3)
    policy.weights[-1] *= 20.0
    return policy


def test_it_decides_as_in_the_environment() -> None:
    """Fed with the environment's own states, actions are equal to the last bit."""
    e = LocomotionEnvironment(TASK, 1, automatic=False)
    command = np.array([[0.4, 0.1, -0.2]])
    e.put(np.ones(1, bool), standing(TASK)[None], command, np.array([0.25]))
    policy = lively()
    controller = PolicyController(TASK, policy, command[0], phase=0.25)
    for k in range(20):
        action = policy(e.observe())
        plan = controller.update(k * TASK.control_step, e.state[0])
        target = TASK.nominal + TASK.action_scale * np.clip(action[0], -1, 1)
        assert np.allclose(plan.reference[7:19], target, atol=1e-12)
        assert plan.stiffness[0] == TASK.kp and plan.damping[0] == TASK.kd
        e.renew(e.advance(action))
    assert abs(action).max() > 0.1


def test_a_second_call_within_a_step_does_not_make_history() -> None:
    x = standing(TASK)
    once, twice = (PolicyController(TASK, lively()) for _ in range(2))
    once.update(0.0, x)
    twice.update(0.0, x)
    assert once._frames is not None and twice._frames is not None
    twice.update(1e-4, x)
    assert np.array_equal(once._frames[1], twice._frames[1])


def stander() -> PolicyController:
    return PolicyController(locomotion_task("gait-free"), lambda o: np.zeros((len(o), 12)))


def test_the_nominal_pose_stands_in_the_loop() -> None:
    controller = stander()
    robot = SelfRobot(controller.task.robot)
    summary, found = walk(controller, robot, 2.0, rate=200.0, clock=LockstepClock(), **LOCKSTEP)
    assert not summary.fell and summary.safety_events == 0
    assert summary.solves == 100
    assert found["velocity_rmse"] < 0.05 and found["distance"] < 0.1  # it leans a little


def test_a_pull_that_is_too_strong_is_met_by_the_safety_layer() -> None:
    controller = stander()
    pull = Pull(np.array([0.0, 600.0, 0.0]), 0.5, 0.5)
    robot = SelfRobot(controller.task.robot, pull=pull)
    summary, _ = walk(controller, robot, 2.5, rate=200.0, clock=LockstepClock(), **LOCKSTEP)
    assert summary.safety_events > 0


def test_it_runs_on_mujoco() -> None:
    controller = stander()
    robot = MujocoRobot(controller.task.robot, friction=0.8, lockstep=True)
    try:
        summary, found = walk(controller, robot, 1.5, rate=200.0, clock=LockstepClock(), **LOCKSTEP)
    finally:
        robot.close()
    assert not summary.fell and found["velocity_rmse"] < 0.05


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "run")
    train(TrainingConfig("gait-free", envs=2, steps=32, threads=1), run)
    asked = ["walk", run, "--duration", "1.2", "--command", "0", "0", "0"]
    assert main([*asked, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["fell"] is False and row["velocity_rmse"] < 0.1 and row["robot"] == "self"
    assert main([*asked, "--robot", "mujoco", "--lockstep", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["missed_deadlines"] == 0
    assert main([*asked, "--robot", "anymal"]) == 2
    assert "--robot must be self or mujoco" in capsys.readouterr().err
