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
import re
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, as_vector, positive, whole_number
from cito.problems.robots import MODELS
from cito.realtime.clock import Clock, MonotonicClock
from cito.realtime.controller import Controller, JointTargets, Plan
from cito.realtime.joints import Joints
from cito.realtime.robot_interface import Command, RobotFault, RobotInterface, RobotState
from cito.realtime.run_log import RunLog
from cito.realtime.run_summary import RunSummary, mean_and_std, percentiles, unexplained
from cito.realtime.safety import Cause, Finding, Limits, Safety, sound
from cito.realtime.scheduling import Thefts, load_average, realtime
from cito.realtime.solver_thread import InlineWorker, Solve, SolverThread, Worker

FIRST_STATE, FIRST_PLAN = 10.0, 60.0  # how long to wait for them before the first tick [s]
LINGER = 0.5  # how long a run goes on in damping after the safety layer has given up [s]
ROUNDING = 1e-9  # of times that are compared [s]
JUMP = 0.1  # what two ticks may lie apart before the log speaks of it, and at least 10 periods [s]
SOLVE = np.dtype(
    [("time", "f8"), ("wall", "f8"), ("cpu", "f8"), ("cost", "f8"), ("start", "f8"), ("made", "?")]
)


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
        worker = InlineWorker(controller) if inline else SolverThread(controller)
        loop = Loop(robot, worker, safety, clock or MonotonicClock(), log, 1 / rate, plan_age)
        settings: dict[str, Any] = {"rate": rate, "solver_rate": solver_rate, "inline": inline}
        settings |= {"plan_age": plan_age, "granted": granted}
        log.begin(
            {**_robot_named(robot.model), **settings, **(about or {})},
            {"ticks": tick_type(robot.model), "solves": SOLVE},
        )
        try:
            loop.prepare(start)
            loop.tick_until(ticks, solver_rate / rate)
        finally:
            loop.finish()
            summary = loop.summary(granted)
            log.close(summary.as_dict())
    return summary


class Loop:
    """The state of a run; `run` is the way to use it.

    Args:
        robot, worker, safety, clock, log: the parts that it connects.
        period: of the ticks [s].
        plan_age: see `run`.
    """

    def __init__(
        self,
        robot: RobotInterface,
        worker: Worker,
        safety: Safety,
        clock: Clock,
        log: RunLog,
        period: float,
        plan_age: float,
    ) -> None:
        self._robot, self._worker, self._safety = robot, worker, safety
        self._clock, self._log, self._period, self._plan_age = clock, log, period, plan_age
        self._joints = Joints.of(robot.model)
        self._state: RobotState | None = None
        self._x = np.zeros(robot.model.native.nq + robot.model.native.nv)
        self._plan: Plan | None = None
        self._coming: Plan | None = None
        self._targets: JointTargets | None = None
        self._fault, self._logged = "", 0
        self._refused: list[Finding] = []
        self._starts: list[float] = []
        self._solves: list[Solve] = []
        self._late = 0
        self._missed: list[int] = []  # deadlines, a tick
        self._taken: list[tuple[float, int]] = []  # stolen time and switches, a tick
        self._stopped_at: float | None = None
        self._thefts = Thefts()
        self._origin = clock.now()

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
        if solve is None:
            self._event("solver", f"no plan within {FIRST_PLAN:g} s")
        else:
            self._receive(solve)
            self._adopt(math.inf)
        self._state = None  # it was measured before time began
        self._thefts.since(self._clock.now(), True)

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
            self._record(now, end, command, missed)
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
        self._log_safety()
        self._thefts.close()

    def summary(self, granted: Mapping[str, Any]) -> RunSummary:
        """The run in numbers."""
        periods = np.diff(self._starts)
        made = [solve for solve in self._solves if solve.plan is not None]
        costs = [solve.plan.cost for solve in made if solve.plan is not None]
        stopped = self._safety.stopped
        taken = np.array(self._taken, float).reshape(-1, 2)
        return RunSummary(
            ticks=len(self._starts),
            duration=self._starts[-1] - self._starts[0] if self._starts else 0.0,
            **percentiles("period", periods),
            missed_deadlines=sum(self._missed),
            unexplained_deadlines=unexplained(self._starts, self._missed, taken.any(axis=1)),
            stolen_time=float(taken[:, 0].sum()),
            involuntary_switches=int(taken[:, 1].sum()),
            solves=len(made),
            failed_solves=len(self._solves) - len(made),
            late_solves=self._late,
            **percentiles("solve", [solve.cpu for solve in made]),
            **percentiles("solve_wall", [solve.wall for solve in made]),
            **mean_and_std("objective", costs),
            safety_events=self._safety.activations,
            fell=self._safety.fell,
            stopped=None if stopped is None else stopped.value,
            final_state=None if self._state is None else self._x.copy(),
            load=load_average(),
            granted=granted,
            log=None if self._log.path is None else str(self._log.path),
        )

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
        """Ask for a plan where one is due, and take the one that has come out."""
        if due and self._state is not None and self._safety.stopped is None:
            if not self._worker.submit(self._state.time - self._origin, self._x.copy()):
                self._late += 1
                self._event("solver", "a solve is due while the last one is not done")
        solve = self._worker.take()
        if solve is not None:
            self._receive(solve)
        self._adopt(now - self._origin)

    def _receive(self, solve: Solve) -> None:
        """Log a solve, and keep its plan until it applies."""
        plan = solve.plan
        if plan is not None and plan in (self._plan, self._coming):
            plan, solve = None, solve._replace(plan=None, error="the previous plan was kept")
        self._solves.append(solve)
        if plan is None:
            self._event("solver", f"a solve failed: {solve.error}")
            row = (solve.time, solve.wall, solve.cpu, math.nan, math.nan, False)
        else:
            self._coming = plan
            row = (solve.time, solve.wall, solve.cpu, plan.cost, plan.start_time, True)
        self._log.add("solves", row)

    def _adopt(self, t: float) -> None:
        """Follow the plan that has come from its start on."""
        if self._coming is not None and t >= self._coming.start_time - ROUNDING:
            self._plan, self._coming = self._coming, None
            self._targets = self._plan if isinstance(self._plan, JointTargets) else None

    def _wish(self, now: float) -> Command | None:
        """What the plan in force says at this time and state; None where there is none."""
        plan, t = self._plan, now - self._origin
        if plan is None or self._state is None:
            return None
        if t > plan.end_time + ROUNDING or t - plan.start_time > self._plan_age + ROUNDING:
            return None
        try:
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
        apart = now - self._origin - self._starts[-1] if self._starts else self._period
        if apart < 0 or apart > max(JUMP, 10 * self._period):
            how = "a jump back" if apart < 0 else "a jump, or the loop stood still"
            self._event("clock", f"the clock moved by {apart:.3f} s between two ticks: {how}")

    def _record(self, now: float, end: float, command: Command, missed: int) -> None:
        stolen, switches = self._thefts.since(now, missed > 0)
        self._missed.append(missed)
        self._taken.append((stolen, switches))
        t, plan, state = now - self._origin, self._plan, self._state
        torque, forces = self._motors(command), self._no_forces if state is None else state.forces
        age = math.nan if state is None else now - state.time
        plan_age = math.nan if plan is None else t - plan.start_time
        self._starts.append(t)
        damping = self._safety.damping
        numbers = (t, end - now, age, plan_age, stolen, switches, missed, damping)
        self._log.add("ticks", (*numbers, self._x, torque, forces))
        self._log_safety()
        self._log.breathe()

    def _motors(self, command: Command) -> Array:
        """The motors' law at the state known, saturated: what the log says of the torques."""
        nq = self._robot.model.native.nq
        q, v = self._joints.drives(self._x[:nq], self._x[nq:])
        torque = (
            command.torque
            + command.stiffness * (command.position - q)
            + command.damping * (command.velocity - v)
        )
        limit = self._safety.limits.torque
        clipped: Array = np.clip(torque, -limit, limit)
        return clipped

    @property
    def _no_forces(self) -> Array:
        return np.full((len(self._robot.model.feet), 3), np.nan)

    def _complain(self, sentence: str) -> None:
        """Log a fault of the robot, once for as long as it stays the same."""
        if sentence != self._fault:
            self._fault = sentence
            self._event("robot", sentence)

    def _log_safety(self) -> None:
        for event in self._safety.log[self._logged :]:
            detail = f" ({event.detail})" if event.detail else ""
            over = f"; over after {event.ticks} ticks" if event.ticks else ""
            self._log.event(
                event.time - self._origin,
                "safety",
                f"{event.cause.value}{detail}{over}",
                cause=event.cause.name.lower(),
                ticks=event.ticks,
            )
        self._logged = len(self._safety.log)

    def _event(self, kind: str, message: str) -> None:
        self._log.event(self._clock.now() - self._origin, kind, message)


def tick_type(robot: Robot) -> np.dtype[Any]:
    """Fields of a tick in the log.

    time: of its start since the run began; busy: how long it took; state_age, plan_age [s];
    stolen [s], switches: taken from the thread since the last tick; missed: deadlines; damping:
    whether the safety layer damps; state (nx,); torque (nu,) [N m]; forces (feet, 3) [N].
    """
    nx, nu = robot.native.nq + robot.native.nv, len(robot.actuated)
    numbers = [(name, "f8") for name in ("time", "busy", "state_age", "plan_age", "stolen")]
    counts = [("switches", "i4"), ("missed", "i4"), ("damping", "?")]
    arrays = [
        ("state", "f8", (nx,)),
        ("torque", "f8", (nu,)),
        ("forces", "f8", (len(robot.feet), 3)),
    ]
    return np.dtype([*numbers, *counts, *arrays])


def _robot_named(robot: Robot) -> dict[str, Any]:
    """The robot in the log: by name where it comes with cito, else by its file."""
    shipped = robot.source.parent == MODELS
    source = robot.source.stem if shipped else str(robot.source.resolve())
    feet = [re.sub(r"\.\d+$", "", name) for name in robot.feet]  # "sole.1" is a part of "sole"
    return {"robot": source, "feet": list(dict.fromkeys(feet))}
