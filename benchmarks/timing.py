"""Times that can be compared: every candidate in turn, round after round, on one noisy machine.

A burst of other work then falls on all candidates alike, and the ratio of two times of one round is
steadier than either.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from cito.dynamics.types import Array

Lap = Callable[[], float]  # does the work once; the seconds it took


def processor_time(work: Callable[[], object]) -> Lap:
    """Seconds of this thread's processor: other programs count little."""
    return _timed(work, time.thread_time)


def wall_time(work: Callable[[], object]) -> Lap:
    """Seconds on the wall: for work on several threads."""
    return _timed(work, time.perf_counter)


def interleaved(laps: Mapping[str, Lap], rounds: int, warm_up: int = 2) -> dict[str, Array]:
    """Seconds of each of `laps`, (rounds,), taken in turn; the first rounds are not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in laps}
    for _ in range(warm_up + rounds):
        for name, lap in laps.items():
            seconds[name].append(lap())
    return {name: np.array(times[warm_up:]) for name, times in seconds.items()}


def _timed(work: Callable[[], object], clock: Callable[[], float]) -> Lap:
    def lap() -> float:
        start = clock()
        work()
        return clock() - start

    return lap
