"""Tasks of a legged robot that shall bring its base somewhere: by itself it finds when to step.

`target` is an offset of the base from where it stands [m], `yaw` and `pitch` (nose up) turn it
[rad]. For `cito mpc` and, over one horizon, for `cito solve`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.conversions import rotation_matrix
from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, as_array, positive, whole_number
from cito.problems.base_motion import Command, commanded
from cito.problems.costs import CostTerm
from cito.problems.legged import base_pose_costs
from cito.problems.moving_base import ALONG_AXES, MovingBase, Weights
from cito.problems.problem import MAX_HORIZON, Problem
from cito.problems.registry import task
from cito.problems.robot_size import RobotSize
from cito.problems.robots import load_robot
from cito.problems.standing import at_rest, holding_controls


class BaseTarget(NamedTuple):
    """position (3,) [m] and orientation, a unit quaternion x y z w, of the base in the world."""

    position: Array
    orientation: Array


@task("base-pose", "a quadruped brings its base to a pose, stepping where it must")
def base_pose(
    robot: str = "go2",
    friction: float = 0.7,
    time_step: float = 0.025,
    horizon: int = 20,
    target: ArrayLike | Callable[[float], ArrayLike] | None = None,
    yaw: float | Callable[[float], float] = 0.0,
    pitch: float | Callable[[float], float] = 0.0,
    velocity: ArrayLike = (0.0, 0.0, 0.0),
    speed: float = 0.5,
    turn_speed: float = 1.0,
    position_weight: float = 200.0,
    orientation_weight: float = 40.0,
    posture_weight: float = 5.0,
    contacts: str = "auto",
) -> Problem:
    """The base follows a reference that moves to its target, and ends within millimetres of it.

    The reference moves at `speed` [m/s] and `turn_speed` [rad/s] at most, for a robot of the Go2's
    size. `target`, `yaw` and `pitch` may be functions of time [s]; or `velocity` says how to go:
    forwards, to the left [m/s] and turning [rad/s]. Without any of them the target is 0.4 m ahead.
    While pitching the
    base rises so much that no hip comes too low. `contacts` are what must stay off the ground,
    names with commas between; "auto": trunk and knees where the file has them, else the base.
    """
    parameters = dict(locals())
    loaded = guarded(robot, contacts)
    size = RobotSize.of(loaded)
    if target is None and not (
        callable(yaw) or callable(pitch) or yaw or pitch or np.any(velocity)
    ):
        target = (0.4, 0.0, 0.0)
    command = commanded(
        target,
        yaw,
        pitch,
        velocity,
        positive("speed", speed) * size.speed,
        positive("turn_speed", turn_speed) / size.time,
    )
    weights = Weights(
        position=positive("position_weight", position_weight),
        orientation=positive("orientation_weight", orientation_weight),
        posture=positive("posture_weight", posture_weight),
    )
    return moving_base("base-pose", loaded, command, weights, parameters)


def guarded(name: str, contacts: str = "auto") -> Robot:
    """The robot with what must stay off the ground as contact candidates.

    Raises:
        ValueError: contacts that it does not have.
    """
    if contacts != "auto":
        names = [part.strip() for part in contacts.split(",") if part.strip()]
        return load_robot(name, contacts=names)
    plain = load_robot(name)
    for names in (["trunk", "*_knee"], [plain.system.bodies[0].name]):
        with suppress(ValueError):
            return load_robot(name, contacts=names)
    return plain


def moving_base(
    name: str,
    robot: Robot,
    command: Command,
    weights: Weights,
    parameters: Mapping[str, Any],
    extra: Sequence[CostTerm] = (),
) -> Problem:
    """The task of a base that follows a command, from the stance, within the torque limits."""
    if robot.system.bodies[0].joint != "free":
        raise ValueError(f"`robot` must have a base that moves freely, {robot.name} has none")
    dynamics = ContactDynamics(robot, parameters["time_step"], parameters["friction"])
    N = whole_number("horizon", parameters["horizon"], 1, MAX_HORIZON)
    start = at_rest(robot)
    costs = MovingBase(robot, command, N, dynamics.time_step, weights, tuple(extra))
    return Problem(
        name=name,
        dynamics=dynamics,
        start=start,
        horizon=N,
        costs=costs(0.0),
        control_lower=-robot.torque_limits,
        control_upper=robot.torque_limits,
        initial_controls=holding_controls(dynamics, start, N),
        parameters=parameters,
        costs_at=costs,
    )


@task("base-pose-c3", "base-pose with a posture that outweighs position: leaning is a trap there")
def base_pose_c3(
    robot: str = "go2",
    friction: float = 0.7,
    time_step: float = 0.025,
    horizon: int = 20,
    target: ArrayLike = (0.4, 0.0, 0.0),
    yaw: float = 0.0,
    pitch: float = 0.0,
    position_weight: float = 20.0,
    orientation_weight: float = 40.0,
    posture_weight: float = 5.0,
) -> Problem:
    """For comparing gradients: a local optimum in which the robot leans and does not step."""
    return _posed("base-pose-c3", dict(locals()))


def base_target(robot: Robot, target: ArrayLike, yaw: float, pitch: float) -> BaseTarget:
    """The pose that the parameters of `base-pose-c3` mean, from the robot's stance.

    It pitches about the hips of its hind feet.
    """
    offset = as_array("target", target, (3,))
    yaw, pitch = (float(as_array(n, v, ())) for n, v in (("yaw", yaw), ("pitch", pitch)))
    if robot.system.bodies[0].joint != "free":
        raise ValueError(f"`robot` must have a base that moves freely, {robot.name} has none")
    behind = _hind_hips(robot) if pitch else 0.0
    turned = _about(2, yaw)
    rise = behind * np.array([-(1 - np.cos(pitch)), 0.0, np.sin(pitch)])
    position = robot.stance[:3] + offset + rotation_matrix(turned) @ rise
    return BaseTarget(position, _product(_product(turned, _about(1, -pitch)), robot.stance[3:7]))


def _about(axis: int, angle: float) -> Array:
    """The quaternion x y z w of a turn about an axis of the world."""
    q = np.zeros(4)
    q[axis], q[3] = np.sin(angle / 2), np.cos(angle / 2)
    return q


def _product(a: Array, b: Array) -> Array:
    """The quaternion of first b, then a."""
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.append(vector, a[3] * b[3] - a[:3] @ b[:3])


def _hind_hips(robot: Robot) -> float:
    """How far behind the base's origin the first joints of the hindmost legs are [m]."""
    root = robot.system.bodies[0].name
    places = [body.position[0] for body in robot.system.bodies if body.parent == root]
    return -min(places, default=0.0)


def _posed(name: str, given: Mapping[str, Any]) -> Problem:
    robot = load_robot(given["robot"])
    dynamics = ContactDynamics(robot, given["time_step"], given["friction"])
    goal = base_target(robot, given["target"], given["yaw"], given["pitch"])
    N = whole_number("horizon", given["horizon"], 1, MAX_HORIZON)
    start = at_rest(robot)
    costs = base_pose_costs(
        robot,
        goal.position,
        goal.orientation,
        position_weight=positive("position_weight", given["position_weight"]) * ALONG_AXES,
        orientation_weight=positive("orientation_weight", given["orientation_weight"]),
        posture_weight=positive("posture_weight", given["posture_weight"]),
    )
    return Problem(
        name=name,
        dynamics=dynamics,
        start=start,
        horizon=N,
        costs=costs,
        control_lower=-robot.torque_limits,
        control_upper=robot.torque_limits,
        initial_controls=holding_controls(dynamics, start, N),
        parameters=given,
    )
