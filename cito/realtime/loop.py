"""The real-time loop, the only clock: it senses, decides and acts at fixed times and never waits.

    at every tick      sense    the newest sound state of the robot
                       think    hand it to the solver where a solve is due, take what has come out
                       wish     u + K (x (-) x_ref) of the plan in force, at this time and state
                       filter   by the safety layer
                       act      command the motors
    and sleep until the next multiple of the period, whatever the tick took.

A solve that is late or fails leaves the previous plan in force; a plan that is too old is no plan,
and without a plan the safety layer damps the robot.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from cito.dynamics.types import Array, as_vector, positive, whole_number
from cito.plan import Plan as MotionPlan
from cito.realtime.clock import Clock, MonotonicClock
from cito.realtime.controller import Controller, JointTargets, Plan
from cito.realtime.joints import Joints
from cito.realtime.recorder import SOLVE, Recorder, robot_named, tick_type
from cito.realtime.robot_interface import Command, RobotFault, RobotInterface, RobotState
from cito.realtime.run_log import RunLog
from cito.realtime.run_summary import RunSummary
from cito.realtime.safety import Safety
from cito.realtime.safety_checks import Cause, Finding, Limits, sound
from cito.realtime.scheduling import realtime
from cito.realtime.solver_thread import InlineWorker, Solve, SolverThread, Worker

FIRST_STATE, FIRST_PLAN = 10.0, 60.0  # how long to wait for them before the first tick [s]
LINGER = 0.5  # how long a run goes on in damping after the safety layer has given up [s]
ROUNDING = 1e-9  # of times that are compared [s]
JUMP = 0.1  # what two ticks may lie apart before the log speaks of it, and at least 10 periods [s]


def run(
    controller: Controller,
    robot: RobotInterface,
    duration: float,
    rate: float = 500.0,
    *,
    solver_rate: float = 40.0,
    start: Array | None = None,
    limits: Limits | None = None,
    plan_age: float = 0.2,
    inline: bool = False,
    clock: Clock | None = None,
    priority: int | None = None,
    lock_memory: bool = False,
    threads: int = 1,
    log: RunLog | None = None,
    about: Mapping[str, Any] | None = None,
) -> RunSummary:
    """Control `robot` with `controller`.

    Args:
        controller: makes plans; called in a thread of its own, or `inline` in the tick.
        robot: not closed here; it is left in damping.
        duration: [s].
        rate: of the control loop [Hz].
        solver_rate: at which plans are asked for [Hz], at most `rate`; each at the first tick
            that is not before its time.
        start: state to reset the robot to, (nx,); its stance by default.
        limits: of the safety layer; those of the robot's file by default.
        plan_age: time after its start at which a plan is no longer followed [s].
        inline: solve in the tick: with a lockstep clock, runs are equal bit by bit.
        clock: the machine's monotonic clock by default.
        priority: of SCHED_FIFO, 1 to 99; None: the scheduler as it is.
        lock_memory: keep all pages in memory.
        threads: of the linear algebra libraries.
        log: is begun and closed here; in memory by default.
        about: what the log shall say of the run, JSON-able.

    Raises:
        ValueError: an argument out of its range.
        RobotFault: no state arrived before the run began.
        KeyboardInterrupt: after the robot was damped and the log closed.
    """
    rate, solver_rate = positive("rate", rate), positive("solver_rate", solver_rate)
    if solver_rate > rate:
        raise ValueError(f"`solver_rate` must be at most `rate`, {rate:g}, got {solver_rate:g}")
    ticks = whole_number("duration * rate", math.ceil(positive("duration", duration) * rate), 1)
    plan_age = positive("plan_age", plan_age)
    if start is not None:
        start = as_vector("start", start, robot.model.native.nq + robot.model.native.nv)
    safety = Safety(robot.model, limits)
    log = RunLog() if log is None else log
    with realtime(priority, lock_memory, threads) as granted:
        settings: dict[str, Any] = {"rate": rate, "solver_rate": solver_rate, "inline": inline}
        settings |= {"plan_age": plan_age, "granted": granted}
        log.begin(
            {**robot_named(robot.model), **settings, **(about or {})},
            {"ticks": tick_type(robot.model), "solves": SOLVE},
        )
        worker = InlineWorker(controller) if inline else SolverThread(controller)
        recorder = Recorder(robot.model, safety, log)
        loop = Loop(robot, worker, safety, clock or MonotonicClock(), recorder, 1 / rate, plan_age)
        try:
            loop.prepare(start)
            loop.tick_until(ticks, solver_rate / rate)
        finally:
            loop.finish()
            summary = recorder.finish(granted)
    return summary


class Loop:
    """The state of a run; `run` is the way to use it.

    Args:
        robot, worker, safety, clock, recorder: the parts that it connects.
        period: of the ticks [s].
        plan_age: see `run`.
    """

    def __init__(
        self,
        robot: RobotInterface,
        worker: Worker,
        safety: Safety,
        clock: Clock,
        recorder: Recorder,
        period: float,
        plan_age: float,
    ) -> None:
        self._robot, self._worker, self._safety = robot, worker, safety
        self._clock, self._recorder, self._period, self._plan_age = (
            clock,
            recorder,
            period,
            plan_age,
        )
        self._joints = Joints.of(robot.model)
        self._state: RobotState | None = None
        self._x = np.zeros(robot.model.native.nq + robot.model.native.nv)
        self._plan: Plan | None = None
        self._coming: deque[Plan] = deque()  # by the time at which they arrived
        self._targets: JointTargets | None = None
        self._refused: list[Finding] = []
        self._fault = ""
        self._origin = clock.now()
        self._stopped_at: float | None = None

    def prepare(self, start: Array | None) -> None:
        """Reset the robot, wait for its state and for a first plan; then time begins."""
        self._robot.reset(self._clock.now(), start)
        deadline = time.monotonic() + FIRST_STATE
        while self._state is None:
            self._sense(self._clock.now())
            if time.monotonic() > deadline:
                raise RobotFault(self._fault or "no state has arrived")
            time.sleep(1e-3 if self._state is None else 0.0)
        self._worker.submit(0.0, self._x)
        deadline = time.monotonic() + FIRST_PLAN
        while (solve := self._worker.take()) is None and time.monotonic() < deadline:
            time.sleep(1e-3)
            self._sense(self._clock.now())  # so that no old states pile up
        self._origin = self._clock.now()
        self._recorder.begin(self._origin)
        if solve is None:
            self._event("solver", f"no plan within {FIRST_PLAN:g} s")
        else:
            self._receive(solve)
            self._adopt(math.inf)
        self._state = None  # it was measured before time began

    def tick_until(self, ticks: int, solves: float) -> None:
        """Ticks 0 to `ticks` - 1 at multiples of the period, with so many `solves` a tick."""
        began, k, asked = self._clock.now(), 0, 0
        while k < ticks and not self._given_up():
            now = self._clock.now()
            self._watch(now)
            due = math.floor(k * solves + 1e-9)  # solve number 0 was done before time began
            command = self._tick(now, due > asked)
            asked = due
            end = self._clock.now()
            late = end - began - (k + 1) * self._period  # after the deadline
            missed = 1 + math.floor(late / self._period) if late > ROUNDING else 0
            start = math.nan if self._plan is None else self._plan.start_time
            self._recorder.tick(now, end, missed, self._state, self._x, command, start)
            k += max(missed, 1)
            if late < -2 * self._period:  # the clock went back: the grid goes along
                began = end - k * self._period + self._period
            self._clock.sleep_until(began + k * self._period)

    def finish(self) -> None:
        """Damp the robot and end the solver."""
        now = self._clock.now()
        self._act(now, Command.of_damping(self._safety.limits.damping))
        if not self._worker.close():
            self._event("solver", "the controller does not return: its thread is left behind")

    def _tick(self, now: float, due: bool) -> Command:
        """One round; what the robot was told."""
        self._sense(now)
        now = self._clock.now()  # what was measured meanwhile is not from the future
        self._think(now, due)
        wish = self._wish(now)
        command = self._safety.filter(now, self._state, wish, self._refused)
        self._act(now, command)
        return command

    def _sense(self, now: float) -> None:
        """Keep the newest sound state; what is not sound is refused."""
        self._refused = []
        try:
            state = self._robot.read(now)
        except RobotFault as fault:
            self._complain(str(fault))
            return
        if state is None:
            return
        native = self._robot.model.native
        if not sound(state, native.nq, native.nv):
            self._refused = [Finding(Cause.BAD_STATE)]
            return
        known = self._state
        ahead = known is not None and known.time > now + self._safety.limits.state_age
        if known is None or state.time > known.time or ahead:
            self._state, self._x = state, np.concatenate([state.q, state.v])

    def _think(self, now: float, due: bool) -> None:
        """Take the plan that has come out, and ask for one where it is due."""
        self._take()
        if due and self._state is not None and self._safety.stopped is None:
            if not self._worker.submit(self._state.time - self._origin, self._x.copy()):
                self._recorder.late(now)
            self._take()  # of a worker within the tick
        self._adopt(now - self._origin)

    def _take(self) -> None:
        solve = self._worker.take()
        if solve is not None:
            self._receive(solve)

    def _receive(self, solve: Solve) -> None:
        """Log a solve, and keep its plan until it applies."""
        known = [plan for plan in (self._plan, *self._coming) if plan is not None]
        if solve.plan is not None and any(_same(solve.plan, plan) for plan in known):
            solve = solve._replace(plan=None, error="the previous plan was kept")
        self._recorder.solve(self._clock.now(), solve)
        if solve.plan is not None:
            self._coming.append(solve.plan)

    def _adopt(self, t: float) -> None:
        """Follow each plan that has come from its start on: where plans apply later than the next
        one is made, several wait."""
        while self._coming and t >= self._coming[0].start_time - ROUNDING:
            self._plan = self._coming.popleft()
            self._targets = self._plan if isinstance(self._plan, JointTargets) else None

    def _wish(self, now: float) -> Command | None:
        """What the plan in force says at this time and state; None where there is none."""
        plan, t = self._plan, now - self._origin
        if plan is None or self._state is None:
            return None
        if t > plan.end_time + ROUNDING or t - plan.start_time > self._plan_age + ROUNDING:
            return None
        try:
            if isinstance(plan, MotionPlan):
                u = np.asarray(plan.control(t, self._x, self._state.time - self._origin), float)
            else:
                u = np.asarray(plan.control(t, self._x), float)
            if self._targets is None:
                return Command.of_torque(u)
            reference, nq = plan.state(t), len(self._state.q)
            q, v = self._joints.drives(reference[:nq], reference[nq:])
            return Command(u, q, v, self._targets.stiffness, self._targets.damping)
        except Exception as raised:  # a plan is somebody else's code
            self._event("solver", f"the plan failed: {type(raised).__name__}: {raised}")
            return None

    def _act(self, now: float, command: Command) -> None:
        try:
            self._robot.write(now, command)
        except RobotFault as fault:
            self._complain(str(fault))

    def _given_up(self) -> bool:
        """Whether the safety layer has stopped the robot long enough ago to end the run."""
        if self._safety.stopped is None:
            return False
        now = self._clock.now()
        if self._stopped_at is None or now < self._stopped_at:
            self._stopped_at = now
        return now - self._stopped_at > LINGER

    def _watch(self, now: float) -> None:
        """Speak of a clock that jumped, or of a loop that stood still."""
        last = self._recorder.last
        apart = self._period if last is None else now - self._origin - last
        if apart < 0 or apart > max(JUMP, 10 * self._period):
            how = "a jump back" if apart < 0 else "a jump, or the loop stood still"
            self._event("clock", f"the clock moved by {apart:.3f} s between two ticks: {how}")

    def _complain(self, fault: str) -> None:
        self._fault = fault
        self._recorder.fault(self._clock.now(), fault)

    def _event(self, kind: str, message: str) -> None:
        self._recorder.event(self._clock.now(), kind, message)


def _same(plan: Plan, other: Plan) -> bool:
    """Whether a plan is another one, or a copy of it from another process."""
    return plan is other or plan.start_time == other.start_time
