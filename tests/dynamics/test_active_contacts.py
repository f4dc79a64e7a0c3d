"""Contacts that a solve leaves out: the hard step is that of all contacts, a relaxed law nearly."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.check import transition_error
from cito.dynamics.contact import relax_batch, solve_batch
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Exact, FullCone, Signorini
from cito.dynamics.tree import Body, ContactPoint, TreeSystem
from cito.problems.robots import load_robot

H, MU = 0.025, 0.7


def contact_problem(dynamics: ContactDynamics, x: np.ndarray, u: np.ndarray):
    """A, b of all contacts by numpy."""
    native = dynamics.system.native
    q, v = x[: native.nq].copy(), x[native.nq :].copy()
    M, c, B, J, phi = _native.system_terms(native, None, q, v)
    b = J @ (v + H * np.linalg.solve(M, B @ u - c))
    b[np.cumsum(dynamics.system.contact_dims) - 1] += phi / H
    return J @ np.linalg.solve(M, J.T), b


def assert_step_is_of_all_contacts(dynamics, states, controls):
    """Returns the modes and the normal free velocities."""
    step = dynamics.step(states, controls)
    A, b = map(np.array, zip(*(contact_problem(dynamics, *z) for z in zip(states, controls))))
    A = (A + A.transpose(0, 2, 1)) / 2
    dims = np.array(dynamics.system.contact_dims, np.int32)
    full = solve_batch(A, b, np.tile(dynamics.friction, (len(b), 1)), dims)
    assert (full.status == 0).all() and (step.residual < 1e-9).all()
    scale = np.abs(full.impulse).max()
    np.testing.assert_allclose(step.impulse, full.impulse, atol=1e-9 * scale)
    np.testing.assert_allclose(step.velocity, full.velocity, atol=1e-9 * np.abs(b).max())
    assert (step.modes == full.modes).all()
    return step.modes, b[:, np.cumsum(dims) - 1]


def quadruped(rng: np.random.Generator, count: int, spread: float):
    """The Go2 with the limits of its joints as contacts, around its stance."""
    robot = load_robot("go2", joint_limits=True)
    dynamics = ContactDynamics(robot, H, MU)
    stance = np.concatenate([robot.stance, np.zeros(18)])
    dx = rng.normal(0, 1, (count, 36)) * np.repeat([0.03, spread, 0.3, 10 * spread], [6, 12, 6, 12])
    states = dynamics.integrate(np.tile(stance, (count, 1)), dx)
    return dynamics, states, rng.uniform(-20, 20, (count, 12))


def test_limits_near_and_far():
    rng = np.random.default_rng(0)
    dynamics, states, controls = quadruped(rng, 100, 0.5)
    assert dynamics.nc > 4 + 20
    modes, _ = assert_step_is_of_all_contacts(dynamics, states, controls)
    limits = modes[:, -24:]
    assert (limits != 0).sum() > 50 and (limits == 0).sum() > 500


def test_an_opening_contact_that_the_others_close():
    """A rod whose near end is hit turns its far end down, however fast that was going up."""
    rod = Body("rod", None, "free", 1.0, inertia=np.diag([1e-3, 2e-3, 2e-3]))
    ends = [ContactPoint("near", "rod", [-0.1, 0, 0]), ContactPoint("far", "rod", [0.4, 0, 0])]
    dynamics = ContactDynamics(TreeSystem([rod], ends), H, MU)
    rng = np.random.default_rng(1)
    states = np.zeros((300, 13))
    states[:, 6] = 1
    states[:, 7:] = rng.normal(0, 1, (300, 6)) * [0.5, 0.5, 1, 1, 4, 1]
    controls = np.zeros((300, dynamics.nu))
    modes, b_N = assert_step_is_of_all_contacts(dynamics, states, controls)
    opening = b_N >= np.maximum(-b_N, 0).max(axis=1, keepdims=True)
    assert (opening & (modes != 0)).sum() > 5
    assert (opening & (modes == 0)).sum() > 50


def test_guards_are_seen_when_they_are_near():
    robot = load_robot("go2", contacts=["trunk", "*_knee"])
    assert robot.system.guards == 12 and load_robot("go2").system.guards == 0
    dynamics = ContactDynamics(robot, H, MU)
    stance = np.concatenate([robot.stance, np.zeros(18)])
    low = stance.copy()
    low[2], low[8:19:3] = 0.06, 3.0  # on its belly, the corners of which are 3 mm up; legs up
    for x, guards in ((stance, 0), (low, 4)):
        motion = dynamics.rollout(x, np.zeros((1, 12)))
        seen = dynamics.linearize(motion).seen_contacts(FullCone(0.3))[0]
        assert seen[:4].all() and seen[4:].sum() >= guards and (guards or not seen[4:].any())


@pytest.mark.parametrize("gradient", [Signorini(0.1), FullCone(0.1)])
def test_far_limits_hardly_show_in_a_relaxed_law(gradient):
    dynamics, states, controls = quadruped(np.random.default_rng(2), 20, 0.05)
    ours = dynamics.relaxed_step(states, controls, gradient)
    A, b = map(np.array, zip(*(contact_problem(dynamics, *z) for z in zip(states, controls))))
    A = (A + A.transpose(0, 2, 1)) / 2
    dims = np.array(dynamics.system.contact_dims, np.int32)
    full = relax_batch(A, b, np.tile(dynamics.friction, (len(b), 1)), gradient, dims)
    left_out = (ours.impulse == 0) & (full.impulse != 0)
    assert left_out[:, :12].sum() == 0 and left_out[:, 12:].mean() > 0.2
    assert np.abs(ours.impulse - full.impulse).max() <= 0.02 * np.abs(full.impulse).max()


def test_exact_gradients_do_not_feel_limits_that_are_open():
    dynamics, states, controls = quadruped(np.random.default_rng(2), 10, 0.05)
    without = ContactDynamics(load_robot("go2"), H, MU)
    assert (dynamics.step(states, controls).modes[:, 4:] == 0).all()
    for a, b in zip(dynamics.transition(states, controls), without.transition(states, controls)):
        np.testing.assert_allclose(a, b, atol=1e-12 * np.abs(b).max())


@pytest.mark.parametrize("gradient", [Signorini(0.1), FullCone(0.1)])
def test_a_relaxed_law_sees_limits_that_are_near(gradient):
    """Three degrees before its stop a joint is pushed back; the exact law feels nothing."""
    robot = load_robot("go2", joint_limits=True)
    dynamics = ContactDynamics(robot, H, MU)
    x = np.concatenate([robot.stance, np.zeros(18)])
    x[2] += 1.0
    joint = 7 + 2
    x[joint] = robot.joint_limits[2, 0] + 0.05
    u = np.zeros(12)
    row, column = 18 + 6 + 2, 6 + 2
    assert dynamics.step(x, u).modes.max() == 0
    seen = dynamics.transition(x, u, gradient).f_x[row, column]
    exact = dynamics.transition(x, u, Exact()).f_x[row, column]
    assert seen < exact - 1


def test_a_limit_is_seen_or_not_whatever_friction_the_joint_has_at_its_speed():
    """Dry friction holds slow joints and lets fast ones go: the derivative follows the same law."""
    inertia = np.diag([1e-2, 1e-2, 1e-3])
    link = {"mass": 1.0, "com": [0, 0, -0.2], "inertia": inertia, "axis": [0, 1, 0]}
    link |= {"lower": -1, "upper": 1}
    bodies = [
        Body("upper", None, "revolute", dry_friction=0.5, **link),
        Body("lower", "upper", "revolute", dry_friction=5, **link),
    ]
    dynamics = ContactDynamics(TreeSystem(bodies, [], joint_limits=True), 0.01)
    rng, gradient, shares = np.random.default_rng(0), FullCone(3.0), []
    for _ in range(60):
        x = np.append(rng.uniform(-0.9, 0.9, 2), rng.normal(0, 2, 2))
        u = rng.normal(0, 5, dynamics.nu)
        relaxed = dynamics.relaxed_step(x, u, gradient).impulse
        seen = dynamics.linearize(dynamics.rollout(x, u[None])).seen_contacts(gradient)[0]
        assert ((relaxed != 0) == seen).all()
        shares.append(seen.mean())
        error, size = transition_error(dynamics, x, u, gradient)
        assert error < 1e-6 and size > 0.1
    assert 0.2 < np.mean(shares) < 0.9


def test_a_law_wider_than_a_linearization_foresees_gets_all_that_it_sees():
    """Its Jacobians are those of the step that is differentiated under this law from the start."""
    robot = load_robot("go2", contacts=["trunk", "*_knee"], joint_limits=True)
    dynamics = ContactDynamics(robot, H, MU)
    rng = np.random.default_rng(3)
    x = np.concatenate([robot.stance, np.zeros(18)])
    controls = rng.normal(0, 5, (6, 12))
    motion = dynamics.rollout(x, controls)
    linearization, seen = dynamics.linearize(motion), []
    for gradient in (FullCone(0.1), FullCone(500.0), Signorini(500.0), FullCone(0.1)):
        seen.append(linearization.seen_contacts(gradient).sum())
        shared = linearization.with_gradient(gradient)
        alone = dynamics.transition(motion.states[:-1], motion.controls, gradient)
        for a, b in zip(shared, alone):
            np.testing.assert_allclose(a, b, atol=1e-9 * np.abs(b).max())
    assert seen[0] == seen[3] < seen[1] == seen[2] == 6 * dynamics.nc
    error, size = transition_error(dynamics, x, controls[0], Signorini(500.0))
    assert error < 1e-6 and size > 0.1
    margins = linearization.margins()
    assert (
        margins is not None and np.isfinite(margins.state).all() and (margins.value > -1e-9).all()
    )
