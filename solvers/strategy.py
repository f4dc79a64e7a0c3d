"""How a gradient and a regularization are chosen within one iteration of DDP."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol

from cito.dynamics.gradients import Gradient
from cito.solvers.search import Neighbourhood, Trial


class Move(NamedTuple):
    """The trial to accept (None: nothing is left to try) and whether it is an escape uphill."""

    trial: Trial | None
    escape: bool
    expected: float
    trials: int


class Strategy(Protocol):
    """Chooses gradients and regularizations within one iteration."""

    def move(self, neighbourhood: Neighbourhood) -> Move:
        """The next move from an iterate."""


class FixedGradient:
    """One gradient; regularization goes up until a step lowers the merit, and down after it.

    Where no step lowers it, the full step is taken all the same, a few times in a row: under a
    relaxed gradient a contact often opens or slides only after the controls have grown over
    several iterations, during which the hard rollout does not move and only the controls cost.

    Args:
        gradient: the contact gradient.
        uphill_steps: how many such steps may follow each other; 0 makes the method monotone.
        uphill: how many times the best merit such a step may cost.
    """

    LADDER: ClassVar[tuple[float, ...]] = (0.0, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)

    def __init__(self, gradient: Gradient, uphill_steps: int = 8, uphill: float = 2.0) -> None:
        self.gradient, self.uphill_steps, self.uphill = gradient, uphill_steps, uphill
        self._level = 0
        self._best_merit = float("inf")
        self._steps_uphill = 0

    def move(self, neighbourhood: Neighbourhood) -> Move:
        """The first regularization whose best rollout lowers the merit, else an uphill step."""
        merit = neighbourhood.current_merit
        if merit < self._best_merit:
            self._best_merit, self._steps_uphill = merit, 0
        trials = []
        for level in range(self._level, len(self.LADDER)):
            trials.append(neighbourhood.search(self.gradient, self.LADDER[level]))
            if trials[-1].decrease(merit) > 0:
                self._level = max(level - 1, 0)
                return Move(trials[-1], False, trials[0].expected, len(trials))
        self._level = 0
        full = self._uphill_step(trials[0])
        return Move(full, full is not None, trials[0].expected, len(trials))

    def _uphill_step(self, trial: Trial) -> Trial | None:
        limit = self._best_merit + (self.uphill - 1) * abs(self._best_merit)
        if self._steps_uphill >= self.uphill_steps or trial.full is None:
            return None
        if trial.full.merit > limit or -trial.expected <= 1e-9 * abs(self._best_merit):
            return None
        self._steps_uphill += 1
        return trial._replace(best=trial.full, alpha=1.0)
