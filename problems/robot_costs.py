"""Costs on the motion of robots: residuals in SI units, evaluated in the native core.

    costs = (
        BasePose(position, position_weight=20, orientation_weight=40, knots="all"),
        Posture(angles, weight=5, knots="all"),
        FootSlip(weight=1),
        Torque(weight=2e-3),
    )

Each fits any `TreeSystem` or `Robot`, with or without a free base. What is named is found when a
problem is made: bodies, joints and feet by name, and where no name is given

    the base      the first body that has a mass
    the joints    those that a control drives
    the feet      the robot's feet; of a bare `TreeSystem` all its contacts
"""

from cito.problems.body_costs import BasePose, BaseVelocity, CenterOfMass, PointPosition
from cito.problems.foot_costs import AirTime, FootSlip
from cito.problems.joint_costs import (
    JointVelocity,
    Posture,
    SoftLimit,
    Torque,
    TorqueSmoothness,
)

__all__ = [
    "AirTime",
    "BasePose",
    "BaseVelocity",
    "CenterOfMass",
    "FootSlip",
    "JointVelocity",
    "PointPosition",
    "Posture",
    "SoftLimit",
    "Torque",
    "TorqueSmoothness",
]
