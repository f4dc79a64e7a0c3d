"""Costs and observations: their gradients by central differences in the tangent space."""

import numpy as np
import pytest

from cito.problems.locomotion import LocomotionEnvironment, locomotion_task
from cito.problems.locomotion.features import features

EPS = 1e-6


@pytest.mark.parametrize("name", ["trot", "gait-free"])
def test_gradient_of_the_cost(name: str) -> None:
    e, random = LocomotionEnvironment(locomotion_task(name), 5, seed=1), np.random.default_rng(0)
    integrate = e.steps.dynamics.integrate
    e.state[:2, 2] -= 0.1  # knees come near the ground
    a, before = random.uniform(-1, 1, (2, 5, 12))
    own = (a, before, e.command, e.phase)
    gradient = e.cost.with_gradient(e.state, *own)[1]

    def slope(dx: np.ndarray, da: np.ndarray, db: np.ndarray) -> np.ndarray:
        def total(s: float) -> np.ndarray:
            x = integrate(e.state, np.ascontiguousarray(np.broadcast_to(s * dx, (5, 36))))
            return e.cost(x, a + s * da, before + s * db, e.command, e.phase).total

        return (total(EPS) - total(-EPS)) / (2 * EPS)

    zero = np.zeros(12)
    for j in range(36):
        assert np.allclose(slope(np.eye(36)[j], zero, zero), gradient.state[:, j], atol=1e-6)
    da, db = random.standard_normal((2, 5, 12))
    expected = (gradient.action * da + gradient.before * db).sum(-1)
    assert np.allclose(slope(np.zeros(36), da, db), expected, atol=1e-7)


def test_standing_costs_nothing_but_what_the_clock_asks() -> None:
    task = locomotion_task("gait-free")
    e = LocomotionEnvironment(task, 1)
    x, zero = np.zeros((1, 37)), np.zeros((1, 12))
    x[:, 2], x[:, 6], x[:, 7:19] = task.height, 1.0, task.nominal
    cost = e.cost(x, zero, zero, np.zeros((1, 3)), np.zeros(1))
    assert cost.total == pytest.approx(0, abs=1e-12)
    moving = e.cost(x, zero, zero, np.array([[0.5, 0, 0.1]]), np.zeros(1))
    assert moving.total == pytest.approx(
        task.weights["velocity_xy"] * 0.25 + task.weights["yaw_rate"] * 0.01
    )


def test_feet_follow_the_clock() -> None:
    """At mid-swing of FL and RR the cost is least where these are lifted by the swing height."""
    task = locomotion_task("trot")
    e = LocomotionEnvironment(task, 1)
    x, zero = np.zeros((1, 37)), np.zeros((1, 12))
    x[:, 6], x[:, 7:19] = 1.0, task.nominal
    x[:, 2] = -e.legs(task.nominal).position[0, 2] + e.legs.radius[0]
    cost = e.cost(x, zero, zero, np.zeros((1, 3)), np.array([0.25]))
    assert task.gait is not None
    expected = 2 * task.weights["foot_z"] * task.gait.swing_height**2
    assert cost.terms["foot_z"] == pytest.approx(expected)
    x[0, [8, 17]] += 0.25  # thighs and calves of FL and RR fold
    x[0, [9, 18]] -= 0.5
    lifted = e.cost(x, zero, zero, np.zeros((1, 3)), np.array([0.25]))
    assert lifted.terms["foot_z"] < 0.5 * expected


def test_gradient_of_the_observation() -> None:
    e, random = LocomotionEnvironment(locomotion_task("trot"), 4), np.random.default_rng(2)
    g, a = random.standard_normal((4, e.observer.layout.size)), random.uniform(-1, 1, (4, 12))
    state, action = e.observer.transposed(features(e.state), g)

    def seen(x: np.ndarray) -> np.ndarray:
        return e.observer(features(x), a, e.command, e.phase)

    for j in range(36):
        dx = np.tile(EPS * np.eye(36)[j], (4, 1))
        integrate = e.steps.dynamics.integrate
        slope = (seen(integrate(e.state, dx)) - seen(integrate(e.state, -dx))) / (2 * EPS)
        assert np.allclose((g * slope).sum(-1), state[:, j], atol=1e-8)
    assert np.array_equal(action, g[:, e.observer.layout.action])


def test_up_is_the_third_row_of_the_rotation() -> None:
    from cito.dynamics.conversions import rotation_matrix

    e = LocomotionEnvironment(locomotion_task("trot"), 4)
    for x, up in zip(e.state, features(e.state).up):
        assert np.allclose(rotation_matrix(x[3:7])[2], up, atol=1e-12)
