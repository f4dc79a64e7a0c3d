"""Where the base of a robot shall be, as a function of time: offset, yaw and pitch from its stance.

    p(t) = p_stance + offset(t) + (0, 0, rise(pitch)),    R(t) = R_z(yaw) R_y(-pitch) R_stance

A `Command` gives offset, yaw and pitch at any times; `base_poses` makes poses and velocities of
them. `Reach` goes to a pose at bounded speed, `Drive` follows a velocity, `Given` is the user's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, as_array, positive

DT = 1e-4  # of the differences by which velocities are found [s]
RISE_TIME = 0.5  # in which a commanded velocity is reached [s]
STAGES = 5  # of a motion for which postures are found
PITCHES = np.linspace(-0.6, 0.6, 9)  # for which they are found where the motion is the user's [rad]
LOWEST_HIPS = 0.75  # of their height in the stance, to which pitching may bring the hips [-]


class Offsets(NamedTuple):
    """offset (m, 3) [m], yaw and pitch (m,) [rad, nose up], from the stance."""

    offset: Array
    yaw: Array
    pitch: Array


class Command(Protocol):
    """What the base shall do."""

    @property
    def end(self) -> float:
        """From when on nothing moves any more [s]; infinite where it never ends."""

    def at(self, times: Array) -> Offsets:
        """At these times (m,) [s], >= 0."""

    def stages(self) -> Offsets:
        """Offsets on the way, from the stance on, for which the robot shall have a posture."""


@dataclass(frozen=True)
class Reach:
    """To a pose, at a bounded speed: the steps to a far target are those to many near ones.

        s(t) = 3 (t/T)^2 - 2 (t/T)^3 of the way,     T the shortest time within both speeds

    Args:
        target: offset of the base (3,) [m].
        yaw, pitch: [rad].
        speed: largest of the base's origin [m/s]; turn_speed: largest of yaw and of pitch [rad/s].
    """

    target: tuple[float, float, float]
    yaw: float
    pitch: float
    speed: float
    turn_speed: float

    @property
    def end(self) -> float:
        """T [s]."""
        way = np.linalg.norm(self.target) / self.speed
        turn = max(abs(self.yaw), abs(self.pitch)) / self.turn_speed
        return 1.5 * max(float(way), turn)

    def at(self, times: Array) -> Offsets:
        """See `Command.at`."""
        tau = np.clip(times / max(self.end, DT), 0.0, 1.0)
        return self._part(tau * tau * (3 - 2 * tau))

    def stages(self) -> Offsets:
        """See `Command.stages`."""
        return self._part(np.linspace(0.0, 1.0, STAGES if self.pitch or self.target[2] else 1))

    def _part(self, s: Array) -> Offsets:
        return Offsets(s[:, None] * np.array(self.target), s * self.yaw, s * self.pitch)


@dataclass(frozen=True)
class Rear:
    """Up on the hind legs and down again: the base moves back over the hind feet while it pitches.

    Args:
        pitch: [rad].
        back: how far the base moves over the hind feet [m].
        lever: from the base's origin back to the hips of the hind legs, whose height stays [m].
        rise_time: of going up, and of coming down [s]; hold: between both [s].
        rest: before it begins [s].
    """

    pitch: float
    back: float
    lever: float
    rise_time: float
    hold: float
    rest: float = 0.3

    @property
    def end(self) -> float:
        """When it stands again [s]."""
        return self.rest + 2 * self.rise_time + self.hold

    def at(self, times: Array) -> Offsets:
        """See `Command.at`."""
        up = (times - self.rest) / self.rise_time
        down = (self.end - times) / self.rise_time
        return self._part(np.clip(np.minimum(up, down), 0.0, 1.0))

    def stages(self) -> Offsets:
        """See `Command.stages`."""
        return self._part(np.linspace(0.4, 1.0, STAGES))

    def _part(self, tau: Array) -> Offsets:
        """First back, then up, both smoothly."""
        back, up = np.clip(tau / 0.6, 0.0, 1.0), np.clip((tau - 0.4) / 0.6, 0.0, 1.0)
        back, up = (s * s * (3 - 2 * s) for s in (back, up))
        pitch, rise = up * self.pitch, self.lever * np.sin(up * self.pitch)
        return Offsets(np.stack([-self.back * back, 0 * up, rise], axis=1), 0 * up, pitch)


@dataclass(frozen=True)
class Drive:
    """A velocity of the base in its own heading: forwards, to the left [m/s], turning [rad/s].

    It is reached linearly within half a second; the path is the arc that a cart would drive.
    """

    velocity: tuple[float, float, float]
    end: float = np.inf

    def at(self, times: Array) -> Offsets:
        """See `Command.at`."""
        vx, vy, w = self.velocity
        # Time under way at full speed: the integral of min(t / RISE_TIME, 1).
        driven = np.where(times < RISE_TIME, 0.5 * times**2 / RISE_TIME, times - RISE_TIME / 2)
        yaw = w * driven
        # int_0^s R(w s') ds' = s (sinc, ... ) of half the turn: a chord of the arc, turned by half.
        chord = driven * np.sinc(yaw / (2 * np.pi))
        c, s = np.cos(yaw / 2), np.sin(yaw / 2)
        path = chord[:, None] * np.stack([c * vx - s * vy, s * vx + c * vy, 0 * c], axis=1)
        return Offsets(path, yaw, np.zeros_like(yaw))

    def stages(self) -> Offsets:
        """See `Command.stages`: upright all the way."""
        return Offsets(np.zeros((1, 3)), np.zeros(1), np.zeros(1))


@dataclass(frozen=True)
class GiveWay:
    """To come to rest from a velocity, evenly: p(t) = v (t - t^2 / 2T) until T.

    Args:
        velocity: v at the start, in the world (3,) [m/s].
        time: T [s].
    """

    velocity: tuple[float, float, float]
    time: float

    @property
    def end(self) -> float:
        """T [s]."""
        return self.time

    def at(self, times: Array) -> Offsets:
        """See `Command.at`."""
        t = np.minimum(times, self.time)
        way = t - t * t / (2 * max(self.time, DT))
        return Offsets(way[:, None] * np.array(self.velocity), 0 * t, 0 * t)

    def stages(self) -> Offsets:
        """See `Command.stages`: upright all the way."""
        return Offsets(np.zeros((1, 3)), np.zeros(1), np.zeros(1))


@dataclass(frozen=True)
class Given:
    """Functions of time [s], or numbers: the user's own motion.

    Args:
        target: offset (3,) [m]; yaw, pitch: [rad].
    """

    target: Any
    yaw: Any
    pitch: Any
    end: float = np.inf

    def at(self, times: Array) -> Offsets:
        """See `Command.at`."""
        offset = _sampled("target", self.target, times, (3,))
        return Offsets(
            offset, _sampled("yaw", self.yaw, times, ()), _sampled("pitch", self.pitch, times, ())
        )

    def stages(self) -> Offsets:
        """See `Command.stages`."""
        return Offsets(np.zeros((len(PITCHES), 3)), np.zeros(len(PITCHES)), PITCHES)


def _sampled(name: str, given: Any, times: Array, shape: tuple[int, ...]) -> Array:
    if not callable(given):
        return np.tile(as_array(name, given, shape), (len(times), *(1,) * len(shape)))
    return np.array([as_array(f"{name}(t)", given(max(float(t), 0.0)), shape) for t in times])


def commanded(
    target: ArrayLike | Callable[[float], ArrayLike] | None,
    yaw: float | Callable[[float], float],
    pitch: float | Callable[[float], float],
    velocity: ArrayLike,
    speed: float,
    turn_speed: float,
) -> Command:
    """The command that the parameters of a task mean; without a target the base stays where it is.

    Raises:
        ValueError: numbers that are none; a velocity together with a target.
    """
    target = (0.0, 0.0, 0.0) if target is None else target
    if callable(target) or callable(yaw) or callable(pitch):
        given = Given(target, yaw, pitch)
        given.at(np.zeros(1))  # refuses what is none
        return given
    x, y, z = as_array("target", target, (3,))
    turn, tilt = float(as_array("yaw", yaw, ())), float(as_array("pitch", pitch, ()))
    vx, vy, w = as_array("velocity", velocity, (3,))
    if vx or vy or w:
        if x or y or z or turn or tilt:
            raise ValueError("`velocity` must be 0,0,0 where a target, yaw or pitch is given too")
        return Drive((vx, vy, w))
    speed, turn_speed = positive("speed", speed), positive("turn_speed", turn_speed)
    return Reach((x, y, z), turn, tilt, speed, turn_speed)


class BasePoses(NamedTuple):
    """position (m, 3) [m], orientation (m, 4) x y z w, linear (m, 3) [m/s], angular (m, 3) [rad/s].

    All in the world. pitch (m,) [rad] and height (m,) [m]: what a posture depends on.
    """

    position: Array
    orientation: Array
    linear: Array
    angular: Array
    pitch: Array
    height: Array


def base_poses(robot: Robot, command: Command, times: Array) -> BasePoses:
    """Poses and velocities of the base at these times (m,)."""
    offset, yaw, pitch = command.at(times)
    after, before = (command.at(np.maximum(times + d, 0.0)) for d in (DT, -DT))
    span = (np.maximum(times + DT, 0.0) - np.maximum(times - DT, 0.0))[:, None]
    rise = np.zeros_like(offset)
    rise[:, 2] = raised(robot, pitch)
    drift = raised(robot, after.pitch) - raised(robot, before.pitch)
    linear = (after.offset - before.offset) / span
    linear[:, 2] += drift / span[:, 0]
    yaw_rate = (after.yaw - before.yaw) / span[:, 0]
    pitch_rate = (after.pitch - before.pitch) / span[:, 0]
    angular = np.stack([np.sin(yaw) * pitch_rate, -np.cos(yaw) * pitch_rate, yaw_rate], axis=1)
    position = robot.stance[:3] + offset + rise
    orientation = product(turned(yaw, pitch), robot.stance[3:7])
    return BasePoses(position, orientation, linear, angular, pitch, offset[:, 2] + rise[:, 2])


def carried(poses: BasePoses, motion: Array) -> BasePoses:
    """The poses after a motion of the plane (3,): a turn by its third entry [rad] about the world's
    origin, then a shift by the others [m]."""
    x, y, angle = motion
    c, s = np.cos(angle), np.sin(angle)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    h, w = np.sin(angle / 2), np.cos(angle / 2)
    turn = np.array([[w, -h, 0.0, 0.0], [h, w, 0.0, 0.0], [0.0, 0.0, w, h], [0.0, 0.0, -h, w]])
    return poses._replace(
        position=poses.position @ R.T + np.array([x, y, 0.0]),
        orientation=poses.orientation @ turn.T,  # the product of the turn's quaternion and theirs
        linear=poses.linear @ R.T,
        angular=poses.angular @ R.T,
    )


def raised(robot: Robot, pitch: Array) -> Array:
    """How much the base rises while it pitches (m,) [m]: so much that no hip comes too low."""
    root = robot.system.bodies[0].name
    places = [body.position[0] for body in robot.system.bodies if body.parent == root]
    lever = np.where(pitch > 0, -min(places, default=0.0), max(places, default=0.0))
    allowed = (1 - LOWEST_HIPS) * robot.stance[2]
    rise: Array = np.maximum(np.abs(lever * np.sin(pitch)) - allowed, 0.0)
    return rise


def turned(yaw: Array, pitch: Array) -> Array:
    """Quaternions x y z w (m, 4) of R_z(yaw) R_y(-pitch)."""
    s, c, sp, cp = np.sin(yaw / 2), np.cos(yaw / 2), np.sin(pitch / 2), np.cos(pitch / 2)
    return np.stack([s * sp, -c * sp, s * cp, c * cp], axis=1)


def product(a: Array, b: Array) -> Array:
    """Quaternions (m, 4) of first b (4,), then a (m, 4)."""
    vector = a[:, 3:] * b[:3] + b[3] * a[:, :3] + np.cross(a[:, :3], b[:3])
    return np.column_stack([vector, a[:, 3] * b[3] - a[:, :3] @ b[:3]])
