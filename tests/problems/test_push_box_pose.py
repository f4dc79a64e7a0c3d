"""Box and finger: geometry of their contact, action and reaction, friction, and the tasks."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.problems.push_box_pose import (
    APPROACHING,
    FINGER_RADIUS,
    HALF_HEIGHT,
    HALF_WIDTH,
    box_and_finger,
    push_box,
    tip_box,
)
from cito.solvers.ddp import DDPSettings, solve_ddp

FINGER = slice(10, 12)  # contact rows between finger and box


@pytest.fixture(scope="module")
def system():
    return box_and_finger()


def poses(count: int = 60) -> np.ndarray:
    """Boxes at any angle with the finger anywhere outside them."""
    rng = np.random.default_rng(0)
    q = rng.uniform(-1, 1, (count, 5)) * [0.2, 0.2, 3, 0.5, 0.5]
    return np.array([pose for pose in q if distance_to_box(pose) > 1e-3])


def rotation(pitch: float) -> np.ndarray:
    """About y: turns z towards x."""
    return np.array([[np.cos(pitch), np.sin(pitch)], [-np.sin(pitch), np.cos(pitch)]])


def touching_point(q: np.ndarray) -> np.ndarray:
    """The point of the box nearest to the finger, by clipping in the box's frame."""
    R, half = rotation(q[2]), np.array([HALF_WIDTH, HALF_HEIGHT])
    return q[:2] + R @ np.clip(R.T @ (q[3:] - q[:2]), -half, half)


def distance_to_box(q: np.ndarray) -> float:
    return float(np.linalg.norm(q[3:] - touching_point(q)))


def test_the_gap_is_the_distance_between_finger_and_rectangle(system):
    sides = set()
    for q in poses():
        phi = _native.system_terms(system.native, None, q, np.zeros(5))[4]
        np.testing.assert_allclose(phi[5], distance_to_box(q) - FINGER_RADIUS, atol=1e-12)
        local = np.abs(rotation(q[2]).T @ (q[3:] - q[:2])) > [HALF_WIDTH, HALF_HEIGHT]
        sides.add(tuple(local))
    assert sides == {(True, False), (False, True), (True, True)}, "faces and corners were met"


def test_a_finger_inside_the_box_is_pushed_out_of_the_nearest_face(system):
    q = np.array([0, 0, 0, 0.14, 0.05])
    *_, J, phi = _native.system_terms(system.native, None, q, np.zeros(5))
    np.testing.assert_allclose(phi[5], -0.01 - FINGER_RADIUS, atol=1e-8)
    np.testing.assert_allclose(J[FINGER, 3:], [[0, -1], [1, 0]], atol=1e-8)


def test_what_the_finger_feels_the_box_feels_the_other_way(system):
    """Forces are opposite; the box's torque is that of its force at the touching point."""
    for q in poses():
        J = _native.system_terms(system.native, None, q, np.zeros(5))[3][FINGER]
        for impulse in np.eye(2):
            on_box, torque, on_finger = np.split(J.T @ impulse, [2, 3])
            np.testing.assert_allclose(on_finger, -on_box, atol=1e-9)
            np.testing.assert_allclose(np.linalg.norm(on_finger), 1, atol=1e-9)
            arm = touching_point(q) - q[:2]
            np.testing.assert_allclose(torque, arm[1] * on_box[0] - arm[0] * on_box[1], atol=1e-9)
        normal = J.T @ [0, 1]
        outwards = (q[3:] - touching_point(q)) / distance_to_box(q)
        np.testing.assert_allclose(normal[3:], outwards, atol=1e-8)


def test_corners_touch_when_the_box_lies_on_either_side(system):
    flat = np.array([0, HALF_HEIGHT, 0, -1, 1])
    tipped = np.array([0, HALF_WIDTH, np.pi / 2, -1, 1])
    for q, down in ((flat, [0, 1]), (tipped, [1, 3])):
        phi = _native.system_terms(system.native, None, q, np.zeros(5))[4][:4]
        np.testing.assert_allclose(phi[down], 0, atol=1e-15)
        assert np.sum(phi > 0.1) == 2


def test_a_sliding_box_is_braked_by_coulomb_friction(system):
    mu, h, speed = 0.3, 0.005, 1.0
    dynamics = ContactDynamics(system, time_step=h, friction=mu)
    start = np.array([*APPROACHING, speed, 0, 0, 0, 0])
    rollout = dynamics.rollout(start, np.zeros((100, 2)))
    moving = speed - mu * 9.81 * h * np.arange(101)
    np.testing.assert_allclose(rollout.states[:, 5], moving.clip(min=0), atol=1e-9)
    np.testing.assert_allclose(rollout.states[:, 2], 0, atol=1e-9)


def test_nothing_happens_without_control():
    problem = push_box()
    rollout = problem.dynamics.rollout(problem.start, problem.initial_controls)
    np.testing.assert_allclose(rollout.states[-1], problem.start, atol=1e-12)


@pytest.mark.parametrize(
    ("task", "iterations", "cost"), [(push_box, 100, 1.35), (tip_box, 100, 9.5)]
)
def test_ddp_moves_the_box_to_its_pose_from_zero_control(task, iterations, cost):
    problem = task()
    solution = solve_ddp(problem, settings=DDPSettings(max_iterations=iterations))
    assert solution.cost < cost
    np.testing.assert_allclose(
        solution.states[-1, :3], np.array(problem.parameters["target"])[:3], atol=0.03
    )
    assert (solution.modes[:, 5] > 0).any(), "the finger touches the box"


@pytest.mark.parametrize("wrong", [{"mass": -1.0}, {"gravity": -1.0}, {"target": np.zeros(4)}])
def test_misuse(wrong):
    name = next(iter(wrong))
    with pytest.raises(ValueError) as error:
        push_box(**wrong)
    assert f"`{name}` must" in str(error.value)
