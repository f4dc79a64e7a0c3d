"""One DDP iteration of a receding-horizon controller: cheap, and with a memory of what helped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cito.dynamics.gradients import Gradient
from cito.solvers.search import Iterate, Neighbourhood, Policy

REGULARIZATIONS = (0.0, 1e-3, 1e-2, 1e-1, 1.0)
# Step sizes, in the blocks in which they are rolled out.
STEP_SIZES = (np.ones(1), np.array([0.5, 0.25]), np.array([0.125, 0.0625, 0.03125]))
# The blocks tried from a plan: where these fail the direction mostly is one that no hard rollout
# confirms, and the next update starts from another state anyway.
FEW = 2
PROMISE = 0.1  # share of the decrease expected of a step with which it is taken
SMALL = 1e-4  # relative decrease of the cost below which a gradient brought nothing
UPHILL = 1.3  # times the best cost that a step may cost which is followed uphill
HOPE = 1e-3  # relative decrease without whose promise nothing is followed uphill


class Step(NamedTuple):
    """One iteration: a better trajectory or None, that of the full step, the policy of both."""

    better: Iterate | None
    full: Iterate | None
    policy: Policy | None
    gradient: str

    def worth_following(self, best: float) -> bool:
        """Whether the full step costs little more than the `best` cost, and its model promises
        something."""
        if self.full is None or self.policy is None:
            return False
        return self.full.cost <= UPHILL * best and -self.policy.expected > HOPE * abs(best)


class Iteration:
    """One iteration after the other; remembers which regularization was needed."""

    def __init__(self) -> None:
        self._level = 0

    def improve(
        self, neighbourhood: Neighbourhood, gradients: Sequence[Gradient], from_plan: bool
    ) -> Step:
        """One iteration under the first gradient that lowers the cost; from a plan that is shifted
        it gives up earlier than from a first guess, which may be far off."""
        cost = neighbourhood.iterate.cost
        first: Step | None = None
        for gradient in gradients:
            for level in range(self._level, len(REGULARIZATIONS)):
                policy = neighbourhood.backward(gradient, REGULARIZATIONS[level])
                if policy is None:
                    continue
                step = _line_search(neighbourhood, policy, gradient.name, from_plan)
                first = first or step._replace(better=None)
                if step.better is not None and cost - step.better.cost > SMALL * abs(cost):
                    self._level = max(level - 1, 0)
                    return step
                if from_plan:
                    break
        self._level = 0
        return first or Step(None, None, None, "")


def _line_search(neighbourhood: Neighbourhood, policy: Policy, name: str, from_plan: bool) -> Step:
    """The best rollout of the first block of step sizes that keeps the model's promise."""
    cost, best, full = neighbourhood.iterate.cost, None, None
    for alphas in STEP_SIZES[:FEW] if from_plan else STEP_SIZES:
        candidates = neighbourhood.forward(policy, alphas)
        full = candidates[0] if alphas[0] == 1.0 else full
        for candidate in candidates:
            if candidate is not None and (best is None or candidate.cost < best.cost):
                best = candidate
        if best is not None and cost - best.cost >= PROMISE * alphas[-1] * -policy.expected:
            break
    return Step(best, full, policy, name)
