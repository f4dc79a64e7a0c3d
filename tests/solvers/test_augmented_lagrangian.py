"""General constraints: against a quadratic program, through contact, and where there is no way."""

from __future__ import annotations

import casadi as ca
import cvxpy as cp
import numpy as np
import pytest

import cito
from cito.problems.constraints import Constraint
from cito.problems.spring import mass_spring_damper
from cito.solvers.augmented_lagrangian import AugmentedLagrangian, solve_constrained
from cito.solvers.solution import Status


def speed_limit(limit, **options):
    return Constraint(
        lambda X, U: np.abs(X[..., 1:2]) - limit, 1, name="speed limit", scale=limit, **options
    )


def spring_program(limit=None, meet=None, N=50, h=0.01, k=15.0, c=0.5):
    """The same problem as a quadratic program of cvxpy."""
    x, u = cp.Variable((N + 1, 2)), cp.Variable((N, 1))
    v_next = x[:-1, 1] + h * (u[:, 0] - k * x[:-1, 0] - c * x[:-1, 1])
    rules = [x[0] == [1.0, 0.0], x[1:, 1] == v_next, x[1:, 0] == x[:-1, 0] + h * x[1:, 1]]
    if limit is not None:
        rules += [cp.abs(x[1:, 1]) <= limit]
    if meet is not None:
        rules += [x[N] == meet]
    J = cp.sum_squares(x[:-1, 0]) + 1e-4 * cp.sum_squares(u)
    J += 100 * cp.square(x[N, 0]) + 10 * cp.square(x[N, 1])
    program = cp.Problem(cp.Minimize(0.5 * J), rules)
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return program.value, u.value


def test_an_inequality_on_the_state_gives_the_optimum_of_the_quadratic_program():
    cost, u = spring_program(limit=2.5)
    free, _ = spring_program()
    found = solve_constrained(mass_spring_damper(), [speed_limit(2.5)], cito.Exact())
    assert found.violation <= 1e-6 and found.solution.status is Status.CONVERGED
    assert cost > 1.01 * free
    assert found.solution.cost == pytest.approx(cost, rel=1e-5)
    np.testing.assert_allclose(found.solution.controls, u, atol=1e-2 * np.abs(u).max())
    active = found.multipliers[0][:, 0] > 0
    assert 3 < active.sum() < 40
    np.testing.assert_allclose(np.abs(found.solution.states[active, 1]), 2.5, rtol=1e-4)


def test_an_equality_at_the_end_is_met():
    cost, _ = spring_program(meet=[0.1, -0.2])
    x, u = ca.SX.sym("x", 2), ca.SX.sym("u", 1)
    goal = Constraint.from_casadi(x, u, x - ca.DM([0.1, -0.2]), kind="equality", knots="terminal")
    found = solve_constrained(mass_spring_damper(), [goal], cito.Exact())
    np.testing.assert_allclose(found.solution.states[-1], [0.1, -0.2], atol=1e-5)
    assert found.solution.cost == pytest.approx(cost, rel=1e-5)


def test_a_hopping_leg_keeps_below_a_ceiling():
    problem = cito.make("hop", horizon=30)
    free = cito.solve(problem, cito.FullCone(0.1))
    ceiling = float(free.states[:, 1].max()) - 0.02
    low = Constraint(lambda X, U: X[..., 1:2] - ceiling, 1, scale=0.1, name="ceiling")
    assert low.violation(free.states, free.controls) == pytest.approx(0.2)
    outer = AugmentedLagrangian(tolerance=1e-3)
    settings = cito.solvers.ddp.DDPSettings(max_iterations=100)
    found = solve_constrained(problem, [low], cito.FullCone(0.1), settings, outer)
    assert found.violation <= 1e-3
    assert found.solution.states[:, 1].max() <= ceiling + 1e-4
    assert (found.solution.modes == 0).any()


def test_constraints_that_do_not_bind_change_nothing():
    problem = mass_spring_damper()
    free = cito.solve(problem, cito.Exact())
    found = solve_constrained(problem, [speed_limit(100.0)], cito.Exact())
    assert found.outer_iterations == 1
    np.testing.assert_allclose(found.solution.controls, free.controls, atol=1e-9)
    assert not found.multipliers[0].any()


def test_what_no_motion_satisfies_is_called_infeasible():
    outer = AugmentedLagrangian(outer_iterations=4)
    found = solve_constrained(
        mass_spring_damper(),
        [Constraint(lambda X, U: 1.0 + 0 * X[..., :1], 1, name="never")],
        cito.Exact(),
        outer=outer,
    )
    assert found.solution.status is Status.INFEASIBLE
    assert found.violation == 1.0 and found.outer_iterations == 4


def test_differences_and_jacobians_of_a_constraint_agree():
    def values(X, U):
        return np.sin(X[..., :1]) * X[..., 1:2] + U - 0.3

    def jacobians(X, U):
        r_x = np.stack([np.cos(X[:, :1]) * X[:, 1:2], np.sin(X[:, :1])], axis=-1)
        return cito.ResidualJacobians(r_x, np.ones((len(X), 1, 1)))

    by_hand, by_difference = (
        solve_constrained(
            mass_spring_damper(),
            [Constraint(values, 1, given, knots="running")],
            cito.Exact(),
        )
        for given in (jacobians, None)
    )
    assert by_hand.violation <= 1e-6
    assert by_hand.solution.cost == pytest.approx(by_difference.solution.cost, rel=1e-6)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Constraint(np.sin, 0), "`size` must be a whole number >= 1"),
        (lambda: Constraint(np.sin, 1, kind="above"), "`kind` must be 'inequality' or 'equality'"),
        (lambda: AugmentedLagrangian(growth=1.0), "`growth` must be > 1"),
        (lambda: AugmentedLagrangian(progress=2.0), "`progress` must lie between 0 and 1"),
        (
            lambda: solve_constrained(mass_spring_damper(), ["x < 1"]),
            r"`constraints\[0\]` must be a Constraint, got str",
        ),
        (
            lambda: solve_constrained(mass_spring_damper(), [Constraint(lambda X, U: X, 1)]),
            r"`values` of constraint must return shape \(51, 1\), got \(51, 2\)",
        ),
    ],
)
def test_misuse_is_told(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
