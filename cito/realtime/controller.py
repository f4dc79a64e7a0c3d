"""What the loop asks of a controller, and the simplest one: to stand by joint stiffness.

    controller.update(t, x) -> plan          from time to time, as long as it may take
    plan.control(t', x') -> u                at the control rate, until the next plan

A controller owns no clock: t is the time at which x was measured, in seconds since the run began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from cito.dynamics import _native
from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, as_vector

TOUCHING = 1e-3  # distance below which a contact of the stance carries weight [m]


class Plan(Protocol):
    """Controls with feedback over a span of time, resampled at any rate."""

    @property
    def start_time(self) -> float:
        """From when on the plan applies [s]; it may lie ahead, where a delay is compensated."""

    @property
    def end_time(self) -> float:
        """Until when the plan knows what to do [s]."""

    @property
    def cost(self) -> float:
        """Objective of the plan; NaN where there is none."""

    def control(self, t: float, x: Array) -> Array:
        """u + K (x (-) x_ref) at time t, (nu,)."""

    def state(self, t: float) -> Array:
        """x_ref at time t, (nx,)."""


@runtime_checkable
class JointTargets(Protocol):
    """A plan whose reference the motors follow with a stiffness of their own, each (nu,)."""

    stiffness: Array
    damping: Array


class Controller(Protocol):
    """Something that makes plans."""

    def update(self, t: float, x: Array) -> Plan:
        """The plan from the state x (nx,), measured at time t [s].

        A failed solve raises, or returns the previous plan: both leave that one in force.
        """


@dataclass(frozen=True, eq=False)
class StandingPlan:
    """The stance, held by the motors' stiffness: x_ref (nx,), u, stiffness, damping (nu,)."""

    start_time: float
    end_time: float
    reference: Array
    torque: Array
    stiffness: Array
    damping: Array
    cost: float = float("nan")

    def control(self, t: float, x: Array) -> Array:
        """The torque that carries the robot's weight; the motors add the rest."""
        return self.torque

    def state(self, t: float) -> Array:
        """The stance."""
        return self.reference


class StandController:
    """Stands: the weight by quasi-static torques, the rest by stiffness and damping of the motors.

    Args:
        robot: what stands.
        stiffness: [N m/rad], one or (nu,).
        damping: [N m s/rad], one or (nu,).
        validity: how long a plan holds [s].
    """

    def __init__(
        self,
        robot: Robot,
        stiffness: float | Array = 60.0,
        damping: float | Array = 3.0,
        validity: float = 0.5,
    ) -> None:
        nu = len(robot.actuated)
        self._reference = np.append(robot.stance, np.zeros(robot.native.nv))
        self._torque = standing_torque(robot)
        self._stiffness = as_vector("stiffness", stiffness, nu)
        self._damping = as_vector("damping", damping, nu)
        self._validity = validity

    def update(self, t: float, x: Array) -> StandingPlan:
        """The same plan at every time, whatever the state."""
        return StandingPlan(
            t, t + self._validity, self._reference, self._torque, self._stiffness, self._damping
        )


def standing_torque(robot: Robot) -> Array:
    """u (nu,) [N m] of least norm, with forces f on what touches the ground, that carries the
    stance's weight: B u + J' f = c(q, 0)."""
    system = robot.native
    _, c, B, J, phi = _native.system_terms(system, None, robot.stance, np.zeros(system.nv))
    touching = np.repeat(phi < TOUCHING, robot.contact_dims)
    balance = np.hstack([B, J[touching].T])
    u: Array = np.linalg.lstsq(balance, c, rcond=None)[0][: system.nu]
    return u
