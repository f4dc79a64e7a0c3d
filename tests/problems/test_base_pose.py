"""Base-pose tasks: targets mean what they say, and the robot stands to begin with."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import cito
from cito.problems.base_pose import base_target


@pytest.mark.parametrize("name", ["base-pose", "base-pose-c3"])
def test_the_guess_stands(name):
    problem = cito.make(name)
    motion = problem.dynamics.rollout(problem.start, problem.initial_controls)
    assert np.abs(motion.states[:, :3] - problem.start[:3]).max() < 0.02
    assert (motion.modes[-1] != 0).sum() >= 3
    assert (np.abs(problem.initial_controls) <= problem.control_upper).all()


def test_targets_are_offsets_yaw_turns_left_and_pitch_lifts_the_nose():
    robot = cito.load_robot("go2")
    still = base_target(robot, (0, 0, 0), 0.0, 0.0)
    np.testing.assert_allclose(still.position, robot.stance[:3], atol=1e-12)
    moved = base_target(robot, (0.3, -0.2, 0.05), 0.7, 0.0)
    np.testing.assert_allclose(moved.position - still.position, [0.3, -0.2, 0.05], atol=1e-12)
    ahead = Rotation.from_quat(moved.orientation).apply([1, 0, 0])
    np.testing.assert_allclose(ahead, [np.cos(0.7), np.sin(0.7), 0], atol=1e-12)
    nose = base_target(robot, (0, 0, 0), 0.0, 0.4)
    ahead = Rotation.from_quat(nose.orientation).apply([1, 0, 0])
    assert ahead[2] == pytest.approx(np.sin(0.4))
    assert nose.position[2] > still.position[2] and nose.position[0] < still.position[0]
    hips = [
        pose.position + Rotation.from_quat(pose.orientation).apply([-0.1934, 0, 0])
        for pose in (still, nose)
    ]
    np.testing.assert_allclose(hips[0], hips[1], atol=1e-3)  # it turns about the hind hips


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"target": (1.0, 2.0)}, r"`target` must have shape \(3,\)"),
        ({"yaw": np.nan}, "`yaw` must be finite"),
        ({"position_weight": -1.0}, "`position_weight` must be > 0"),
        ({"robot": "no-such-robot"}, "no-such-robot"),
        ({"robot": "hopper"}, "`robot` must have a base that moves freely, hopper has none"),
    ],
)
def test_bad_parameters_are_refused(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        cito.make("base-pose", **parameters)
