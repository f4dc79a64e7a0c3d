"""Margins of the contact modes: what they measure, and that they move as they say."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import ContactDynamics, Rollout, point_mass
from cito.dynamics.check import finite_difference
from tests.reference import step as twin
from tests.reference.systems import chain, contact_free, contact_systems

SYSTEMS = {**contact_systems(), "chain": ContactDynamics(chain(), 0.02, friction=[0.4, 0.8])}
CENTERS = {
    "two bodies": np.array([0, 0, 0, 1.0, 0, 0, 0, 0]),
    "chain": np.array([0, 0, 0.5, -0.5, 0, 0, 0, 0]),
}


def margins_of(dynamics: ContactDynamics, x, u):
    """Margins of single steps (K, nx), (K, nu)."""
    rollout = as_rollout(dynamics, x, u)
    return dynamics.linearize(rollout).margins(), rollout.modes


def as_rollout(dynamics: ContactDynamics, x, u) -> Rollout:
    """Unconnected steps in the shape of one rollout."""
    step = dynamics.step(x, u)
    states = np.concatenate([x, x[:1]])
    return Rollout(states, u, step.impulse, step.velocity, step.modes, np.max(step.residual))


def impulse_margins(dynamics, x, u):
    """Margins with impulse slots divided by A_NN: it turns with q, but margins hold it."""
    margins, modes = margins_of(dynamics, x, u)
    knots = dynamics.linearize(as_rollout(dynamics, x, u))
    a = np.repeat(knots._native.normal_compliance(), 2, axis=1)
    held = np.repeat(modes, 2, axis=1)
    held[:, 1::2] *= held[:, 1::2] == 2  # the second slot of a sliding contact is its slip
    return margins.value / np.where(held > 0, a, 1.0), np.where(held > 0, a, 1.0)


def samples(name: str, count: int):
    dynamics, rng = SYSTEMS[name], np.random.default_rng(0)
    x = rng.standard_normal((count, dynamics.nx))
    x[::2, : dynamics.ndx // 2] *= 2 * dynamics.time_step
    return x + CENTERS.get(name, 0.0), 5 * rng.standard_normal((count, dynamics.nu))


def test_margins_of_a_point_mass_by_hand():
    dynamics = ContactDynamics(point_mass(2, mass=2.0), 0.05, 0.5)
    weight = 9.81 * 0.05  # of the mass in one step, as a velocity
    states = np.array([[0, 1.0, 0.3, 0.2], [0, 0, 1.0, 0], [0, 0, 0, 0]])
    controls = np.array([[0, 0], [0, 0], [4.0, 0]])
    margins, modes = margins_of(dynamics, states, controls)
    assert modes[:, 0].tolist() == [0, 1, 2]
    np.testing.assert_allclose(margins.value[0], [0.2 - weight + 1.0 / 0.05, np.inf])
    np.testing.assert_allclose(margins.value[1], [weight, 1.0 - 0.5 * weight])
    np.testing.assert_allclose(margins.value[2], [0.5 * weight + 0.1, 0.5 * weight - 0.1])


@pytest.mark.parametrize("name", SYSTEMS)
def test_margins_hold_in_every_mode(name):
    x, u = samples(name, 60)
    margins, _ = margins_of(SYSTEMS[name], x, u)
    assert margins.value.shape == (60, 2 * SYSTEMS[name].nc)
    assert (margins.value >= -1e-12).all()
    unused = np.isinf(margins.value)
    assert (margins.state[unused] == 0).all() and (margins.control[unused] == 0).all()


@pytest.mark.parametrize("name", SYSTEMS)
def test_margins_change_as_they_say(name):
    dynamics, used = SYSTEMS[name], set()
    nx = dynamics.nx
    for x, u in zip(*samples(name, 25)):
        margins, modes = margins_of(dynamics, x[None], u[None])
        finite = np.isfinite(margins.value[0])
        z = np.concatenate([x, u])
        if margins.value[0][finite].min(initial=np.inf) < 1e-2:
            continue

        scale = impulse_margins(dynamics, x[None], u[None])[1][0, finite]

        def value(points, finite=finite, scale=scale):
            values, _ = impulse_margins(dynamics, points[:, :nx], points[:, nx:])
            return scale * values[:, finite]

        numeric = finite_difference(value, z)
        analytic = np.concatenate([margins.state[0], margins.control[0]], axis=-1)[finite]
        scale = max(1.0, np.abs(numeric).max(initial=0))
        np.testing.assert_allclose(analytic, numeric, atol=1e-6 * scale)
        used.update(modes[0].tolist())
    assert len(used) == (2 if name == "frictionless" else 3)


def test_margins_are_velocities():
    """Scaled to twice the mass, a contact's impulses double and its margins stay."""
    x, u = samples("point mass 3-D", 30)
    light, heavy = (ContactDynamics(point_mass(3, mass=m), 0.05) for m in (1.0, 2.0))
    a, modes = margins_of(light, x, u)
    b, same = margins_of(heavy, x, 2 * u)
    assert np.array_equal(modes, same)
    np.testing.assert_allclose(a.value, b.value, rtol=1e-9, atol=1e-12)


def test_two_contacts_use_their_own_slots():
    dynamics = SYSTEMS["two bodies"]
    x, u = samples("two bodies", 40)
    margins, modes = margins_of(dynamics, x, u)
    A = twin.contact_problem(dynamics.system, 0.05, x[0], u[0])[0]
    r = dynamics.step(x, u)
    for i, N in ((0, 1), (1, 3)):
        apart, slides = modes[:, i] == 0, modes[:, i] == 1
        np.testing.assert_allclose(margins.value[apart, 2 * i], r.velocity[apart, N], atol=1e-9)
        np.testing.assert_allclose(
            margins.value[slides, 2 * i], A[N, N] * r.impulse[slides, N], atol=1e-9
        )
        assert apart.any() and slides.any()


def test_none_without_contact():
    dynamics = ContactDynamics(contact_free(), 0.05)
    assert dynamics.linearize(dynamics.rollout(np.zeros(6), np.zeros((3, 2)))).margins() is None
