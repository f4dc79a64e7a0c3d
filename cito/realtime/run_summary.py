"""What there is to say of a run in a few numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.types import Array

PERCENTILES = (50, 95, 99)
ABOUT = 0.06  # a little more than between two looks at the stolen time [s]


@dataclass(frozen=True)
class RunSummary:
    """A run in numbers; all times in seconds.

    Args:
        ticks: of the control loop; skipped ones are not among them.
        duration: from the first tick to the last.
        period_*: from the start of one tick to the start of the next.
        missed_deadlines: ticks that ended after the next should have begun, and ticks skipped.
        unexplained_deadlines: of these, where about that time neither time was stolen from the
            machine nor the thread was switched out.
        stolen_time, involuntary_switches: over the whole run.
        solves: plans that were made; failed_solves: calls that brought none; late_solves: times
            that a solve was due while the last one was not done.
        solve_*: processor time of the thread that solved; solve_wall_*: by the wall clock.
        objective_mean, objective_std: of the plans' costs.
        safety_events: how many times the safety layer began to act.
        fell: whether the base was tilted too far or too low.
        stopped: why the safety layer gave up, None where it did not.
        final_state: the last one known, (nx,).
        load: average number of threads that wanted a processor.
        granted: what the operating system granted.
        log: file of the run.
    """

    ticks: int
    duration: float
    period_p50: float
    period_p95: float
    period_p99: float
    period_max: float
    missed_deadlines: int
    unexplained_deadlines: int
    stolen_time: float
    involuntary_switches: int
    solves: int
    failed_solves: int
    late_solves: int
    solve_p50: float
    solve_p95: float
    solve_p99: float
    solve_max: float
    solve_wall_p50: float
    solve_wall_p95: float
    solve_wall_p99: float
    solve_wall_max: float
    objective_mean: float
    objective_std: float
    safety_events: int
    fell: bool
    stopped: str | None
    final_state: Array | None
    load: float
    granted: Mapping[str, Any]
    log: str | None

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON has them."""
        return asdict(self)


def unexplained(times: ArrayLike, missed: ArrayLike, taken: ArrayLike) -> int:
    """Missed deadlines of ticks that nothing was taken from, nor from their neighbours.

    Args:
        times: of the ticks, (K,) [s].
        missed: deadlines of each, (K,).
        taken: whether time was stolen or the thread switched out in each, (K,); the kernel
            accounts for stolen time with a delay.
    """
    times, missed, taken = np.asarray(times), np.asarray(missed, int), np.asarray(taken, bool)
    alone = [k for k in np.flatnonzero(missed) if not taken[np.abs(times - times[k]) < ABOUT].any()]
    return int(missed[alone].sum())


def percentiles(name: str, values: ArrayLike) -> dict[str, float]:
    """`name`_p50, _p95, _p99 and _max; NaN where there is no value."""
    numbers = np.asarray(values, float)
    if numbers.size == 0:
        return {f"{name}_{key}": float("nan") for key in ("p50", "p95", "p99", "max")}
    found = {f"{name}_p{p}": float(np.percentile(numbers, p)) for p in PERCENTILES}
    return found | {f"{name}_max": float(numbers.max())}


def mean_and_std(name: str, values: ArrayLike) -> dict[str, float]:
    """`name`_mean and _std of the values that are finite; NaN where there is none."""
    numbers = np.asarray(values, float)
    numbers = numbers[np.isfinite(numbers)]
    if numbers.size == 0:
        return {f"{name}_mean": float("nan"), f"{name}_std": float("nan")}
    return {f"{name}_mean": float(numbers.mean()), f"{name}_std": float(numbers.std())}
