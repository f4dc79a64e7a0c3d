"""Where the controller solves: within the tick, or in a thread that the loop never waits for.

worker.submit(t, x)     hand over a state; False while the last one is still being worked on
worker.take()           what has come out since, or None
"""

from __future__ import annotations

import threading
import time
from typing import NamedTuple, Protocol

from cito.dynamics.types import Array
from cito.realtime.controller import Controller, Plan
from cito.realtime.scheduling import step_back


class Solve(NamedTuple):
    """One call of the controller.

    plan: None where it raised; error: what it raised, "" where it did not; time: at which the
    state was measured [s]; wall, cpu: how long it took, of the wall clock and of the thread's
    processor time, that of the controller's own process where it has one [s].
    """

    plan: Plan | None
    error: str
    time: float
    wall: float
    cpu: float


class Worker(Protocol):
    """Something that calls the controller."""

    def submit(self, t: float, x: Array) -> bool:
        """Ask for a plan from x (nx,), measured at t; False where the worker is busy."""

    def take(self) -> Solve | None:
        """The solve that has ended since the last call."""

    def close(self) -> bool:
        """End the worker; False where the controller does not return."""


class InlineWorker:
    """Solves within `submit`: for controllers of a few microseconds, and for equal runs."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._done: Solve | None = None

    def submit(self, t: float, x: Array) -> bool:
        """Solve now."""
        self._done = solved(self._controller, t, x)
        return True

    def take(self) -> Solve | None:
        """The last solve, once."""
        done, self._done = self._done, None
        return done

    def close(self) -> bool:
        """Nothing to end."""
        return True


class SolverThread:
    """Solves in a thread of its own.

    Each side writes what only the other one clears, one reference at a time: no lock is held
    while the loop looks.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._request: tuple[float, Array] | None = None
        self._done: Solve | None = None
        self._busy, self._closing = False, False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._work, name="cito solver", daemon=True)
        self._thread.start()

    def submit(self, t: float, x: Array) -> bool:
        """Hand over a state, unless the thread is busy or its last plan was not taken."""
        if self._busy or self._done is not None:
            return False
        self._busy, self._request = True, (t, x)
        self._wake.set()
        return True

    def take(self) -> Solve | None:
        """The solve that has ended since the last call."""
        done = self._done
        if done is not None:
            self._done = None
        return done

    def close(self, patience: float = 1.0) -> bool:
        """Ask the thread to end and wait for it that long [s]; False where it does not."""
        self._closing = True
        self._wake.set()
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _work(self) -> None:
        step_back()
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._closing:
                return
            request, self._request = self._request, None
            if request is not None:
                self._done = solved(self._controller, *request)
                self._busy = False


def solved(controller: Controller, t: float, x: Array) -> Solve:
    """Call the controller; whatever it raises becomes a sentence."""
    wall, cpu = time.perf_counter(), time.thread_time()
    plan: Plan | None = None
    try:
        plan, error = controller.update(t, x), ""
    except Exception as raised:  # a controller is somebody else's code
        error = f"{type(raised).__name__}: {' '.join(str(raised).split())[:200]}"
    wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
    elsewhere: float | None = getattr(controller, "cpu_time", None)  # in a process of its own
    return Solve(plan, error, t, wall, cpu if elsewhere is None else elsewhere)
