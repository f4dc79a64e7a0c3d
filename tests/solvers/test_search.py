"""One iteration of DDP: what a neighbourhood offers, and what it costs to ask."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import ContactDynamics, Exact, FullCone, point_mass
from cito.problems import ControlCost, Problem, StateCost, make
from cito.problems.objective import Objective
from cito.solvers.descent import DDPSettings, Descent, LimitReached
from cito.solvers.search import (
    STEP_SIZES,
    Iterate,
    Neighbourhood,
    Trial,
    merit,
    multiple_shooting_iterate,
    roll_out,
)
from cito.solvers.solution import Status
from tests.reference.systems import exploding_spring


def at_start(problem: Problem) -> Neighbourhood:
    objective = Objective(problem)
    iterate = roll_out(problem, objective, problem.initial_controls)
    assert iterate is not None
    return Neighbourhood(problem, objective, iterate)


class Counting(ContactDynamics):
    """A point mass that counts how often it is linearized and rolled out."""

    def __init__(self) -> None:
        super().__init__(point_mass(2), 0.05)
        self.linearized, self.rolled_out = 0, []

    def linearize(self, rollout):
        self.linearized += 1
        return super().linearize(rollout)

    def rollout(self, *arguments, **named):
        if "alphas" in named:
            self.rolled_out.append(len(named["alphas"]))
        return super().rollout(*arguments, **named)


def counting_problem(start, N=10) -> Problem:
    target = [1.0, 0.5, 0, 0]
    costs = (StateCost([1, 1, 0.1, 0.1], target, knots="all"), ControlCost([0.01, 0.01]))
    return Problem("counting", Counting(), start, N, costs)


def test_many_gradients_share_one_linearization():
    problem = counting_problem([0, 2.0, 0, 0])
    neighbourhood = at_start(problem)
    for rho in (0.01, 0.1, 1.0):
        neighbourhood.search(FullCone(rho), 0.0)
        neighbourhood.search(FullCone(rho), 0.5)
    assert problem.dynamics.linearized == 1
    first = neighbourhood.transition(FullCone(0.1))
    assert neighbourhood.transition(FullCone(0.1)) is first
    assert neighbourhood.transition(FullCone(0.2)) is not first


def test_small_steps_are_rolled_out_only_if_large_ones_fail():
    flying = counting_problem([0, 5.0, 0, 0])  # linear-quadratic: the full step is the optimum
    trial = at_start(flying).search(Exact(), 0.0)
    assert flying.dynamics.rolled_out == [len(STEP_SIZES[0])]
    assert trial.alpha == 1.0 and trial.full is not None
    assert trial.best.merit == trial.full.merit
    # At the optimum itself no step helps, and all are tried.
    optimum = Neighbourhood(flying, Objective(flying), trial.best)
    flying.dynamics.rolled_out.clear()
    again = optimum.search(Exact(), 0.0)
    assert flying.dynamics.rolled_out == [len(block) for block in STEP_SIZES]
    assert again.decrease(trial.best.merit) <= 1e-9 * trial.best.merit
    assert again.expected == pytest.approx(0, abs=1e-9)


def test_expected_decrease_is_what_a_linear_quadratic_problem_gives():
    neighbourhood = at_start(counting_problem([0, 5.0, 0, 0]))
    trial = neighbourhood.search(Exact(), 0.0)
    assert trial.expected < 0
    gain = trial.decrease(neighbourhood.current_merit)
    assert gain == pytest.approx(-trial.expected, rel=1e-10)
    regularized = neighbourhood.search(Exact(), 1.0)
    assert -trial.expected > -regularized.expected > 0


def test_best_is_the_lowest_of_the_rollouts():
    neighbourhood = at_start(make("traverse"))
    trial = neighbourhood.search(FullCone(0.3), 0.0)
    policy = neighbourhood.backward(FullCone(0.3), 0.0)
    costs = [c.merit for c in neighbourhood.forward(policy, STEP_SIZES[0])]
    assert trial.best.merit == min(costs)
    assert trial.alpha == STEP_SIZES[0][int(np.argmin(costs))]
    assert trial.full.merit == costs[0]
    assert neighbourhood.full_step(FullCone(0.3)).merit == costs[0]


def test_every_candidate_is_a_hard_rollout():
    problem = make("traverse")
    neighbourhood = at_start(problem)
    policy = neighbourhood.backward(FullCone(0.3), 0.0)
    for candidate in neighbourhood.forward(policy, np.array([1.0, 0.5])):
        again = problem.dynamics.rollout(problem.start, candidate.rollout.controls)
        np.testing.assert_allclose(candidate.rollout.states, again.states, atol=1e-9)
        assert candidate.rollout.residual <= 1e-9
        assert candidate.gaps is None and candidate.merit == candidate.cost


def test_failed_backward_pass_has_no_rollout():
    problem = make("lift-off")
    objective = Objective(problem)

    class Concave(Neighbourhood):
        @property
        def expansion(self):
            e = objective.expansion(self.iterate.rollout.states, self.iterate.rollout.controls)
            return e._replace(l_uu=-e.l_uu)

    neighbourhood = Concave(problem, objective, at_start(problem).iterate)
    trial = neighbourhood.search(Exact(), 0.0)
    assert trial == Trial(Exact(), 0.0, -np.inf, None, 0.0, None)
    assert trial.decrease(1.0) == -np.inf
    assert neighbourhood.full_step(Exact()) is None


def test_control_limits_hold_in_every_candidate():
    problem = make("traverse")
    limited = Problem(
        "limited",
        problem.dynamics,
        problem.start,
        30,
        problem.costs,
        control_lower=-3.0,
        control_upper=2.0,
    )
    neighbourhood = at_start(limited)
    policy = neighbourhood.backward(FullCone(0.3), 0.0)
    for candidate in neighbourhood.forward(policy, STEP_SIZES[0]):
        u = candidate.rollout.controls
        assert u.min() >= -3 and u.max() <= 2
    assert (neighbourhood.forward(policy, np.ones(1))[0].rollout.controls == 2).any()


# ------------------------------------------------------------------------------------------- gaps


def shooting(problem: Problem, seed: int = 0) -> tuple[np.ndarray, np.ndarray, Iterate]:
    rng = np.random.default_rng(seed)
    N, dynamics = problem.horizon, problem.dynamics
    X = 0.3 * rng.standard_normal((N + 1, dynamics.nx))
    X[0] = problem.start
    U = rng.standard_normal((N, dynamics.nu))
    iterate = multiple_shooting_iterate(problem, Objective(problem), X, U)
    assert iterate is not None
    return X, U, iterate


def test_gaps_are_what_the_steps_miss():
    problem = make("traverse", horizon=6)
    X, U, iterate = shooting(problem)
    assert np.array_equal(iterate.rollout.states, X)
    for k in range(6):
        step = problem.dynamics.step(X[k], U[k])
        np.testing.assert_array_equal(iterate.gaps[k], step.state - X[k + 1])
        np.testing.assert_array_equal(iterate.rollout.impulses[k], step.impulse)
    assert np.abs(iterate.gaps).min(axis=1).max() > 0
    assert merit(iterate.cost, iterate.gaps, 2.0) == pytest.approx(
        iterate.cost + 2 * np.abs(iterate.gaps).sum()
    )
    assert merit(3.0, None, 2.0) == 3.0


def test_full_step_closes_the_gaps_and_a_part_of_it_a_part():
    problem = make("traverse", horizon=6)
    _, _, iterate = shooting(problem)
    neighbourhood = Neighbourhood(problem, Objective(problem), iterate)
    policy = neighbourhood.backward(FullCone(0.3), 0.0)
    full, half = neighbourhood.forward(policy, np.array([1.0, 0.5]))
    assert full.gaps is None
    again = problem.dynamics.rollout(problem.start, full.rollout.controls)
    np.testing.assert_allclose(full.rollout.states, again.states, atol=1e-10)
    X, U = half.rollout.states, half.rollout.controls
    left = problem.dynamics.step(X[:-1], U).state - X[1:]
    np.testing.assert_allclose(half.gaps, left, atol=1e-12)
    np.testing.assert_allclose(left, 0.5 * iterate.gaps, atol=1e-12)


def test_price_of_gaps_is_above_their_multipliers():
    problem = make("traverse", horizon=6)
    _, _, iterate = shooting(problem)
    neighbourhood = Neighbourhood(problem, Objective(problem), iterate)
    assert neighbourhood.current_merit == iterate.cost
    neighbourhood.search(FullCone(0.3), 0.0)
    policy = neighbourhood.backward(FullCone(0.3), 0.0)
    assert neighbourhood.penalty == 2 * policy.multiplier > 0
    assert neighbourhood.current_merit > iterate.cost


def test_guessed_controls_are_clipped():
    problem = make("traverse", horizon=4)
    limited = Problem("limited", problem.dynamics, problem.start, 4, problem.costs, control_upper=1)
    iterate = multiple_shooting_iterate(
        limited, Objective(limited), np.zeros((5, 4)), np.full((4, 2), 5.0)
    )
    assert (iterate.rollout.controls == 1).all()


def test_start_that_is_not_finite_is_none():
    system = exploding_spring(1e200)
    dynamics = ContactDynamics(system, 1.0)
    problem = Problem("explosive", dynamics, [1.0, 0], 4, (ControlCost([1.0]),))
    # The cost of the controls alone stays finite all the same.
    assert roll_out(problem, Objective(problem), np.zeros((4, 1))) is None
    huge, U = np.full((5, 2), 1e200), np.zeros((4, 1))
    assert multiple_shooting_iterate(problem, Objective(problem), huge, U) is None
    # Here the steps stay finite, but not the cost.
    costs = (StateCost([1, 1], [0, 0]), ControlCost([1.0]))
    costly = Problem("costly", dynamics, [1.0, 0], 4, costs)
    far = np.tile([0.0, 1e200], (5, 1))
    assert np.isfinite(dynamics.rollout(far[:-1], U[:, None]).states).all()
    assert multiple_shooting_iterate(costly, Objective(costly), far, U) is None


def test_candidates_that_are_not_finite_are_none():
    """A policy that feeds back into overflow, priced by controls alone."""
    problem = make("traverse", horizon=4)
    cheap = Problem("cheap", problem.dynamics, problem.start, 4, (ControlCost([1.0, 1.0]),))
    neighbourhood = at_start(cheap)
    policy = neighbourhood.backward(Exact(), 0.0)
    lift = np.tile([0.0, 20.0], (4, 1))
    wild = policy._replace(feedforward=lift, feedback=np.full((4, 2, 4), 1e200))
    assert neighbourhood.forward(wild, np.array([1.0, 0.0]))[0] is None


# ---------------------------------------------------------------------------------------- descent


def iterate_of(cost: float, gaps=None) -> Iterate:
    rollout = at_start(make("lift-off", horizon=2)).iterate.rollout
    return Iterate(rollout, gaps, cost, merit(cost, gaps, 1.0))


def test_descent_keeps_the_best_iterate_and_prefers_closed_gaps():
    problem = make("lift-off", horizon=2)
    gap = np.full((2, 4), 0.1)
    seen = []
    open_, closed, worse = iterate_of(1.0, gap), iterate_of(5.0), iterate_of(7.0)
    descent = Descent(problem, Objective(problem), open_, DDPSettings(), seen.append)
    assert descent.best is open_
    assert descent.accept(closed, "descend") is closed and descent.best is closed
    assert descent.accept(worse, "uphill") is worse and descent.best is closed
    assert descent.accept(iterate_of(0.5, gap), "descend") and descent.best is closed
    better = iterate_of(4.0)
    descent.accept(better, "descend", Trial(FullCone(0.2), 0.1, -1.0, better, 0.5, None))
    assert descent.best is better
    assert [entry["cost"] for entry in descent.history] == [1.0, 5.0, 7.0, 0.5, 4.0]
    assert seen == descent.history[1:]
    assert (seen[-1]["rho"], seen[-1]["regularization"], seen[-1]["alpha"]) == (0.2, 0.1, 0.5)


def test_descent_counts_iterations_and_stops():
    problem = make("lift-off", horizon=2)
    descent = Descent(problem, Objective(problem), iterate_of(1.0), DDPSettings(max_iterations=2))
    for _ in range(2):
        descent.neighbourhood(descent.best)
    with pytest.raises(LimitReached) as limit:
        descent.neighbourhood(descent.best)
    assert limit.value.status is Status.MAX_ITERATIONS and descent.iterations == 2
    descent = Descent(problem, Objective(problem), iterate_of(1.0), DDPSettings(time_limit=1e-9))
    with pytest.raises(LimitReached) as limit:
        descent.neighbourhood(descent.best)
    assert limit.value.status is Status.TIME_LIMIT
