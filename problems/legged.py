"""Costs of legged robots: a pose of the base to reach, the limits of the joints.

Weights are those of terms 1/2 w r^2 at every knot, see problems/robot_costs.py.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, positive
from cito.problems.costs import CostTerm, Knots
from cito.problems.problem import Problem
from cito.problems.robot_costs import (
    BasePose,
    BaseVelocity,
    FootSlip,
    JointVelocity,
    Posture,
    SoftLimit,
    Torque,
)
from cito.problems.robot_parts import Parts


def base_pose_costs(
    robot: Robot,
    position: ArrayLike,
    orientation: ArrayLike = (0.0, 0.0, 0.0, 1.0),
    *,
    posture: ArrayLike | None = None,
    position_weight: ArrayLike = (20.0, 20.0, 40.0),
    orientation_weight: ArrayLike = 40.0,
    posture_weight: float = 5.0,
    torque_weight: float = 2e-3,
    slip_weight: float = 1.0,
    terminal_factor: float = 5.0,
) -> tuple[CostTerm, ...]:
    """Costs of bringing the base to a pose and standing there; how is left to the solver.

    Args:
        robot: a robot with drives and feet.
        position: of the base in the world, (3,), or (N+1, 3) for a moving target [m].
        orientation: unit quaternion x y z w, (4,) or (N+1, 4).
        posture: angles of the driven joints to prefer; those of the robot's stance by default.
            A strong posture against a weak position makes steps cheaper than leaning.
        position_weight: (3,) or one [1/m^2].
        orientation_weight: (3,) or one [1/rad^2].
        posture_weight: [1/rad^2].
        torque_weight: [1/(N m)^2].
        slip_weight: of feet that move near the ground [s^2/m^2].
        terminal_factor: how much more the pose weighs at the last knot.
    """
    factor = positive("terminal_factor", terminal_factor, allow_zero=True)
    joints = Parts.of_system("robot", robot).joints("robot", None)
    nominal = robot.stance[joints.q] if posture is None else posture

    def pose(scale: float, knots: Knots) -> BasePose:
        weights = scale * np.asarray(position_weight), scale * np.asarray(orientation_weight)
        return BasePose(position, orientation, *weights, knots=knots)

    return (
        pose(1.0, "running"),
        pose(factor, "terminal"),
        BaseVelocity(linear_weight=0.5, angular_weight=0.05, frame="body", knots="all"),
        Posture(nominal, posture_weight, knots="all"),
        JointVelocity(5e-3, knots="all"),
        Torque(torque_weight),
        FootSlip(slip_weight),
        *joint_limit_costs(robot),
    )


def joint_limit_costs(
    robot: Robot,
    margin: float = 0.05,
    position_weight: float = 200.0,
    velocity_limit: float = 25.0,
    velocity_weight: float = 0.05,
) -> tuple[CostTerm, ...]:
    """Soft limits of the driven joints: on positions short of the robot's own, and on speeds.

    Args:
        robot: whose limits; a joint without them is left alone.
        margin: how far before a limit its cost begins [rad or m].
        position_weight: [1/rad^2 or 1/m^2].
        velocity_limit: where the robot states none [rad/s or m/s].
        velocity_weight: [s^2/rad^2 or s^2/m^2].
    """
    driven = [robot.joints.index(name) for name in robot.actuated]
    lower, upper = robot.joint_limits[driven].T
    room = np.minimum(margin, (upper - lower) / 2)
    stated = None if robot.velocity_limits is None else robot.velocity_limits[driven]
    fastest = np.full(len(driven), velocity_limit) if stated is None else stated
    fastest = np.where(np.isfinite(fastest), fastest, velocity_limit)
    return (
        SoftLimit("position", position_weight, lower + room, upper - room, knots="all"),
        SoftLimit("velocity", velocity_weight, -fastest, fastest, knots="all"),
    )


def robot_of(problem: Problem) -> Robot:
    """The robot of a task.

    Raises:
        ValueError: the task is about something else.
    """
    robot = getattr(problem.dynamics, "system", None)
    if not isinstance(robot, Robot):
        raise ValueError(f"task {problem.name!r} is not about a robot, which is needed here")
    return robot


def pose_errors(problem: Problem, state: Array | None, t: float = 0.0) -> dict[str, float]:
    """How far a state (nx,) is from the task's target pose at time t [s]: `position_error` [m] and
    `orientation_error` [rad]; NaN where the task has none, or there is no state."""
    poses = [term for term in problem.seen_from(t).costs if isinstance(term, BasePose)]
    if state is None or not poses:
        return {"position_error": float("nan"), "orientation_error": float("nan")}
    goal = problem.start.copy()
    goal[:3] = np.atleast_2d(poses[-1].position)[0]
    goal[3:7] = np.atleast_2d(poses[-1].orientation)[0]
    apart = problem.dynamics.difference(goal, state)
    return {
        "position_error": float(np.linalg.norm(state[:3] - goal[:3])),
        "orientation_error": float(np.linalg.norm(apart[3:6])),
    }
