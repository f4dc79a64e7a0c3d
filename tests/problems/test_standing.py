"""How robots stand: balance, torques that hold, crouches, a guess that does not fall."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import ContactDynamics, _native
from cito.dynamics.tree import Body, TreeSystem
from cito.problems.robots import load_robot, robots
from cito.problems.standing import (
    at_rest,
    balanced,
    base_pose,
    base_velocity,
    holding_controls,
    holding_torques,
    lowered,
)

H = 0.02
DYNAMICS = {name: ContactDynamics(load_robot(name), H) for name in robots()}
EVERY = pytest.mark.parametrize("dynamics", DYNAMICS.values(), ids=list(DYNAMICS))


def distances(dynamics: ContactDynamics, q: np.ndarray) -> np.ndarray:
    native = dynamics.manifold
    return _native.system_terms(native, None, q, np.zeros(native.nv))[-1]


@EVERY
def test_a_balanced_robot_is_held_by_its_torques(dynamics: ContactDynamics) -> None:
    q = balanced(dynamics, dynamics.system.stance)
    np.testing.assert_allclose(distances(dynamics, q), 0, atol=1e-9)
    x = at_rest(dynamics.system, q)
    u = holding_torques(dynamics, q)
    step = dynamics.step(x, u)
    assert (step.modes == 2).all()
    np.testing.assert_allclose(dynamics.difference(x, step.state), 0, atol=1e-6)
    # the ground carries the weight, shared by the feet
    normal = step.impulse.reshape(-1, 3)[:, 2] / H
    assert normal.sum() == pytest.approx(9.81 * dynamics.system.system.mass, rel=1e-4)
    assert normal.min() > 0.8 * normal.mean()


@EVERY
def test_the_base_stays_where_drives_can_keep_the_balance(dynamics: ContactDynamics) -> None:
    stance = dynamics.system.stance
    before, after = base_pose(dynamics, stance), base_pose(dynamics, balanced(dynamics, stance))
    assert np.abs(after.position - before.position).max() < 0.01
    assert np.abs(after.rotation - before.rotation).max() < 0.01


def test_what_nothing_balances_is_refused() -> None:
    ball = TreeSystem([Body("ball", None, "free", 1.0, inertia=np.eye(3))])
    dynamics = ContactDynamics(ball, H)
    with pytest.raises(ValueError, match="`q` must be near a configuration"):
        balanced(dynamics, [0, 0, 1, 0, 0, 0, 1])


def test_in_the_air_torques_come_as_close_as_they_can() -> None:
    dynamics = DYNAMICS["go2"]
    q = dynamics.system.stance.copy()
    q[2] += 1
    u = holding_torques(dynamics, q)
    assert np.isfinite(u).all()
    assert np.abs(u).max() < np.abs(holding_torques(dynamics, dynamics.system.stance)).max()


@EVERY
def test_a_crouch_keeps_the_feet_and_the_attitude(dynamics: ContactDynamics) -> None:
    q = balanced(dynamics, dynamics.system.stance)
    drop = 0.4 * base_pose(dynamics, q).position[2]
    low = lowered(dynamics, q, drop)
    before, after = base_pose(dynamics, q), base_pose(dynamics, low)
    np.testing.assert_allclose(after.rotation, before.rotation, atol=1e-9)
    np.testing.assert_allclose(after.position[:2], before.position[:2], atol=1e-9)
    assert before.position[2] - after.position[2] == pytest.approx(drop, rel=0.02)
    np.testing.assert_allclose(distances(dynamics, low), 0, atol=2e-3)
    assert distances(dynamics, low).min() == pytest.approx(0, abs=1e-9)


@EVERY
def test_the_base_moves_at_the_velocity_asked_for(dynamics: ContactDynamics) -> None:
    """Along the directions that its undriven coordinates have."""
    q, velocity = dynamics.system.stance, np.array([0.3, 0.0, -0.2])
    v = base_velocity(dynamics, q, velocity)
    x = np.concatenate([q, np.zeros(len(v))])
    later = dynamics.integrate(x, np.concatenate([1e-3 * v, np.zeros(len(v))]))[: len(q)]
    moved = base_pose(dynamics, later).position - base_pose(dynamics, q).position
    np.testing.assert_allclose(moved, 1e-3 * velocity, atol=1e-9)
    turned = base_pose(dynamics, later).rotation - base_pose(dynamics, q).rotation
    np.testing.assert_allclose(turned, 0, atol=1e-9)


@EVERY
def test_the_guess_holds_the_robot_up_for_a_second(dynamics: ContactDynamics) -> None:
    q = balanced(dynamics, dynamics.system.stance)
    x = at_rest(dynamics.system, q)
    x[len(q) :] = base_velocity(dynamics, q, np.array([0.1, 0.0, 0.0]))
    controls = holding_controls(dynamics, x, 20)
    assert controls.shape == (20, dynamics.nu)
    final = dynamics.rollout(x, controls).states[-1, : len(q)]
    height = base_pose(dynamics, q).position[2]
    assert base_pose(dynamics, final).position[2] > 0.8 * height
