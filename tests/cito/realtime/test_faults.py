"""Faults injected into the loop: no NaN and no torque beyond its limit reaches the robot, the log
says what happened, and the loop recovers or stops in damping. `WatchedRobot` checks every command.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from cito.realtime.clock import LockstepClock
from cito.realtime.loop import run
from cito.realtime.messages import Kind
from cito.realtime.mujoco_robot import MujocoRobot
from cito.realtime.remote_controller import RemoteController
from cito.realtime.run_file import run_of
from cito.realtime.run_log import RunLog
from tests.cito.realtime.robots import GO2, Stand, WatchedRobot, check

# In damping the robot sinks to the ground, sooner or later than the patience of the safety layer.
ENDINGS = ("the base is too low", "damping did not pass within the time that it is given")


def messages(log: RunLog) -> str:
    return "\n".join(event["message"] for event in run_of(log).events)


def lockstep(controller, robot, duration, **others):
    log = RunLog()
    clock = others.pop("clock", None) or LockstepClock()
    summary = run(controller, robot, duration, 250.0, inline=True, clock=clock, log=log, **others)
    return summary, log


def test_a_late_solve_leaves_the_last_plan_then_damping_then_recovers() -> None:
    """The controller hangs from 0.1 s of the run on, until the loop has been in damping."""
    robot, log, released = WatchedRobot(time_step=5e-3), RunLog(), threading.Event()

    def hang(t: float) -> None:
        if 0.1 <= t < 0.2:
            released.wait(60.0)

    def let_go(now, state):
        if robot.commands and robot.damped(0.0, np.inf)[-1]:
            released.set()
        return state

    robot.disturb = let_go
    summary = run(Stand(hang), robot, 1.5, 100.0, solver_rate=20.0, plan_age=0.15, log=log)
    told = messages(log)
    assert "a solve is due while the last one is not done" in told
    assert "there is no plan in force" in told
    assert summary.late_solves > 0
    assert summary.stopped in (None, *ENDINGS)  # the latter where the machine itself stalls


def test_a_controller_that_never_returns_ends_in_damping() -> None:
    robot, log, released = WatchedRobot(time_step=5e-3), RunLog(), threading.Event()
    hang = Stand(lambda t: released.wait(60.0) if t > 0 else None)
    summary = run(hang, robot, 20.0, 100.0, solver_rate=20.0, plan_age=0.1, log=log)
    released.set()
    assert summary.stopped in ENDINGS
    assert robot.damped(0.0, np.inf)[-1] and summary.duration < 19.0
    assert "does not return: its thread is left behind" in messages(log)


def test_a_solve_that_raises_leaves_the_last_plan() -> None:
    def fail(t: float) -> None:
        if 0.1 < t < 0.2:
            raise ArithmeticError("nothing finite came out")

    robot = WatchedRobot()
    summary, log = lockstep(Stand(fail), robot, 0.5)
    assert summary.failed_solves == 3 and summary.safety_events == 0
    assert not any(robot.damped(0.0, 0.49))
    assert "a solve failed: ArithmeticError: nothing finite came out" in messages(log)


def test_a_controller_that_returns_its_last_plan_has_failed() -> None:
    plan = Stand().update(0.0, np.zeros(37))

    class Stuck:
        def update(self, t, x):
            return plan

    summary, log = lockstep(Stuck(), WatchedRobot(), 0.1)
    assert summary.solves == 1 and summary.failed_solves == 3
    assert "the previous plan was kept" in messages(log)


@pytest.mark.parametrize("torque", [np.full(12, np.nan), np.zeros(7)], ids=["nan", "size"])
def test_a_plan_of_nan_or_of_the_wrong_size_is_damped_and_passes(torque: np.ndarray) -> None:
    class Broken(Stand):
        def update(self, t, x):
            plan = super().update(t, x)
            return replace(plan, torque=torque) if 0.1 < t < 0.15 else plan

    robot = WatchedRobot()
    summary, log = lockstep(Broken(), robot, 0.6)
    assert any(robot.damped(0.1, 0.3)) and not any(robot.damped(0.4, 0.59))
    assert "the command holds NaN or infinity, or has the wrong shape" in messages(log)
    assert summary.stopped is None and not summary.fell


def test_a_plan_that_raises_is_damped_and_passes() -> None:
    class Broken(Stand):
        def update(self, t, x):
            plan = super().update(t, x)
            return replace(plan, reference=None) if 0.1 < t < 0.15 else plan

    robot = WatchedRobot()
    _, log = lockstep(Broken(), robot, 0.6)
    assert any(robot.damped(0.1, 0.3)) and not any(robot.damped(0.4, 0.59))
    assert "the plan failed: TypeError" in messages(log)


def test_three_lost_messages_are_ridden_out() -> None:
    robot = WatchedRobot(lambda now, state: None if 0.1 < now < 0.115 else state)
    summary, log = lockstep(Stand(), robot, 0.4)
    ages = run_of(log).ticks["state_age"]
    assert ages.max() == pytest.approx(0.012) and (ages[30:] < 1e-9).all()
    assert not any(robot.damped(0.0, 0.39)) and summary.safety_events == 0


def test_messages_lost_for_longer_are_damped_and_pass() -> None:
    robot = WatchedRobot(lambda now, state: None if 0.1 < now < 0.2 else state)
    summary, log = lockstep(Stand(), robot, 0.6)
    assert all(robot.damped(0.16, 0.2)) and not any(robot.damped(0.35, 0.59))
    assert "the newest state is too old" in messages(log)
    assert summary.stopped is None and summary.safety_events == 1


@pytest.mark.parametrize("field", ["q", "v", "time"])
def test_nan_in_a_state_is_refused(field: str) -> None:
    def poison(now, state):
        if not 0.1 < now < 0.115:
            return state
        value = np.nan if field == "time" else np.full_like(getattr(state, field), np.nan)
        return state._replace(**{field: value})

    robot = WatchedRobot(poison)
    summary, log = lockstep(Stand(), robot, 0.4)
    assert np.isfinite(run_of(log).states).all()
    assert not any(robot.damped(0.0, 0.39))  # the state before was young enough
    assert "the state holds NaN or infinity" in messages(log)
    assert summary.stopped is None


def test_a_state_of_the_wrong_size_is_refused() -> None:
    robot = WatchedRobot(
        lambda now, state: state._replace(q=state.q[:-1]) if 0.1 < now < 0.2 else state
    )
    _, log = lockstep(Stand(), robot, 0.5)
    assert all(robot.damped(0.16, 0.2)) and not any(robot.damped(0.35, 0.49))
    assert "or has the wrong shape" in messages(log)


class JumpingClock(LockstepClock):
    """Jumps by `step` at time `at`."""

    def __init__(self, at: float, step: float) -> None:
        super().__init__()
        self._at, self._step = at, step

    def sleep_until(self, deadline: float) -> None:
        super().sleep_until(deadline)
        if self._step and self._now >= self._at:
            self._now, self._step = self._now + self._step, 0.0


def test_a_clock_that_jumps_ahead_is_survived() -> None:
    robot = WatchedRobot()
    summary, log = lockstep(Stand(), robot, 3.0, clock=JumpingClock(0.5, 0.8))
    assert "the clock moved by 0.80" in messages(log)
    assert summary.missed_deadlines == 200 and summary.ticks == 551
    assert summary.stopped is None and not any(robot.damped(2.0, 2.9))


def test_a_clock_that_jumps_back_is_survived() -> None:
    robot = WatchedRobot()
    summary, log = lockstep(Stand(), robot, 1.0, clock=JumpingClock(0.5, -0.3))
    assert "a jump back" in messages(log)
    assert summary.ticks == 250 and not summary.fell
    assert len(robot.commands) == 251


def test_a_killed_controller_ends_in_damping() -> None:
    """Its process is killed at 0.1 s of the run; it is lockstep, so the robot needs no clock."""
    controller = RemoteController(Stand())
    robot = WatchedRobot(lambda now, state: state)

    def kill(now, state):
        if now > 0.1 and controller.process.is_alive():
            os.kill(controller.process.pid, signal.SIGKILL)
            controller.process.join()
        return state

    robot.disturb = kill
    summary, log = lockstep(controller, robot, 3.0, solver_rate=25.0)
    controller.close()
    assert "the controller's process has ended with status -9" in messages(log)
    assert summary.stopped in ENDINGS
    assert all(robot.damped(0.4, np.inf)) and not any(robot.damped(0.0, 0.2))


def test_a_hung_controller_is_ended() -> None:
    controller = RemoteController(Stand(), timeout=0.3)
    controller.update(0.0, np.zeros(37))  # it has started
    os.kill(controller.process.pid, signal.SIGSTOP)
    with pytest.raises(RuntimeError, match="silent for 0.3 s"):
        controller.update(0.1, np.zeros(37))
    controller.process.join(10.0)
    assert controller.process.exitcode == -signal.SIGKILL
    controller.close()


class Checked(MujocoRobot):
    """A MuJoCo robot that checks what it is told, and does something at a given command."""

    def __init__(self, act, **others) -> None:
        super().__init__(GO2, 2e-3, 500.0, lockstep=True, **others)
        self.act, self.count, self.last = act, 0, None

    def write(self, now, command):
        check(command)
        self.last = command
        self.count += 1
        if self.count == 20:
            self.act(self)
        super().write(now, command)


def test_a_killed_simulator_ends_in_damping() -> None:
    robot = Checked(lambda robot: (robot.process.kill(), robot.process.wait()))
    summary, log = lockstep(Stand(), robot, 3.0)
    robot.close()
    assert "the simulator has ended with status -9" in messages(log)
    assert "the newest state is too old" in messages(log)
    assert summary.stopped in ENDINGS
    assert not robot.last.torque.any() and robot.last.damping.all()


def test_messages_of_the_wrong_size_are_refused_on_both_sides() -> None:
    def send_nonsense(robot) -> None:
        robot.link.send(robot._format.pack(Kind.COMMAND, 0, 0.0, *[np.zeros(12)] * 5)[:-8])
        robot._format = type(robot._format)(19, 18, 12, 5)  # expects a fifth foot
        robot.act = None

    def mend(robot) -> None:
        robot._format = type(robot._format)(19, 18, 12, 4)

    class Mended(Checked):
        def write(self, now, command):
            if self.count == 22:
                mend(self)
            super().write(now, command)

    robot = Mended(send_nonsense)
    summary, log = lockstep(Stand(), robot, 0.3)
    assert robot.process.poll() is None  # it has survived
    robot.close()
    assert "refused a STATE of" in messages(log)
    assert summary.stopped is None and not summary.fell


def test_a_robot_that_is_slow_to_hang_up_does_not_block() -> None:
    robot = MujocoRobot(GO2, 2e-3, 500.0, lockstep=True)
    start = time.monotonic()
    robot.close()
    assert robot.process.returncode is not None and time.monotonic() - start < 30
