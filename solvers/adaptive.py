"""The default of DDP: a portfolio of kernels that needs no tuning by task.

Around one linearization a further kernel costs a small contact solve a knot, so several are
searched and the best hard rollout is kept:

    first    the kernel that last succeeded, and the exact gradient (which converges fastest
             once the modes are right);
    then     if these bring little, the whole ladder of rho and delta, with regularizations;
    at last  if nothing lowers the cost, the best candidate with other contact modes is accepted
             for a few iterations although it costs more: a relaxed kernel often points through
             a ridge of the hard cost. The best iterate is kept aside.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from cito.dynamics.gradients import Exact, FullCone, Gradient
from cito.dynamics.types import Array, positive
from cito.solvers.search import Neighbourhood, Trial
from cito.solvers.strategy import Move


@dataclass(frozen=True)
class Adaptive:
    """The default strategy: a ladder of kernels, best hard rollout, escapes across modes.

    Args:
        ladder: factors r of rho_i = r v_ref^2 / A_NN,i [-].
        offsets: normal free-velocity offsets as factors of v_ref [-].
        v_ref: typical contact speed [m/s]; None: read off the initial rollout.
        regularizations: tried in the full search.
        enough: relative decrease at which the first kernels suffice.
        escapes: how many uphill moves in a row may be made.
        uphill: how many times the best cost an uphill move may cost.
    """

    ladder: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)
    offsets: tuple[float, ...] = (0.0, 0.5)
    v_ref: float | None = None
    regularizations: tuple[float, ...] = (0.0, 0.1, 1.0)
    enough: float = 1e-2
    escapes: int = 4
    uphill: float = 2.5
    name: ClassVar[str] = "adaptive"

    def __post_init__(self) -> None:
        for r in self.ladder:
            positive("ladder", r)
        for d in (*self.offsets, *self.regularizations):
            positive("offsets", d, allow_zero=True)
        if self.v_ref is not None:
            positive("v_ref", self.v_ref)


class Portfolio:
    """The strategy of `Adaptive`; remembers what last succeeded and how far it is uphill."""

    def __init__(self, settings: Adaptive) -> None:
        self._settings = settings
        self._kernels: list[Gradient] = []
        self._last: tuple[Gradient, float] = (Exact(), 0.0)
        self._best_merit = np.inf
        self._uphill_in_a_row = 0
        self._expected_at_best = 0.0

    def move(self, neighbourhood: Neighbourhood) -> Move:
        """The best downhill trial, else an escape, else nothing."""
        merit = neighbourhood.current_merit
        if not self._kernels:
            self._kernels = kernels(self._settings, neighbourhood.linearization.free_velocity)
        if merit < self._best_merit:
            self._best_merit, self._uphill_in_a_row = merit, 0
        trials = [neighbourhood.search(Exact(), 0.0)]
        if self._uphill_in_a_row == 0:
            self._expected_at_best = trials[0].expected
        if self._last != (Exact(), 0.0):
            trials.append(neighbourhood.search(*self._last))
        best = _lowest(trials)
        if best.decrease(merit) < self._settings.enough * abs(merit):
            trials += self._full_search(neighbourhood, trials)
            best = _lowest(trials)
        if best.decrease(merit) > 0:
            self._last = (best.gradient, best.regularization)
            return Move(best, False, self._expected_at_best, len(trials))
        escape = self._escape(neighbourhood, trials)
        return Move(escape, escape is not None, self._expected_at_best, len(trials))

    def _full_search(self, neighbourhood: Neighbourhood, done: list[Trial]) -> list[Trial]:
        tried = {(trial.gradient, trial.regularization) for trial in done}
        return [
            neighbourhood.search(gradient, regularization)
            for regularization, gradient in product(self._settings.regularizations, self._kernels)
            if (gradient, regularization) not in tried
        ]

    def _escape(self, neighbourhood: Neighbourhood, trials: list[Trial]) -> Trial | None:
        """The cheapest candidate with other modes, if uphill moves are left."""
        if self._uphill_in_a_row >= self._settings.escapes:
            return None
        modes = neighbourhood.iterate.rollout.modes
        limit = self._best_merit + (self._settings.uphill - 1) * abs(self._best_merit)
        others = [
            trial
            for trial in trials
            if trial.best is not None
            and trial.best.merit <= limit
            and not np.array_equal(trial.best.rollout.modes, modes)
        ]
        if not others:
            return None
        self._uphill_in_a_row += 1
        return _lowest(others)


def kernels(settings: Adaptive, free_velocity: Array) -> list[Gradient]:
    """The exact gradient and, where there is contact, the ladder scaled to the problem's speed.

    v_ref is the root mean square of the free contact velocities b (gap term included) of the
    initial rollout: how far, in velocity, contacts are from changing their mode.
    """
    if free_velocity.size == 0:
        return [Exact()]
    v_ref = settings.v_ref or max(float(np.sqrt(np.mean(free_velocity**2))), 1e-3)
    return [Exact()] + [
        FullCone(r, delta * v_ref, relative=True, v_ref=v_ref)
        for delta, r in product(settings.offsets, settings.ladder)
    ]


def _lowest(trials: list[Trial]) -> Trial:
    return min(trials, key=lambda t: np.inf if t.best is None else t.best.merit)
