"""The Go2 adapter against a loopback mock of the vendor's SDK, and the estimator alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from cito.dynamics.conversions import rotation_matrix
from cito.problems.robots import load_robot
from cito.realtime.clock import LockstepClock
from cito.realtime.disturbance import Pull
from cito.realtime.loop import run
from cito.realtime.robot_interface import Command, RobotFault, RobotState
from cito.realtime.run_file import run_of
from cito.realtime.run_log import RunLog
from cito.realtime.self_robot import SelfRobot
from cito.realtime.unitree_go2 import LEGS, PARTS, UnitreeGo2, motor_indices
from tests.cito.realtime.robots import GO2, Stand
from tests.cito.realtime.unitree_mock import TO_SDK, LowCmd_, MockGo2, Network, sdk

STEP = 4e-3


class Exchanged(UnitreeGo2):
    """The mock publishes whenever the loop reads."""

    mock: MockGo2

    def read(self, now: float) -> RobotState | None:
        self.mock.publish()
        return super().read(now)


@pytest.fixture
def mock() -> Iterator[MockGo2]:
    network, clock = Network(), LockstepClock()
    robot = MockGo2(network, SelfRobot(GO2, STEP), clock)
    with sdk(network):
        yield robot


def connected(mock: MockGo2, **others: object) -> Exchanged:
    """The adapter, with a robot that tells its state as soon as somebody listens."""
    listeners = mock.network.listeners

    class Eager(dict):  # type: ignore[type-arg]
        def __setitem__(self, topic: str, listener: object) -> None:
            super().__setitem__(topic, listener)
            if topic == "rt/lowstate":
                mock.publish()

    mock.network.listeners = Eager(listeners)
    robot = Exchanged(GO2, "lo", stand_time=0.1, clock=mock.clock, **others)  # type: ignore[arg-type]
    robot.mock = mock
    return robot


def test_the_order_of_the_motors() -> None:
    names = [f"{leg}_{part}_joint" for leg in LEGS for part in PARTS]
    assert motor_indices(names).tolist() == list(range(12))
    assert motor_indices(GO2.actuated).tolist() == TO_SDK
    with pytest.raises(ValueError, match="must have the joints FL_hip, FL_thigh"):
        motor_indices(load_robot("biped").actuated)


def test_every_drive_reaches_its_motor_and_comes_back(mock: MockGo2) -> None:
    robot = connected(mock)
    for i, name in enumerate(GO2.actuated):
        torque = np.zeros(12)
        torque[i] = 1.0 + i
        robot.write(0.0, Command.of_torque(torque))
        told = mock.commands[-1].motor_cmd
        leg, part = name.split("_")[:2]
        motor = 3 * LEGS.index(leg) + PARTS.index(part)
        assert [m.tau for m in told].index(1.0 + i) == motor
        assert sum(m.tau != 0 for m in told) == 1
        mock.simulator.state[7 + i] = 0.1 * i
    assert isinstance(robot.read(0.0), RobotState)
    mock.clock.sleep_until(1e-4)
    state = robot.read(0.0)
    assert state is not None
    np.testing.assert_allclose(state.q[7:], 0.1 * np.arange(12))


def test_it_connects_to_the_robot_in_low_level_mode(mock: MockGo2) -> None:
    robot = connected(mock, domain=3)
    assert mock.network.initialized == (3, "lo") and mock.network.mode == ""
    assert mock.network.open == {"rt/lowcmd", "rt/lowstate"}
    robot.close()
    assert mock.network.open == set()
    last = mock.commands[-1].motor_cmd
    assert all((m.kp, m.tau, m.kd) == (0, 0, 3) for m in last[:12])
    assert all((m.kp, m.tau, m.kd) == (0, 0, 0) for m in last[12:])


def test_the_loop_stands_on_it(mock: MockGo2) -> None:
    robot, log = connected(mock), RunLog()
    summary = run(Stand(), robot, 0.5, 250.0, inline=True, clock=mock.clock, log=log)
    assert summary.safety_events == 0 and summary.ticks == 125
    assert len(mock.commands) >= 50 + 125  # it got up, then followed the loop
    true = mock.simulator.state
    assert np.abs(true[:7] - GO2.stance[:7]).max() < 0.02
    known = run_of(log).states[-1]
    np.testing.assert_allclose(known[3:19], true[3:19], atol=0.01)
    assert known[2] == pytest.approx(true[2], abs=0.005)
    weight = np.nansum(run_of(log).forces[-1])
    assert weight == pytest.approx(9.81 * GO2.system.mass, rel=0.05)


def test_the_base_is_followed_while_it_is_pushed() -> None:
    network, clock = Network(), LockstepClock()
    pull = Pull([60.0, 20.0, 0.0], 0.2, 0.2)
    mock = MockGo2(network, SelfRobot(GO2, STEP, pull=pull), clock)
    with sdk(network):
        robot, log = connected(mock), RunLog()
        truth = []

        class Recording(Stand):
            def update(self, t, x):
                truth.append((t, mock.simulator.state.copy()))
                return super().update(t, x)

        run(Recording(), robot, 0.8, 250.0, solver_rate=250.0, inline=True, clock=clock, log=log)
    states = run_of(log).states
    moved, worst = 0.0, 0.0
    for t, x in truth[1:]:
        known = states[round(t * 250)]
        v, v_known = (rotation_matrix(s[3:7]) @ s[19:22] for s in (x, known))
        moved, worst = max(moved, abs(v[0])), max(worst, float(np.abs(v - v_known).max()))
        assert np.abs(x[:3] - known[:3]).max() < 0.02
    assert moved > 0.15 and worst < 0.3 * moved


def test_an_own_estimator_is_asked(mock: MockGo2) -> None:
    class Fixed:
        def update(self, measured):
            self.measured = measured
            return np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.0, 0.0])

    own = Fixed()
    half = np.sqrt(0.5)
    mock.simulator.state[3:7] = [0, 0, half, half]  # turned to the left by a right angle
    robot = connected(mock, estimator=own)
    state = robot.read(0.0)
    assert state is not None and state.q[:3].tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_allclose(state.q[3:7], [0, 0, half, half])
    np.testing.assert_allclose(state.v[:3], [0, -0.1, 0], atol=1e-12)
    np.testing.assert_allclose(own.measured.acceleration, [0, 0, 9.81], atol=1e-9)


def test_faults_of_the_link_are_told(mock: MockGo2) -> None:
    robot = connected(mock)
    mock.network.refuse = True
    with pytest.raises(RobotFault, match="could not send"):
        robot.write(0.0, Command.of_torque(np.zeros(12)))
    message = type("Empty", (), {})()
    message.motor_state = [type("M", (), {"q": 0.0, "dq": 0.0})() for _ in range(20)]
    message.imu_state = type("I", (), {"quaternion": [0.0] * 4})()
    mock.clock.sleep_until(1.0)
    robot._arrive(message)
    with pytest.raises(RobotFault, match="sends no orientation"):
        robot._newest()


def test_a_robot_that_is_not_there(mock: MockGo2) -> None:
    with pytest.raises(RobotFault, match="no state has arrived from the Go2 within 0.05 s"):
        UnitreeGo2(GO2, clock=mock.clock, timeout=0.05)


def test_a_robot_that_keeps_its_own_control(mock: MockGo2) -> None:
    class Stubborn(Network):
        mode = property(lambda self: "ai", lambda self, value: None)

    network = Stubborn()
    with sdk(network), pytest.raises(RobotFault, match="does not leave its own control"):
        UnitreeGo2(GO2, clock=mock.clock, timeout=0.05)


def test_without_the_sdk_it_says_what_to_install() -> None:
    with pytest.raises(ImportError, match="needs the vendor's SDK: pip install"):
        UnitreeGo2(GO2)


def test_the_message_has_twenty_places() -> None:
    assert len(LowCmd_().motor_cmd) == 20
