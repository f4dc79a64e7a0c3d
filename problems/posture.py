"""Postures of a legged robot whose base is tilted or raised while its feet stay in place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cito.dynamics import _native
from cito.dynamics.robot import Robot
from cito.dynamics.robot_stance import body_poses, on_the_ground
from cito.dynamics.types import Array
from cito.problems.robot_parts import Parts

STEPS = 30  # of Newton's method
AT_THE_END = 0.15  # of its range, how near a straight knee is to that [rad]
BEND = 0.5  # of knees to begin with, so that it is clear where they bend [rad]
DAMPING = 1e-3  # of its least squares, for feet that cannot reach [m^2]


def tilted_posture(
    robot: Robot, orientation: Array, shift: Array, start: Array | None = None
) -> Array:
    """Angles of the driven joints (nj,) with the feet where they are in the stance, the base turned
    to `orientation`, a quaternion x y z w, and moved by `shift` (3,) [m].

    A foot that cannot reach comes as near as the joints' limits let it. The search begins at the
    angles `start` (nj,), by default those of the stance.
    """
    joints = Parts.of_system("robot", robot).joints("robot", None)
    limits = robot.joint_limits[[robot.joints.index(name) for name in robot.actuated]]
    q = robot.stance.copy()
    wanted, still = foot_places(robot, q).ravel(), np.zeros(robot.native.nv)
    q[:3] += shift
    q[joints.q] = q[joints.q] if start is None else start
    q[3:7] = orientation
    for _ in range(STEPS):
        e = wanted - foot_places(robot, q).ravel()
        slope = _native.system_terms(robot.native, None, q, still)[3][: e.size, joints.v]
        H = slope.T @ slope + DAMPING * np.eye(len(joints.q))
        step = np.linalg.solve(H, slope.T @ e)
        q[joints.q] = np.clip(q[joints.q] + np.clip(step, -0.2, 0.2), *limits.T)
        if np.abs(step).max() < 1e-6:
            break
    return q[joints.q]


def foot_places(robot: Robot, q: Array) -> Array:
    """Centres of the feet (nf, 3) in the world [m], in the order of the robot's feet."""
    poses = body_poses(robot.system.bodies, q)
    contacts = {c.name: c for c in robot.contacts}
    feet = [contacts[name] for name in robot.feet]
    return np.array([poses[c.body].position + poses[c.body].rotation @ c.position for c in feet])


def center_of_mass(robot: Robot, q: Array) -> Array:
    """Of the whole robot in the configuration q (nq,), (3,) in the world [m]."""
    poses = body_poses(robot.system.bodies, q)
    bodies = [body for body in robot.system.bodies if body.mass > 0]
    places = [poses[b.name].position + poses[b.name].rotation @ b.com for b in bodies]
    place: Array = np.average(places, axis=0, weights=[b.mass for b in bodies])
    return place


def with_bent_knees(robot: Robot, drop: float = 0.025) -> Robot:
    """The robot with a stance lower by a share `drop` of its height, where its legs are straight.

    Knees are joints on the way to a foot that bend to one side only and are at that end of their
    range in the stance; a robot without such joints is returned as it is.
    """
    joints = Parts.of_system("robot", robot).joints("robot", None)
    limits = robot.joint_limits[[robot.joints.index(name) for name in robot.actuated]]
    q, still = robot.stance.copy(), np.zeros(robot.native.nv)
    rows = 3 * len(robot.feet)
    moves = _native.system_terms(robot.native, None, q, still)[3][:rows, joints.v].any(axis=0)
    room = limits - q[joints.q][:, None]
    one_sided = (np.abs(room).min(axis=1) < AT_THE_END) & (np.ptp(limits, axis=1) > 1.0)
    knees = moves & one_sided
    if not knees.any():
        return robot
    q[joints.q] += np.where(knees, BEND * np.sign(room.sum(axis=1)), 0.0)
    shift = np.array([0.0, 0.0, -drop * robot.stance[2]])
    angles = tilted_posture(robot, robot.stance[3:7], shift, q[joints.q])
    q = robot.stance.copy()
    q[joints.q] = angles
    return replace(robot, stance=on_the_ground(robot.system, q))
