"""Feet and knees against the poses of the bodies, and their derivatives."""

import numpy as np
import pytest

from cito.dynamics.joints import Body
from cito.dynamics.robot_stance import body_poses
from cito.problems import robots
from cito.problems.locomotion.legs import Legs, cross

GO2 = robots.load_robot("go2")


def test_feet_are_where_the_bodies_are() -> None:
    legs, q = Legs(GO2), np.random.default_rng(0).uniform(-1, 1, 12)
    poses = body_poses(GO2.system.bodies, np.concatenate([GO2.stance[:7] * 0, q]) + _upright())
    for i, contact in enumerate(GO2.contacts):
        pose = poses[contact.body]
        expected = pose.position + pose.rotation @ contact.position
        assert np.allclose(legs(q).position[i], expected, atol=1e-12)
        assert np.allclose(legs(q).knee[i], pose.position, atol=1e-12)


def test_columns_are_derivatives() -> None:
    legs, random = Legs(GO2), np.random.default_rng(1)
    q, g, eps = random.uniform(-1, 1, (3, 12)), random.standard_normal((3, 4, 3)), 1e-6
    gradient = legs.transposed(legs(q).columns, g)
    knees = legs.transposed(legs(q).knee_columns, g)
    for j in range(12):
        step = eps * np.eye(12)[j]
        slope = (legs(q + step).position - legs(q - step).position) / (2 * eps)
        assert np.allclose((g * slope).sum((-1, -2)), gradient[:, j], atol=1e-8)
        slope = (legs(q + step).knee - legs(q - step).knee) / (2 * eps)
        assert np.allclose((g * slope).sum((-1, -2)), knees[:, j], atol=1e-8)


def test_knee_heights_are_those_of_the_knees() -> None:
    legs, random = Legs(GO2), np.random.default_rng(2)
    q, up = random.uniform(-1, 1, (5, 12)), random.standard_normal((5, 3))
    expected = (legs(q).knee @ up[..., None])[..., 0]
    assert np.allclose(legs.knee_heights(q, up), expected, atol=1e-14)


def test_knees_are_above_where_it_is_said() -> None:
    legs, random = Legs(GO2), np.random.default_rng(4)
    q, up = random.uniform(-3, 3, (2000, 12)), random.standard_normal((2000, 3)) * 0.3 + [0, 0, 1]
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    height = random.uniform(0.15, 0.5, 2000)
    lowest = height + legs.knee_heights(q, up).min(axis=1)
    above = legs.knees_above(height, up)
    assert (lowest[above] > 0).all() and 0.2 < above.mean() < 0.9


def test_hip_rolls_are_found() -> None:
    assert Legs(GO2).roll.tolist() == [True, False, False] * 4


def test_a_robot_without_a_free_base_is_refused() -> None:
    with pytest.raises(ValueError, match="free base"):
        Legs(robots.load_robot("hopper"))


def test_cross_product() -> None:
    a, b = np.random.default_rng(3).standard_normal((2, 4, 3))
    assert np.array_equal(cross(a, b), np.cross(a, b))


def _upright() -> np.ndarray:
    q = np.zeros(19)
    q[6] = 1.0
    assert isinstance(GO2.system.bodies[0], Body)
    return q
