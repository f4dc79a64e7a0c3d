"""The transposed step: against the Jacobians, against differences in theta and friction, and along
a whole rollout."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import (
    Bundled,
    ContactDynamics,
    Exact,
    FullCone,
    Randomized,
    Signorini,
    point_mass,
)
from cito.dynamics.check import finite_difference
from cito.problems import ControlCost, Problem, StateCost
from cito.problems.objective import Objective
from tests.reference.systems import chain, contact_free, contact_systems, random_system

SYSTEMS = {
    **contact_systems(),
    "chain": ContactDynamics(chain(), 0.02, friction=[0.4, 0.8]),
    "no contact": ContactDynamics(contact_free(), 0.05),
}
BENT = np.array([0, 0, 0.5, -0.5, 0, 0, 0, 0])
CENTERS = {"two bodies": np.array([0, 0, 0, 1.0, 0, 0, 0, 0]), "chain": BENT}
GRADIENTS = [
    Exact(),
    Signorini(0.1),
    Signorini(0.3, 0.5),
    FullCone(0.1),
    FullCone(0.3, 0.5),
    FullCone(0.2, relative=True, v_ref=0.5),
    Randomized(order=0),
    Randomized(order=1),
    Bundled(threshold=0.0),
    Bundled(),
]


def samples(name: str, count: int, seed: int = 0):
    dynamics = SYSTEMS[name]
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, dynamics.nx))
    x[: count // 2, : dynamics.ndx // 2] *= 2 * dynamics.time_step
    return (
        x + CENTERS.get(name, 0.0),
        5 * rng.standard_normal((count, dynamics.nu)),
        rng.standard_normal((count, dynamics.ndx)),
    )


def vjp(dynamics, x, u, g, gradient):
    step = dynamics.step(x, u)
    return dynamics.vjp(x, u, step.impulse, step.velocity, step.modes, g, gradient)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda g: g.name)
def test_is_the_transpose_of_the_jacobians(name, gradient):
    dynamics = SYSTEMS[name]
    x, u, g = samples(name, 25)
    f_x, f_u = dynamics.transition(x, u, gradient)
    result = vjp(dynamics, x, u, g, gradient)
    for ours, jacobian in ((result.state, f_x), (result.control, f_u)):
        expected = np.einsum("ki,kij->kj", g, jacobian)
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-12 * scale)
    assert result.theta.shape == (25, dynamics.n_theta)
    assert result.friction.shape == (25, dynamics.nc)


def test_batch_axes_and_threads():
    one = SYSTEMS["coupled 3, 1"]
    two = ContactDynamics(random_system((3, 1), 2), 0.05, 0.6, threads=2)
    x, u, g = samples("coupled 3, 1", 6)
    flat = vjp(one, x, u, g, FullCone(0.1))
    batch = vjp(two, *(a.reshape(2, 3, -1) for a in (x, u, g)), FullCone(0.1))
    for a, b in zip(flat, batch):
        assert np.array_equal(a, b.reshape(6, -1))
    # One step: no batch axis at all.
    single = vjp(one, x[1], u[1], g[1], FullCone(0.1))
    assert single.state.shape == (one.ndx,)
    assert np.array_equal(single.state, flat.state[1])


# ---------------------------------------------------------------------------- theta and friction


def varied(dynamics: ContactDynamics, friction=None, theta=None) -> ContactDynamics:
    friction = dynamics.friction if friction is None else friction
    return ContactDynamics(dynamics.system, dynamics.time_step, friction, theta)


def differences(dynamics, function, count, at) -> np.ndarray:
    """d function(point) / d point at `at`, rows by rows."""
    return finite_difference(lambda points: np.array([function(p) for p in points]), at, step=1e-5)


def holds(dynamics, x, u) -> bool:
    """Whether modes hold around this step in theta, friction, x and u."""
    modes = dynamics.step(x, u).modes
    others = [dynamics.step(x + d, u + e).modes for d in (-1e-3, 1e-3) for e in (-1e-3, 1e-3)]
    others += [varied(dynamics, theta=d).step(x, u).modes for d in (-1e-3, 1e-3)]
    others += [
        varied(dynamics, friction=np.abs(dynamics.friction + d)).step(x, u).modes
        for d in (-1e-3, 1e-3)
    ]
    return all(np.array_equal(m, modes) for m in others)


NAMES = ["point mass 2-D", "point mass 3-D", "two bodies", "coupled 1, 2, 3", "chain"]


@pytest.mark.parametrize("name", NAMES)
def test_theta_and_friction_of_the_hard_step(name):
    dynamics, seen, largest = SYSTEMS[name], set(), np.zeros(2)
    for x, u, g in zip(*samples(name, 25, seed=2)):
        if not holds(dynamics, x, u):
            continue
        seen.update(dynamics.step(x, u).modes.tolist())
        ours = vjp(dynamics, x, u, g, Exact())
        theta = differences(
            dynamics,
            lambda t, x=x, u=u: varied(dynamics, theta=t).step(x, u).state,
            dynamics.n_theta,
            np.zeros(dynamics.n_theta),
        )
        friction = differences(
            dynamics,
            lambda mu, x=x, u=u: varied(dynamics, friction=mu).step(x, u).state,
            dynamics.nc,
            dynamics.friction,
        )
        for k, (a, b) in enumerate(((ours.theta, g @ theta), (ours.friction, g @ friction))):
            np.testing.assert_allclose(a, b, atol=1e-7 * max(1.0, np.abs(b).max()))
            largest[k] = max(largest[k], np.abs(b).max())
    assert seen == {0, 1, 2} and (largest > 0.05).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "gradient", [Signorini(0.1), FullCone(0.1, eps=0.02), FullCone(0.3, 0.5, eps=0.02)]
)
def test_theta_and_friction_of_the_relaxed_step(name, gradient):
    """At the relaxed impulse itself the transposed step is that of the relaxed map as a whole."""
    dynamics, used, largest = SYSTEMS[name], 0, np.zeros(2)
    for x, u, g in zip(*samples(name, 25, seed=2)):
        if not holds(dynamics, x, u):
            continue
        used += 1
        hard = dynamics.step(x, u)
        relaxed = dynamics.relaxed_step(x, u, gradient)
        ours = dynamics.vjp(x, u, relaxed.impulse, relaxed.velocity, hard.modes, g, gradient)

        def state(friction=None, theta=None, x=x, u=u, hard=hard):
            return varied(dynamics, friction, theta).relaxed_step(x, u, gradient, hard).state

        theta = differences(
            dynamics, lambda t: state(theta=t), dynamics.n_theta, np.zeros(dynamics.n_theta)
        )
        friction = differences(dynamics, state, dynamics.nc, dynamics.friction)
        for k, (a, b) in enumerate(((ours.theta, g @ theta), (ours.friction, g @ friction))):
            np.testing.assert_allclose(a, b, atol=1e-6 * max(1.0, np.abs(b).max()))
            largest[k] = max(largest[k], np.abs(b).max())
    assert used >= 5 and (largest > 0.01).all()


def test_friction_of_a_sliding_mass_in_closed_form():
    """v+ = v - mu g h, so dv+/dmu = -g h; a sticking or flying one does not feel it."""
    dynamics = ContactDynamics(point_mass(2, mass=3.0), 0.05, 0.5)
    g = np.array([0, 0, 1.0, 0])
    for x, expected in (([0, 0, 1, 0], -9.81 * 0.05), ([0, 0, 0, 0], 0), ([0, 9, 1, 0], 0)):
        result = vjp(dynamics, np.array(x, dtype=float), np.zeros(2), g, Exact())
        assert result.friction[0] == pytest.approx(expected, abs=1e-14)
        # Weight and inertia scale together: the mass is not felt without a control.
        assert result.theta[0] == pytest.approx(0, abs=1e-14)


# ------------------------------------------------------------------------------- whole rollouts


def rollout_gradient(dynamics, objective, start, U, gradient):
    """Of the cost in U, start, theta and friction, by transposed steps from the last knot on."""
    r = dynamics.rollout(start, U)
    l_x, l_u, *_ = objective.expansion(r.states, r.controls)
    g, dU = l_x[-1], np.zeros_like(U)
    theta, friction = np.zeros(dynamics.n_theta), np.zeros(dynamics.nc)
    for k in reversed(range(len(U))):
        part = dynamics.vjp(
            r.states[k], U[k], r.impulses[k], r.velocities[k], r.modes[k], g, gradient
        )
        dU[k] = l_u[k] + part.control
        theta, friction = theta + part.theta, friction + part.friction
        g = l_x[k] + part.state
    return dU, g, theta, friction


def task(name: str, N: int, seed: int):
    dynamics, rng = SYSTEMS[name], np.random.default_rng(seed)
    costs = (
        StateCost(rng.uniform(0.1, 1, dynamics.ndx), rng.standard_normal(dynamics.nx), knots="all"),
        ControlCost(np.full(dynamics.nu, 0.1)),
    )
    start = CENTERS.get(name, np.zeros(dynamics.nx)) + 0.05 * rng.standard_normal(dynamics.nx)
    problem = Problem(name, dynamics, start, N, costs)
    return dynamics, Objective(problem), problem.start, 3 * rng.standard_normal((N, dynamics.nu))


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("point mass 2-D", 3),
        ("point mass 3-D", 20),
        ("coupled 3, 1", 14),
        ("chain", 0),
        ("chain", 11),
    ],
)
def test_gradient_of_a_rollout_cost(name, seed):
    dynamics, objective, start, U = task(name, 8, seed)
    modes = dynamics.rollout(start, U).modes
    assert len(np.unique(modes)) == 3
    dU, dx, theta, friction = rollout_gradient(dynamics, objective, start, U, Exact())

    def cost(world=dynamics, x0=start, controls=U) -> np.ndarray:
        r = world.rollout(x0, controls)
        assert np.array_equal(r.modes, modes)  # else the differences mean nothing
        return np.array([float(objective.value(r.states, r.controls))])

    numeric = {
        "controls": differences(
            dynamics, lambda u: cost(controls=u.reshape(U.shape)), U.size, U.ravel()
        ),
        "start": differences(dynamics, lambda x: cost(x0=x), dynamics.nx, start),
        "theta": differences(
            dynamics,
            lambda t: cost(varied(dynamics, theta=t)),
            dynamics.n_theta,
            np.zeros(dynamics.n_theta),
        ),
        "friction": differences(
            dynamics,
            lambda mu: cost(varied(dynamics, friction=mu)),
            dynamics.nc,
            dynamics.friction,
        ),
    }
    for ours, key in (
        (dU.ravel(), "controls"),
        (dx, "start"),
        (theta, "theta"),
        (friction, "friction"),
    ):
        scale = np.abs(numeric[key]).max()
        assert scale > 1e-3, key
        np.testing.assert_allclose(ours, numeric[key][0], atol=1e-6 * max(1.0, scale), err_msg=key)


@pytest.mark.parametrize("gradient", [FullCone(0.1), Signorini(0.1), Bundled(threshold=0.0)])
def test_relaxed_gradient_of_a_rollout_is_the_chain_of_its_transitions(gradient):
    dynamics, objective, start, U = task("coupled 3, 1", 8, 14)
    r = dynamics.rollout(start, U)
    l_x, l_u, *_ = objective.expansion(r.states, r.controls)
    dU, dx, *_ = rollout_gradient(dynamics, objective, start, U, gradient)
    V = l_x[-1]
    for k in reversed(range(8)):
        # As one knot on its own, as `rollout_gradient` asks for it: samples depend on the knot.
        f_x, f_u = dynamics.transition(r.states[k], U[k], gradient)
        np.testing.assert_allclose(dU[k], l_u[k] + f_u.T @ V, rtol=1e-6, atol=1e-6)
        V = l_x[k] + f_x.T @ V
    np.testing.assert_allclose(dx, V, rtol=1e-6, atol=1e-6)
    hard = rollout_gradient(dynamics, objective, start, U, Exact())[0]
    assert np.abs(dU - hard).max() > 1e-3
