"""Between any controller and any robot: pass on, damp (tau = -kd v), or stop for good.

    what the checks find      limit the command     damping until it has passed     damping for good

A command that leaves `filter` is finite, of the right shape, and within the torque limits at the
state that it was made for. The log tells when each cause began and ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cito.dynamics.robot import Robot
from cito.realtime.joints import Joints
from cito.realtime.robot_interface import Command, RobotState
from cito.realtime.safety_checks import FALLS, Action, Cause, Finding, Limits, confine, examine


@dataclass(frozen=True)
class SafetyEvent:
    """One entry of the log: a cause begins to hold (ticks 0), or has ended after so many ticks."""

    time: float
    cause: Cause
    detail: str
    ticks: int = 0


class Safety:
    """The state machine: normal -> damping -> normal, or stopped for good.

    Args:
        robot: what is protected.
        limits: by default those of the robot's file.
    """

    def __init__(self, robot: Robot, limits: Limits | None = None) -> None:
        self.limits = Limits.of(robot) if limits is None else limits
        self.stopped: Cause | None = None
        self.log: list[SafetyEvent] = []
        self._joints = Joints.of(robot)
        self._fallback = Command.of_damping(self.limits.damping)
        self._holding: dict[Cause, int] = {}  # causes that hold, and for how many ticks
        self._damping_since: float | None = None
        self._well_since: float | None = None

    @property
    def damping(self) -> bool:
        """Whether the robot is in damping."""
        return self.stopped is not None or self._damping_since is not None

    @property
    def fell(self) -> bool:
        """Whether the base was tilted too far or too low."""
        return any(event.cause in FALLS for event in self.log)

    @property
    def activations(self) -> int:
        """How many times a cause began to hold."""
        return sum(event.ticks == 0 for event in self.log)

    def filter(
        self,
        now: float,
        state: RobotState | None,
        command: Command | None,
        refused: Sequence[Finding] = (),
    ) -> Command:
        """What the robot is told at time `now` in place of `command`.

        Args:
            now: [s].
            state: the newest sound one, None before the first.
            command: the controller's wish, None where it has none.
            refused: what the caller has found at this tick and dealt with; it is only logged.
        """
        if self.stopped is not None:
            return self._fallback
        found = examine(state, now, self.limits, self._joints)
        allowed = None
        if state is not None:
            allowed, changes = confine(command, state, self.limits, self._joints)
            found += changes
        self._advance(now, any(finding.cause.action is Action.DAMP for finding in found))
        if self._damping_since is not None and now - self._damping_since > self.limits.patience:
            found.append(Finding(Cause.LOST))
        for finding in found:
            if finding.cause.action is Action.STOP:
                self.stopped = finding.cause
        self._note(now, [*found, *refused])
        return self._fallback if self.damping or allowed is None else allowed

    def _advance(self, now: float, damp: bool) -> None:
        """Enter damping, or leave it when all has been well for long enough."""
        if damp:
            self._well_since = None
            if self._damping_since is None or now < self._damping_since:
                self._damping_since = now
        elif self._damping_since is not None:
            if self._well_since is None or now < self._well_since:
                self._well_since = now
            if now - self._well_since >= self.limits.recovery:
                self._damping_since = self._well_since = None

    def _note(self, now: float, found: Sequence[Finding]) -> None:
        """Log the causes that begin and those that end; in between their ticks are counted."""
        details = {finding.cause: finding.detail for finding in found}
        for cause in [cause for cause in self._holding if cause not in details]:
            self.log.append(SafetyEvent(now, cause, "", self._holding.pop(cause)))
        for cause, detail in details.items():
            if cause not in self._holding:
                self.log.append(SafetyEvent(now, cause, detail))
            self._holding[cause] = self._holding.get(cause, 0) + 1
