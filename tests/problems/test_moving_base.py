"""Commands of a base: poses on the way, their velocities, postures that fit, seen from any time."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import cito
from cito.plan import joint_hold
from cito.problems.base_motion import Drive, Given, Reach, base_poses, carried, commanded
from cito.problems.moving_base import LEASH, TURN_LEASH
from cito.problems.posture import tilted_posture
from cito.problems.robot_costs import BasePose, BaseVelocity
from cito.problems.robot_size import RobotSize
from cito.problems.standing import base_pose

GO2 = cito.load_robot("go2")
COMMANDS = {
    "reach": Reach((0.6, -0.3, 0.02), 0.9, 0.4, 0.5, 1.0),
    "drive": Drive((0.4, 0.1, 0.8)),
    "given": Given(lambda t: (0.1 * np.sin(t), 0.2 * t, 0.0), lambda t: 0.3 * t * t, 0.1),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_velocities_are_those_of_the_poses(name):
    times, dt = np.array([0.2, 0.7, 1.1]), 1e-3
    now = base_poses(GO2, COMMANDS[name], times)
    before, after = (base_poses(GO2, COMMANDS[name], times + d) for d in (-dt, dt))
    np.testing.assert_allclose(now.linear, (after.position - before.position) / (2 * dt), atol=2e-3)
    turn = Rotation.from_quat(after.orientation) * Rotation.from_quat(before.orientation).inv()
    np.testing.assert_allclose(now.angular, turn.as_rotvec() / (2 * dt), atol=2e-3)


def test_a_pose_is_reached_within_the_speeds_and_then_held():
    reach = COMMANDS["reach"]
    poses = base_poses(GO2, reach, np.linspace(0, 1.5 * reach.end, 400))
    assert 0.4 < np.linalg.norm(poses.linear[:, :2], axis=1).max() < 0.501
    assert np.abs(poses.angular[:, 2]).max() < 1.001
    last = Rotation.from_quat(poses.orientation[-1]).apply([1, 0, 0])
    assert last[2] == pytest.approx(np.sin(0.4)) and np.arctan2(last[1], last[0]) == pytest.approx(
        0.9
    )
    np.testing.assert_allclose(poses.position[-1, :2], [0.6, -0.3], atol=1e-12)
    assert not poses.linear[-1].any() and not poses.angular[-1].any()


def test_driving_straight_and_on_a_circle():
    straight = base_poses(GO2, Drive((0.4, 0.0, 0.0)), np.array([0.0, 1.5]))
    np.testing.assert_allclose(straight.position[1, :2], [0.5, 0.0])  # a quarter second is lost
    speed, rate = 0.4, 0.8
    circle = base_poses(GO2, Drive((speed, 0.0, rate)), np.linspace(1, 9, 50))
    centre = np.array([0.0, speed / rate])
    radius = np.linalg.norm(circle.position[:, :2] - centre, axis=1)
    np.testing.assert_allclose(radius, speed / rate, rtol=1e-9)


def test_nobodys_hips_come_too_low_and_the_feet_stay():
    poses = base_poses(GO2, Reach((0, 0, 0), 0, 0.4, 0.5, 1.0), np.array([9.0]))
    height = poses.height[0]
    angles = tilted_posture(GO2, poses.orientation[0], np.array([0, 0, height]))
    dynamics = cito.ContactDynamics(GO2, 0.02)
    q = GO2.stance.copy()
    q[:3], q[3:7], q[7:] = poses.position[0], poses.orientation[0], angles
    hips = base_pose(dynamics, q).position[2] - 0.1934 * np.sin(0.4)
    assert hips > 0.74 * GO2.stance[2]
    *_, phi = cito.dynamics._native.system_terms(GO2.native, None, q, np.zeros(18))
    assert np.abs(phi).max() < 0.02


def test_costs_are_seen_from_a_time_and_stay_the_same_object_at_the_end():
    problem = cito.make("base-pose", target=(0.3, 0, 0))
    early, late = problem.seen_from(0.2), problem.seen_from(100.0)
    assert problem.seen_from(0.0).costs is problem.costs
    assert late.costs is problem.seen_from(200.0).costs is not early.costs
    pose = next(c for c in early.costs if isinstance(c, BasePose))
    velocity = next(c for c in early.costs if isinstance(c, BaseVelocity))
    assert 0 < pose.position[0, 0] < pose.position[-1, 0] < 0.3
    assert (velocity.linear[1:, 0] > 0.1).any()
    final = next(c for c in late.costs if isinstance(c, BasePose))
    np.testing.assert_allclose(final.position[:, 0], 0.3)
    again = pickle.loads(pickle.dumps(problem.costs_at))
    np.testing.assert_array_equal(
        next(c for c in again(0.2) if isinstance(c, BasePose)).position, pose.position
    )


def test_a_motion_carries_poses_and_their_velocities():
    poses = base_poses(GO2, COMMANDS["drive"], np.array([0.4, 0.9]))
    moved = carried(poses, np.array([0.3, -0.2, 0.7]))
    turn = Rotation.from_euler("z", 0.7)
    np.testing.assert_allclose(moved.position, turn.apply(poses.position) + [0.3, -0.2, 0])
    apart = turn * Rotation.from_quat(poses.orientation)
    assert (apart.inv() * Rotation.from_quat(moved.orientation)).magnitude().max() < 1e-9
    np.testing.assert_allclose(moved.linear, turn.apply(poses.linear), atol=1e-12)
    np.testing.assert_allclose(moved.angular, turn.apply(poses.angular), atol=1e-12)


@pytest.mark.parametrize("velocity", [(0.4, 0.0, 0.0), (0.3, -0.1, 0.9), (0.0, 0.0, -1.0)])
def test_the_reference_of_a_velocity_does_not_run_away_from_a_robot_that_is_held(velocity):
    problem = cito.make("walk", velocity=velocity)
    costs, x, relief = problem.costs_at, problem.start.copy(), None
    assert costs.relieved(0.1, x, None) is None  # near enough: nothing to relieve
    x[:2] = -0.3, 0.1  # pushed back
    for t in np.arange(0.0, 4.0, 0.025):
        relief = costs.relieved(t, x, relief)
        pose, _, twist, _ = costs(t, relief)[:4]
        ahead = Rotation.from_quat(pose.orientation[0]) * Rotation.from_quat(x[3:7]).inv()
        assert np.linalg.norm(pose.position[0, :2] - x[:2]) <= LEASH + 1e-9
        assert abs(ahead.as_rotvec()[2]) <= TURN_LEASH + 1e-9
        speed = np.linalg.norm(twist.linear[0, :2])  # it does not run
        assert speed <= np.hypot(*velocity[:2]) + 1e-6
    held = costs(3.975, relief)[0].position[0]  # let go: from there, with the velocity
    later = costs(3.975, relief)[0].position[20]
    expected = np.hypot(*velocity[:2]) * 0.5 * np.sinc(velocity[2] * 0.5 / 2 / np.pi)
    assert np.linalg.norm(later - held) == pytest.approx(expected, abs=1e-6)


def test_a_controller_keeps_the_leash_and_forgets_it():
    problem = cito.make("walk", velocity=(0.5, 0.0, 0.0), horizon=10)
    hold = joint_hold(problem, problem.dynamics.system)
    controller = cito.MPC(problem, iterations=1, first_iterations=2, hold=hold)
    costs = [controller.update(t, problem.start).cost for t in np.arange(0.0, 3.0, 0.1)]
    assert max(costs[20:]) < 1.1 * max(costs[8:15])  # without one it grows with the square of time
    controller.reset()
    assert controller.update(0.0, problem.start).cost == costs[0]
    target = cito.make("base-pose", target=(3.0, 0.0, 0.0)).costs_at
    assert target.relieved(5.0, problem.start, None) is None  # a place is to be reached


def test_targets_may_be_functions_of_time():
    problem = cito.make("base-pose", yaw=lambda t: 0.2 * t)
    pose = next(c for c in problem.seen_from(1.0).costs if isinstance(c, BasePose))
    yaw = Rotation.from_quat(pose.orientation).as_euler("zyx")[:, 0]
    np.testing.assert_allclose(yaw, 0.2 * (1 + 0.025 * np.arange(21)), atol=1e-9)


def test_weights_follow_the_size_of_the_robot():
    assert RobotSize.of(GO2) == (1.0, 1.0, 1.0)
    double = RobotSize(2.0, 8.0)
    assert double.speed**2 == pytest.approx(2.0) and double.torque == 16.0


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"target": (1, 0, 0), "velocity": (1, 0, 0)}, "`velocity` must be 0,0,0 where a target"),
        ({"velocity": (1, 0)}, r"`velocity` must have shape \(3,\)"),
        ({"speed": 0}, "`speed` must be > 0"),
        ({"yaw": lambda t: (t, t)}, r"`yaw\(t\)` must have shape \(\)"),
        ({"contacts": "nose"}, "`contacts` names 'nose'"),
    ],
)
def test_impossible_commands_are_refused(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        cito.make("base-pose", **parameters)


def test_a_command_without_a_target_stays():
    stay = commanded(None, 0.0, 0.0, (0, 0, 0), 0.5, 1.0)
    assert stay.end == 0.0 and not stay.at(np.linspace(0, 3, 5)).offset.any()
