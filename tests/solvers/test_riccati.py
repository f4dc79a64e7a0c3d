"""The native backward pass against its numpy twin, dense optima and a bounded QP solver."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Bundled, Exact, FullCone
from cito.dynamics.linear import point_mass
from cito.dynamics.tree import Body, ContactPoint, TreeSystem
from tests.reference import riccati as twin
from tests.reference.riccati import Model, Policy, dense_optimum


def random_model(seed: int, N: int = 7, ndx: int = 5, nu: int = 3, gaps: bool = True) -> Model:
    """A convex linear-quadratic model with cross terms."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((N + 1, ndx + nu, ndx + nu))
    hessian = root @ root.transpose(0, 2, 1) / (ndx + nu) + 0.1 * np.eye(ndx + nu)
    return Model(
        f_x=np.eye(ndx) + 0.3 * rng.standard_normal((N, ndx, ndx)),
        f_u=rng.standard_normal((N, ndx, nu)),
        l_x=rng.standard_normal((N + 1, ndx)),
        l_u=rng.standard_normal((N, nu)),
        l_xx=np.ascontiguousarray(hessian[:, :ndx, :ndx]),
        l_uu=np.ascontiguousarray(hessian[:-1, ndx:, ndx:]),
        l_ux=np.ascontiguousarray(hessian[:-1, ndx:, :ndx]),
        gaps=0.3 * rng.standard_normal((N, ndx)) if gaps else np.zeros((N, ndx)),
    )


def native(m: Model, reg: float = 0.0, controls=None, lower=None, upper=None) -> Policy:
    k, K, dV, failed = _native.riccati(*m, controls, lower, upper, reg)
    assert failed == -1
    return Policy(k, K, dV)


def follow(m: Model, policy: Policy, alpha: float = 1.0) -> tuple[np.ndarray, np.ndarray, float]:
    """dx, du and the model's value under du = alpha k + K dx, gaps closed by alpha, from dx = 0."""
    dx, du, value = [np.zeros(m.f_x.shape[1])], [], 0.0
    for i in range(len(m.f_u)):
        u = alpha * policy.k[i] + policy.K[i] @ dx[i]
        value += m.l_x[i] @ dx[i] + m.l_u[i] @ u + u @ m.l_ux[i] @ dx[i]
        value += 0.5 * dx[i] @ m.l_xx[i] @ dx[i] + 0.5 * u @ m.l_uu[i] @ u
        dx.append(m.f_x[i] @ dx[i] + m.f_u[i] @ u + alpha * m.gaps[i])
        du.append(u)
    value += m.l_x[-1] @ dx[-1] + 0.5 * dx[-1] @ m.l_xx[-1] @ dx[-1]
    return np.array(dx), np.array(du), float(value)


def limits(m: Model, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Controls inside random limits, one of them absent."""
    rng = np.random.default_rng(seed)
    nu = m.f_u.shape[2]
    lower, upper = -rng.uniform(0.1, 0.6, nu), rng.uniform(0.1, 0.6, nu)
    lower[0] = -np.inf
    return rng.uniform(-0.1, 0.1, (len(m.f_u), nu)), lower, upper


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("reg", [0.0, 0.3])
def test_equals_its_numpy_twin(seed, reg):
    m = random_model(seed, ndx=3 + seed, nu=1 + seed // 2)
    ours, oracle = native(m, reg), twin.riccati(m, reg)
    for name, size in (("k", 1.0), ("K", 1.0), ("dV", np.abs(oracle.dV).max())):
        a, b = getattr(ours, name)[: len(getattr(oracle, name))], getattr(oracle, name)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * size)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("reg", [0.0, 0.3])
def test_limits_equal_the_twin_with_an_independent_qp_solver(seed, reg):
    m = random_model(seed, ndx=4, nu=1 + seed)
    U, lower, upper = limits(m, seed)
    ours, oracle = native(m, reg, U, lower, upper), twin.riccati(m, reg, lower - U, upper - U)
    np.testing.assert_allclose(ours.k, oracle.k, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.K, oracle.K, rtol=1e-8, atol=1e-9)
    held = (U + ours.k <= lower) | (U + ours.k >= upper)
    assert held.any() and not held.all()


def test_policy_without_gaps_or_cross_terms_may_leave_them_out():
    m = random_model(3, gaps=False)
    m = m._replace(l_ux=np.zeros_like(m.l_ux))
    short = _native.riccati(*m[:6], None, None, None, None, None, 0.0)
    full = _native.riccati(*m, None, None, None, 0.0)
    for a, b in zip(short, full):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", range(4))
def test_policy_follows_the_dense_optimum(seed):
    m = random_model(seed)
    dx, du, value = follow(m, native(m))
    dx_opt, du_opt, value_opt = dense_optimum(m)
    np.testing.assert_allclose(du, du_opt, atol=1e-9)
    np.testing.assert_allclose(dx, dx_opt, atol=1e-9)
    assert value == pytest.approx(value_opt, rel=1e-11)


def test_one_bounded_step_is_the_dense_optimum():
    m = random_model(8, N=1, nu=4)
    U, lower, upper = limits(m, 1)
    policy = native(m, 0.0, U, lower, upper)
    _, du, _ = dense_optimum(m, lower - U, upper - U)
    np.testing.assert_allclose(policy.k, du, atol=1e-9)
    assert ((U + du == lower) | (U + du == upper)).any()


@pytest.mark.parametrize("seed", range(20))
def test_bounded_steps_satisfy_their_kkt_conditions(seed):
    """At a limit the slope holds it there, inside there is none; K leaves held controls alone."""
    m = random_model(seed, N=1, nu=6)
    U, lower, upper = limits(m, seed)
    policy = native(m, 0.0, U, lower, upper)
    G, p = m.f_u[0], m.l_x[1] + m.l_xx[1] @ m.gaps[0]
    slope = m.l_u[0] + G.T @ p + (m.l_uu[0] + G.T @ m.l_xx[1] @ G) @ policy.k[0]
    u = U[0] + policy.k[0]
    at_lower, at_upper = np.isclose(u, lower, atol=1e-12), np.isclose(u, upper, atol=1e-12)
    assert (u >= lower - 1e-12).all() and (u <= upper + 1e-12).all()
    assert (slope[at_lower] >= -1e-9).all() and (slope[at_upper] <= 1e-9).all()
    assert np.abs(slope[~(at_lower | at_upper)]).max(initial=0) <= 1e-9
    held = (at_lower & (slope > 1e-9)) | (at_upper & (slope < -1e-9))
    assert (policy.K[0][held] == 0).all() and held.any()


def test_limits_that_leave_no_choice():
    m = random_model(1)
    U = np.full(m.l_u.shape, 0.2)
    policy = native(m, 0.0, U, np.full(3, 0.5), np.full(3, 0.5))
    np.testing.assert_allclose(policy.k, 0.3, atol=1e-15)
    assert (policy.K == 0).all()


@pytest.mark.parametrize("knot", [0, 3, 6])
def test_indefinite_control_hessian_is_reported_with_its_knot(knot):
    m = random_model(0)
    l_uu = m.l_uu.copy()
    l_uu[knot] -= 1e4 * np.eye(3)
    m = m._replace(l_uu=l_uu)
    assert _native.riccati(*m, None, None, None, 0.0)[-1] == knot
    U, lower, upper = limits(m, 0)
    assert _native.riccati(*m, U, lower, upper, 0.0)[-1] == knot


@pytest.mark.parametrize(("reg", "alpha"), [(0, 1), (0, 0.5), (0, 0.1), (0.5, 1), (20, 1)])
def test_predicted_change_is_that_of_the_model(reg, alpha):
    m = random_model(5, gaps=False)
    policy = native(m, reg)
    _, _, value = follow(m, policy, alpha)
    assert alpha * policy.dV[0] + alpha**2 * policy.dV[1] == pytest.approx(value, rel=1e-10)
    assert value < 0


def test_regularization_only_costs_and_shortens():
    m = random_model(5, gaps=False)
    policies = [native(m, reg) for reg in (0.0, 0.1, 1.0, 10.0, 1000.0)]
    values = [follow(m, policy)[2] for policy in policies]
    assert values == sorted(values) and values[-1] < 0
    sizes = [np.abs(policy.k).max() for policy in policies]
    assert sizes[-1] < 0.1 * sizes[0]


def test_value_decreases_under_limits():
    m = random_model(5, gaps=False)
    U, lower, upper = limits(m, 2)
    free, bounded = native(m), native(m, 0.0, U, lower, upper)
    assert free.dV[:2].sum() < bounded.dV[:2].sum() < 0


def test_largest_multiplier_of_the_gaps():
    m = random_model(5)
    V_x = []
    policy = twin.riccati(m)
    # The gradient of the value at a knot is that of the model's value in a gap just before it.
    for i in range(len(m.f_u)):
        gradient = np.zeros(5)
        for j in range(5):
            for sign in (1.0, -1.0):
                gaps = np.zeros_like(m.gaps)
                gaps[i + 1 :] = m.gaps[i + 1 :]
                gaps[i, j] = sign * 1e-4
                gradient[j] += sign * _tail_value(m._replace(gaps=gaps), policy, i) / 2e-4
        V_x.append(gradient)
    assert native(m).dV[2] == pytest.approx(np.abs(V_x).max(), rel=1e-6)


def _tail_value(m: Model, policy: Policy, first: int) -> float:
    """Optimal value from dx = gap of knot `first` on, at knot first + 1."""
    tail = Model(*(field[first + 1 :] for field in m))
    if len(tail.f_u) == 0:
        return float(m.l_x[-1] @ m.gaps[first] + 0.5 * m.gaps[first] @ m.l_xx[-1] @ m.gaps[first])
    # One more step that only brings the gap in.
    ndx, nu = m.f_u.shape[1:]
    lead = Model(
        np.eye(ndx)[None],
        np.zeros((1, ndx, nu)),
        np.zeros((1, ndx)),
        np.zeros((1, nu)),
        np.zeros((1, ndx, ndx)),
        np.eye(nu)[None],
        np.zeros((1, nu, ndx)),
        m.gaps[[first]],
    )
    return dense_optimum(Model(*(np.concatenate(pair) for pair in zip(lead, tail))))[2]


def test_linear_rollout_follows_the_policy():
    m = random_model(2, gaps=False)
    policy = native(m)
    dx, du, _ = follow(m, policy)
    ours = _native.linear_rollout(m.f_x, m.f_u, policy.k, policy.K)
    np.testing.assert_allclose(ours[0], dx, atol=1e-12)
    np.testing.assert_allclose(ours[1], du, atol=1e-12)


@pytest.mark.parametrize(
    "name", ["f_x", "f_u", "l_x", "l_u", "l_xx", "l_uu", "l_ux", "gaps", "controls", "lower"]
)
def test_shapes_that_do_not_fit_are_refused(name):
    m = random_model(0)
    arguments = {
        **m._asdict(),
        "controls": np.zeros((7, 3)),
        "lower": -np.ones(3),
        "upper": np.ones(3),
    }
    arguments[name] = np.ascontiguousarray(arguments[name][..., :-1])
    # l_x and l_u say how large the others must be.
    with pytest.raises(ValueError, match="must have shape" if name in "l_x l_u" else f"`{name}`"):
        _native.riccati(*arguments.values(), 0.0)
    del arguments["controls"]
    with pytest.raises(ValueError, match="`controls`"):
        _native.riccati(*m, None, -np.ones(3), None, 0.0)


def floating_arm() -> ContactDynamics:
    """A free base, whose D_q and D_v are no identities, with three links and two contacts."""
    rng = np.random.default_rng(0)
    parents, joints = (None, "b0", "b1", "b0"), ("free", "revolute", "prismatic", "revolute")
    bodies = [
        Body(f"b{i}", parent, joint, 1.0, 0.1 * rng.standard_normal(3), 0.1 * np.eye(3),
             position=0.2 * rng.standard_normal(3), axis=rng.standard_normal(3))
        for i, (parent, joint) in enumerate(zip(parents, joints))
    ]  # fmt: skip
    contacts = [ContactPoint("c0", "b2", np.zeros(3)), ContactPoint("c1", "b3", np.ones(3) / 5)]
    return ContactDynamics(TreeSystem(bodies, contacts), 0.05)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("reg", [0.0, 0.3])
@pytest.mark.parametrize("make", [floating_arm, lambda: ContactDynamics(point_mass(), 0.05)])
def test_structure_of_the_integration_changes_nothing(seed, reg, make):
    """With dq+ = D_q dq + h D_v dv+ known, half the work gives the same policy."""
    dynamics, N = make(), 6
    rng = np.random.default_rng(seed)
    start = dynamics.integrate(
        np.eye(1, dynamics.nx, 6)[0] if dynamics.nx > dynamics.ndx else np.zeros(dynamics.nx),
        rng.standard_normal(dynamics.ndx),
    )
    rollout = dynamics.rollout(start, rng.standard_normal((N, dynamics.nu)))
    linearization = dynamics.linearize(rollout)
    f_x, f_u = linearization.with_gradient(FullCone(0.1))
    m = random_model(seed, N, dynamics.ndx, dynamics.nu)._replace(f_x=f_x, f_u=f_u)
    for limited in (False, True):
        U, lower, upper = limits(m, seed) if limited else (None, None, None)
        plain = _native.riccati(*m, U, lower, upper, reg)
        structure = linearization.integration(FullCone(0.1))
        quick = _native.riccati(*m, U, lower, upper, reg, structure)
        assert plain[3] == quick[3] == -1
        for a, b in zip(plain[:3], quick[:3]):
            np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-10 * np.abs(a).max())


def test_bundled_gradients_promise_no_structure():
    """A mean over other states has none; the structure of other knots is refused."""
    dynamics = floating_arm()
    start = np.eye(1, dynamics.nx, 6)[0]
    linearization = dynamics.linearize(dynamics.rollout(start, np.zeros((4, dynamics.nu))))
    assert linearization.integration(Bundled()) is None
    m = random_model(0, 5, dynamics.ndx, dynamics.nu)
    with pytest.raises(ValueError, match="`integration` must linearize the same knots"):
        _native.riccati(*m, None, None, None, 0.0, linearization.integration(Exact()))
