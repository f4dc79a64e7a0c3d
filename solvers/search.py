"""One iteration of DDP: a backward pass under a gradient, and the best of several hard rollouts.

An `Iterate` is a trajectory of the hard law (with gaps where multiple shooting left some open).
A `Neighbourhood` is what one linearization of it offers: any number of gradients and
regularizations can be searched from it, and only the first pays for the rigid-body terms.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from cito.dynamics import _native
from cito.dynamics.base import Dynamics, Linearization, Rollout, Transition
from cito.dynamics.gradients import Gradient
from cito.dynamics.types import Array
from cito.problems.objective import CostExpansion, Objective
from cito.problems.problem import Problem

# Step sizes, largest first; a further block is rolled out only if the one before brought nothing.
STEP_SIZES: tuple[Array, ...] = (np.exp2(-np.arange(0.0, 4.0)), np.exp2(-np.arange(4.0, 12.0)))


class Iterate(NamedTuple):
    """A trajectory, the gaps d (N, ndx) still open in it (or None), its cost and its merit.

    merit = cost + penalty sum |d|, equal to the cost where no gap is open.
    """

    rollout: Rollout
    gaps: Array | None
    cost: float
    merit: float


class Policy(NamedTuple):
    """u = U + alpha k + K (x (-) X), and what the quadratic model says of it.

    feedforward k (N, nu); feedback K (N, nu, ndx); expected: change of the cost at alpha = 1,
    <= 0; multiplier: largest |V_x|, the price of a gap in the dynamics.
    """

    feedforward: Array
    feedback: Array
    expected: float
    multiplier: float


class Trial(NamedTuple):
    """What one gradient and regularization brought.

    best: the best rollout over the step sizes, or None where the backward pass failed.
    full: the rollout of the full step, alpha = 1, whatever it costs; None where it is not finite.
    holding: whether the contact modes were held (solvers/mode_holding.py).
    expected: change of the cost that the quadratic model promises at alpha = 1, <= 0; -inf where
        the backward pass failed.
    """

    gradient: Gradient
    regularization: float
    expected: float
    best: Iterate | None
    alpha: float
    full: Iterate | None
    holding: bool = False

    def decrease(self, merit: float) -> float:
        """How much lower than `merit` the trial is; -inf where it has no rollout."""
        return merit - self.best.merit if self.best is not None else -np.inf


class Neighbourhood:
    """The local models of an iterate, and the search along the directions that they give."""

    def __init__(self, problem: Problem, objective: Objective, iterate: Iterate) -> None:
        self.problem, self.objective, self.iterate = problem, objective, iterate
        self._transitions: dict[Gradient, Transition] = {}
        self.penalty = 0.0

    def moved(self, iterate: Iterate) -> Neighbourhood:
        """That of another iterate of the same problem."""
        return Neighbourhood(self.problem, self.objective, iterate)

    @cached_property
    def linearization(self) -> Linearization:
        """The steps differentiated at frozen impulse."""
        return self.problem.dynamics.linearize(self.iterate.rollout)

    @cached_property
    def expansion(self) -> CostExpansion:
        """The cost's gradient and Gauss-Newton Hessian."""
        rollout = self.iterate.rollout
        return self.objective.expansion(rollout.states, rollout.controls)

    def transition(self, gradient: Gradient) -> Transition:
        """f_x, f_u under `gradient`, formed once."""
        if gradient not in self._transitions:
            self._transitions[gradient] = self.linearization.with_gradient(gradient)
        return self._transitions[gradient]

    def search(
        self, gradient: Gradient, regularization: float, blocks: int = len(STEP_SIZES)
    ) -> Trial:
        """Backward pass, then rollouts over the step sizes; the best one is kept."""
        policy = self.backward(gradient, regularization)
        if policy is None:
            return Trial(gradient, regularization, -np.inf, None, 0.0, None)
        if self.iterate.gaps is not None:
            self.penalty = max(self.penalty, 2.0 * policy.multiplier)
        best, alpha, full = None, 0.0, None
        for alphas in STEP_SIZES[:blocks]:
            candidates = self.forward(policy, alphas)
            if alphas[0] == 1.0:
                full = candidates[0]
            for candidate, size in zip(candidates, alphas):
                if candidate and (best is None or candidate.merit < best.merit):
                    best, alpha = candidate, float(size)
            if best is not None and best.merit < self.current_merit:
                break
        return Trial(gradient, regularization, policy.expected, best, alpha, full)

    def full_step(self, gradient: Gradient) -> Iterate | None:
        """The rollout of the full step under `gradient`, whatever it costs."""
        policy = self.backward(gradient, 0.0)
        return None if policy is None else self.forward(policy, np.ones(1))[0]

    @property
    def current_merit(self) -> float:
        """The merit of the iterate under the penalty in force."""
        return merit(self.iterate.cost, self.iterate.gaps, self.penalty)

    def backward(
        self, gradient: Gradient, regularization: float, expansion: CostExpansion | None = None
    ) -> Policy | None:
        """Riccati recursion; None where Q_uu is indefinite or the result is not finite."""
        f_x, f_u = self.transition(gradient)
        problem, gaps = self.problem, self.iterate.gaps
        k, K, dV, failed = _native.riccati(
            f_x,
            f_u,
            *(self.expansion if expansion is None else expansion),
            gaps,
            self.iterate.rollout.controls,
            problem.control_lower,
            problem.control_upper,
            regularization,
            self.linearization.integration(gradient),
        )
        if failed >= 0 or not (np.isfinite(k).all() and np.isfinite(K).all()):
            return None
        return Policy(k, K, float(min(dV[0] + dV[1], 0.0)), float(dV[2]))

    def forward(self, policy: Policy, alphas: Array) -> list[Iterate | None]:
        """The hard rollouts with these step sizes; None where one is not finite."""
        problem, old, gaps = self.problem, self.iterate.rollout, self.iterate.gaps
        rollouts = problem.dynamics.rollout(
            problem.start,
            old.controls,
            states=old.states,
            feedforward=policy.feedforward,
            feedback=policy.feedback,
            alphas=alphas,
            lower=problem.control_lower,
            upper=problem.control_upper,
            gaps=gaps,
            impulses=old.impulses,
        )
        costs = self.objective.value(rollouts.states, rollouts.controls)
        candidates: list[Iterate | None] = []
        for i, alpha in enumerate(alphas):
            if not (np.isfinite(costs[i]) and np.isfinite(rollouts.states[i]).all()):
                candidates.append(None)
                continue
            left = None if gaps is None or alpha == 1.0 else (1 - alpha) * gaps
            rollout = Rollout(*(field[i] for field in rollouts))
            cost = float(costs[i])
            candidates.append(Iterate(rollout, left, cost, merit(cost, left, self.penalty)))
        return candidates


def merit(cost: float, gaps: Array | None, penalty: float) -> float:
    """cost + penalty sum |d|."""
    return cost if gaps is None else cost + penalty * float(np.abs(gaps).sum())


def roll_out(problem: Problem, objective: Objective, controls: Array) -> Iterate | None:
    """The iterate of these controls; None where the rollout is not finite."""
    dynamics = problem.dynamics
    rollout = dynamics.rollout(
        problem.start, controls, lower=problem.control_lower, upper=problem.control_upper
    )
    cost = float(objective.value(rollout.states, rollout.controls))
    finite = np.isfinite(cost) and np.isfinite(rollout.states).all()
    return Iterate(rollout, None, cost, cost) if finite else None


def closed_loop(
    problem: Problem,
    objective: Objective,
    states: Array,
    controls: Array,
    feedback: Array,
    impulses: Array | None = None,
) -> Iterate | None:
    """The iterate of the policy u = U + K (x (-) X); None where the rollout is not finite."""
    rollout = problem.dynamics.rollout(
        problem.start,
        controls,
        states=states,
        feedback=feedback,
        lower=problem.control_lower,
        upper=problem.control_upper,
        impulses=impulses,
    )
    cost = float(objective.value(rollout.states, rollout.controls))
    finite = np.isfinite(cost) and np.isfinite(rollout.states).all()
    return Iterate(rollout, None, cost, cost) if finite else None


def multiple_shooting_iterate(
    problem: Problem, objective: Objective, states: Array, controls: Array
) -> Iterate | None:
    """The iterate of guessed states (N+1, nx): every knot stepped on its own, gaps open between.

    d_k = step(x_k, u_k) (-) x_{k+1}
    """
    dynamics: Dynamics = problem.dynamics
    if problem.control_lower is not None or problem.control_upper is not None:
        controls = np.clip(controls, problem.control_lower, problem.control_upper)
    steps = dynamics.rollout(states[:-1], controls[:, None])
    cost = float(objective.value(states, controls))
    if not (np.isfinite(cost) and np.isfinite(steps.states).all()):
        return None
    gaps = dynamics.difference(states[1:], steps.states[:, 1])
    rollout = Rollout(
        states,
        controls,
        steps.impulses[:, 0],
        steps.velocities[:, 0],
        steps.modes[:, 0],
        np.array(np.max(steps.residual)),
    )
    return Iterate(rollout, gaps, cost, cost)
