"""A humanoid that gives way: its knees bend, its drives have inertia, it stands by its gains."""

from __future__ import annotations

import numpy as np
import pytest

import cito
from cito.benchmarks import recover as bench
from cito.hold import hold_of, standing_hold
from cito.plan import joint_hold
from cito.problems.base_motion import GiveWay, base_poses
from cito.problems.legged import robot_of
from cito.problems.posture import with_bent_knees
from cito.problems.recover import humanoid

GO2 = cito.load_robot("go2")
try:
    humanoid("g1")
    INSTALLED = True
except ValueError:
    INSTALLED = False
g1 = pytest.mark.skipif(not INSTALLED, reason="example-robot-data is not installed")


def test_giving_way_ends_half_as_far_as_going_on():
    poses = base_poses(GO2, GiveWay((0.3, -0.1, 0.0), 1.6), np.array([0.0, 0.8, 1.6, 3.0]))
    np.testing.assert_allclose(poses.position[2:, :2], [[0.24, -0.08]] * 2, atol=1e-12)
    np.testing.assert_allclose(poses.linear[1], [0.15, -0.05, 0], atol=1e-6)
    assert not poses.linear[3].any()


@g1
def test_a_pushed_humanoid_bends_its_knees_and_moves_as_a_whole():
    problem = cito.make("recover", push=(0.0, 0.3, 0.0))
    robot = robot_of(problem)
    knees = [i for i, name in enumerate(robot.joints) if "knee" in name]
    assert (robot.stance[7:][knees] > 0.2).all()
    *_, J, phi = cito.dynamics._native.system_terms(
        robot.native, None, robot.stance, np.zeros(robot.native.nv)
    )
    np.testing.assert_allclose(phi, 0, atol=1e-4)  # flat on its feet
    contacts = J @ problem.start[robot.native.nq :]
    np.testing.assert_allclose(contacts.reshape(-1, 3)[:, 1], 0.3, atol=1e-6)
    assert all(np.all(body.armature > 0) for body in robot.system.bodies[1:])


@g1
def test_the_gains_of_standing_keep_a_humanoid_up():
    problem = cito.make("recover", push=(0.0, 0.05, 0.0))
    robot, N = robot_of(problem), 60
    hold = hold_of(problem, robot)
    motion = problem.dynamics.rollout(
        problem.start,
        np.tile(hold.control, (N, 1)),
        states=np.tile(hold.state, (N + 1, 1)),
        feedback=np.tile(hold.gains, (N, 1, 1)),
    )
    assert np.abs(motion.states[-1, :3] - problem.start[:3]).max() < 0.02
    assert np.abs(motion.states[-1, robot.native.nq :]).max() < 0.05


def test_a_robot_on_four_feet_holds_on_by_its_joints():
    problem = cito.make("base-pose")
    robot = robot_of(problem)
    np.testing.assert_array_equal(hold_of(problem, robot).gains, joint_hold(problem, robot).gains)
    standing = standing_hold(problem, robot)
    assert not np.allclose(standing.gains, joint_hold(problem, robot).gains)
    assert with_bent_knees(GO2) is GO2


@g1
def test_the_table_has_a_row_for_each_push():
    [row] = bench.run(quick=True)
    assert row["gradient"] == "full-cone" and row["direction"] == 0
    assert np.isfinite(row["objective"])
    [(headers, [cells])] = bench.tables([row])
    assert len(headers) == len(cells) == 6 <= len(bench.WIDTHS)
    assert bench.summarize([row])["full-cone"]["directions"] == 1


def test_steps_are_counted_where_a_foot_comes_down_elsewhere():
    dynamics = cito.ContactDynamics(GO2, 0.02)
    x = np.append(GO2.stance, np.zeros(18))
    steps = bench.Steps(GO2, x)
    ahead = x.copy()
    ahead[0] += 0.1
    down, lifted = np.full(dynamics.nc, 2), np.array([0, 2, 2, 2])
    for state, modes in ((x, down), (x, lifted), (ahead, lifted), (ahead, down)):
        steps.see(state, modes)
    assert steps.count == 1  # the one that was in the air


def test_what_is_no_humanoid_is_refused():
    with pytest.raises(ValueError, match="must have a base that moves freely"):
        cito.make("recover", robot="biped")
    with pytest.raises(ValueError, match="`give_way` must be >= 0"):
        cito.make("recover", robot="go2", give_way=-1.0)
