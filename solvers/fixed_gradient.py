"""The plain method: one gradient, from the initial guess until nothing improves."""

from __future__ import annotations

from dataclasses import dataclass

from cito.dynamics.gradients import Gradient
from cito.solvers.descent import Descent
from cito.solvers.search import Iterate, Neighbourhood, Trial
from cito.solvers.solution import Status

REGULARIZATIONS = (0.0, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


@dataclass
class FixedGradient:
    """iLQR with one contact gradient.

    Regularization goes up until a step lowers the merit, and down after it. Where no step lowers
    it, the full step is taken all the same, a few times in a row: under a relaxed gradient a
    contact often opens or slides only after the controls have grown over several iterations,
    during which the hard rollout does not move and only the controls cost.

    Args:
        gradient: the contact gradient.
        uphill_steps: how many such steps may follow each other; none where the descent's settings
            ask for a monotone method.
        uphill: how many times the best merit such a step may cost.
    """

    gradient: Gradient
    uphill_steps: int = 8
    uphill: float = 2.0

    def run(self, descent: Descent, iterate: Iterate) -> Status:
        """Iterate until converged or stalled."""
        best_merit, uphill_in_a_row, level = float("inf"), 0, 0
        allowed = 0 if descent.settings.monotone else self.uphill_steps
        while True:
            neighbourhood = descent.neighbourhood(iterate)
            merit = neighbourhood.current_merit
            small = descent.settings.tolerance * abs(merit)
            if merit < best_merit:
                best_merit, uphill_in_a_row = merit, 0
            trials, level = self._search(neighbourhood, level)
            if all(trial.best is None for trial in trials):
                return Status.NOT_POSITIVE_DEFINITE
            stationary = -trials[0].expected <= small
            gain = trials[-1].decrease(merit)
            if gain > 0:
                assert trials[-1].best is not None
                iterate = descent.accept(trials[-1].best, "descend", trials[-1])
                if gain <= small:
                    return Status.CONVERGED if stationary else Status.STALLED
                continue
            if stationary:
                blind = len(descent.history) == 1 and merit > 0 and _no_pull(neighbourhood)
                return Status.NO_GRADIENT if blind else Status.CONVERGED
            full = trials[0].full
            limit = best_merit + (self.uphill - 1) * abs(best_merit)
            if uphill_in_a_row >= allowed or full is None or full.merit > limit:
                return Status.STALLED
            uphill_in_a_row += 1
            iterate = descent.accept(full, "uphill", trials[0]._replace(alpha=1.0))

    def _search(self, neighbourhood: Neighbourhood, level: int) -> tuple[list[Trial], int]:
        """Trials up to the first regularization that lowers the merit, and where to start next."""
        trials: list[Trial] = []
        for i in range(level, len(REGULARIZATIONS)):
            trials.append(neighbourhood.search(self.gradient, REGULARIZATIONS[i]))
            if trials[-1].decrease(neighbourhood.current_merit) > 0:
                return trials, max(i - 1, 0)
        return trials, 0


def _no_pull(neighbourhood: Neighbourhood) -> bool:
    """Whether the controls cost nothing to first order: then, at rest, the states do not pull at
    them either, while at an optimum the two are usually in balance."""
    return not neighbourhood.expansion.l_u.any()
