"""MuJoCo in another process: what it plays, what it hides from the controller, and its clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from cito.problems.robots import load_robot
from cito.realtime.clock import LockstepClock
from cito.realtime.disturbance import Noise, Pull
from cito.realtime.loop import run
from cito.realtime.mujoco_robot import MujocoRobot
from cito.realtime.robot_interface import Command, RobotFault, RobotState
from cito.realtime.run_file import run_of
from cito.realtime.run_log import RunLog
from tests.cito.realtime.robots import GO2, Stand

WEIGHT = 9.81 * GO2.system.mass


@contextmanager
def played(**settings: object) -> Iterator[MujocoRobot]:
    robot = MujocoRobot(GO2, 2e-3, 500.0, lockstep=True, **settings)  # type: ignore[arg-type]
    try:
        yield robot
    finally:
        robot.close()
        assert robot.process.returncode == 0


def held(robot: MujocoRobot, until: float, step: float = 0.05) -> RobotState:
    """Hold the stance until then; the last state."""
    plan = Stand().update(0.0, np.zeros(37))
    zero = np.zeros(12)
    command = Command(plan.torque, GO2.stance[7:], zero, plan.stiffness, plan.damping)
    for t in np.arange(0.0, until, step):
        robot.write(float(t), command)
        state = robot.read(float(t) + step)
    assert state is not None
    return state


def test_it_starts_where_it_is_told_and_waits_for_a_command() -> None:
    with played() as robot:
        for now in (0.0, 3.0):
            state = robot.read(now)
            assert state is not None and state.time == now
            np.testing.assert_allclose(state.q, GO2.stance, atol=1e-12)
        x = np.append(GO2.stance, np.zeros(18))
        x[2], x[3:7], x[19] = 1.0, [0, 0, np.sqrt(0.5), np.sqrt(0.5)], 0.3
        robot.reset(5.0, x)
        state = robot.read(5.0)
        assert state is not None
        np.testing.assert_allclose(np.append(state.q, state.v), x, atol=1e-9)


def test_it_stands_with_its_weight_on_its_feet() -> None:
    with played() as robot:
        state = held(robot, 0.5)
        assert state.time == pytest.approx(0.5)
        assert np.abs(state.q[:3] - GO2.stance[:3]).max() < 0.02
        assert state.forces[:, 2].sum() == pytest.approx(WEIGHT, rel=0.02)
        assert (state.forces[:, 2] > 0.15 * WEIGHT).all()


def test_equal_seeds_give_equal_simulations() -> None:
    noise = Noise(joint_position=1e-3, velocity=0.01, angle=1e-3)
    states = []
    for seed in (1, 1, 2):
        with played(noise=noise, seed=seed, latency=2e-3, jitter=2e-3) as robot:
            states.append(np.concatenate([held(robot, 0.1).q, held(robot, 0.2).v]))
    assert (states[0] == states[1]).all() and (states[0] != states[2]).any()


def test_noise_has_the_size_asked_for() -> None:
    std = Noise(position=0.01, joint_position=0.02, joint_velocity=0.3, angular_velocity=0.05)
    with played(noise=std) as robot:
        states = [robot.read(0.0) for _ in range(300)]
    q = np.array([state.q for state in states if state is not None]) - GO2.stance
    v = np.array([state.v for state in states if state is not None])
    for values, size in (
        (q[:, :3], 0.01), (q[:, 7:], 0.02), (v[:, 6:], 0.3), (v[:, 3:6], 0.05)
    ):  # fmt: skip
        assert values.std() == pytest.approx(size, rel=0.15)
    assert not v[:, :3].any() and np.abs(q[:, 3:7]).max() < 1e-12


def test_latency_delays_the_state() -> None:
    with played(latency=0.03) as robot:
        state = held(robot, 0.2, step=0.01)
        assert state.time == pytest.approx(0.2 - 0.03, abs=2.1e-3)


def test_latency_delays_the_command() -> None:
    torque = Command.of_torque(np.full(12, 5.0))
    moved = []
    for latency in (0.0, 0.05):
        with played(command_latency=latency) as robot:
            robot.write(0.0, Command.of_torque(np.zeros(12)))
            robot.read(0.02)
            robot.write(0.02, torque)
            state = robot.read(0.06)
            assert state is not None
            moved.append(np.abs(state.v[6:]).max())
    assert moved[0] > 2 * moved[1]


def test_a_payload_weighs() -> None:
    with played(payload=4.0) as robot:
        forces = held(robot, 0.6).forces
        assert forces[:, 2].sum() == pytest.approx(WEIGHT + 4 * 9.81, rel=0.05)


def test_a_pull_pulls_where_and_when_it_is_asked_for() -> None:
    with played(pull=Pull([0.0, 40.0, 0.0], 0.1, 0.1)) as robot:
        assert abs(held(robot, 0.1).v[1]) < 1e-3
        robot.reset(0.0)
        assert held(robot, 0.2).v[1] > 0.1


def test_without_friction_the_feet_slide() -> None:
    spread = []
    for friction in (0.0, 1.0):
        with played(friction=friction) as robot:
            state = held(robot, 0.3)
            spread.append(np.abs(state.forces[:, :2]).max())
    assert spread[0] < 1e-3 < 0.3 < spread[1]


def test_without_commands_the_motors_damp() -> None:
    with played(watchdog=0.05) as robot:
        robot.write(0.0, Command.of_torque(np.full(12, 20.0)))
        early, late = robot.read(0.04), robot.read(0.6)
        assert early is not None and late is not None
        assert np.abs(early.v[6:]).max() > 2 * np.abs(late.v[6:]).max()


def test_commands_of_nan_are_not_obeyed() -> None:
    with played() as robot:
        held(robot, 0.05)
        robot.write(0.05, Command.of_torque(np.full(12, np.nan)))
        state = robot.read(0.1)
        assert state is not None and np.isfinite(state.v).all()


def test_the_motors_saturate() -> None:
    speeds = []
    with played() as robot:
        for torque in (1.0, 1e3):  # in units of the limits
            robot.reset(0.0)
            robot.write(0.0, Command.of_torque(torque * GO2.torque_limits))
            state = robot.read(0.01)
            assert state is not None
            speeds.append(state.v)
    np.testing.assert_array_equal(*speeds)


def test_in_real_time_it_has_its_own_clock() -> None:
    robot, log = MujocoRobot(GO2, 2e-3, 250.0, seed=1), RunLog()
    try:
        summary = run(Stand(), robot, 0.5, 50.0, solver_rate=25.0, log=log)
    finally:
        robot.close()
    assert robot.process.returncode == 0
    assert summary.ticks >= 1 and summary.solves >= 1
    ticks = run_of(log).ticks
    assert (np.diff(ticks["time"]) > 0).all() and np.isfinite(ticks["state"]).all()


def test_the_loop_stands_on_it_in_lockstep() -> None:
    with played(latency=4e-3, noise=Noise(joint_position=1e-3)) as robot:
        log, clock = RunLog(), LockstepClock()
        summary = run(Stand(), robot, 0.4, 100.0, inline=True, clock=clock, log=log)
    assert summary.safety_events == 0 and summary.ticks == 40
    ages = run_of(log).ticks["state_age"]
    assert ages[5:].min() > 3e-3 and ages[5:].max() < 8e-3


def test_a_simulator_that_cannot_start_says_why() -> None:
    broken = load_robot("go2")
    object.__setattr__(broken, "actuated", ("no_such_joint", *broken.actuated[1:]))
    object.__setattr__(broken, "joints", ("no_such_joint", *broken.joints[1:]))
    with pytest.raises(RobotFault, match="has ended with status 1: ValueError: there is no joint"):
        MujocoRobot(broken, lockstep=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time_step": 0.0}, "`time_step` must be > 0"),
        ({"latency": -1.0}, "`latency` must be >= 0"),
        ({"priority": 200}, "`priority` must be <= 99"),
        ({"watchdog": float("nan")}, "`watchdog` must be finite"),
    ],
)
def test_misuse(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MujocoRobot(GO2, **change)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`payload` and `pull` act on a base that is free"):
        MujocoRobot(load_robot("hopper"), payload=1.0)
