"""What is kept of a run while it lasts: rows and events for the log, numbers for the summary."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from cito.dynamics.robot import Robot
from cito.dynamics.types import Array
from cito.problems.robots import MODELS
from cito.realtime.joints import Joints
from cito.realtime.robot_interface import Command, RobotState
from cito.realtime.run_log import RunLog
from cito.realtime.run_summary import RunSummary, mean_and_std, percentiles, unexplained
from cito.realtime.safety import Safety
from cito.realtime.scheduling import Thefts, load_average
from cito.realtime.solver_thread import Solve

SOLVE = np.dtype(
    [("time", "f8"), ("wall", "f8"), ("cpu", "f8"), ("cost", "f8"), ("start", "f8"), ("made", "?")]
)


class Recorder:
    """Records one run.

    Args:
        robot: what is controlled.
        safety: whose log becomes events.
        log: where everything goes; already begun.
    """

    def __init__(self, robot: Robot, safety: Safety, log: RunLog) -> None:
        self._robot, self._safety, self._log = robot, safety, log
        self._joints = Joints.of(robot)
        self._no_forces = np.full((len(robot.feet), 3), np.nan)
        self._fault, self._logged, self._late = "", 0, 0
        self._starts: list[float] = []
        self._missed: list[int] = []  # deadlines, a tick
        self._taken: list[tuple[float, int]] = []  # stolen time and switches, a tick
        self._solves: list[Solve] = []
        self._state: Array | None = None
        self._thefts = Thefts()
        self.origin = 0.0  # of the times in the log, on the loop's clock

    @property
    def last(self) -> float | None:
        """When the last tick began, since the origin; None before the first [s]."""
        return self._starts[-1] if self._starts else None

    def begin(self, origin: float) -> None:
        """Time begins."""
        self.origin = origin
        self._thefts.since(origin, True)

    def event(self, now: float, kind: str, message: str) -> None:
        """Something that is worth a sentence."""
        self._log.event(now - self.origin, kind, message)

    def fault(self, now: float, sentence: str) -> None:
        """A fault of the robot, told once for as long as it stays the same."""
        if sentence != self._fault:
            self._fault = sentence
            self.event(now, "robot", sentence)

    def late(self, now: float) -> None:
        """A solve was due while the last one was not done."""
        self._late += 1
        self.event(now, "solver", "a solve is due while the last one is not done")

    def solve(self, now: float, solve: Solve) -> None:
        """A call of the controller has ended."""
        self._solves.append(solve)
        cost, start, plan = math.nan, math.nan, solve.plan
        if plan is None:
            self.event(now, "solver", f"a solve failed: {solve.error}")
        else:
            cost, start = plan.cost, plan.start_time
        row = (solve.time, solve.wall, solve.cpu, cost, start, plan is not None)
        self._log.add("solves", row)

    def tick(
        self,
        now: float,
        end: float,
        missed: int,
        state: RobotState | None,
        x: Array,
        command: Command,
        plan_start: float,
    ) -> None:
        """A tick from `now` to `end`: deadlines missed, the newest state, its x, what was told."""
        stolen, switches = self._thefts.since(now, missed > 0)
        t, age = now - self.origin, math.nan if state is None else now - state.time
        self._starts.append(t)
        self._missed.append(missed)
        self._taken.append((stolen, switches))
        self._state = None if state is None else x
        q, v = self._joints.drives(x[: self._robot.native.nq], x[self._robot.native.nq :])
        limit = self._safety.limits.torque
        torque = np.clip(command.at(q, v), -limit, limit)
        forces = self._no_forces if state is None else state.forces
        numbers = (t, end - now, age, t - plan_start, stolen, switches, missed)
        self._log.add("ticks", (*numbers, self._safety.damping, x, torque, forces))
        self._tell_safety()
        self._log.breathe()

    def finish(self, granted: Mapping[str, Any]) -> RunSummary:
        """Close the log with the run in numbers."""
        self._tell_safety()
        self._thefts.close()
        summary = self._summary(granted)
        self._log.close(summary.as_dict())
        return summary

    def _tell_safety(self) -> None:
        for event in self._safety.log[self._logged :]:
            detail = f" ({event.detail})" if event.detail else ""
            over = f"; over after {event.ticks} ticks" if event.ticks else ""
            self._log.event(
                event.time - self.origin,
                "safety",
                f"{event.cause.value}{detail}{over}",
                cause=event.cause.name.lower(),
                ticks=event.ticks,
            )
        self._logged = len(self._safety.log)

    def _summary(self, granted: Mapping[str, Any]) -> RunSummary:
        made = [solve for solve in self._solves if solve.plan is not None]
        stopped = self._safety.stopped
        taken = np.array(self._taken, float).reshape(-1, 2)
        return RunSummary(
            ticks=len(self._starts),
            duration=self._starts[-1] - self._starts[0] if self._starts else 0.0,
            **percentiles("period", np.diff(self._starts)),
            missed_deadlines=sum(self._missed),
            unexplained_deadlines=unexplained(self._starts, self._missed, taken.any(axis=1)),
            stolen_time=float(taken[:, 0].sum()),
            involuntary_switches=int(taken[:, 1].sum()),
            solves=len(made),
            failed_solves=len(self._solves) - len(made),
            late_solves=self._late,
            **percentiles("solve", [solve.cpu for solve in made]),
            **percentiles("solve_wall", [solve.wall for solve in made]),
            **mean_and_std("objective", [solve.plan.cost for solve in made if solve.plan]),
            safety_events=self._safety.activations,
            fell=self._safety.fell,
            stopped=None if stopped is None else stopped.value,
            final_state=self._state,
            load=load_average(),
            granted=granted,
            log=None if self._log.path is None else str(self._log.path),
        )


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


def robot_named(robot: Robot) -> dict[str, Any]:
    """The robot in the log: by name where it comes with cito, else by its file."""
    shipped = robot.source.parent == MODELS
    source = robot.source.stem if shipped else str(robot.source.resolve())
    feet = [re.sub(r"\.\d+$", "", name) for name in robot.feet]  # "sole.1" is a part of "sole"
    return {"robot": source, "feet": list(dict.fromkeys(feet))}
