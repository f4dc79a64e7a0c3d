"""Transition Jacobians: every gradient against what it claims to differentiate."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import (
    Bundled,
    ContactDynamics,
    Exact,
    FullCone,
    LinearSystem,
    Randomized,
    Signorini,
    _native,
    point_mass,
)
from cito.dynamics.check import check_gradients, finite_difference
from tests.reference import step as twin
from tests.reference.normals import standard_normals
from tests.reference.systems import chain, contact_systems

SYSTEMS = contact_systems()
CENTERS = {"two bodies": np.array([0, 0, 0, 1.0, 0, 0, 0, 0])}
RELAXED = [Signorini(0.1), Signorini(0.3, 0.5), FullCone(0.1), FullCone(0.3, 0.5)]
EVERY = [Exact(), *RELAXED, Randomized(order=0), Randomized(order=1), Bundled(threshold=0.0)]


@pytest.fixture(scope="module")
def chain_dynamics() -> ContactDynamics:
    return ContactDynamics(chain(), 0.02, friction=[0.4, 0.8])


BENT = np.array([0, 0, 0.5, -0.5, 0, 0, 0, 0])  # both ends of the chain on the ground


def stacked(dynamics, x, u, gradient) -> np.ndarray:
    """[f_x, f_u] of one or many steps."""
    return np.concatenate(dynamics.transition(x, u, gradient), axis=-1)


def samples(dynamics: ContactDynamics, count: int, seed: int = 0, center=0.0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, dynamics.nx))
    x[: count // 2, : dynamics.ndx // 2] *= 2 * dynamics.time_step
    x[: count // 3, dynamics.ndx // 2 :] *= 0.1
    return center + x, 5 * rng.standard_normal((count, dynamics.nu))


# ------------------------------------------------------------------------- whole, by differences


@pytest.mark.parametrize("name", SYSTEMS)
def test_gradients_pass_in_every_mode(name):
    dynamics = SYSTEMS[name]
    report = check_gradients(dynamics, center=CENTERS.get(name), samples=120)
    assert report.passed, str(report)
    for gradient in ("exact", "signorini", "full-cone"):
        rows = [row for row in report.rows if row.gradient == gradient]
        for contact in range(dynamics.nc):
            rubs = dynamics.system.contact_dims[contact] > 1 and dynamics.friction[contact] > 0
            met = {row.modes[contact] for row in rows}
            assert met == set("slc") if rubs else len(met) == 2, (contact, met)
        assert all(row.magnitude > 1e-2 for row in rows)
    # A separating contact is felt by the relaxed gradients only.
    apart = "s" * dynamics.nc
    sizes = {row.gradient: row.magnitude for row in report.rows if row.modes == apart}
    assert sizes["exact"] < 0.5 < min(sizes["signorini"], sizes["full-cone"])


def test_gradients_pass_where_mass_and_contacts_turn(chain_dynamics):
    report = check_gradients(chain_dynamics, center=BENT, samples=120)
    assert report.passed, str(report)
    patterns = {row.modes for row in report.rows}
    assert {"cc", "cl", "cs", "lc", "ll", "ls", "sc", "sl", "ss"} == patterns


# ------------------------------------------------------- the production form, one link at a time


def frozen_step(dynamics: ContactDynamics, impulse: np.ndarray):
    """(x, u) -> (q+, v+, sigma) with the impulse held, from the system's terms alone."""
    nv, h = dynamics.ndx // 2, dynamics.time_step
    last = np.cumsum(dynamics.system.contact_dims, dtype=int) - 1

    def step(points):
        rows = []
        for x, u in zip(points[:, : dynamics.nx], points[:, dynamics.nx :]):
            q, v = x[:nv].copy(), x[nv:].copy()
            M, c, B, J, phi = _native.system_terms(dynamics.manifold, dynamics.theta, q, v)
            v_next = v + np.linalg.solve(M, h * (B @ u - c) + J.T @ impulse)
            sigma = J @ v_next
            sigma[last] += phi / h
            rows.append(np.concatenate([q + h * v_next, v_next, sigma]))
        return np.array(rows)

    return step


def impulse_sensitivity(dynamics, x, u, gradient) -> np.ndarray:
    """d lambda*/d b with A held: differences on a linear system with the same A and b = v."""
    nv = dynamics.ndx // 2
    M, c, B, J, phi = _native.system_terms(dynamics.manifold, None, x[:nv].copy(), x[nv:].copy())
    A, n = J @ np.linalg.solve(M, J.T), dynamics.n
    b = dynamics.linearize(dynamics.rollout(x, u[None])).free_velocity[0]
    surrogate = ContactDynamics(
        LinearSystem(
            mass_matrix=np.linalg.inv((A + A.T) / 2),
            actuation=np.zeros((n, 1)),
            bias=np.zeros(n),
            contact_jacobian=np.eye(n),
            contact_dims=dynamics.system.contact_dims,
            gap_jacobian=np.zeros((dynamics.nc, n)),
            gap_offset=np.zeros(dynamics.nc),
        ),
        dynamics.time_step,
        dynamics.friction,
    )
    hard = dynamics.step(x, u)

    def impulses(velocities):
        states = np.hstack([np.zeros_like(velocities), velocities])
        if isinstance(gradient, Exact):
            return surrogate.step(states, np.zeros(1)).impulse
        return surrogate.relaxed_step(states, np.zeros(1), gradient, about=hard).impulse

    return finite_difference(impulses, b)


@pytest.mark.parametrize("gradient", [Exact(), Signorini(0.1), FullCone(0.1), FullCone(0.3, 0.5)])
def test_production_form_is_frozen_part_plus_relaxed_impulse(chain_dynamics, gradient):
    """f = frozen + [h; 1] M^-1 J' (d lambda*/d b) d sigma, explicit terms at the hard impulse."""
    dynamics, h, nv, seen = chain_dynamics, 0.02, 4, set()
    states, controls = samples(dynamics, 40, seed=3)
    states[::2, :nv] *= 0.1
    states += BENT
    for x, u in zip(states, controls):
        hard = dynamics.step(x, u)
        near = dynamics.step(x + 1e-4 * np.vstack([np.eye(8), -np.eye(8)]), u)
        if not (near.modes == hard.modes).all():
            continue
        seen.add(tuple(hard.modes))
        frozen = finite_difference(
            frozen_step(dynamics, hard.impulse), np.concatenate([x, u]), step=1e-5
        )
        sigma_z = frozen[2 * nv :]
        M, _, _, J, _ = _native.system_terms(dynamics.manifold, None, x[:nv].copy(), x[nv:].copy())
        K = impulse_sensitivity(dynamics, x, u, gradient)
        dv = np.linalg.solve(M, J.T) @ K @ sigma_z
        expected = frozen[: 2 * nv] + np.vstack([h * dv, dv])
        actual = stacked(dynamics, x, u, gradient)
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(actual, expected, atol=2e-6 * scale)
    assert len(seen) >= 6


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("gradient", RELAXED)
def test_forms_agree_where_matrices_are_constant(name, gradient):
    dynamics = SYSTEMS[name]
    x, u = samples(dynamics, 12, center=CENTERS.get(name, 0.0))
    relaxed = np.concatenate(dynamics.transition_at_relaxed(x, u, gradient), axis=-1)
    np.testing.assert_allclose(stacked(dynamics, x, u, gradient), relaxed, rtol=1e-12, atol=1e-13)


def test_forms_differ_where_matrices_turn(chain_dynamics):
    x, u = samples(chain_dynamics, 12, center=BENT)
    relaxed = chain_dynamics.transition_at_relaxed(x, u, FullCone(0.3))
    assert np.abs(stacked(chain_dynamics, x, u, FullCone(0.3))[..., :8] - relaxed.f_x).max() > 1e-3


def test_linearization_of_a_rollout_is_its_steps(chain_dynamics):
    controls = samples(chain_dynamics, 10)[1]
    rollout = chain_dynamics.rollout(BENT, controls)
    linearization = chain_dynamics.linearize(rollout)
    for gradient in (FullCone(0.1), Exact(), Signorini(0.1), FullCone(0.1)):
        f_x, f_u = linearization.with_gradient(gradient)
        for k in range(10):
            # The hard solutions agree to rounding only: the rollout starts warm.
            one = chain_dynamics.transition(rollout.states[k], controls[k], gradient)
            np.testing.assert_allclose(f_x[k], one.f_x, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(f_u[k], one.f_u, rtol=1e-6, atol=1e-6)


def test_gradients_of_one_linearization_do_not_disturb_each_other():
    dynamics = SYSTEMS["coupled 3, 1"]
    rollout = dynamics.rollout(np.zeros(dynamics.nx), samples(dynamics, 8)[1])
    alone = {g: dynamics.linearize(rollout).with_gradient(g) for g in EVERY}
    shared = dynamics.linearize(rollout)
    for gradient in [*EVERY, *reversed(EVERY)]:
        for a, b in zip(shared.with_gradient(gradient), alone[gradient]):
            assert np.array_equal(a, b)


def test_free_velocity_is_that_of_the_contact_problem():
    dynamics = SYSTEMS["coupled 1, 2, 3"]
    x, u = samples(dynamics, 5)
    for k in range(5):
        b = dynamics.linearize(dynamics.rollout(x[k], u[k : k + 1])).free_velocity
        _, expected, _, _ = twin.contact_problem(dynamics.system, dynamics.time_step, x[k], u[k])
        np.testing.assert_allclose(b, expected[None], rtol=1e-12, atol=1e-12)


def test_unsolved_relaxed_problems_are_counted():
    dynamics = SYSTEMS["coupled 3, 2, 1, 3"]
    rollout = dynamics.rollout(np.zeros(dynamics.nx), samples(dynamics, 8)[1])
    linearization = dynamics.linearize(rollout)
    linearization.with_gradient(FullCone(0.1))
    assert linearization.unsolved == 0
    assert linearization.newton_iterations.shape == (8,)
    assert (linearization.newton_iterations > 0).all()
    assert linearization.newton_iterations.max() <= 15


# ------------------------------------------------------------------------------------------ limits


@pytest.mark.parametrize("law", [Signorini, FullCone])
@pytest.mark.parametrize("name", ["point mass 2-D", "point mass 3-D", "coupled 1, 2, 3"])
def test_small_rho_is_the_exact_gradient_inside_each_mode(name, law):
    dynamics = SYSTEMS[name]
    x, u = samples(dynamics, 60, seed=2)
    step = dynamics.step(x, u)
    inside = np.array([margin(dynamics, step, k) > 0.05 for k in range(60)])
    assert inside.sum() >= 10 and len(np.unique(step.modes[inside], axis=0)) >= 3
    if law is Signorini:  # whose frozen direction of sliding the exact law turns
        turning = (step.modes == 1) & (np.array(dynamics.system.contact_dims) == 3)
        inside &= ~turning.any(axis=1)
    exact = stacked(dynamics, x[inside], u[inside], Exact())
    errors = [
        np.abs(stacked(dynamics, x[inside], u[inside], law(rho)) - exact).max()
        for rho in (1e-2, 1e-4, 1e-6, 1e-8)
    ]
    assert errors[0] > 1e-2 > errors[2] > errors[3]
    assert errors[3] < 1e-3


def margin(dynamics: ContactDynamics, step, k: int) -> float:
    """How far, as a velocity, the step is from a change of any mode."""
    A = twin.contact_problem(
        dynamics.system, dynamics.time_step, np.zeros(dynamics.nx), np.zeros(dynamics.nu)
    )[0]
    rows, least = np.split(np.arange(dynamics.n), np.cumsum(dynamics.system.contact_dims)[:-1]), []
    for i, r in enumerate(rows):
        l, s, mode = step.impulse[k, r], step.velocity[k, r], step.modes[k, i]
        a, mu = A[r[-1], r[-1]], dynamics.friction[i] if len(r) > 1 else 0.0
        slack = mu * l[-1] - np.linalg.norm(l[:-1]) if len(r) > 1 else l[-1]
        slip = np.linalg.norm(s[:-1])
        least.append({0: s[-1], 1: min(a * l[-1], slip), 2: a * min(l[-1], slack)}[int(mode)])
    return min(least)


@pytest.mark.parametrize("law", [Signorini, FullCone])
def test_delta_is_a_raised_ground(law):
    """With an offset the limit is the exact law of a contact that is h delta further away."""
    h, delta = 0.05, 0.4
    near, m = ContactDynamics(point_mass(2), h), point_mass(2)
    raised = LinearSystem(**{**vars_of(m), "gap_offset": np.array([h * delta])})
    x, u = samples(near, 100, seed=4)
    far = ContactDynamics(raised, h)
    step = far.step(x, u)
    inside = np.array([margin(far, step, k) > 0.05 for k in range(100)])
    if law is Signorini:  # whose modes are those of the hard law without the offset
        inside &= (near.step(x, u).modes == step.modes)[:, 0]
    assert len(np.unique(step.modes[inside])) == 3
    exact = stacked(far, x[inside], u[inside], Exact())
    offset = stacked(near, x[inside], u[inside], law(1e-6, delta))
    np.testing.assert_allclose(offset, exact, atol=1e-2)


def vars_of(system: LinearSystem) -> dict:
    return {name: getattr(system, name) for name in LinearSystem.__dataclass_fields__}


def test_relative_rho_is_scaled_to_speed_and_mass():
    dynamics = ContactDynamics(point_mass(3, mass=2.5), 0.05)
    x, u = samples(dynamics, 20)
    for law in (Signorini, FullCone):
        relative = stacked(dynamics, x, u, law(0.2, relative=True, v_ref=0.7))
        absolute = stacked(dynamics, x, u, law(0.2 * 0.7**2 * 2.5))
        np.testing.assert_allclose(relative, absolute, rtol=1e-9, atol=1e-9)


def test_contact_is_felt_before_it_is_made():
    """A mass above the ground: only the relaxed gradients let its height and drift count."""
    dynamics = ContactDynamics(point_mass(2), 0.05)
    x, u = np.array([0, 0.3, 1.0, -1.0]), np.zeros(2)
    f_x = {g.name: dynamics.transition(x, u, g).f_x for g in (Exact(), Signorini(), FullCone())}
    np.testing.assert_allclose(
        f_x["exact"], [[1, 0, 0.05, 0], [0, 1, 0, 0.05], [0, 0, 1, 0], [0, 0, 0, 1]]
    )
    for name in ("signorini", "full-cone"):
        assert f_x[name][3, 1] < -1e-2  # higher, so less lift
    assert f_x["signorini"][2, 2] == 1.0  # no friction before contact
    assert f_x["full-cone"][2, 2] < 0.999 and f_x["full-cone"][2, 1] > 1e-3


# ----------------------------------------------------------------------------- randomized, bundled


def repeated(dynamics, x, u, gradient, count: int) -> np.ndarray:
    """[f_x, f_u] from `count` independent draws: the samples differ from knot to knot."""
    X, U = np.tile(x, (count, 1)), np.tile(u, (count, 1))
    return stacked(dynamics, X, U, gradient)


SLIDING = (np.array([0, 0, 0.3, 0]), np.array([1.0, 2.0]))  # near stick and near lift-off
LANDING = (np.array([0, 0.01, 0.2, -0.1]), np.array([0.0, 0.0]))


def test_first_order_is_the_mean_over_its_samples():
    """For a point mass, offsets of b are offsets of v."""
    dynamics, std, count = ContactDynamics(point_mass(2), 0.05), 0.3, 32
    x, u = SLIDING
    estimates = repeated(dynamics, x, u, Randomized(std, count, order=1, seed=5), 3)
    for knot in range(3):
        xi = np.array([standard_normals(5, knot, sample, 2) for sample in range(count)])
        offsets = np.hstack([np.zeros((count, 2)), std * xi])
        exact = stacked(dynamics, x + offsets, u, Exact())
        np.testing.assert_allclose(estimates[knot], exact.mean(axis=0), rtol=1e-12, atol=1e-13)
    assert np.abs(estimates[0] - estimates[1]).max() > 1e-2


def test_zeroth_order_is_the_regression_over_its_samples():
    dynamics, std, count = ContactDynamics(point_mass(2), 0.05), 0.3, 32
    x, u = SLIDING
    estimate = repeated(dynamics, x, u, Randomized(std, count, order=0, seed=5), 1)[0]
    xi = np.array([standard_normals(5, 0, sample, 2) for sample in range(count)])
    states = x + np.hstack([np.zeros((count, 2)), std * xi])
    change = dynamics.step(states, u).impulse - dynamics.step(x, u).impulse
    K = change.T @ xi / (std * count)  # d lambda/d b
    velocity = np.hstack([np.diag([0.0, 1 / 0.05]), np.eye(2), 0.05 * np.eye(2)])  # d b/d(x, u)
    v = np.hstack([np.zeros((2, 2)), np.eye(2), 0.05 * np.eye(2)]) + K @ velocity
    expected = np.vstack([np.hstack([np.eye(2), np.zeros((2, 4))]) + 0.05 * v, v])
    np.testing.assert_allclose(estimate, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda count: Randomized(0.3, count, order=0),
        lambda count: Randomized(0.3, count, order=1),
        lambda count: Bundled(0.01, count, threshold=0.0),
    ],
    ids=["zeroth", "first", "bundled"],
)
def test_sampling_converges_as_one_over_root_n(make):
    dynamics = ContactDynamics(point_mass(2), 0.05)
    truth = repeated(dynamics, *SLIDING, make(4096), 64).mean(axis=0)
    errors = []
    for count in (16, 256):
        draws = repeated(dynamics, *SLIDING, make(count), 64)
        errors.append(np.sqrt(np.mean((draws - truth) ** 2)))
    assert 3 < errors[0] / errors[1] < 5.5  # 4 for sixteen times the samples


@pytest.mark.parametrize("state", [SLIDING, LANDING])
def test_both_orders_estimate_the_same_derivative(state):
    dynamics = ContactDynamics(point_mass(2), 0.05)
    means, spread = [], 0.0
    for order in (0, 1):
        draws = repeated(dynamics, *state, Randomized(0.3, 4096, order=order, seed=order), 64)
        means.append(draws.mean(axis=0))
        spread = np.maximum(spread, draws.std(axis=0) / 8)
    assert (np.abs(means[0] - means[1]) <= 5 * spread + 1e-12).all()
    exact = stacked(dynamics, *state, Exact())
    assert np.abs(means[1] - exact).max() > 0.05  # which is not that of the hard law


def test_bundled_is_the_mean_over_offsets_of_the_contact_point():
    """Of a point mass: offsets of p by std and of v by std / h, in pairs of either sign."""
    dynamics, std = ContactDynamics(point_mass(2), 0.05), 0.01
    x, u = SLIDING
    estimates = repeated(dynamics, x, u, Bundled(std, 32, threshold=0.0, seed=5), 2)
    for knot in range(2):
        w = np.array([standard_normals(5, knot, 64 * sample, 4) for sample in range(16)])
        offsets = w * np.array([std, std, std / 0.05, std / 0.05])
        exact = stacked(dynamics, x + np.vstack([offsets, -offsets]), u, Exact())
        np.testing.assert_allclose(estimates[knot], exact.mean(axis=0), rtol=1e-6, atol=1e-7)
    assert np.abs(estimates[0] - stacked(dynamics, x, u, Exact())).max() > 0.05


@pytest.mark.parametrize("name", ["point mass 3-D", "coupled 3, 2, 1, 3"])
def test_bundled_is_exact_where_nothing_triggers(name):
    dynamics = SYSTEMS[name]
    x, u = samples(dynamics, 200)
    exact = stacked(dynamics, x, u, Exact())
    assert np.array_equal(stacked(dynamics, x, u, Bundled(threshold=1e9)), exact)
    bundled = stacked(dynamics, x, u, Bundled(threshold=0.0))
    same = (bundled == exact).all(axis=(1, 2))
    apart = (dynamics.step(x, u).modes == 0).all(axis=1)
    assert apart.any() and same[apart].all()
    assert not same[~apart].all()


def test_default_threshold_is_a_fifth_above_the_weight():
    mass = 2.0
    dynamics = ContactDynamics(point_mass(2, mass=mass), 0.05)
    for load, triggers in ((0.0, False), (0.15, False), (0.25, True)):
        u = np.array([0.8 * mass * 9.81, -load * mass * 9.81])
        bundled, exact = (stacked(dynamics, np.zeros(4), u, g) for g in (Bundled(), Exact()))
        assert np.array_equal(bundled, exact) is not triggers


@pytest.mark.parametrize("make", [Randomized, lambda **seed: Bundled(threshold=0.0, **seed)])
def test_samples_are_fixed_by_their_seed(make):
    dynamics = ContactDynamics(point_mass(2), 0.05)
    one, again, other = (repeated(dynamics, *SLIDING, make(seed=s), 4) for s in (1, 1, 2))
    assert np.array_equal(one, again)
    assert np.abs(one - other).max() > 1e-3


# ---------------------------------------------------------------------------------------- misuse


@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("rho", lambda: Signorini(0.0)),
        ("rho", lambda: FullCone(-0.1)),
        ("rho", lambda: FullCone(np.nan)),
        ("delta", lambda: Signorini(0.1, -1.0)),
        ("delta", lambda: FullCone(0.1, -1.0)),
        ("v_ref", lambda: FullCone(0.1, v_ref=0.0)),
        ("eps", lambda: FullCone(0.1, eps=0.0)),
        ("std", lambda: Randomized(0.0)),
        ("samples", lambda: Randomized(samples=0)),
        ("samples", lambda: Randomized(samples=1.5)),
        ("order", lambda: Randomized(order=2)),
        ("seed", lambda: Randomized(seed=-1)),
        ("offset", lambda: Bundled(0.0)),
        ("samples", lambda: Bundled(samples=3)),
        ("threshold", lambda: Bundled(threshold=-1.0)),
        ("seed", lambda: Bundled(seed=0.5)),
    ],
)
def test_gradients_refuse(argument, make):
    with pytest.raises(ValueError, match=f"`{argument}`"):
        make()


def test_gradients_are_plain_data():
    assert FullCone(0.1) == FullCone(0.1) != FullCone(0.2)
    assert len({Exact(), Exact(), FullCone(0.1), FullCone(0.1), Signorini(0.1)}) == 3
    native = FullCone(0.1, 0.2, relative=True, v_ref=0.3, eps=0.4).native()
    assert (native.kind, native.rho, native.delta, native.relative) == (2, 0.1, 0.2, True)
    assert (native.v_ref, native.eps) == (0.3, 0.4)
