"""The state of one solve: the best iterate, the history, the limits. Every strategy runs on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cito.dynamics.types import Array, duration, positive, whole_number
from cito.problems.objective import Objective
from cito.problems.problem import Problem
from cito.solvers.search import Iterate, Neighbourhood, Trial
from cito.solvers.solution import Status

Callback = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class DDPSettings:
    """When to stop, and what to accept on the way.

    Args:
        max_iterations: linearizations, each with its backward and forward passes.
        tolerance: relative decrease (and expected decrease) of the cost below which to stop.
        time_limit: wall clock [s].
        monotone: whether only steps that lower the cost are accepted. Otherwise a strategy may go
            uphill for a while, the best iterate being kept: a way out where every direction that
            promises a decrease first costs something.
        until: what is good enough: a function of the best iterate's states (N+1, nx) and controls
            (N, nu), asked whenever there is a better one.
    """

    max_iterations: int = 5000
    tolerance: float = 1e-9
    time_limit: float = np.inf
    monotone: bool = False
    until: Callable[[Array, Array], bool] | None = None

    def __post_init__(self) -> None:
        whole_number("max_iterations", self.max_iterations, 0)
        positive("tolerance", self.tolerance)
        duration("time_limit", self.time_limit)
        if not isinstance(self.monotone, bool):
            raise ValueError(f"`monotone` must be True or False, got {self.monotone!r:.80}")
        if self.until is not None and not callable(self.until):
            raise ValueError(
                f"`until` must be a function of states and controls, got {self.until!r:.80}"
            )


class LimitReached(Exception):
    """Raised by `Descent` where a strategy must stop; carries the status."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


class Descent:
    """What a strategy works on. It asks for neighbourhoods and accepts iterates, in any order."""

    def __init__(
        self,
        problem: Problem,
        objective: Objective,
        initial: Iterate,
        settings: DDPSettings,
        callback: Callback | None = None,
    ) -> None:
        self.problem, self.objective, self.settings = problem, objective, settings
        self.best = initial
        self.iterations = 0
        self.history: list[dict[str, Any]] = [
            {
                "iteration": 0,
                "cost": initial.cost,
                "best": initial.cost,
                "merit": initial.merit,
                "phase": "start",
            }
        ]
        self._callback = callback
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall clock since the start [s]."""
        return time.perf_counter() - self._started

    def neighbourhood(self, iterate: Iterate) -> Neighbourhood:
        """The local models of an iterate; counts as one iteration."""
        if self.iterations >= self.settings.max_iterations:
            raise LimitReached(Status.MAX_ITERATIONS)
        if self.seconds > self.settings.time_limit:
            raise LimitReached(Status.TIME_LIMIT)
        self.iterations += 1
        return Neighbourhood(self.problem, self.objective, iterate)

    def accept(self, iterate: Iterate, phase: str, trial: Trial | None = None) -> Iterate:
        """Record a new iterate and keep it if it is the best so far; returns it."""
        self.best = _better(self.best, iterate)
        record: dict[str, Any] = {
            "iteration": self.iterations,
            "cost": iterate.cost,
            "best": self.best.cost,
            "merit": iterate.merit,
            "phase": phase,
        }
        if trial is not None:
            record |= {
                "gradient": trial.gradient.name,
                "rho": getattr(trial.gradient, "rho", 0.0),
                "delta": getattr(trial.gradient, "delta", 0.0),
                "alpha": trial.alpha,
                "regularization": trial.regularization,
                "expected": trial.expected,
                "holding": trial.holding,
            }
        self.history.append(record)
        if self._callback is not None:
            self._callback(record)
        until, rollout = self.settings.until, iterate.rollout
        if until is not None and self.best is iterate and iterate.gaps is None:
            enough = until(rollout.states.copy(), rollout.controls.copy())
            if not isinstance(enough, bool | np.bool_):
                raise ValueError(f"`until` must return True or False, got {enough!r:.80}")
            if enough:
                raise LimitReached(Status.SATISFIED)
        return iterate


def _better(best: Iterate, iterate: Iterate) -> Iterate:
    """A rollout without gaps beats one with gaps; among equals the lower merit wins."""
    if (best.gaps is None) != (iterate.gaps is None):
        return iterate if iterate.gaps is None else best
    return iterate if iterate.merit <= best.merit else best
