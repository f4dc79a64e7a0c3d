"""The loop in lockstep: timing without a clock, plans between their updates, equal runs."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cito.realtime.clock import LockstepClock, MonotonicClock
from cito.realtime.controller import StandingPlan
from cito.realtime.disturbance import Noise, Pull
from cito.realtime.loop import run
from cito.realtime.robot_interface import Command, RobotFault
from cito.realtime.run_file import load_run, run_of
from cito.realtime.run_log import RunLog
from cito.realtime.run_summary import mean_and_std, percentiles, unexplained
from cito.realtime.safety_checks import Limits
from cito.realtime.self_robot import SelfRobot
from tests.cito.realtime.robots import GO2, Stand, WatchedRobot

NOISE = Noise(joint_position=1e-3, joint_velocity=1e-2, angle=1e-3, velocity=1e-2)


def lockstep(controller, robot, duration=0.4, rate=250.0, **others):
    return run(controller, robot, duration, rate, inline=True, clock=LockstepClock(), **others)


def test_it_stands() -> None:
    log, robot = RunLog(), WatchedRobot()
    summary = lockstep(Stand(), robot, duration=1.0, log=log)
    assert summary.ticks == 250 and summary.duration == pytest.approx(249 / 250)
    assert summary.solves == 40 and summary.failed_solves == summary.late_solves == 0
    assert summary.safety_events == summary.missed_deadlines == 0
    assert not summary.fell and summary.stopped is None
    assert summary.final_state is not None
    assert np.abs(summary.final_state[:7] - GO2.stance[:7]).max() < 0.02
    logged = run_of(log)
    assert logged.about["robot"] == "go2" and logged.robot().name == GO2.name
    assert logged.states.shape == (250, 37) and logged.torques.shape == (250, 12)
    weight = 9.81 * GO2.system.mass
    assert logged.forces[-50:, :, 2].sum(axis=1).mean() == pytest.approx(weight, rel=0.02)
    assert logged.summary["ticks"] == 250
    assert robot.damped(0.99, 2.0)[-1]  # how a robot is left


def test_equal_seeds_give_equal_runs_bit_by_bit() -> None:
    def logged(seed: int) -> bytes:
        log = RunLog()
        robot = SelfRobot(GO2, 4e-3, noise=NOISE, seed=seed, pull=Pull([40, 10, 0], 0.05, 0.1))
        lockstep(Stand(), robot, log=log)
        ticks = run_of(log).ticks
        return b"".join(ticks[name].tobytes() for name in ("time", "state", "torque", "forces"))

    assert logged(3) == logged(3)
    assert logged(3) != logged(4)


class Ramp:
    """A plan whose control is the time: what the loop evaluates is seen in the command."""

    cost = 2.0

    def __init__(self, start: float) -> None:
        self.start_time, self.end_time = start, start + 0.1

    def control(self, t: float, x: np.ndarray) -> np.ndarray:
        return np.full(12, t)

    def state(self, t: float) -> np.ndarray:
        raise AssertionError("a plan without gains of the motors is not asked for its states")


class Delayed:
    """Plans that begin some time after the measurement."""

    def __init__(self, delay: float) -> None:
        self.delay, self.times = delay, []

    def update(self, t: float, x: np.ndarray) -> Ramp:
        self.times.append(t)
        return Ramp(t + self.delay)


def test_plans_are_resampled_at_the_control_rate_and_begin_at_their_time() -> None:
    controller, robot, log = Delayed(0.012), WatchedRobot(), RunLog()
    lockstep(controller, robot, 0.1, 250.0, solver_rate=25.0, log=log)
    told = [command.torque[0] for _, command in robot.commands[:-1]]
    assert told == pytest.approx(np.arange(25) / 250)
    assert controller.times == pytest.approx([0.0, 0.04, 0.08])
    ages = run_of(log).ticks["plan_age"]  # 0.012 at first, then it wraps when a plan takes over
    assert ages[12] == pytest.approx(0.048 - 0.012) and ages[13] == pytest.approx(0.0)
    assert run_of(log).summary["objective_mean"] == 2.0


@pytest.mark.parametrize("delay", [0.007, 0.015, 0.035])
def test_a_plan_that_comes_before_the_last_one_applies_does_not_displace_it(delay: float) -> None:
    """Plans every 10 ms. One that applies 7 ms after its measurement is taken up at the tick after
    8 ms, at 12 ms, when the next has come; later ones wait in a row."""
    log = RunLog()
    lockstep(Delayed(delay), WatchedRobot(), 0.15, 250.0, solver_rate=100.0, log=log)
    logged = run_of(log)
    starts = logged.times - logged.ticks["plan_age"]
    known = np.array([0.0, *logged.solves["time"][1:]]) + delay
    for t, start in zip(logged.times, starts):
        due = known[known <= t + 1e-9]
        assert start == pytest.approx(due.max() if len(due) else delay)


def test_solver_and_control_rate_need_no_common_factor() -> None:
    controller = Delayed(0.0)
    lockstep(controller, WatchedRobot(time_step=2e-3), 0.1, 500.0, solver_rate=40.0)
    assert controller.times == pytest.approx([0.0, 0.026, 0.05, 0.076])


def test_a_plan_that_is_too_old_is_no_plan() -> None:
    robot = WatchedRobot()
    summary = lockstep(Delayed(0.0), robot, 0.3, 250.0, solver_rate=1.0, plan_age=0.05)
    assert not any(robot.damped(0.0, 0.05)) and all(robot.damped(0.056, 0.3))
    assert summary.safety_events == 1
    robot = WatchedRobot()  # it ends before it is too old
    lockstep(Delayed(0.0), robot, 0.3, 250.0, solver_rate=1.0, plan_age=5.0)
    assert not any(robot.damped(0.0, 0.1)) and all(robot.damped(0.104, 0.3))


def test_the_motors_follow_a_plan_with_gains() -> None:
    robot = WatchedRobot()
    lockstep(Stand(), robot, 0.1)
    command = robot.commands[0][1]
    assert (command.stiffness == 60.0).all() and (command.position == GO2.stance[7:]).all()
    assert not command.velocity.any()


def test_slow_ticks_miss_deadlines_and_keep_the_grid() -> None:
    clock = LockstepClock()
    # A solve at 0.04 s that takes 11 ms ends after the deadlines at 44 and 48 ms.
    slow = Stand(lambda t: clock.sleep_until(clock.now() + (0.011 if 0.03 < t < 0.05 else 0.0)))
    robot, log = WatchedRobot(), RunLog()
    summary = run(slow, robot, 0.1, 250.0, solver_rate=25.0, inline=True, clock=clock, log=log)
    times = run_of(log).times
    assert summary.missed_deadlines == 2 and summary.ticks == 24
    assert times[10:13] == pytest.approx([0.040, 0.051, 0.052])
    assert summary.period_max == pytest.approx(0.011)


def test_a_run_starts_from_a_given_state() -> None:
    start = np.append(GO2.stance, np.zeros(18))
    start[0] = 2.0
    log = RunLog()
    lockstep(Stand(), SelfRobot(GO2, 4e-3), 0.05, log=log, start=start)
    assert run_of(log).states[0, 0] == 2.0


def test_a_fall_ends_the_run() -> None:
    robot = WatchedRobot()
    limits = replace(Limits.of(GO2), height=0.3)
    start = np.append(GO2.stance, np.zeros(18))
    start[2] = 0.25
    summary = lockstep(Stand(), robot, 5.0, limits=limits, start=start)
    assert summary.fell and summary.stopped == "the base is too low"
    assert summary.duration < 1.0 and all(robot.damped(0.0, 9.0))


def test_a_robot_that_says_nothing_ends_the_run_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("cito.realtime.loop.FIRST_STATE", 0.01)
    log = RunLog(tmp_path / "a.run")
    with pytest.raises(RobotFault, match="no state has arrived"):
        lockstep(Stand(), WatchedRobot(lambda now, state: None), log=log)
    assert load_run(tmp_path / "a.run").complete


def test_ctrl_c_damps_the_robot_and_closes_the_log(tmp_path: Path) -> None:
    def interrupt(now, state):
        if now > 0.1:
            raise KeyboardInterrupt
        return state

    robot = WatchedRobot(interrupt)
    with pytest.raises(KeyboardInterrupt):
        lockstep(Stand(), robot, log=RunLog(tmp_path / "a.run"))
    assert robot.damped(0.101, 1.0) == [True]
    assert load_run(tmp_path / "a.run").summary["ticks"] == 26
    assert gc.isenabled()


def test_in_real_time_the_solver_has_a_thread_and_the_collector_stands_still() -> None:
    seen = []

    def look(t: float) -> None:
        quick = sys.getswitchinterval() < 1e-4
        seen.append((threading.current_thread().name, gc.isenabled(), quick))

    before = sys.getswitchinterval()
    summary = run(Stand(look), SelfRobot(GO2, 5e-3), 0.2, 100.0, solver_rate=20.0)
    assert set(seen) == {("cito solver", False, True)}
    assert gc.isenabled() and sys.getswitchinterval() == before
    assert summary.ticks >= 1 and summary.load >= 0
    assert not [t for t in threading.enumerate() if t.name.startswith("cito")]


GRANTED = """
import json
from cito.realtime.loop import run
from cito.realtime.self_robot import SelfRobot
from tests.cito.realtime.robots import GO2, Stand

named = {"priority": 1, "lock_memory": True, "threads": 1}
summary = run(Stand(), SelfRobot(GO2, 5e-3), 0.05, 100.0, **named)
print(json.dumps(summary.granted))
"""


def test_what_the_operating_system_grants_is_told() -> None:
    """In a process of its own: all of this one's memory would be held, too."""
    told = subprocess.run(
        [sys.executable, "-c", GRANTED], capture_output=True, text=True, timeout=120, check=True
    )
    granted = json.loads(told.stdout)
    assert set(granted) == {"priority", "lock_memory", "threads"}
    assert all(value is True or value for value in granted.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": -1.0}, "`rate` must be > 0"),
        ({"solver_rate": 600.0}, "`solver_rate` must be at most `rate`"),
        ({"duration": 0.0}, "`duration` must be > 0"),
        ({"plan_age": float("nan")}, "`plan_age` must be finite"),
        ({"start": np.zeros(3)}, r"`start` must have shape \(37,\)"),
        ({"priority": 100}, "`priority` must be <= 99"),
    ],
)
def test_misuse_is_told_before_anything_moves(change: dict, message: str) -> None:
    arguments = {"controller": Stand(), "robot": WatchedRobot(), "duration": 1.0} | change
    with pytest.raises(ValueError, match=message):
        run(**arguments)
    assert arguments["robot"].commands == []


def test_clocks() -> None:
    clock = LockstepClock()
    clock.sleep_until(2.0)
    clock.sleep_until(1.0)
    assert clock.now() == 2.0
    real = MonotonicClock()
    start = real.now()
    real.sleep_until(start + 0.01)
    assert real.now() >= start + 0.01
    real.sleep_until(start)


def test_numbers_of_a_run() -> None:
    found = percentiles("a", np.arange(101.0))
    assert found == {"a_p50": 50.0, "a_p95": 95.0, "a_p99": 99.0, "a_max": 100.0}
    assert all(np.isnan(value) for value in percentiles("a", []).values())
    assert mean_and_std("a", [1.0, np.nan, 3.0]) == {"a_mean": 2.0, "a_std": 1.0}
    # Deadlines missed at 0.1 s and 0.5 s; something was taken at 0.11 s.
    times, taken = np.arange(100) / 100, np.zeros(100, bool)
    missed = np.zeros(100, int)
    missed[10], missed[50], taken[11] = 2, 3, True
    assert unexplained(times, missed, taken) == 3


def test_a_standing_plan_holds_the_weight() -> None:
    plan = Stand().update(1.0, np.zeros(37))
    assert isinstance(plan, StandingPlan) and plan.end_time == 1.5
    robot = SelfRobot(GO2, 2e-3)
    robot.write(0.0, Command.of_torque(plan.control(1.0, np.zeros(37))))
    robot.read(0.02)
    assert np.abs(robot.state[19:25]).max() < 1e-3  # the base hardly moves
