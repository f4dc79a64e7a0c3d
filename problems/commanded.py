"""Tasks of a legged robot that moves as it is told: no gait, no foothold and no schedule is given.

For `cito mpc`: what is wanted moves with time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.robot import Robot
from cito.dynamics.types import as_array, positive
from cito.problems.base_motion import Drive, Rear, product, turned
from cito.problems.base_pose import guarded, moving_base
from cito.problems.moving_base import Weights
from cito.problems.posture import center_of_mass, foot_places, tilted_posture
from cito.problems.problem import Problem
from cito.problems.registry import task
from cito.problems.robot_costs import AirTime, BaseVelocity
from cito.problems.robot_parts import Parts
from cito.problems.robot_size import RobotSize

BALANCING = 3  # rounds in which the place above the feet is found, far more than are needed


@task("walk", "a legged robot goes at a velocity, with steps of its own")
def walk(
    robot: str = "go2",
    velocity: ArrayLike = (0.4, 0.0, 0.0),
    friction: float = 0.7,
    time_step: float = 0.025,
    horizon: int = 20,
    position_weight: float = 200.0,
    orientation_weight: float = 40.0,
    velocity_weight: float = 0.5,
    posture_weight: float = 5.0,
    slip_weight: float = 0.3,
    air_weight: float = 0.1,
    contacts: str = "auto",
) -> Problem:
    """`velocity`: forwards, to the left [m/s] and turning [rad/s], in the heading of the base.

    Feet pay for slip, the less the higher they are (`slip_weight`), and for each knot that they
    spend in the air (`air_weight`).
    """
    parameters = dict(locals())
    loaded = guarded(robot, contacts)
    vx, vy, w = as_array("velocity", velocity, (3,))
    weights = Weights(
        position=positive("position_weight", position_weight),
        orientation=positive("orientation_weight", orientation_weight),
        linear=positive("velocity_weight", velocity_weight),
        posture=positive("posture_weight", posture_weight),
        slip=positive("slip_weight", slip_weight, allow_zero=True),
    )
    air = positive("air_weight", air_weight, allow_zero=True)
    length = 0.02 * RobotSize.of(loaded).length
    extra = [AirTime(air, length=length)] if air else []
    return moving_base("walk", loaded, Drive((vx, vy, w)), weights, parameters, extra)


@task("rear", "a quadruped lifts its front legs, stands on the others for a while, comes down")
def rear(
    robot: str = "go2",
    pitch: float = 0.6,
    hold: float = 5.0,
    rise_time: float = 0.9,
    friction: float = 0.7,
    time_step: float = 0.025,
    horizon: int = 20,
    position_weight: float = 200.0,
    orientation_weight: float = 100.0,
    posture_weight: float = 5.0,
    capture_weight: float = 40.0,
    joint_weight: float = 0.02,
    air_weight: float = 20.0,
    contacts: str = "auto",
) -> Problem:
    """`pitch`: of the base, nose up [rad], held for `hold` and reached in `rise_time` [s].

    On two points a robot does not stand by itself. What keeps it up beyond the horizon is that the
    base comes to rest at its end (`capture_weight`, [s^2/m^2]), that the joints are slow
    (`joint_weight`, [s^2/rad^2]), and that the hind feet pay for each knot that they spend in the
    air (`air_weight`): without it the robot catches itself by hops.
    """
    parameters = dict(locals())
    loaded = guarded(robot, contacts)
    if loaded.system.bodies[0].joint != "free":
        raise ValueError(f"`robot` must have a base that moves freely, {loaded.name} has none")
    size, pitch = RobotSize.of(loaded), float(as_array("pitch", pitch, ()))
    command = Rear(
        pitch,
        way_back(loaded, pitch),
        lever(loaded),
        positive("rise_time", rise_time) * size.time,
        positive("hold", hold, allow_zero=True),
    )
    weights = Weights(
        position=positive("position_weight", position_weight),
        orientation=positive("orientation_weight", orientation_weight),
        posture=positive("posture_weight", posture_weight),
        joint_velocity=positive("joint_weight", joint_weight),
    )
    capture = positive("capture_weight", capture_weight, allow_zero=True)
    air = positive("air_weight", air_weight, allow_zero=True)
    at_rest = BaseVelocity(linear_weight=capture / size.speed**2, frame="world", knots="terminal")
    down = AirTime(air, feet=hind_feet(loaded), length=0.02 * size.length)
    extra = [*([at_rest] if capture else []), *([down] if air else [])]
    return moving_base("rear", loaded, command, weights, parameters, extra)


def hind_feet(robot: Robot) -> list[str]:
    """Names of the feet that are behind the base in the stance."""
    places = foot_places(robot, robot.stance)
    return [name for name, place in zip(robot.feet, places) if place[0] < robot.stance[0]]


def lever(robot: Robot) -> float:
    """How far behind the base's origin the hindmost hips are [m]."""
    root = robot.system.bodies[0].name
    places = [body.position[0] for body in robot.system.bodies if body.parent == root]
    return float(-min(places, default=0.0))


def way_back(robot: Robot, pitch: float) -> float:
    """How far the base must move back so that the centre of mass of the robot that has pitched, its
    hind feet where they are, is above these [m]."""
    joints = Parts.of_system("robot", robot).joints("robot", None)
    q, behind = robot.stance.copy(), [name in hind_feet(robot) for name in robot.feet]
    q[3:7] = product(turned(np.zeros(1), np.array([pitch])), robot.stance[3:7])[0]
    back = lever(robot)
    shift = np.array([-back, 0.0, back * np.sin(pitch)])
    for _ in range(BALANCING if any(behind) else 0):
        q[:3] = robot.stance[:3] + shift
        q[joints.q] = tilted_posture(robot, q[3:7], shift)
        feet = foot_places(robot, q)[behind].mean(axis=0)
        shift[0] -= center_of_mass(robot, q)[0] - feet[0]
    return float(-shift[0])
