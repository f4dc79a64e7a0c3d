"""Postures of a legged robot whose base is tilted or raised while its feet stay in place."""

from __future__ import annotations

import numpy as np

from cito.dynamics import _native
from cito.dynamics.robot import Robot
from cito.dynamics.robot_stance import body_poses
from cito.dynamics.types import Array
from cito.problems.robot_parts import Parts

STEPS = 30  # of Newton's method
DAMPING = 1e-3  # of its least squares, for feet that cannot reach [m^2]


def tilted_posture(robot: Robot, orientation: Array, shift: Array) -> Array:
    """Angles of the driven joints (nj,) with the feet where they are in the stance, the base turned
    to `orientation`, a quaternion x y z w, and moved by `shift` (3,) [m].

    A foot that cannot reach comes as near as the joints' limits let it.
    """
    joints = Parts.of_system("robot", robot).joints("robot", None)
    limits = robot.joint_limits[[robot.joints.index(name) for name in robot.actuated]]
    q = robot.stance.copy()
    wanted, still = _feet(robot, q), np.zeros(robot.native.nv)
    q[:3] += shift
    q[3:7] = orientation
    for _ in range(STEPS):
        e = wanted - _feet(robot, q)
        slope = _native.system_terms(robot.native, None, q, still)[3][: e.size, joints.v]
        H = slope.T @ slope + DAMPING * np.eye(len(joints.q))
        step = np.linalg.solve(H, slope.T @ e)
        q[joints.q] = np.clip(q[joints.q] + np.clip(step, -0.2, 0.2), *limits.T)
        if np.abs(step).max() < 1e-6:
            break
    return q[joints.q]


def _feet(robot: Robot, q: Array) -> Array:
    """Centres of the feet (3 nf,) in the world [m]."""
    poses = body_poses(robot.system.bodies, q)
    feet = [c for c in robot.contacts if c.name in robot.feet]
    places = [poses[c.body].position + poses[c.body].rotation @ c.position for c in feet]
    return np.concatenate(places)
