"""An arm with two links in the vertical plane: what models of dynamics are first learned of.

q = (shoulder, elbow) [rad] about y, hanging at zero; u = torques of both [N m]. Uniform rods.
"""

from __future__ import annotations

import numpy as np

from cito.dynamics.tree import Body, TreeSystem
from cito.dynamics.types import positive
from cito.problems.arm import rod

LENGTH, MASS, RADIUS = (0.5, 0.5), (1.0, 1.0), 0.03  # of the links [m], [kg], [m]


def two_link_arm(gravity: float = 9.81) -> TreeSystem:
    """The arm.

    Args:
        gravity: >= 0 [m/s^2].
    """
    bodies = []
    for k, (name, parent) in enumerate((("upper", None), ("lower", "upper"))):
        com, inertia = rod(MASS[k], LENGTH[k], RADIUS)
        place = np.zeros(3) if k == 0 else np.array([0.0, 0.0, -LENGTH[0]])
        axis = np.array([0.0, -1.0, 0.0])  # a positive angle swings forward, along x
        bodies.append(
            Body(name, parent, "revolute", MASS[k], -com, inertia, position=place, axis=axis)
        )
    return TreeSystem(bodies, gravity=positive("gravity", gravity, allow_zero=True))
