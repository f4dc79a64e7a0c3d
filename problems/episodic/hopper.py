"""A planar leg on a boom that shall hop along: see cito/problems/hop.py for the leg itself.

The drives of hip and knee take target angles u = standing + SCALE a [rad]. With w the wanted speed

    r = 1 - ((v_x - w) / w)^2 - ACTION_COST |a|^2

for as long as the hip is above LOWEST: standing still is worth nothing, hopping at w is worth 1.
"""

from __future__ import annotations

import numpy as np

from cito.dynamics.candidates import ContactPoint
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import FullCone
from cito.dynamics.tree import Body, PositionDrive, TreeSystem
from cito.dynamics.types import Array
from cito.problems.arm import rod
from cito.problems.episodic.task import EpisodicTask, Flags, Reward
from cito.problems.hop import ROTOR_INERTIA, SEGMENT_LENGTH, SHANK_MASS, STANDING, THIGH_MASS

MASS = 2.0  # of the body that the hip carries [kg]
RADIUS = 0.01  # of the segments [m]
STIFFNESS, DAMPING = 60.0, 1.5  # of the drives [N m/rad], [N m s/rad]
SCALE = 0.6  # of actions [rad]
FRICTION, TIME_STEP, SUBSTEPS = 0.8, 0.01, 2
RHO = 0.05  # of the contact gradient [J]
SPEED = 0.6  # wanted [m/s]
LOWEST = 0.2  # height of the hip below which the leg has fallen [m]
ALIVE, ACTION_COST = 1.0, 0.02
SPREAD = 0.05  # of the first states [m, rad, m/s, rad/s]
UNITS = np.array([0.1, 0.5, 0.5, 1.0, 1.0, 5.0, 5.0])  # that are one in observations


def leg() -> TreeSystem:
    """x, z of the hip, and the two segments; the boom keeps the body from pitching."""
    across, along = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])
    hip = Body("x", None, "prismatic", 0.0, axis=along)
    body = Body("z", "x", "prismatic", MASS)
    segments = []
    for name, parent, mass, top in (
        ("thigh", "z", THIGH_MASS, 0.0),
        ("shank", "thigh", SHANK_MASS, -SEGMENT_LENGTH),
    ):
        com, inertia = rod(mass, SEGMENT_LENGTH, RADIUS)
        segments.append(
            Body(
                name, parent, "revolute", mass, -com, inertia, axis=across,
                position=np.array([0.0, 0.0, top]), armature=ROTOR_INERTIA,
            )
        )  # fmt: skip
    foot = ContactPoint("foot", "shank", np.array([0.0, 0.0, -SEGMENT_LENGTH]))
    return TreeSystem(
        [hip, body, *segments], [foot], actuation=np.eye(4)[:, 2:],
        drive=PositionDrive(STIFFNESS, DAMPING),
    )  # fmt: skip


class HopperRun(EpisodicTask):
    """The task. Observations are all coordinates but x, less those of standing, over UNITS."""

    def __init__(self) -> None:
        super().__init__(
            "hopper-run",
            ContactDynamics(leg(), TIME_STEP, FRICTION),
            SCALE,
            STANDING[2:],
            observation_size=7,
            substeps=SUBSTEPS,
            gradient=FullCone(RHO),
        )
        self.standing = np.array([*STANDING, 0.0, 0.0, 0.0, 0.0])

    def starts(self, count: int, random: np.random.Generator) -> Array:
        """About standing, with the foot on the ground or above it."""
        x = self.standing + random.uniform(-SPREAD, SPREAD, (count, 8))
        thigh, shank = x[:, 2], x[:, 2] + x[:, 3]
        leg = SEGMENT_LENGTH * (np.cos(thigh) + np.cos(shank))
        x[:, 1] = np.maximum(x[:, 1], leg)
        return x

    def observe(self, x: Array) -> Array:
        """See `EpisodicTask.observe`."""
        seen: Array = (x - self.standing)[:, 1:] / UNITS
        return seen

    def observation_jacobian(self, x: Array) -> Array:
        """See `EpisodicTask.observation_jacobian`."""
        return np.broadcast_to(np.diag(1 / UNITS) @ np.eye(8)[1:], (len(x), 7, 8))

    def reward(self, x: Array, action: Array) -> Reward:
        """See `EpisodicTask.reward`."""
        off = (x[:, 4] - SPEED) / SPEED
        state = np.zeros_like(x)
        state[:, 4] = -2 * off / SPEED
        value = ALIVE - off**2 - ACTION_COST * (action**2).sum(axis=1)
        return Reward(value, state, -2 * ACTION_COST * action)

    def fallen(self, x: Array) -> Flags:
        """Whether the hip is too low."""
        low: Flags = x[:, 1] < LOWEST
        return low
