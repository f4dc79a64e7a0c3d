"""The mixed-integer reference: proven optima, their rollouts, and what it says when it cannot."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

from cito.dynamics import ContactDynamics, LinearSystem, point_mass
from cito.problems import ControlCost, Problem, ResidualCost, ResidualJacobians, StateCost, make
from cito.problems.objective import Objective
from cito.problems.random_suite import random_problem
from cito.solvers import Status, miqp, solve_ddp
from cito.solvers.miqp import reference
from tests.reference.mode_enumeration import enumerate_modes
from tests.reference.systems import contact_free, two_bodies

OPTIMA = {  # found alike by two other mixed-integer solvers
    "lift-off": 5.907067651,
    "traverse": 27.679550592,
    "friction-braking": 1.0525286045,
}


def problem_of(system, start, target, N, friction=0.6, h=0.1, R=0.01, **limits) -> Problem:
    dynamics = ContactDynamics(system, h, friction)
    nv = len(system.mass_matrix)
    Q = np.tile([1.0, 0.1], (nv, 1)).T.ravel()
    return Problem(
        name="test",
        dynamics=dynamics,
        start=start,
        horizon=N,
        costs=(
            StateCost(Q, target),
            ControlCost(np.full(dynamics.nu, R)),
            StateCost(30 * Q, target, knots="terminal"),
        ),
        **limits,
    )


def on_rails() -> LinearSystem:
    """A mass that rubs on the ground, tied by a spring to one that meets a wall, q = (x, z, w)."""
    return LinearSystem(
        mass_matrix=[[1.0, 0.2, 0.0], [0.2, 0.7, 0.1], [0.0, 0.1, 0.5]],
        actuation=np.eye(3, 2),
        bias=[0.5, 4.0, 0.0],
        contact_jacobian=[[0.0, 0.0, -1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
        contact_dims=(1, 2),
        gap_jacobian=[[0.0, 0.0, -1.0], [0.0, 1.0, 0.0]],
        gap_offset=[0.1, 0.0],
        stiffness=[[3.0, 0.0, -3.0], [0.0, 0.0, 0.0], [-3.0, 0.0, 3.0]],
        damping=np.diag([0.1, 0.4, 0.0]),
    )


@pytest.mark.parametrize("task", OPTIMA)
def test_reference_tasks(task):
    problem = make(task)
    solution = reference(problem)
    assert solution.cost == pytest.approx(OPTIMA[task], rel=1e-8)
    assert solution.status is Status.OPTIMAL and solution.solver == "miqp"
    assert 0 <= solution.gap <= 1e-7 and solution.nodes > 0
    assert solution.cost * (1 - 1e-7) <= solution.bound <= solution.cost
    # The hard law, and nothing else, decided what the controls cost.
    rollout = problem.dynamics.rollout(problem.start, solution.controls)
    cost = Objective(problem).value(rollout.states, rollout.controls)
    assert solution.cost == float(cost)
    assert solution.cost == pytest.approx(solution.history[0]["polished_cost"], rel=1e-9)
    assert solution.contact_residual < 1e-9


CASES = {
    "presses and slides": lambda: problem_of(point_mass(2), [0, 0, 1, 0], [-0.1, 0, 0, 0], 3),
    "lands": lambda: problem_of(point_mass(2), [0, 0.1, 0.5, -1], [0, 0.2, 0, 0], 3),
    "reaches down for friction": lambda: problem_of(
        point_mass(2, gravity=0.0), [0, 0.02, 1, 0], [0, 0.02, 0, 0], 3, R=[1.0, 1e-4]
    ),
    "control limits": lambda: problem_of(
        point_mass(2), [0, 0, 0, 0], [0.5, 0.3, 0, 0], 3, control_lower=-2, control_upper=[3, 12]
    ),
    "one limit": lambda: problem_of(
        point_mass(2), [0, 0, 0, 0], [0.5, 0.3, 0, 0], 3, control_upper=[1, np.inf]
    ),
    "no friction": lambda: problem_of(
        point_mass(2), [0, 0, 1, 0], [0.2, 0.1, 0, 0], 3, friction=0.0
    ),
    "wall, spring, rubbing": lambda: problem_of(
        on_rails(), [0, 0, 0.05, 1, 0, 1], [0.2, 0, 0.2, 0, 0, 0], 2
    ),
    "mass on a mass": lambda: problem_of(
        two_bodies((1.0, 2.0)), [0, 0, 0, 1, 0.5, 0, 0.3, 0], [0.2, 0, 0, 1, 0, 0, 0, 0], 2
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_enumeration(case):
    problem = CASES[case]()
    solution = reference(problem)
    assert solution.status is Status.OPTIMAL
    assert solution.cost == pytest.approx(enumerate_modes(problem), rel=2e-6)
    assert solution.cost == pytest.approx(solution.history[0]["polished_cost"], rel=1e-9)
    if problem.control_upper is not None:
        assert (solution.controls <= problem.control_upper + 1e-12).all()


def test_theta_scales_masses():
    plain = problem_of(point_mass(2), [0, 0, 1, 0], [0, 0, 0, 0], 6)
    heavy = problem_of(point_mass(2, mass=2.0), [0, 0, 1, 0], [0, 0, 0, 0], 6)
    scaled = ContactDynamics(point_mass(2), 0.1, 0.6, theta=[np.log(2.0)])
    scaled = Problem("test", scaled, plain.start, 6, plain.costs)
    assert reference(scaled).cost == pytest.approx(reference(heavy).cost, rel=1e-9)
    assert reference(scaled).cost != pytest.approx(reference(plain).cost, rel=1e-3)


def test_without_contacts_it_is_linear_quadratic():
    system = contact_free()
    problem = problem_of(system, np.ones(6), np.zeros(6), 8)
    solution = reference(problem)
    assert solution.status is Status.OPTIMAL
    assert solution.cost == pytest.approx(solve_ddp(problem).cost, rel=1e-9)


@pytest.mark.parametrize("seed", [0, 3, 9, 1001])
def test_no_solution_beats_the_bound(seed):
    problem = random_problem(seed)
    best = reference(problem)
    assert best.status is Status.OPTIMAL
    found = solve_ddp(problem)
    assert best.bound <= found.cost
    # Known controls are a start, and what is found from there is the same.
    again = reference(problem, controls=found.controls)
    assert again.cost == pytest.approx(best.cost, rel=2e-7)


@pytest.mark.parametrize("solver", sorted(miqp.OTHERS))
def test_other_solvers_agree(solver):
    if importlib.util.find_spec(miqp.OTHERS[solver]) is None:
        pytest.skip(f"{solver} is not installed")
    problem = make("traverse", horizon=6)
    theirs, ours = reference(problem, solver, time_limit=60.0), reference(problem)
    assert theirs.status is Status.OPTIMAL
    assert theirs.cost == pytest.approx(ours.cost, rel=1e-7)
    assert theirs.bound <= ours.cost and ours.bound <= theirs.cost


def test_time_limit_leaves_a_gap():
    problem = make("traverse", friction=0.3)
    solution = reference(problem, time_limit=1e-3)
    assert solution.status is Status.GAP_OPEN and not solution.converged
    assert 0 <= solution.bound < solution.cost and solution.gap > 1e-7
    assert np.isfinite(solution.states).all()


def test_interrupt_returns_the_incumbent():
    told = []

    def interrupt(record):
        told.append(record)
        raise KeyboardInterrupt

    problem = make("friction-braking")
    solution = reference(problem, callback=interrupt)
    assert solution.status is Status.INTERRUPTED
    assert set(told[0]) == {"nodes", "cost", "bound"}
    assert solution.bound <= OPTIMA["friction-braking"] <= solution.cost


def test_solver_that_fails_says_so(monkeypatch):
    monkeypatch.setitem(miqp.OTHERS, "nosuch", "numpy")
    monkeypatch.setattr(miqp, "_options", lambda *_: {"nosuch": {}})
    solution = reference(make("lift-off"), "nosuch")
    assert solution.status is Status.SOLVER_FAILED and solution.bound == 0
    assert "nosuch" in solution.history[0]["message"]


def test_bound_above_a_real_cost_is_not_believed(monkeypatch):
    outcome = miqp.Outcome(None, 60.0, 1, Status.OPTIMAL, "optimal")
    monkeypatch.setattr(miqp, "_ask", lambda *_: outcome)
    monkeypatch.setattr(miqp, "find_spec", lambda _: True)
    solution = reference(make("lift-off"), "gurobi")
    assert solution.status is Status.SOLVER_FAILED and solution.bound == 0
    assert "60 is above the cost 50 of a trajectory" in solution.history[0]["message"]


def test_refuses_what_it_cannot_state(monkeypatch):
    def with_costs(*costs):
        problem = make("lift-off")
        return Problem("test", problem.dynamics, problem.start, 5, costs)

    x_g, u = np.zeros(4), ControlCost([1e-3, 1e-3])
    flat = Problem("test", ContactDynamics(point_mass(3), 0.05), np.zeros(6), 5, make_costs(3))
    bouncing = ContactDynamics(point_mass(), 0.05, restitution=0.5)
    with pytest.raises(ValueError, match="without restitution"):
        reference(replace(make("lift-off"), dynamics=bouncing))
    with pytest.raises(ValueError, match=r"planar contacts .* got contact_dims \(3,\)"):
        reference(flat)
    residual = ResidualCost(
        lambda X, U: X[..., :1],
        lambda X, U: ResidualJacobians(np.ones((6, 1, 4)), np.zeros((6, 1, 2))),
        np.ones(1),
    )
    with pytest.raises(ValueError, match="must be StateCost and ControlCost, got ResidualCost"):
        reference(with_costs(residual, u))
    with pytest.raises(ValueError, match="determine every control and contact impulse"):
        reference(with_costs(StateCost([1, 1, 0, 0], x_g), u))
    with pytest.raises(ValueError, match="`solver` must be daqp, gurobi, cplex, scip"):
        reference(make("lift-off"), "highs")
    with pytest.raises(ValueError, match="`gap` must be > 0"):
        reference(make("lift-off"), gap=0.0)
    with pytest.raises(ValueError, match=r"`controls` must have shape \(30, 2\)"):
        reference(make("lift-off"), controls=np.zeros((3, 2)))
    monkeypatch.setattr(miqp, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match="`solver` 'scip' is not installed: pip install pyscipopt"):
        reference(make("lift-off"), "scip")


def make_costs(nv):
    return (StateCost(np.ones(2 * nv), np.zeros(2 * nv), knots="all"), ControlCost(np.ones(nv)))
