"""Several gradients with a memory, for motions along which the hard rollout is rugged.

    each iteration   one gradient after the other, the last successful one first, until one of them
                     lowers the merit by a good share
    each gradient    u = U + alpha k + K (x (-) X) with its own damping (Levenberg-Marquardt): less
                     after a full step that kept its promise, more after a short or failing one
    acceptance       lower than the highest of the last `memory` merits, not than the last one
    where it stays   a small random change of the best controls, and on from there

A ball that rattles in a hand makes the cost rugged: true derivatives, but of a slope that ends
after a hundredth of a newton metre. A monotone search creeps from one such slope to the next; a few
steps that may cost something walk over them (Grippo, Lampariello, Lucidi: A nonmonotone line search
technique for Newton's method, 1986). The best iterate is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cito.dynamics.gradients import Exact, FullCone, Gradient
from cito.dynamics.types import whole_number
from cito.solvers.descent import Descent
from cito.solvers.search import Iterate, Neighbourhood, Trial, roll_out
from cito.solvers.solution import Status


@dataclass(frozen=True)
class Portfolio:
    """Several contact gradients in turn, each with its own damping; steps may go uphill.

    Args:
        gradients: the first one is tried first until another succeeds.
        memory: how many merits a step is compared with; 1 where the settings ask for a monotone
            method.
        shakes: how often in a row the best controls are changed at random in vain before it stops;
            none where the settings ask for a monotone method.
        seed: of these changes.
    """

    gradients: tuple[Gradient, ...] = (FullCone(0.003), Exact())
    memory: int = 5
    shakes: int = 30
    seed: int = 0
    name: ClassVar[str] = "portfolio"

    def __post_init__(self) -> None:
        given = self.gradients
        if not isinstance(given, Iterable) or isinstance(given, str):
            raise ValueError(f"`gradients` must be a sequence of gradients, got {given!r:.80}")
        gradients = tuple(given)
        if not gradients or not all(isinstance(g, Gradient) for g in gradients):
            raise ValueError(f"`gradients` must be one or more gradients, got {gradients!r:.80}")
        object.__setattr__(self, "gradients", gradients)
        for name, least, most in (("memory", 1, 10**6), ("shakes", 0, 10**9), ("seed", 0, None)):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least, most))

    def run(self, descent: Descent, iterate: Iterate) -> Status:
        """Descend, shake, and so on until shaking brings nothing."""
        return _Search(self, descent).run(iterate)


STEP_SIZES = (1.0, 0.3, 0.1)
LEAST, MOST, FIRST = 1e-4, 1e5, 1e-3  # regularization: its bounds, and where it starts
LESS, MORE = 0.2, 4.0  # factors of it
KEPT, BROKEN = 0.5, 0.25  # shares of the promised decrease above, below which these apply
ATTEMPTS = 3  # with more regularization each, before an iterate is given up
GOOD = 0.1  # relative decrease at which no further gradient is tried
IDLE, PATIENCE = 0.02, 8  # relative decrease of the best that counts, iterations without it
SHAKES = (0.01, 0.001)  # standard deviations of random changes, relative to the largest control
STATIONARY = 1e-9  # relative decrease below which a promise is none


class _Search:
    """One run of `Portfolio`: the order of its gradients, their regularizations."""

    def __init__(self, settings: Portfolio, descent: Descent) -> None:
        monotone = descent.settings.monotone
        self._descent = descent
        self._order = list(settings.gradients)
        self._memory = 1 if monotone else settings.memory
        self._shakes = 0 if monotone else settings.shakes
        self._rng = np.random.default_rng(settings.seed)
        self._level: dict[Gradient, float] = {}
        self._promises: list[float] = []  # of the present iterate: expected decreases

    def run(self, iterate: Iterate) -> Status:
        """See `Portfolio.run`."""
        descent, vain = self._descent, 0
        while True:
            before = descent.best.merit
            self._descend(iterate)
            small, first = STATIONARY * abs(descent.best.merit), len(descent.history) == 1
            if first and not self._promises:
                return Status.NOT_POSITIVE_DEFINITE
            if self._promises and max(self._promises) <= small:
                blind = first and descent.best.merit > 0
                return Status.NO_GRADIENT if blind else Status.CONVERGED
            if not self._shakes:
                return Status.STALLED
            vain = 0 if before - descent.best.merit > IDLE * abs(before) else vain + 1
            if vain > self._shakes:
                return Status.STALLED
            shaken = self._shaken(descent.best, SHAKES[vain % len(SHAKES)])
            if shaken is None:
                return Status.STALLED
            iterate = shaken

    def _descend(self, iterate: Iterate) -> None:
        """Steps until none is found or the best iterate stays as it is."""
        descent, recent, idle = self._descent, deque([iterate.merit], self._memory), 0
        self._level = dict.fromkeys(self._order, FIRST)
        while idle < PATIENCE:
            neighbourhood = descent.neighbourhood(iterate)
            bound = max(recent) if iterate.gaps is None else neighbourhood.current_merit
            trial = self._step(neighbourhood, bound)
            if trial is None or trial.best is None:
                return
            best = descent.best.merit
            iterate = descent.accept(trial.best, "portfolio", trial)
            recent.append(iterate.merit)
            idle = 0 if iterate.merit < best - IDLE * abs(best) else idle + 1

    def _step(self, neighbourhood: Neighbourhood, bound: float) -> Trial | None:
        """The best step below `bound` of the first attempt that has one."""
        merit = neighbourhood.current_merit
        for _ in range(ATTEMPTS):
            best: Trial | None = None
            self._promises = []
            for gradient in list(self._order):
                trial = self._try(neighbourhood, gradient, bound)
                if trial is None or trial.best is None:
                    continue
                if best is None or trial.decrease(merit) > best.decrease(merit):
                    best = trial
                if best.decrease(merit) > GOOD * abs(merit):
                    break
            if best is not None:
                self._order.remove(best.gradient)
                self._order.insert(0, best.gradient)
                return best
        return None

    def _try(self, neighbourhood: Neighbourhood, gradient: Gradient, bound: float) -> Trial | None:
        """The longest step under `gradient` that is below `bound`; its damping learns from it."""
        level, merit = self._level[gradient], neighbourhood.current_merit
        policy = neighbourhood.backward(gradient, level)
        if policy is None:
            self._level[gradient] = min(10 * level, MOST)
            return None
        self._promises.append(-policy.expected)
        if -policy.expected <= STATIONARY * abs(merit):
            return None
        if neighbourhood.iterate.gaps is not None:
            neighbourhood.penalty = max(neighbourhood.penalty, 2.0 * policy.multiplier)
        for alpha in STEP_SIZES:
            candidate = neighbourhood.forward(policy, np.array([alpha]))[0]
            if candidate is not None and candidate.merit < bound:
                break
        else:
            self._level[gradient] = min(MORE**2 * level, MOST)
            return None
        kept = (merit - candidate.merit) / (alpha * -policy.expected)
        if alpha == 1 and kept > KEPT:
            self._level[gradient] = max(LESS * level, LEAST)
        elif alpha < 1 or kept < BROKEN:
            self._level[gradient] = min(MORE * level, MOST)
        return Trial(gradient, level, policy.expected, candidate, alpha, None)

    def _shaken(self, best: Iterate, relative: float) -> Iterate | None:
        """The best controls with noise; None where no such rollout is finite."""
        problem, U = self._descent.problem, best.rollout.controls
        size = np.abs(U).max(axis=0)
        for limit in (problem.control_lower, problem.control_upper):
            if limit is not None:
                size = np.maximum(size, np.where(np.isfinite(limit), np.abs(limit), 0))
        for _ in range(ATTEMPTS):
            noise = relative * size * self._rng.standard_normal(U.shape)
            shaken = roll_out(problem, self._descent.objective, U + noise)
            if shaken is not None:
                return shaken
        return None
