"""Where the base is and how it moves, where no sensor tells: by the feet that stand still.

v_w = -J_i (omega, q_j')        of every foot i that carries load (its contact point rests)
z   = -phi_i                    of the same feet, with the base at height zero
v_w += (R a + g) dt             between and without contacts, by the accelerometer
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from cito.dynamics import _native
from cito.dynamics.conversions import rotation_matrix
from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, positive

GAP = 0.1  # between two measurements, above which the motion is not carried on [s]


class Measurement(NamedTuple):
    """What a legged robot measures.

    time [s]; quaternion x y z w; angular_velocity, acceleration (specific force) in the frame of
    the base [rad/s], [m/s^2]; joint_position, joint_velocity in the robot's order; load of each
    foot, in whatever unit the robot has.
    """

    time: float
    quaternion: Array
    angular_velocity: Array
    acceleration: Array
    joint_position: Array
    joint_velocity: Array
    load: Array


class Estimator(Protocol):
    """Something that knows the base's position and velocity."""

    def update(self, measured: Measurement) -> tuple[Array, Array]:
        """Position and linear velocity of the base, in the world frame, (3,) each [m], [m/s]."""


class LegOdometry:
    """Dead reckoning on the feet. x and y drift; z and the velocity do not.

    Args:
        robot: one free base, contacts with flat ground.
        loaded: load above which a foot stands, in the unit of the measurement.
        time_constant: with which the legs correct the accelerometer [s].
    """

    def __init__(self, robot: Robot, loaded: float = 20.0, time_constant: float = 0.02) -> None:
        self._robot, self._loaded = robot, loaded
        self._time_constant = positive("time_constant", time_constant)
        self._gravity = np.array([0.0, 0.0, -robot.system.gravity])
        self._time = math.nan
        self._position, self._velocity = robot.stance[:3].copy(), np.zeros(3)

    def update(self, measured: Measurement) -> tuple[Array, Array]:
        """See `Estimator.update`."""
        dt = measured.time - self._time
        first = math.isnan(dt)
        if not first and dt <= 0:
            return self._position.copy(), self._velocity.copy()
        # After a gap the feet alone count: nothing is known of what the base did in between.
        first = first or dt > GAP
        dt, self._time = 0.0 if first else dt, measured.time
        R = rotation_matrix(measured.quaternion)
        before = self._velocity
        self._velocity = before + dt * (R @ measured.acceleration + self._gravity)
        standing = measured.load > self._loaded
        if standing.any():
            velocities, heights = self._by_feet(measured)
            weights = measured.load * standing / (measured.load * standing).sum()
            gain = 1.0 if first else 1.0 - math.exp(-dt / self._time_constant)
            self._velocity = self._velocity + gain * (weights @ velocities - self._velocity)
            self._position[2] += gain * (weights @ heights - self._position[2])
        self._position[:2] += dt * (before + self._velocity)[:2] / 2
        return self._position.copy(), self._velocity.copy()

    def _by_feet(self, measured: Measurement) -> tuple[Array, Array]:
        """Velocity (feet, 3) and height (feet,) of the base if the contact of each foot rests."""
        feet, system = len(measured.load), self._robot.native
        q = np.concatenate([np.zeros(3), measured.quaternion, measured.joint_position])
        v = np.concatenate([np.zeros(3), measured.angular_velocity, measured.joint_velocity])
        *_, J, phi = _native.system_terms(system, None, q, v)
        return -(J[: 3 * feet] @ v).reshape(feet, 3), -phi[:feet]
