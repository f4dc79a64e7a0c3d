"""A controller in a process of its own: if it crashes or hangs, the loop goes on.

The process is forked off by `multiprocessing`'s "spawn", so the controller must be picklable.
Plans refer to the controller's dynamics without carrying it along.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from cito.dynamics.types import Array, positive, whole_number
from cito.realtime.controller import Controller, Plan

DYNAMICS = "dynamics"
FIRST_TIMEOUT = 60.0  # [s]


class RemoteController:
    """Runs `controller` in another process; itself a controller.

    Args:
        controller: what makes the plans.
        timeout: how long an update may take before the process is ended [s]; the first one, for
            which the process must start, may take 60 s.
        priority: of SCHED_FIFO for the process, 1 to 99, where that is permitted; None: the
            scheduler as it is.

    Raises:
        RuntimeError: from `update`, where the process has ended, does not answer, or raised.
    """

    def __init__(
        self, controller: Controller, timeout: float = 5.0, priority: int | None = None
    ) -> None:
        if priority is not None:
            priority = whole_number("priority", priority, 1, 99)
        self._later = positive("timeout", timeout)
        self._timeout = max(self._later, FIRST_TIMEOUT)
        self._dynamics = getattr(controller, DYNAMICS, None)
        self.cpu_time: float | None = None
        context = multiprocessing.get_context("spawn")
        self._link, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(theirs, controller, priority), daemon=True
        )
        self.process.start()
        theirs.close()

    def update(self, t: float, x: Array) -> Plan:
        """The plan that the other process makes."""
        try:
            self._link.send((t, x))
            if not self._link.poll(self._timeout):
                self.process.kill()
                raise RuntimeError(f"the controller's process was silent for {self._timeout:g} s")
            plan, error, self.cpu_time = _load(self._link.recv_bytes(), self._dynamics)
            self._timeout = self._later
        except (EOFError, OSError):
            self.process.join(1.0)
            status = self.process.exitcode
            raise RuntimeError(f"the controller's process has ended with status {status}") from None
        if plan is None:
            raise RuntimeError(error)
        made: Plan = plan
        return made

    def close(self) -> None:
        """End the process."""
        self._link.close()
        self.process.join(1.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _serve(link: Connection, controller: Controller, priority: int | None) -> None:
    """Answer until the other side hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if priority is not None:
        with suppress(OSError):  # not permitted
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    dynamics = getattr(controller, DYNAMICS, None)
    while True:
        try:
            t, x = link.recv()
        except (EOFError, OSError):
            return
        cpu = time.thread_time()
        plan, error = None, ""
        try:
            plan = controller.update(t, x)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        link.send_bytes(_dump((plan, error, time.thread_time() - cpu), dynamics))


def _dump(value: Any, dynamics: Any) -> bytes:
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.persistent_id = _refers_to(dynamics)  # type: ignore[method-assign]
    pickler.dump(value)
    return buffer.getvalue()


def _load(data: bytes, dynamics: Any) -> Any:
    unpickler = pickle.Unpickler(io.BytesIO(data))
    unpickler.persistent_load = lambda name: dynamics  # type: ignore[method-assign]
    return unpickler.load()


def _refers_to(dynamics: Any) -> Callable[[Any], str | None]:
    return lambda value: DYNAMICS if dynamics is not None and value is dynamics else None
