"""A humanoid that is pushed and finds the step that keeps it from falling, if it needs one."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.robot import Robot
from cito.dynamics.types import as_vector, positive
from cito.problems.base_motion import GiveWay
from cito.problems.base_pose import moving_base
from cito.problems.moving_base import Weights
from cito.problems.posture import with_bent_knees
from cito.problems.problem import Problem
from cito.problems.registry import task
from cito.problems.robots import load_robot
from cito.problems.standing import base_velocity

G1 = "cmeel.prefix/share/example-robot-data/robots/g1_description/urdf/g1_29dof_rev_1_0.urdf"
ARMATURE = 0.01  # of a drive of which the file states none [kg m^2]


@task("recover", "a humanoid that is pushed steps, where it must, and stands again")
def recover(
    robot: str = "g1",
    push: ArrayLike = (0.3, 0.0, 0.0),
    give_way: float = 1.6,
    friction: float = 0.8,
    time_step: float = 0.025,
    horizon: int = 20,
    position_weight: float = 200.0,
    orientation_weight: float = 40.0,
    velocity_weight: float = 2.0,
    posture_weight: float = 5.0,
    slip_weight: float = 2.0,
) -> Problem:
    """`push`: velocity of the whole body at the start, in the world [m/s]. The base shall come to
    rest within `give_way` [s], evenly: half of push times give_way further on.

    `robot`: the path of a file, or "g1": Unitree's, of the package example-robot-data. Its knees
    are bent, and its drives have armatures where the file states none.
    """
    parameters = dict(locals())
    loaded = with_bent_knees(with_armature(humanoid(robot)))
    weights = Weights(
        position=positive("position_weight", position_weight),
        orientation=positive("orientation_weight", orientation_weight),
        linear=positive("velocity_weight", velocity_weight),
        posture=positive("posture_weight", posture_weight),
        slip=positive("slip_weight", slip_weight, allow_zero=True),
    )
    velocity = as_vector("push", push, 3)
    way = GiveWay(
        (float(velocity[0]), float(velocity[1]), 0.0),
        positive("give_way", give_way, allow_zero=True),
    )
    problem = moving_base("recover", loaded, way, weights, parameters)
    start, dynamics = problem.start.copy(), problem.dynamics
    assert isinstance(dynamics, ContactDynamics)
    start[loaded.native.nq :] = base_velocity(dynamics, loaded.stance, velocity)
    return replace(problem, start=start)


def humanoid(name: str) -> Robot:
    """The robot of a file, or "g1" of an installed package.

    Raises:
        ValueError: the package is not installed.
    """
    if name != "g1":
        return load_robot(name)
    files = [Path(place) / G1 for place in sys.path if (Path(place) / G1).is_file()]
    if not files:
        raise ValueError("`robot` 'g1' needs the package example-robot-data (the extra robots)")
    return load_robot(files[0])


def with_armature(robot: Robot, armature: float = ARMATURE) -> Robot:
    """The robot with this armature [kg m^2] on driven joints of which the file states none.

    Light links under strong drives turn by radians in a step otherwise.
    """
    bodies = [
        replace(body, armature=armature)
        if body.joint in ("revolute", "prismatic") and not np.any(body.armature)
        else body
        for body in robot.system.bodies
    ]
    return replace(robot, system=replace(robot.system, bodies=bodies))
