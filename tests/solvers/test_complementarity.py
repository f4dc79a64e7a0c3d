"""The complementarity program: proven optima, its two forms of the contact law, honest statuses."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from cito.dynamics import point_mass
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.problems import ControlCost, Problem, ResidualCost, StateCost
from cito.problems.hop import hop
from cito.problems.objective import Objective
from cito.problems.planar import friction_braking, lift_off, traverse
from cito.problems.push_box_pose import push_box
from cito.problems.registry import make
from cito.solvers.complementarity import solve_complementarity
from cito.solvers.complementarity_model import ComplementarityModel, Trajectory
from cito.solvers.ddp import DDPSettings, solve_ddp
from cito.solvers.solution import Status
from tests.reference.symbolic_systems import pendulum

OPTIMA = {lift_off: 5.907067651, traverse: 27.679550592, friction_braking: 1.052528605}


def pendulum_problem() -> Problem:
    """Swing towards an angle beyond the stop, fast enough to run into it."""
    return Problem(
        name="stop",
        dynamics=ContactDynamics(pendulum(), time_step=0.05),
        start=np.array([0.0, 5.0]),
        horizon=20,
        costs=(StateCost([1.0, 0.1], [0.8, 0.0], knots="all"), ControlCost([1e-3])),
        control_lower=np.array([-20.0]),
        control_upper=np.array([20.0]),
        initial_controls=np.full((20, 1), 8.0),
    )


PROBLEMS = {"traverse": traverse, "hop": hop, "box": push_box, "pendulum": pendulum_problem}


def planned(problem: Problem) -> Trajectory:
    """A hard rollout as the program sees it, with some contact events."""
    noise = np.random.default_rng(0).standard_normal(problem.initial_controls.shape)
    rollout = problem.dynamics.rollout(problem.start, problem.initial_controls + 3 * noise)
    return Trajectory(rollout.states, rollout.controls, rollout.impulses, rollout.velocities)


def violation(expression, lower, upper) -> float:
    return float(np.maximum(lower - expression, expression - upper).max(initial=0))


# ------------------------------------------------------------------------------ the programs


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_hard_rollout_is_feasible_in_both_programs(name):
    """Native step and CasADi's are the same equations, and complementarity is exact."""
    problem = PROBLEMS[name]()
    plan = planned(problem)
    model = ComplementarityModel(replace(problem, control_lower=None, control_upper=None))
    modes = problem.dynamics.rollout(problem.start, plan.controls).modes
    assert len(np.unique(modes)) >= 2
    # Where neither side of slip and friction limit is positive, sticking is sliding.
    margin = model.friction * plan.impulses[:, model.normals][:, model.frictional]
    margin -= np.abs(plan.impulses[:, model.tangents])
    tie = np.zeros(modes.shape, dtype=bool)
    tie[:, model.frictional] = (np.abs(plan.velocities[:, model.tangents]) < 1e-9) & (margin < 1e-9)
    np.testing.assert_array_equal(model.modes(plan)[~tie], modes[~tie])
    assert tie.mean() < 0.9
    for program, w, t in (
        (model.relaxed(), model.relaxed_guess(plan), 0.0),
        (model.with_modes(modes, plan), model.guess(plan), []),
    ):
        g = ca.Function("g", [program.nlp["x"], program.nlp["p"]], [program.nlp["g"]])
        values = g(w, t).full().ravel()
        assert violation(values, program.g_lower, program.g_upper) < 1e-9
        assert violation(w, program.lower, program.upper) < 1e-9
        # The constraints bind: a pulled impulse, a moved state and a shifted control break them.
        for disturbed in (0.1, -0.1):
            assert violation(g(w + disturbed, t).full().ravel(), program.g_lower, program.g_upper)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_objective_is_the_problems(name):
    problem = PROBLEMS[name]()
    model, plan = ComplementarityModel(problem), planned(problem)
    f = ca.Function("f", [model.X, model.U], [model.objective])
    expected = Objective(problem).value(plan.states, plan.controls)
    np.testing.assert_allclose(float(f(plan.states.T, plan.controls.T)), expected, rtol=1e-12)


def test_variables_and_trajectory_are_inverse():
    problem = hop()
    model, plan = ComplementarityModel(problem), planned(problem)
    for w in (model.guess(plan), model.relaxed_guess(plan)):
        for one, other in zip(model.trajectory(w), plan):
            np.testing.assert_allclose(one, other, atol=1e-12)


# ------------------------------------------------------------------------------ the solver


@pytest.mark.parametrize("task", OPTIMA)
def test_planar_tasks_reach_their_proven_optima_from_zero_control(task, capfd):
    problem = task()
    solution = solve_complementarity(problem)
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.cost, OPTIMA[task], rtol=1e-7)
    again = problem.dynamics.rollout(problem.start, solution.controls)
    np.testing.assert_array_equal(again.states, solution.states)
    assert solution.contact_residual < 1e-9
    assert solution.solver == "mpcc" and solution.task == problem.name
    assert solution.iterations == sum(row["iterations"] for row in solution.history) > 0
    assert capfd.readouterr() == ("", ""), "IPOPT is silent"


@pytest.mark.parametrize("task", OPTIMA)
def test_a_warm_start_at_the_optimum_stays_there(task):
    problem = task()
    optimum = solve_complementarity(problem)
    solution = solve_complementarity(problem, optimum)
    np.testing.assert_allclose(solution.cost, OPTIMA[task], rtol=1e-7)
    assert len(solution.history) < len(optimum.history)


def test_products_at_most_t_lower_the_optimum_and_fall_with_t():
    rows = solve_complementarity(traverse()).history
    objectives = [row["objective"] for row in rows]
    assert objectives == sorted(objectives)
    assert objectives[0] < 0.9 * objectives[-1]
    assert [row["t"] for row in rows] == sorted((row["t"] for row in rows), reverse=True)


def test_the_hopper_hops_within_its_limits():
    problem = hop()
    solution = solve_complementarity(problem)
    assert solution.status is Status.CONVERGED
    assert solution.cost < 4.5
    assert (solution.controls >= problem.control_lower - 1e-6).all()
    assert (solution.controls <= problem.control_upper + 1e-6).all()
    assert (solution.modes == 0).any()


def test_a_stop_without_friction_is_run_into_and_held():
    solution = solve_complementarity(pendulum_problem())
    assert solution.status is Status.CONVERGED
    assert solution.states[:, 0].max() <= 0.5 + 1e-9
    np.testing.assert_allclose(solution.states[13:19, 0], 0.5, atol=1e-6)
    assert (solution.modes > 0).any()
    assert (np.abs(solution.controls) <= 20 + 1e-6).all()


def test_limits_are_statuses_and_the_rollout_is_finite():
    for limit, status in (
        ({"max_iterations": 1}, Status.MAX_ITERATIONS),
        ({"time_limit": 1e-3}, Status.TIME_LIMIT),
    ):
        solution = solve_complementarity(hop(), **limit)
        assert not solution.converged and solution.status is status
        assert np.isfinite(solution.cost) and np.isfinite(solution.states).all()


def test_a_plan_that_the_hard_law_does_not_follow_is_no_success():
    """With mu = 1.2 the leg may wedge: for one and the same push, lifting off and sticking both
    satisfy the contact law, and the program prefers what the rollout does not do."""
    problem = hop(friction=1.2)
    solution = solve_complementarity(problem)
    assert solution.status is Status.SOLVER_FAILED
    assert any("the rollout costs" in row["message"] for row in solution.history)
    rest = problem.dynamics.rollout(problem.start, problem.initial_controls)
    assert solution.cost <= Objective(problem).value(rest.states, rest.controls)


@pytest.mark.parametrize("limit", [1, 20, 40])
def test_the_limit_of_iterations_is_one_for_all_stages(limit):
    solution = solve_complementarity(traverse(horizon=10), max_iterations=limit)
    assert solution.status is Status.MAX_ITERATIONS
    assert solution.iterations == sum(row["iterations"] for row in solution.history) == limit


# ------------------------------------------------------------------------------ misuse


def test_problems_that_cannot_be_written_down_are_refused():
    space = ContactDynamics(point_mass(3), time_step=0.05)
    in_space = Problem("space", space, np.zeros(6), 5, (ControlCost(np.ones(3)),))
    bouncing = ContactDynamics(point_mass(), 0.05, restitution=0.5)
    with pytest.raises(ValueError, match="without restitution"):
        solve_complementarity(replace(traverse(), dynamics=bouncing))
    with pytest.raises(ValueError, match="`problem` must be planar"):
        solve_complementarity(in_space)

    def residual(X, U):
        return X[..., :1]

    term = ResidualCost(residual, lambda X, U: None, [1.0])
    with pytest.raises(ValueError, match="`problem.costs` must be quadratic"):
        solve_complementarity(replace(traverse(), costs=(*traverse().costs, term)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_iterations": 0}, "`max_iterations` must be a whole number >= 1, got 0"),
        ({"time_limit": -1.0}, "`time_limit` must be > 0"),
        ({"homotopy": []}, "`homotopy` must be falling numbers > 0"),
        ({"homotopy": [1e-3, 1e-1]}, "`homotopy` must be falling numbers > 0"),
        ({"homotopy": [-1.0]}, "`homotopy` must be > 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        solve_complementarity(traverse(), **settings)


def test_a_warm_start_of_another_problem_is_refused():
    other = solve_ddp(traverse(horizon=10), settings=DDPSettings(max_iterations=1))
    with pytest.raises(ValueError, match=r"`initial.states` must have shape \(31, 4\), got \(11"):
        solve_complementarity(traverse(), other)


def test_rollouts_respect_the_control_limits_to_the_last_bit():
    """Also where nothing was solved: the guess itself lies outside the limits here."""
    problem = make("traverse", horizon=6)
    limited = replace(
        problem, control_lower=-1.0, control_upper=1.0, initial_controls=np.full((6, 2), 30.0)
    )
    for iterations in (1, 4000):
        solution = solve_complementarity(limited, max_iterations=iterations)
        assert np.abs(solution.controls).max() <= 1.0
