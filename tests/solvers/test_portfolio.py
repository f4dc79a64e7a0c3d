"""Several gradients in turn, with steps that may cost something."""

from __future__ import annotations

import numpy as np
import pytest

import cito
from cito.solvers.ddp import solve_ddp
from cito.solvers.descent import DDPSettings


def test_the_ball_is_hit_where_the_first_gradient_alone_stalls():
    problem = cito.make("arm-hit")
    alone = cito.solve(problem, cito.FullCone(0.003), max_iterations=60)
    both = cito.solve(problem, cito.Portfolio(), max_iterations=60)
    assert both.cost < 3.0 < alone.cost
    used = {record["gradient"] for record in both.history[1:]}
    assert used == {"exact", "full-cone"}
    assert [record["best"] for record in both.history] == sorted(
        (record["best"] for record in both.history), reverse=True
    )
    uphill = np.diff([record["cost"] for record in both.history])
    assert (uphill > 0).any() and both.cost == both.history[-1]["best"]


def test_a_monotone_one_only_descends():
    problem = cito.make("arm-hit")
    solution = cito.solve(problem, cito.Portfolio(), monotone=True, max_iterations=60)
    costs = [record["cost"] for record in solution.history]
    assert len(costs) > 2 and (np.diff(costs) < 0).all()


def test_smooth_problems_converge_to_the_same_optimum():
    problem = cito.make("mass-spring-damper")
    solution = cito.solve(problem, cito.Portfolio())
    assert solution.status is cito.Status.CONVERGED
    assert solution.cost == pytest.approx(cito.solve(problem).cost, rel=1e-7)


def test_a_blind_gradient_is_told():
    solution = cito.solve(cito.make("arm-hit"), cito.Portfolio((cito.Exact(),)))
    assert solution.status is cito.Status.NO_GRADIENT


def test_runs_are_reproducible_and_the_seed_counts():
    problem = cito.make("arm-throw")
    first, again, other = (
        cito.solve(problem, cito.Portfolio(seed=seed), max_iterations=15, time_limit=60)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.states, again.states)
    assert first.cost == again.cost and other.iterations == 15


def test_gaps_are_closed():
    problem = cito.make("mass-spring-damper")
    straight = np.linspace(problem.start, 0 * problem.start, problem.horizon + 1)
    solution = solve_ddp(problem, cito.Portfolio(), initial_states=straight)
    assert solution.cost == pytest.approx(cito.solve(problem).cost, rel=1e-6)


def test_it_stops_at_what_is_good_enough():
    problem, asked = cito.make("arm-hit"), []

    def near(states, controls):
        asked.append(np.linalg.norm(states[-1, 2:5] - problem.parameters["target"]))
        assert controls.shape == (problem.horizon, 2)
        return asked[-1] < 0.1

    solution = cito.solve(problem, cito.Portfolio(), until=near)
    assert solution.status is cito.Status.SATISFIED
    assert asked[-1] < 0.1 < min(asked[:-1])
    last = np.linalg.norm(solution.states[-1, 2:5] - problem.parameters["target"])
    assert last == asked[-1]


@pytest.mark.parametrize("gradients", [(), "exact", (cito.Exact(), "exact"), 3])
def test_what_is_no_gradient_is_refused(gradients):
    with pytest.raises(ValueError, match="`gradients` must be"):
        cito.Portfolio(gradients)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="`memory` must be"):
        cito.Portfolio(memory=0)
    with pytest.raises(ValueError, match="`memory` must be <= 1000000"):
        cito.Portfolio(memory=10**30)
    with pytest.raises(ValueError, match="`until` must be a function"):
        DDPSettings(until=3)
    problem = cito.make("lift-off")
    with pytest.raises(ValueError, match="`until` must return True or False, got 'no'"):
        cito.solve(problem, cito.FullCone(0.1), until=lambda states, controls: "no")


def test_what_a_question_does_to_its_copies_is_nobodys_business():
    def destructive(states, controls):
        states[:], controls[:] = np.nan, 0.0
        return False

    problem = cito.make("lift-off")
    asked, plain = (cito.solve(problem, cito.FullCone(0.1), until=u) for u in (destructive, None))
    assert asked.cost == plain.cost and np.array_equal(asked.controls, plain.controls)
