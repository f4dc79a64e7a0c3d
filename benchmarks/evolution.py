"""A search without derivatives, CMA-ES (package `cma`), as the baseline of searches with them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from cito.dynamics.types import Array

SIGMA = 0.1  # its first step, in units of the unknowns


class Run(NamedTuple):
    """What a method did: error reached, evaluations (iterations of DDP, costs of CMA-ES), processor
    seconds, history of (seconds, least error so far, evaluations), and the states of the motion
    that it found, if any.
    """

    error: float
    evaluations: int
    seconds: float
    history: list[tuple[float, float, int]]
    states: Array | None = None

    def within(self, tolerance: float) -> Run:
        """The part of it up to the first error within `tolerance`; all of it where none is."""
        for i, (seconds, error, evaluations) in enumerate(self.history):
            if error <= tolerance:
                return Run(error, evaluations, seconds, self.history[: i + 1])
        return self


def evolve(
    start: Array,
    evaluate: Callable[[Array], tuple[Array, Array]],
    limit: float,
    seed: int = 1,
    bound: float | None = None,
    tolerance: float = 0.0,
) -> Run:
    """CMA-ES until the error of some candidate is within the tolerance, or the limit.

    Args:
        start: first mean, (n,).
        evaluate: candidates (m, n) -> costs (m,), errors (m,).
        limit: processor seconds.
        seed: of its samples.
        bound: of every entry's size, None: free.
        tolerance: of the error.
    """
    import cma  # optional: the extra `baselines`

    options = {
        "verbose": -9,
        "seed": seed,
        "bounds": [None, None] if bound is None else [-bound, bound],
    }
    search = cma.CMAEvolutionStrategy(start, SIGMA, options)
    began, evaluations, least = time.process_time(), 0, np.inf
    history: list[tuple[float, float, int]] = []
    with threadpool_limits(limits=1):  # more threads only spin, and their time would count
        while True:
            candidates = search.ask()
            costs, errors = evaluate(np.array(candidates))
            search.tell(candidates, costs.tolist())
            evaluations += len(candidates)
            least = min([least, *map(float, errors[np.isfinite(costs)])])
            seconds = time.process_time() - began
            history.append((seconds, least, evaluations))
            if least <= tolerance or seconds > limit or search.stop():
                return Run(least, evaluations, seconds, history)
