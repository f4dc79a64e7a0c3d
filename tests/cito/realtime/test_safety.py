"""The safety layer alone: whatever goes in, what comes out is finite and within the limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cito.problems.robots import load_robot
from cito.realtime.joints import Joints
from cito.realtime.robot_interface import Command, RobotState
from cito.realtime.safety import Safety
from cito.realtime.safety_checks import Action, Cause, Limits, confine, examine, sound

ROBOT = load_robot("go2")
JOINTS = Joints.of(ROBOT)
LIMITS = Limits.of(ROBOT)
NQ, NV, NU = ROBOT.native.nq, ROBOT.native.nv, len(ROBOT.actuated)


def standing(time: float = 0.0, **changes: np.ndarray) -> RobotState:
    state = RobotState(time, ROBOT.stance.copy(), np.zeros(NV), np.zeros((4, 3)))
    return state._replace(**changes)


def total(command: Command, state: RobotState) -> np.ndarray:
    q, v = JOINTS.drives(state.q, state.v)
    return (
        command.torque
        + command.stiffness * (command.position - q)
        + command.damping * (command.velocity - v)
    )


def causes(findings: list) -> set[Cause]:
    return {finding.cause for finding in findings}


def test_the_stance_is_well() -> None:
    assert examine(standing(), 0.0, LIMITS, JOINTS) == []
    command = Command.of_torque(np.full(NU, 5.0))
    assert confine(command, standing(), LIMITS, JOINTS) == (command, [])


@pytest.mark.parametrize(
    ("change", "now", "cause"),
    [
        ({}, 0.06, Cause.STALE_STATE),
        ({"time": 1.0}, 0.0, Cause.FUTURE_STATE),
        ({"v": np.eye(NV)[7] * 41.0}, 0.0, Cause.JOINT_SPEED),
        ({"q": ROBOT.stance + 1.3 * np.eye(NQ)[7]}, 0.0, Cause.JOINT_RANGE),
        ({"q": np.array([0, 0, 0.3, 0, np.sin(0.7), 0, np.cos(0.7), *ROBOT.stance[7:]])}, 0.0,
         Cause.TILT),
        ({"q": np.append([0, 0, 0.05], ROBOT.stance[3:])}, 0.0, Cause.HEIGHT),
    ],
)  # fmt: skip
def test_each_limit_of_the_state(change: dict, now: float, cause: Cause) -> None:
    assert causes(examine(standing()._replace(**change), now, LIMITS, JOINTS)) == {cause}


def test_tilt_is_the_angle_to_the_vertical_about_any_axis() -> None:
    for axis in ([1, 0, 0], [0, 1, 0], [0.6, 0.8, 0]):
        q = standing().q
        q[3:7] = [*np.sin(0.25) * np.array(axis), np.cos(0.25)]
        assert JOINTS.tilt(q) == pytest.approx(0.5)
    q[3:7] = [0, 0, 1, 0]  # a turn on the spot
    assert JOINTS.tilt(q) == 0.0


@pytest.mark.parametrize("part", ["torque", "position", "velocity", "stiffness", "damping"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_command_that_is_not_finite_is_not_used(part: str, value: float) -> None:
    broken = replace(
        Command.of_torque(np.zeros(NU)), **{part: np.where(np.arange(NU) == 3, value, 0)}
    )
    assert confine(broken, standing(), LIMITS, JOINTS)[0] is None
    command = Safety(ROBOT).filter(0.0, standing(), broken)
    assert (command.damping == LIMITS.damping).all() and not command.torque.any()


@pytest.mark.parametrize("size", [0, 11, 13])
def test_a_command_of_the_wrong_shape_is_not_used(size: int) -> None:
    command, found = confine(Command.of_torque(np.zeros(size)), standing(), LIMITS, JOINTS)
    assert command is None and causes(found) == {Cause.BAD_COMMAND}


def test_negative_gains_are_not_used() -> None:
    command = replace(Command.of_torque(np.zeros(NU)), damping=np.full(NU, -1.0))
    assert confine(command, standing(), LIMITS, JOINTS)[0] is None


numbers = st.floats(-1e4, 1e4) | st.sampled_from([0.0, 1e200, -1e200, np.inf, -np.inf, np.nan])


@given(
    st.lists(numbers, min_size=5, max_size=5),
    st.floats(-3, 3),
    st.floats(-60, 60),
    st.integers(0, NU - 1),
)
def test_what_comes_out_is_finite_and_within_the_torque_limits(
    parts: list[float], angle: float, speed: float, drive: int
) -> None:
    state = standing()
    state.q[JOINTS.q[drive]], state.v[JOINTS.v[drive]] = angle, speed
    one = np.eye(NU)[drive]
    wish = Command(*(np.where(one > 0, part, 0.0) for part in parts))
    command = Safety(ROBOT).filter(0.0, state, wish)
    for part in vars(command).values():
        assert part.shape == (NU,) and np.isfinite(part).all()
    assert (np.abs(command.torque) <= LIMITS.torque + 1e-9).all()
    if (command.damping != LIMITS.damping).any():  # the fallback saturates in the motors
        assert (np.abs(total(command, state)) <= LIMITS.torque * (1 + 1e-9)).all()


def test_the_torque_is_reduced_and_the_gains_stay_where_they_can() -> None:
    position = JOINTS.drives(standing().q, standing().v)[0]
    wish = Command(np.full(NU, 30.0), position, np.zeros(NU), np.full(NU, 50.0), np.ones(NU))
    command, found = confine(wish, standing(), LIMITS, JOINTS)
    assert command is not None and causes(found) == {Cause.TORQUE}
    limited = LIMITS.torque < 30
    assert (total(command, standing())[limited] == LIMITS.torque[limited]).all()
    assert (command.stiffness == 50.0).all()
    far = replace(wish, position=position + 10.0)  # 500 N m that no torque may make up for
    command, _ = confine(far, standing(), LIMITS, JOINTS)
    assert command is not None and not command.stiffness.any()
    assert (command.torque == LIMITS.torque).all()


def test_a_torque_beyond_its_limit_is_none_the_better_for_gains_that_take_it_back() -> None:
    position = JOINTS.drives(standing().q, standing().v)[0]
    wish = Command(np.full(NU, 50.0), position - 0.5, np.zeros(NU), np.full(NU, 80.0), np.zeros(NU))
    command, found = confine(wish, standing(), LIMITS, JOINTS)  # 50 N m - 40 N m
    assert command is not None and causes(found) == {Cause.TORQUE}
    assert (command.torque == 10.0).all() and not command.stiffness.any()


def test_gains_are_bounded() -> None:
    position = JOINTS.drives(standing().q, standing().v)[0]
    zero, huge = np.zeros(NU), np.full(NU, 1e200)
    command, found = confine(Command(zero, position, zero, huge, huge), standing(), LIMITS, JOINTS)
    assert command is not None and causes(found) == {Cause.GAIN}
    assert (command.stiffness == 500.0).all() and (command.damping == 50.0).all()


def test_no_torque_drives_a_joint_further_out_of_its_range() -> None:
    state = standing()
    state.q[JOINTS.q[2]] = LIMITS.joint_upper[2] + 0.05
    for sign in (1.0, -1.0):
        wish = Command.of_torque(sign * np.eye(NU)[2])
        command, found = confine(wish, state, LIMITS, JOINTS)
        assert command is not None
        assert (causes(found) == {Cause.JOINT_PUSH}) == (sign > 0)
        assert total(command, state)[2] == min(sign, 0.0)


def test_sound_states() -> None:
    assert sound(standing(), NQ, NV)
    assert not sound(standing(q=np.zeros(NQ - 1)), NQ, NV)
    assert not sound(standing(v=np.full(NV, np.nan)), NQ, NV)
    assert not sound(standing(time=np.nan), NQ, NV)


def test_damping_passes_when_all_has_been_well_for_a_while() -> None:
    safety, zero = Safety(ROBOT), Command.of_torque(np.zeros(NU))
    assert safety.filter(0.00, standing(0.00), zero) is zero
    assert safety.filter(0.10, standing(0.00), zero) is not zero and safety.damping
    assert safety.filter(0.12, standing(0.12), zero) is not zero  # not yet
    assert safety.filter(0.21, standing(0.21), zero) is not zero
    assert safety.filter(0.23, standing(0.23), zero) is zero and not safety.damping
    told = [(event.cause, event.ticks) for event in safety.log]
    assert told == [(Cause.STALE_STATE, 0), (Cause.STALE_STATE, 1)]
    assert safety.activations == 1 and not safety.fell


def test_a_fall_is_damped_for_good() -> None:
    safety, zero = Safety(ROBOT), Command.of_torque(np.zeros(NU))
    low = standing(q=np.append([0, 0, 0.05], ROBOT.stance[3:]))
    assert safety.filter(0.0, low, zero) is not zero
    for k in range(1, 100):
        assert safety.filter(0.1 * k, standing(0.1 * k), zero) is not zero
    assert safety.stopped is Cause.HEIGHT and safety.fell


def test_damping_that_does_not_pass_ends_for_good() -> None:
    safety = Safety(ROBOT)
    for k in range(20):
        safety.filter(0.1 * k, standing(0.1 * k), None)
    assert safety.stopped is Cause.LOST and not safety.fell
    assert {event.cause for event in safety.log} == {Cause.NO_PLAN, Cause.LOST}


def test_a_clock_that_goes_back_does_not_stop_the_robot() -> None:
    safety, zero = Safety(ROBOT), Command.of_torque(np.zeros(NU))
    safety.filter(100.0, standing(0.0), zero)
    for k in range(30):
        command = safety.filter(0.01 * k, standing(0.01 * k), zero)
    assert command is zero and safety.stopped is None


def test_every_cause_has_an_action_and_a_sentence() -> None:
    assert {cause.action for cause in Cause} == set(Action)
    assert len({cause.value for cause in Cause}) == len(Cause)


def test_limits_come_from_the_file_of_the_robot() -> None:
    assert (LIMITS.torque == ROBOT.torque_limits).all()
    assert LIMITS.height == pytest.approx(0.3 * ROBOT.stance[2])
    assert Limits.of(ROBOT, tilt=0.5, joint_speed=20.0).joint_speed.tolist() == [20.0] * NU
    with pytest.raises(ValueError, match="`patience` must be > 0"):
        Limits.of(ROBOT, patience=-1.0)
    with pytest.raises(ValueError, match="torque limit for every drive"):
        Limits.of(replace(ROBOT, torque_limits=np.full(NU, np.inf)))
