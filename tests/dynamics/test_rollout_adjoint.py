"""Gradients of whole motions: the same for every spacing of checkpoints, the chain of transitions,
and that of finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import (
    Bundled,
    ContactDynamics,
    Exact,
    FullCone,
    Gradient,
    Parameter,
    Randomized,
    Signorini,
    point_mass,
)
from cito.dynamics.check import finite_difference
from cito.problems.robots import load_robot
from tests.reference.systems import chain, contact_free, random_system

GRADIENTS = [Exact(), Signorini(0.1), FullCone(0.1), Randomized(samples=8), Bundled(threshold=0)]
N = 23


def go2(threads: int = 1) -> ContactDynamics:
    robot = load_robot("go2").with_parameters(
        [Parameter.mass("base"), Parameter.contact("FL"), Parameter.placement("RR_calf")]
    )
    return ContactDynamics(robot, 0.02, 0.6, threads=threads)


SYSTEMS = {
    "point mass": ContactDynamics(point_mass(3), 0.05, 0.8),
    "coupled": ContactDynamics(random_system((3, 1)), 0.05, 0.6),
    "chain": ContactDynamics(chain(), 0.02, [0.4, 0.8]),
    "no contact": ContactDynamics(contact_free(), 0.05),
    "go2": go2(),
}


def start_of(dynamics: ContactDynamics) -> np.ndarray:
    """A state close to the ground, moving."""
    rng = np.random.default_rng(1)
    if dynamics is SYSTEMS["go2"]:
        center = np.concatenate([load_robot("go2").stance, np.zeros(18)])
        center[19:21] = 0.5
        return dynamics.integrate(center, 0.05 * rng.standard_normal(36))
    center = np.zeros(dynamics.nx)
    if dynamics is SYSTEMS["chain"]:
        center[2:4] = 0.5, -0.5  # bent
    return center + 0.05 * rng.standard_normal(dynamics.nx)


def motion(name: str, batch: tuple[int, ...] = (), steps: int = N):
    """Start, controls and cotangents of the states, all modes met."""
    dynamics, rng = SYSTEMS[name], np.random.default_rng(2)
    x0 = np.broadcast_to(start_of(dynamics), (*batch, dynamics.nx))
    x0 = dynamics.integrate(x0, 0.01 * rng.standard_normal((*batch, dynamics.ndx)))
    U = 3 * rng.standard_normal((*batch, steps, dynamics.nu))
    return dynamics, x0, U, rng.standard_normal((*batch, steps + 1, dynamics.ndx))


def same(a, b) -> bool:
    return all(x.shape == y.shape and np.array_equal(x, y) for x, y in zip(a, b))


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda g: g.name)
def test_every_spacing_gives_the_same_bits(name: str, gradient: Gradient) -> None:
    dynamics, x0, U, g = motion(name)
    rollout = dynamics.rollout(x0, U)
    assert np.isfinite(rollout.residual)
    if dynamics.nc and name != "coupled":
        assert len(np.unique(rollout.modes)) >= 2
    expected = dynamics.rollout_vjp(rollout, g, gradient)
    assert np.abs(expected.controls).max() > 1e-3
    for spacing in (1, 2, 5, N - 1, N, 3 * N, None):
        kept = dynamics.checkpoints(x0, U, spacing)
        assert np.array_equal(kept.final, rollout.states[-1])
        assert np.array_equal(kept.states, rollout.states[:-1][:: kept.spacing])
        assert kept.residual == rollout.residual
        assert same(dynamics.rollout_vjp(kept, g, gradient), expected)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda g: g.name)
def test_is_the_chain_of_the_transitions(name: str, gradient: Gradient) -> None:
    dynamics, x0, U, g = motion(name)
    rollout = dynamics.rollout(x0, U)
    f_x, f_u = dynamics.linearize(rollout).with_gradient(gradient)
    ours = dynamics.rollout_vjp(rollout, g, gradient)
    g_x = g[-1]
    for k in reversed(range(N)):
        g_u, scale = f_u[k].T @ g_x, max(1.0, np.abs(g_x).max())
        np.testing.assert_allclose(ours.controls[k], g_u, rtol=0, atol=1e-9 * scale)
        g_x = g[k] + f_x[k].T @ g_x
    np.testing.assert_allclose(ours.start, g_x, rtol=0, atol=1e-9 * np.abs(g_x).max())


@pytest.mark.parametrize("name", SYSTEMS)
def test_agrees_with_finite_differences(name: str) -> None:
    """Of sum_k g_k' (x_k (-) x_k0), whose gradient at x_k = x_k0 is g; modes held by its steps."""
    dynamics, x0, U, g = motion(name, steps=8)
    rollout = dynamics.rollout(x0, U)
    ours = dynamics.rollout_vjp(rollout, g)

    def cost(world: ContactDynamics, start: np.ndarray, controls: np.ndarray) -> list[float]:
        moved = world.rollout(start, controls)
        assert np.array_equal(moved.modes, rollout.modes)  # else the differences mean nothing
        return [float((g * dynamics.difference(rollout.states, moved.states)).sum())]

    def world(friction: np.ndarray, theta: np.ndarray) -> ContactDynamics:
        return ContactDynamics(dynamics.system, dynamics.time_step, friction, theta)

    mu, theta = dynamics.friction, np.zeros(dynamics.n_theta)
    functions = {
        "controls": (U.ravel(), lambda u: cost(dynamics, x0, u.reshape(U.shape))),
        "theta": (theta, lambda t: cost(world(mu, t), x0, U)),
        "friction": (mu, lambda m: cost(world(m, theta), x0, U)),
    }
    numeric = {
        key: finite_difference(lambda rows, f=f: np.array([f(r) for r in rows]), at, step=1e-6)
        for key, (at, f) in functions.items()
        if len(at)
    }
    numeric["start"] = finite_difference(
        lambda rows: np.array([cost(dynamics, r, U) for r in rows]),
        x0, step=1e-6, integrate=dynamics.integrate, tangent=dynamics.ndx,
    )  # fmt: skip
    for key, (value,) in numeric.items():
        scale = max(1.0, np.abs(value).max())
        np.testing.assert_allclose(
            getattr(ours, key).ravel(), value, rtol=0, atol=2e-6 * scale, err_msg=key
        )
        assert np.abs(value).max() > 1e-3, key


@pytest.mark.parametrize("name", ["chain", "go2"])
def test_batch_axes_and_threads(name: str) -> None:
    dynamics, x0, U, g = motion(name, batch=(2, 3))
    threads = ContactDynamics(
        dynamics.system, dynamics.time_step, dynamics.friction, dynamics.theta, threads=2
    )
    gradient = FullCone(0.1)
    together = threads.rollout_vjp(threads.rollout(x0, U), g, gradient)
    assert together.controls.shape == U.shape and together.start.shape == (2, 3, dynamics.ndx)
    assert together.theta.shape == (2, 3, dynamics.n_theta)
    assert same(threads.rollout_vjp(threads.checkpoints(x0, U, 4), g, gradient), together)
    for index in np.ndindex(2, 3):
        one = dynamics.rollout_vjp(dynamics.rollout(x0[index], U[index]), g[index], gradient)
        assert same(one, [part[index] for part in together])
    # One start for all, by broadcasting.
    shared = dynamics.checkpoints(x0[0, 0], U, 4)
    assert np.array_equal(shared.final, dynamics.rollout(x0[0, 0], U).states[..., -1, :])


@pytest.mark.parametrize("spacing", [None, 1, 7, 100])
def test_cotangents_may_come_as_they_are_needed(spacing: int | None) -> None:
    """A running and a final cost, of which only one stretch is held at a time."""
    dynamics, x0, U, _ = motion("chain", batch=(2,))
    rollout = dynamics.rollout(x0, U)
    weights = np.linspace(0.1, 1, N + 1)
    asked: list[int] = []

    def cotangents(first: int, states: np.ndarray) -> np.ndarray:
        knots = range(first, first + states.shape[1])
        asked.extend(reversed(knots))
        return weights[knots, None] * states  # of 1/2 sum_k w_k |x_k|^2; q is Euclidean

    kept = rollout if spacing is None else dynamics.checkpoints(x0, U, spacing)
    ours = dynamics.rollout_vjp(kept, cotangents)
    assert asked == list(range(N, -1, -1))
    assert same(ours, dynamics.rollout_vjp(rollout, weights[:, None] * rollout.states))


def test_without_a_step_the_gradient_is_the_cotangent() -> None:
    dynamics, x0, U, g = motion("chain", steps=0)
    ours = dynamics.rollout_vjp(dynamics.rollout(x0, U), g)
    assert np.array_equal(ours.start, g[0]) and ours.controls.shape == (0, dynamics.nu)


def test_misuse_is_named() -> None:
    dynamics, x0, U, g = motion("chain")
    rollout = dynamics.rollout(x0, U)
    with pytest.raises(ValueError, match=r"`g_states` must have shape \(24, 8\), got \(23, 8\)"):
        dynamics.rollout_vjp(rollout, g[1:])
    with pytest.raises(ValueError, match=r"`g_states` must have shape \(24, 8\), got \(8,\)"):
        dynamics.rollout_vjp(rollout, lambda first, states: g[0])
    with pytest.raises(ValueError, match="`motion.states` must be finite"):
        dynamics.rollout_vjp(rollout._replace(states=np.nan * rollout.states), g)
    with pytest.raises(ValueError, match=r"`motion.impulses` must have shape \(23, 4\)"):
        dynamics.rollout_vjp(rollout._replace(impulses=rollout.impulses[1:]), g)
    with pytest.raises(ValueError, match="`spacing` must be a whole number >= 1"):
        dynamics.checkpoints(x0, U, 0)
    with pytest.raises(ValueError, match="`start` must have shape"):
        dynamics.checkpoints(x0[1:], U)
    with pytest.raises(ValueError, match="`controls` must have shape"):
        dynamics.checkpoints(x0, U[:0])
    far = dynamics.checkpoints(1e200 * np.ones(8), U, 5)
    assert far.residual == np.inf
    with pytest.raises(ValueError, match="`motion.states` must be finite"):
        dynamics.rollout_vjp(far, g)
