"""Values and Gauss-Newton expansions of costs against plain sums and finite differences."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from cito.dynamics import ContactDynamics, point_mass
from cito.dynamics.check import finite_difference
from cito.problems import ControlCost, Problem, ResidualCost, ResidualJacobians, StateCost
from cito.problems.objective import Objective
from cito.problems.registry import make

N, NX, NU = 5, 4, 2
DYNAMICS = ContactDynamics(point_mass(2), 0.05)
RNG = np.random.default_rng(0)
X, U = RNG.standard_normal((N + 1, NX)), RNG.standard_normal((N, NU))
W_X, W_U, REF_X, REF_U = (
    RNG.uniform(0.5, 2, NX),
    RNG.uniform(0.5, 2, NU),
    RNG.standard_normal((N + 1, NX)),
    RNG.standard_normal((N, NU)),
)


def objective(*costs) -> Objective:
    if not any(isinstance(cost, ControlCost | ResidualCost) for cost in costs):
        costs = (*costs, ControlCost(np.full(NU, 1e-300)))  # a problem weighs its controls
    return Objective(Problem("test", DYNAMICS, np.zeros(NX), N, costs))


def product(states, controls):
    """r = (p_x u_z, sin v_x, u_x^2 + p_z): coupled and nonlinear."""
    p_x, p_z, v_x, _ = np.moveaxis(states, -1, 0)
    u_x, u_z = np.moveaxis(controls, -1, 0)
    return np.stack([p_x * u_z, np.sin(v_x), u_x**2 + p_z], axis=-1)


def product_jacobians(states, controls) -> ResidualJacobians:
    r_x, r_u = np.zeros((len(states), 3, NX)), np.zeros((len(states), 3, NU))
    r_x[:, 0, 0], r_u[:, 0, 1] = controls[:, 1], states[:, 0]
    r_x[:, 1, 2] = np.cos(states[:, 2])
    r_u[:, 2, 0], r_x[:, 2, 1] = 2 * controls[:, 0], 1
    return ResidualJacobians(r_x, r_u)


def casadi_product():
    """The same residual as an expression of x and u."""
    x, u = ca.SX.sym("x", NX), ca.SX.sym("u", NU)
    return x, u, ca.vertcat(x[0] * u[1], ca.sin(x[2]), u[0] ** 2 + x[1])


W_R = np.array([0.7, 1.3, 0.2])
TERMS = {
    "state running": StateCost(W_X, REF_X[0]),
    "state terminal": StateCost(W_X, REF_X[0], knots="terminal"),
    "state all, per knot": StateCost(W_X, REF_X, knots="all"),
    "control": ControlCost(W_U),
    "control, one reference": ControlCost(W_U, REF_U[0]),
    "control, per knot": ControlCost(W_U, REF_U),
    "residual running": ResidualCost(product, product_jacobians, W_R),
    "residual terminal": ResidualCost(product, product_jacobians, W_R, knots="terminal"),
    "residual all": ResidualCost(product, product_jacobians, W_R, knots="all"),
    "residual by differences": ResidualCost(product, None, W_R, knots="all"),
    "residual of CasADi": ResidualCost.from_casadi(*casadi_product(), W_R, knots="all"),
}


def residuals(term, states, controls) -> list[np.ndarray]:
    """r of each active knot, with the weight's root in it: the plain definition."""
    out = []
    for k in range(N + 1):
        knots = getattr(term, "knots", "running")
        if knots not in ("all", "running" if k < N else "terminal"):
            continue
        u = controls[k] if k < N else np.zeros(NU)
        if isinstance(term, ResidualCost):
            r = product(states[k], u)
        else:
            ref = term.reference[k] if term.reference.ndim == 2 else term.reference
            r = (states[k] if isinstance(term, StateCost) else u) - ref
        out.append(np.sqrt(term.weight) * r)
    return out


@pytest.mark.parametrize("name", TERMS)
def test_value_is_the_sum_over_active_knots(name):
    expected = 0.5 * sum(float(r @ r) for r in residuals(TERMS[name], X, U))
    assert expected > 0.1
    assert float(objective(TERMS[name]).value(X, U)) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name", TERMS)
def test_gradient_is_the_finite_difference_of_the_value(name):
    J = objective(TERMS[name])
    e = J.expansion(X, U)

    def value(z):
        states, controls = z[:, : X.size], z[:, X.size :]
        return J.value(states.reshape(-1, N + 1, NX), controls.reshape(-1, N, NU))[:, None]

    z = np.concatenate([X.ravel(), U.ravel()])
    numeric = finite_difference(value, z, step=1e-3)[0]
    assert np.abs(numeric).max() > 0.1
    analytic = np.concatenate([e.l_x.ravel(), e.l_u.ravel()])
    np.testing.assert_allclose(analytic, numeric, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", TERMS)
def test_hessian_is_gauss_newton(name):
    """l_zz = sum r_z' W r_z, from finite differences of the residuals."""
    term, e = TERMS[name], objective(TERMS[name]).expansion(X, U)
    z = np.concatenate([X.ravel(), U.ravel()])

    def stacked(points):
        rows = [
            residuals(term, p[: X.size].reshape(X.shape), p[X.size :].reshape(U.shape))
            for p in points
        ]
        return np.array([np.concatenate(row) for row in rows])

    D = finite_difference(stacked, z, step=1e-3)
    H = D.T @ D
    for k in range(N + 1):
        x = slice(k * NX, (k + 1) * NX)
        np.testing.assert_allclose(e.l_xx[k], H[x, x], atol=1e-9)
        if k < N:
            u = slice(X.size + k * NU, X.size + (k + 1) * NU)
            np.testing.assert_allclose(e.l_uu[k], H[u, u], atol=1e-9)
            l_ux = np.zeros((NU, NX)) if e.l_ux is None else e.l_ux[k]
            np.testing.assert_allclose(l_ux, H[u, x], atol=1e-9)
    assert np.abs(H).max() > 0.1


def test_terms_add_up():
    J, parts = objective(*TERMS.values()), [objective(term) for term in TERMS.values()]
    assert float(J.value(X, U)) == pytest.approx(sum(float(p.value(X, U)) for p in parts))
    whole, pieces = J.expansion(X, U), [p.expansion(X, U) for p in parts]
    for name in ("l_x", "l_u", "l_xx", "l_uu"):
        total = sum(getattr(p, name) for p in pieces)
        np.testing.assert_allclose(getattr(whole, name), total, atol=1e-12)
    l_ux = sum(p.l_ux for p in pieces if p.l_ux is not None)
    np.testing.assert_allclose(whole.l_ux, l_ux, atol=1e-12)
    assert np.abs(l_ux).max() > 0.1


def test_batch_axes_are_a_loop():
    J = objective(*TERMS.values())
    states, controls = np.stack([X, 2 * X]), np.stack([U, -U])
    values = J.value(states[:, None], controls[:, None])
    assert values.shape == (2, 1)
    for i in range(2):
        assert float(values[i, 0]) == pytest.approx(float(J.value(states[i], controls[i])))


@pytest.mark.parametrize("name", ["state running", "residual running"])
def test_value_of_what_is_not_finite_is_infinite(name):
    broken = X.copy()
    broken[2, 2] = np.nan
    assert objective(TERMS[name]).value(broken, U) == np.inf


def test_expansion_of_what_is_not_finite_is_no_crash():
    problem = make("arm-throw")
    states = np.tile(problem.start, (problem.horizon + 1, 1))
    states[-1] = np.nan
    expansion = Objective(problem).expansion(states, problem.initial_controls)
    assert np.isnan(expansion.l_x[-1]).any() and np.isfinite(expansion.l_x[:-1]).all()


def test_one_gauss_newton_step_solves_a_quadratic():
    """At the minimizer that the expansion predicts, its gradient vanishes."""
    J = objective(StateCost(W_X, REF_X, knots="all"), ControlCost(W_U, REF_U))
    e = J.expansion(X, U)
    x = X - np.linalg.solve(e.l_xx, e.l_x[..., None])[..., 0]
    u = U - np.linalg.solve(e.l_uu, e.l_u[..., None])[..., 0]
    assert float(J.value(x, u)) == pytest.approx(0, abs=1e-25)


@pytest.mark.parametrize(
    ("argument", "arrays"),
    [("states", (X[:-1], U)), ("states", (X[:, :-1], U)), ("controls", (X, U[:-1]))],
)
def test_shapes_that_do_not_fit_are_refused(argument, arrays):
    J = objective(*TERMS.values())
    with pytest.raises(ValueError, match=f"`{argument}` must have shape"):
        J.value(*arrays)
    with pytest.raises(ValueError, match=f"`{argument}` must have shape"):
        J.expansion(*arrays)


def test_residuals_of_another_shape_than_their_weight_are_refused():
    short = objective(ResidualCost(product, product_jacobians, [1.0, 1.0]))
    with pytest.raises(ValueError, match="`residual` must return"):
        short.value(X, U)

    def transposed(states, controls):
        r_x, r_u = product_jacobians(states, controls)
        return ResidualJacobians(r_x.transpose(0, 2, 1), r_u)

    with pytest.raises(ValueError, match="`jacobians` must return"):
        objective(ResidualCost(product, transposed, W_R)).expansion(X, U)


def test_an_expression_and_a_function_are_one_residual():
    states, controls = (
        RNG.standard_normal((3, 2, N + 1, NX)),
        RNG.standard_normal((3, 2, N + 1, NU)),
    )
    term = ResidualCost.from_casadi(*casadi_product(), W_R)
    np.testing.assert_allclose(term.residual(states, controls), product(states, controls))
    for ours, theirs in zip(term.jacobians(X[:N], U), product_jacobians(X[:N], U)):
        np.testing.assert_allclose(ours, theirs)
    x = ca.MX.sym("x", NX), ca.MX.sym("u", NU)
    linear = ResidualCost.from_casadi(*x, x[0][:2] - 1, [1, 1])
    np.testing.assert_allclose(linear.residual(X, np.zeros((N + 1, NU))), X[:, :2] - 1)


def test_expressions_that_are_no_residual_are_refused():
    x, u, r = casadi_product()
    with pytest.raises(ValueError, match="`expression` hold no others"):
        ResidualCost.from_casadi(x, u, r * ca.SX.sym("a"), W_R)
    with pytest.raises(ValueError, match=r"`expression` must be a column \(nr, 1\)"):
        ResidualCost.from_casadi(x, u, r.T, W_R)
    with pytest.raises(ValueError, match=r"`weight` must have shape \(3,\)"):
        ResidualCost.from_casadi(x, u, r, [1.0])
    with pytest.raises(ValueError, match=r"sizes \(4, 2\), got \(3, 2\)"):
        z = ca.SX.sym("z", 3)
        objective(ResidualCost.from_casadi(z, u, z[0], [1.0])).value(X, U)
