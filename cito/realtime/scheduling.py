"""What the operating system is asked for while a loop runs, what it grants, and what it takes.

    with realtime(priority=50, lock_memory=True) as granted: ...

Inside, the garbage collector stands still and threads hand over the interpreter quickly. A right
that is refused is no error: `granted` says so, and goes into the log of the run.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

from cito.dynamics.types import whole_number

MCL_CURRENT, MCL_FUTURE = 1, 2
INTERVAL = 0.05  # between two looks at the stolen time [s]
SWITCH_INTERVAL = 5e-5  # how long a thread may keep the interpreter once another wants it [s]


@contextmanager
def realtime(
    priority: int | None = None, lock_memory: bool = False, threads: int = 1
) -> Iterator[dict[str, Any]]:
    """Run what is inside as a real-time thread, as far as this process may.

    Args:
        priority: of SCHED_FIFO, 1 to 99; None: the scheduler as it is.
        lock_memory: keep all pages in memory.
        threads: of the linear algebra libraries.

    Yields:
        What was granted: one entry for each thing that was asked for, True or the reason.
    """
    if priority is not None:
        priority = whole_number("priority", priority, 1, 99)
    granted: dict[str, Any] = {"threads": whole_number("threads", threads, 1)}
    if priority is not None:
        granted["priority"] = _reason(lambda: _set_scheduler(os.SCHED_FIFO, priority))
    if lock_memory:
        granted["lock_memory"] = _reason(lambda: _call("mlockall", MCL_CURRENT | MCL_FUTURE))
    interval, collecting = sys.getswitchinterval(), gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        with threadpool_limits(threads):
            yield granted
    finally:
        sys.setswitchinterval(interval)
        gc.unfreeze()
        if collecting:
            gc.enable()
        if granted.get("lock_memory") is True:
            _call("munlockall")
        if granted.get("priority") is True:
            _set_scheduler(os.SCHED_OTHER, 0)


def step_back() -> None:
    """Give the calling thread one priority less than the loop's, if it has inherited that: it must
    not keep the loop from its time."""
    if os.sched_getscheduler(0) == os.SCHED_FIFO:
        priority = os.sched_getparam(0).sched_priority
        _set_scheduler(os.SCHED_FIFO, max(priority - 1, 1))


class Thefts:
    """How much time others took from this thread since the last call.

    Stolen time is what the hypervisor gave to other machines, over all processors; involuntary
    context switches are what the kernel gave to other threads.
    """

    def __init__(self) -> None:
        self._stat = _open("/proc/stat")
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._looked = -math.inf
        self._last = self._read(0.0, True)

    def since(self, now: float, closely: bool) -> tuple[float, int]:
        """Stolen time [s] and involuntary context switches of the calling thread.

        The former is looked up where `closely` is, else every INTERVAL of `now` only.
        """
        (stolen, switches), self._last = self._last, self._read(now, closely)
        return self._last[0] - stolen, self._last[1] - switches

    def close(self) -> None:
        """Let go of the file."""
        if self._stat is not None:
            os.close(self._stat)
            self._stat = None

    def _read(self, now: float, closely: bool) -> tuple[float, int]:
        switches = resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
        if not closely and abs(now - self._looked) < INTERVAL:
            return self._last[0], switches
        self._looked = now
        return self._stolen(), switches

    def _stolen(self) -> float:
        """Column "steal" of all processors [s]; 0 where the kernel does not tell."""
        if self._stat is None:
            return 0.0
        fields = os.pread(self._stat, 256, 0).split(b"\n", 1)[0].split()
        return int(fields[8]) / self._ticks if len(fields) > 8 else 0.0


def load_average() -> float:
    """Threads that wanted a processor, averaged over the last minute."""
    return os.getloadavg()[0]


def _set_scheduler(policy: int, priority: int) -> None:
    os.sched_setscheduler(0, policy, os.sched_param(priority))


def _call(function: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _reason(ask: Any) -> bool | str:
    """True where it was granted, else why not."""
    try:
        ask()
    except (OSError, AttributeError) as error:  # an attribute that other systems do not have
        return str(error)
    return True


def _open(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return None
