"""What the benchmark `adjoint` differentiates: the swing of an arm of seven damped joints.

    L = 1/2 |x_N|^2 + h/2 sum_k |x_k|^2,     gradient with respect to the controls (N, 7)

The numbers of the arm are here once, so that every implementation has the same.
"""

from __future__ import annotations

import numpy as np

from cito.dynamics.candidates import ContactPoint
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.shapes import Plane
from cito.dynamics.tree import Body, TreeSystem
from cito.dynamics.types import Array

JOINTS = 7
TIME_STEP = 0.002  # [s]
GRAVITY = 9.81  # [m/s^2]
LENGTH = 0.3  # of each link [m]
AXES = np.array([[0, 0, 1], [0, 1, 0]] * 4, float)[:JOINTS]  # roll and pitch in turn
POSITIONS = np.array([[0, 0, 0]] + [[0, 0, -LENGTH]] * (JOINTS - 1), float)
MASSES = np.linspace(3.0, 0.6, JOINTS)
COM = np.array([0.01, 0.02, -0.5 * LENGTH])
INERTIAS = MASSES[:, None, None] * np.diag([0.008, 0.009, 0.002])
DAMPING = np.linspace(2.0, 0.3, JOINTS)  # [N m s/rad]
ARMATURE = 0.01  # [kg m^2]
GROUND = -2.06  # where there is one [m]: the tip touches, slides, sticks and lifts off


def arm(ground: bool = False) -> ContactDynamics:
    """The arm, hanging from the origin; on demand its tip drags over the ground."""
    bodies = [
        Body(
            f"link {i}",
            f"link {i - 1}" if i else None,
            "revolute",
            MASSES[i],
            COM,
            INERTIAS[i],
            position=POSITIONS[i],
            axis=AXES[i],
            armature=ARMATURE,
            damping=DAMPING[i],
        )
        for i in range(JOINTS)
    ]
    tip = ContactPoint("tip", f"link {JOINTS - 1}", np.array([0, 0, -LENGTH]), 0.02)
    tree = TreeSystem(bodies, [tip] * ground, gravity=GRAVITY, ground=Plane(height=GROUND))
    return ContactDynamics(tree, TIME_STEP, friction=0.5)


def motion(steps: int) -> tuple[Array, Array]:
    """Start (14,) and controls (steps, 7): slow torques that keep the arm swinging."""
    start = np.concatenate([np.linspace(0.6, -0.6, JOINTS), np.zeros(JOINTS)])
    t = TIME_STEP * np.arange(steps)[:, None]
    rates = 1.0 + 0.7 * np.arange(JOINTS)
    return start, np.linspace(3.0, 0.3, JOINTS) * np.sin(rates * t + np.arange(JOINTS))
