"""The default of DDP: no kernel width to choose, no tuning by task.

    descent     from the guess, by the best of exact, mode-holding and relaxed steps
    excursion   follow one relaxed kernel for a few full steps, whatever the hard rollout costs
                on the way; wherever the contact modes are new, descend from there
    search      excursions under a ladder of kernels (rho, delta), from the guess and then from
                the best iterate, until the whole ladder brings nothing

The relaxed kernels find contact modes; the exact gradient finds the best trajectory within them.
Every iterate is a hard rollout, and the best one is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle, product
from typing import ClassVar

import numpy as np

from cito.dynamics.gradients import Exact, FullCone, Gradient
from cito.dynamics.types import Array, positive, whole_number
from cito.solvers.descent import Descent
from cito.solvers.mode_holding import hold_modes
from cito.solvers.search import Iterate, Trial
from cito.solvers.solution import Status


@dataclass(frozen=True)
class Adaptive:
    """The default strategy: excursions under a ladder of kernels, polished within their modes.

    Args:
        ladder: factors r of rho_i = r v_ref^2 / A_NN,i [-].
        offsets: normal free-velocity offsets delta as factors of v_ref [-].
        v_ref: typical contact speed [m/s]; None: read off the initial rollout.
        steps: full steps in an excursion.
    """

    ladder: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    offsets: tuple[float, ...] = (0.0, 1.0, 2.0)
    v_ref: float | None = None
    steps: int = 6
    name: ClassVar[str] = "adaptive"

    def __post_init__(self) -> None:
        for name in ("ladder", "offsets"):
            factors = getattr(self, name)
            if isinstance(factors, str) or not isinstance(factors, Iterable):
                raise ValueError(f"`{name}` must be a sequence of numbers, got {factors!r:.80}")
            for factor in factors:
                positive(name, factor, allow_zero=name == "offsets")
        if self.v_ref is not None:
            positive("v_ref", self.v_ref)
        object.__setattr__(self, "steps", whole_number("steps", self.steps, 1))

    def run(self, descent: Descent, iterate: Iterate) -> Status:
        """Descend from the initial guess, then make excursions until none improves the best."""
        return _Search(self, descent).run(iterate)


DESCENT_TOLERANCE = 1e-5  # relative decrease at which a descent ends
EXCURSION_TOLERANCE = 1e-6  # relative decrease without which an excursion brought nothing
MAX_DESCENT, MAX_POLISH = 100, 12  # iterations of a descent from the guess, of one in an excursion
ENOUGH = 1e-2  # relative decrease by exact steps at which relaxed ones are not tried
REGULARIZATIONS = (0.0, 0.1)  # of relaxed steps
KEPT_PROMISE = 0.5  # share of the expected decrease below which a kink is suspected
HOPE = 3.0  # a descent is given up that would need this many times its present rate of decrease
STATIONARY = 1e-6  # relative decrease promised by the models of the last iterate: converged


class _Search:
    """One run of `Adaptive`; remembers which mode sequences were polished."""

    def __init__(self, settings: Adaptive, descent: Descent) -> None:
        self._settings, self._descent = settings, descent
        self._seen: set[bytes] = set()

    def run(self, iterate: Iterate) -> Status:
        """Descent from the guess, excursions from it, then from the best until none improves."""
        descent = self._descent
        ladder = kernels(self._settings, descent.neighbourhood(iterate).linearization.free_velocity)
        self._descend(iterate, ladder[::3], DESCENT_TOLERANCE, MAX_DESCENT, enough=np.inf)
        if descent.settings.monotone:  # excursions go uphill
            return self._finish()
        for kernel in ladder[::2]:
            self._excursion(kernel, iterate)
        unsuccessful = 0  # kernels that were tried from the present best iterate without success
        for kernel in cycle(ladder) if ladder else ():
            before = descent.best.cost
            self._excursion(kernel, descent.best)
            improved = descent.best.cost < before - EXCURSION_TOLERANCE * abs(before)
            unsuccessful = 0 if improved else unsuccessful + 1
            if unsuccessful == len(ladder):
                break
        return self._finish()

    def _excursion(self, kernel: Gradient, iterate: Iterate) -> None:
        """Full steps of `kernel` from an iterate, polished where the modes are new."""
        descent = self._descent
        for _ in range(self._settings.steps):
            following = descent.neighbourhood(iterate).full_step(kernel)
            if following is None:
                return
            arrived = abs(following.cost - iterate.cost) <= EXCURSION_TOLERANCE * abs(iterate.cost)
            iterate = descent.accept(following, "excursion")
            if _modes(iterate) not in self._seen:
                self._descend(iterate, [kernel], DESCENT_TOLERANCE, MAX_POLISH)
            if arrived:
                return

    def _descend(
        self,
        iterate: Iterate,
        kernels: list[Gradient],
        tolerance: float,
        limit: int,
        enough: float = ENOUGH,
    ) -> float:
        """Exact, mode-holding and relaxed steps until they bring little.

        Returns the decrease that the models of the last iterate still promise, infinite where no
        model could be formed: of the mode-holding step where there is one, since at a kink the
        exact step promises what it can not keep.

        Relaxed steps are tried only where the exact ones bring a relative decrease below `enough`.
        A descent that at its present rate can not reach the best iterate is given up.
        """
        descent, promise = self._descent, np.inf
        self._seen.add(_modes(iterate))
        for left in reversed(range(limit)):
            neighbourhood = descent.neighbourhood(iterate)
            merit = neighbourhood.current_merit
            trials = [neighbourhood.search(Exact(), 0.0)]
            if trials[0].decrease(merit) < KEPT_PROMISE * -trials[0].expected:
                held = hold_modes(neighbourhood)
                trials += [] if held is None else [held]
            promise = -trials[-1].expected
            best = _lowest(trials)
            if best.decrease(merit) < enough * abs(merit):
                trials += [
                    neighbourhood.search(kernel, regularization, blocks=1)
                    for regularization, kernel in product(REGULARIZATIONS, kernels)
                ]
                best = _lowest(trials)
            gain = best.decrease(merit)
            if gain > 0:
                assert best.best is not None
                iterate = descent.accept(best.best, "descend", best)
                self._seen.add(_modes(iterate))
            hopeless = HOPE * left * gain < iterate.merit - descent.best.merit
            if gain <= tolerance * abs(merit) or hopeless:
                break
        return promise

    def _finish(self) -> Status:
        """Polish the best iterate to the full tolerance and say how it ended."""
        descent = self._descent
        promise = self._descend(descent.best, [], descent.settings.tolerance, MAX_DESCENT)
        if np.isinf(promise) and len(descent.history) == 1:
            return Status.NOT_POSITIVE_DEFINITE
        stationary = promise <= STATIONARY * abs(descent.best.cost)
        return Status.CONVERGED if stationary else Status.STALLED


def kernels(settings: Adaptive, free_velocity: Array) -> list[Gradient]:
    """The ladder scaled to the problem's speed; empty where there is no contact.

    v_ref is the typical speed of the initial rollout.
    """
    if free_velocity.size == 0:
        return []
    v_ref = settings.v_ref or typical_speed(free_velocity)
    return [
        FullCone(r, delta * v_ref, relative=True, v_ref=v_ref)
        for delta, r in product(settings.offsets, settings.ladder)
    ]


def typical_speed(free_velocity: Array) -> float:
    """Root mean square of the free contact velocities b, gap term included, (..., n) [m/s]: how
    far, in velocity, contacts are from changing their mode.
    """
    largest = max(float(np.abs(free_velocity).max()), 1e-3)  # divided out: squares may overflow
    root_mean_square = largest * float(np.sqrt(np.mean((free_velocity / largest) ** 2)))
    return max(root_mean_square, 1e-3)


def _modes(iterate: Iterate) -> bytes:
    return iterate.rollout.modes.tobytes()


def _lowest(trials: list[Trial]) -> Trial:
    return min(trials, key=lambda t: np.inf if t.best is None else t.best.merit)
