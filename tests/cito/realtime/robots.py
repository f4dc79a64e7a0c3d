"""Robots and controllers that do what the tests of the loop need."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from cito.problems.robots import load_robot
from cito.realtime.clock import LockstepClock
from cito.realtime.controller import StandController, StandingPlan
from cito.realtime.robot_interface import Command, RobotState
from cito.realtime.self_robot import SelfRobot

GO2 = load_robot("go2")


class WatchedRobot(SelfRobot):
    """Our simulator; remembers every command, and may do something to what is read.

    Args:
        disturb: from the time [s] and the state to what the loop gets to see.
    """

    def __init__(
        self,
        disturb: Callable[[float, RobotState], RobotState | None] | None = None,
        time_step: float = 4e-3,
        **others: object,
    ) -> None:
        super().__init__(GO2, time_step, **others)  # type: ignore[arg-type]
        self.disturb = disturb
        self.commands: list[tuple[float, Command]] = []

    def read(self, now: float) -> RobotState | None:
        state = super().read(now)
        return state if self.disturb is None else self.disturb(now, state)

    def write(self, now: float, command: Command) -> None:
        self.commands.append((now, command))
        check(command)
        super().write(now, command)

    def damped(self, start: float, stop: float) -> list[bool]:
        """Whether each command in a span of time was the fallback."""
        return [
            not c.torque.any() and not c.stiffness.any() and bool(c.damping.all())
            for t, c in self.commands
            if start <= t < stop
        ]


def check(command: Command) -> None:
    """No NaN, no wrong shape, no torque beyond its limit: the promise to every robot."""
    for part in vars(command).values():
        assert part.shape == (12,) and np.isfinite(part).all()
    assert (np.abs(command.torque) <= GO2.torque_limits + 1e-9).all()


class Stand(StandController):
    """Stands; `before` is called with the time of each update."""

    def __init__(self, before: Callable[[float], None] | None = None) -> None:
        super().__init__(GO2)
        self.before = before

    def update(self, t: float, x: np.ndarray) -> StandingPlan:
        if self.before is not None:
            self.before(t)
        return super().update(t, x)


class WaitingClock(LockstepClock):
    """A lockstep clock that lets the solver's thread finish between two ticks, unless it hangs."""

    def __init__(self, hanging: threading.Event) -> None:
        super().__init__()
        self.hanging = hanging
        self.idle = threading.Event()

    def sleep_until(self, deadline: float) -> None:
        super().sleep_until(deadline)
        if not self.hanging.is_set():
            self.idle.wait(0.002)
