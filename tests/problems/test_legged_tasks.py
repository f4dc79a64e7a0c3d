"""Legged robots jump, leap and stand up; which foot is where is nowhere prescribed."""

from __future__ import annotations

import numpy as np
import pytest

import cito
from cito.problems.standing import base_pose

ROBOTS = ("go2", "hopper", "biped")
KERNEL = cito.FullCone(0.3)


def heights(problem, states):
    """Of the base at each knot [m]."""
    nq = problem.dynamics.manifold.nq
    return np.array([base_pose(problem.dynamics, x[:nq]).position[2] for x in states])


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("task", ["jump", "leap", "stand-up"])
def test_the_guess_holds_on_within_the_limits(task, robot):
    problem = cito.make(task, robot=robot)
    motion = problem.dynamics.rollout(problem.start, problem.initial_controls)
    assert np.isfinite(motion.states).all()
    inside = problem.control_upper + 1e-9
    assert (np.abs(np.clip(problem.initial_controls, -inside, inside)) <= inside).all()
    z = heights(problem, motion.states)
    assert np.abs(z - z[0]).max() < 0.5 * z[0]  # nobody falls at once


@pytest.mark.parametrize("robot", ["go2", "hopper"])
def test_a_jump_leaves_the_ground_and_ends_standing(robot):
    problem = cito.make("jump", robot=robot)
    solution = cito.solve(problem, KERNEL, max_iterations=80)
    airborne = (solution.modes == 0).all(axis=1)
    assert airborne.sum() >= 6
    assert (solution.modes[:3] != 0).any(axis=1).all()  # from the ground
    assert (solution.modes[-1] != 0).any()  # and back
    z = heights(problem, solution.states)
    assert z.max() > z[0] + 0.1
    assert abs(z[-1] - z[0]) < 0.08
    assert (np.abs(solution.controls) <= problem.control_upper + 1e-9).all()


@pytest.mark.parametrize("robot", ["go2", "biped"])
def test_a_crouching_robot_stands_up(robot):
    problem = cito.make("stand-up", robot=robot, horizon=30)
    solution = cito.solve(problem, KERNEL, max_iterations=60)
    z = heights(problem, solution.states)
    standing = heights(problem, cito.make("leap", robot=robot).start[None])[0]
    assert z[0] < 0.6 * standing < 0.85 * standing < z[-1]
    speed = solution.states[-1][problem.dynamics.manifold.nq :]
    assert np.abs(speed).max() < 3.0


def test_a_robot_that_shall_be_further_on_takes_its_feet_off_the_ground():
    problem = cito.make("leap", horizon=30, distance=0.4)
    solution = cito.solve(problem, KERNEL, max_iterations=60)
    assert solution.states[-1][0] - solution.states[0][0] > 0.25
    for foot in solution.modes.T:
        assert (foot == 0).any() and foot[0] != 0


@pytest.mark.parametrize(
    ("task", "parameters", "sentence"),
    [
        ("jump", {"height": -1.0}, "`height` must be >= 0"),
        ("jump", {"horizon": 1}, "`horizon` must be a whole number >= 2"),
        ("stand-up", {"start_height": 0.0}, "`start_height` must be > 0"),
        ("stand", {"push": (1.0,)}, r"`push` must have shape \(3,\)"),
    ],
)
def test_bad_parameters_are_refused(task, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        cito.make(task, **parameters)
