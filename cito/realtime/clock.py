"""Clocks of the loop: the machine's monotonic one, and one that stands still between ticks."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Time that never runs backwards [s]."""

    def now(self) -> float:
        """The present time."""

    def sleep_until(self, deadline: float) -> None:
        """Return at `deadline`, at once where it has passed."""


class MonotonicClock:
    """The machine's clock, the same in all of its processes."""

    def now(self) -> float:
        """The present time."""
        return time.monotonic()

    def sleep_until(self, deadline: float) -> None:
        """Return at `deadline`, at once where it has passed."""
        remaining = deadline - time.monotonic()
        if remaining > 0:
            time.sleep(remaining)


class LockstepClock:
    """A clock that moves only where it is told to: runs as fast as the machine, equal each time."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        """The present time."""
        return self._now

    def sleep_until(self, deadline: float) -> None:
        """Go to `deadline`."""
        self._now = max(self._now, deadline)
