"""What a robot's limits are, and what speaks against a state or a command; all of it pure.

examine(state)            causes to distrust or to leave the state
confine(command, state)   the command within the limits, and what was changed
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, as_vector, positive
from cito.realtime.joints import Joints
from cito.realtime.robot_interface import Command, RobotState


class Action(Enum):
    """What is done about a cause."""

    LIMIT = "the command is changed"
    DAMP = "damping until it has passed"
    STOP = "damping for good"


class Cause(Enum):
    """Why the safety layer acts. The value is the sentence in the log."""

    NO_STATE = "no state has arrived yet"
    STALE_STATE = "the newest state is too old"
    FUTURE_STATE = "the newest state claims to be measured in the future"
    BAD_STATE = "the state holds NaN or infinity, or has the wrong shape"
    JOINT_SPEED = "a joint is too fast"
    JOINT_RANGE = "a joint is beyond its range"
    TILT = "the base is tilted too far"
    HEIGHT = "the base is too low"
    LOST = "damping did not pass within the time that it is given"
    NO_PLAN = "there is no plan in force"
    BAD_COMMAND = "the command holds NaN or infinity, or has the wrong shape"
    GAIN = "a stiffness or a damping is beyond its limit"
    TORQUE = "a torque is beyond its limit"
    JOINT_PUSH = "a torque drives a joint further out of its range"

    @property
    def action(self) -> Action:
        """What is done about it."""
        if self in (Cause.GAIN, Cause.TORQUE, Cause.JOINT_PUSH):
            return Action.LIMIT
        return Action.STOP if self in (Cause.TILT, Cause.HEIGHT, Cause.LOST) else Action.DAMP


FALLS = (Cause.TILT, Cause.HEIGHT)


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of a robot in operation.

    Args:
        torque: (nu,) [N m].
        joint_lower, joint_upper: (nj,) [rad].
        joint_margin: how far beyond its range a joint may be before the robot is damped [rad].
        joint_speed: (nj,) [rad/s].
        tilt: of the base against the vertical [rad].
        height: of the base's origin above the ground plane z = 0, at least [m].
        state_age: oldest state that is acted upon [s].
        damping: kd of the fallback, (nu,) [N m s/rad].
        largest_stiffness [N m/rad], largest_damping [N m s/rad]: that a command may ask for.
        recovery: how long all must be well before damping ends [s].
        patience: how long damping may last before the robot is given up [s].
    """

    torque: Array
    joint_lower: Array
    joint_upper: Array
    joint_speed: Array
    damping: Array
    largest_stiffness: float = 500.0
    largest_damping: float = 50.0
    joint_margin: float = 0.15
    tilt: float = 1.3
    height: float = -np.inf
    state_age: float = 0.05
    recovery: float = 0.1
    patience: float = 1.0

    @classmethod
    def of(
        cls,
        robot: Robot,
        *,
        joint_speed: ArrayLike | None = None,
        damping: ArrayLike = 3.0,
        **others: float,
    ) -> Limits:
        """The limits in the robot's file; 40 rad/s where it states no speed, and for a base that
        floats no less than 0.3 of its height when it stands.

        Raises:
            ValueError: the file states no torque limit, or a number is not positive.
        """
        if not np.isfinite(robot.torque_limits).all():
            raise ValueError(f"`robot` must state a torque limit for every drive, {robot} does not")
        nj, nu = len(robot.joints), len(robot.actuated)
        if joint_speed is None:
            stated = robot.velocity_limits
            joint_speed = 40.0 if stated is None else np.where(np.isfinite(stated), stated, 40.0)
        if Joints.of(robot).floating:
            others.setdefault("height", 0.3 * float(robot.stance[2]))
        for name, value in others.items():
            if name != "height":
                positive(name, value, allow_zero=name in ("joint_margin", "recovery"))
        return cls(
            torque=robot.torque_limits,
            joint_lower=robot.joint_limits[:, 0],
            joint_upper=robot.joint_limits[:, 1],
            joint_speed=as_vector("joint_speed", joint_speed, nj),
            damping=as_vector("damping", damping, nu),
            **others,
        )


@dataclass(frozen=True)
class Finding:
    """A cause and what was measured."""

    cause: Cause
    detail: str = ""


def sound(state: RobotState, nq: int, nv: int) -> bool:
    """Whether the state has the right shapes and only finite numbers, quaternions included."""
    q, v = np.asarray(state.q), np.asarray(state.v)
    if q.shape != (nq,) or v.shape != (nv,) or not np.isfinite(state.time):
        return False
    return bool(np.isfinite(q).all() and np.isfinite(v).all())


def examine(state: RobotState | None, now: float, limits: Limits, joints: Joints) -> list[Finding]:
    """What speaks against acting on the newest sound state."""
    if state is None:
        return [Finding(Cause.NO_STATE)]
    found = []
    age = now - state.time
    if age > limits.state_age:
        found.append(Finding(Cause.STALE_STATE, f"{1e3 * age:.1f} ms old"))
    elif age < -limits.state_age:
        found.append(Finding(Cause.FUTURE_STATE, f"{-1e3 * age:.1f} ms ahead"))
    q, v = state.q[joints.q], state.v[joints.v]
    if (np.abs(v) > limits.joint_speed).any():
        found.append(Finding(Cause.JOINT_SPEED, f"{np.abs(v).max():.1f} rad/s"))
    beyond = np.maximum(limits.joint_lower - q, q - limits.joint_upper)
    if (beyond > limits.joint_margin).any():
        found.append(Finding(Cause.JOINT_RANGE, f"{beyond.max():.3f} rad beyond"))
    if joints.floating:
        tilt = joints.tilt(state.q)
        if tilt > limits.tilt:
            found.append(Finding(Cause.TILT, f"{tilt:.2f} rad"))
        if state.q[2] < limits.height:
            found.append(Finding(Cause.HEIGHT, f"{state.q[2]:.3f} m"))
    return found


def confine(
    command: Command | None, state: RobotState, limits: Limits, joints: Joints
) -> tuple[Command | None, list[Finding]]:
    """The command within the limits at this state, None where it must not be used at all."""
    if command is None:
        return None, [Finding(Cause.NO_PLAN)]
    nu = len(limits.torque)
    if not _is_sound(command, nu):
        return None, [Finding(Cause.BAD_COMMAND)]
    found = []
    stiffness = np.minimum(command.stiffness, limits.largest_stiffness)
    damping = np.minimum(command.damping, limits.largest_damping)
    if (stiffness != command.stiffness).any() or (damping != command.damping).any():
        found.append(Finding(Cause.GAIN))
        command = replace(command, stiffness=stiffness, damping=damping)
    q, v = joints.drives(state.q, state.v)
    with np.errstate(over="ignore", invalid="ignore"):
        by_gains = command.by_gains(q, v)
        total = command.torque + by_gains
    if not np.isfinite(total).all():
        return None, [Finding(Cause.BAD_COMMAND, "the motors' law overflows")]
    limit = limits.torque
    bounded = np.clip(total, -limit, limit)
    excess = np.maximum(np.abs(total), np.abs(command.torque)) - limit
    if (excess > 0).any():
        found.append(Finding(Cause.TORQUE, f"{excess.max():.2f} N m beyond"))
    lower, upper = limits.joint_lower[joints.driven], limits.joint_upper[joints.driven]
    outward = ((q > upper) & (bounded > 0)) | ((q < lower) & (bounded < 0))
    if outward.any():
        found.append(Finding(Cause.JOINT_PUSH, f"drive {int(np.flatnonzero(outward)[0])}"))
        bounded = np.where(outward, 0.0, bounded)
    return (_with_total(command, bounded, by_gains, limit) if found else command), found


def _is_sound(command: Command, nu: int) -> bool:
    parts = [np.asarray(part) for part in vars(command).values()]
    if any(part.shape != (nu,) for part in parts):
        return False
    numbers = np.concatenate(parts)
    gains = numbers[3 * nu :]  # stiffness and damping
    return bool(np.isfinite(numbers).all() and (gains >= 0).all())


def _with_total(command: Command, wanted: Array, by_gains: Array, limit: Array) -> Command:
    """The command whose law gives the `wanted` torques now: by the torque where the gains leave
    room for that within the limit, without gains elsewhere."""
    keep = np.abs(wanted - by_gains) <= limit
    return replace(
        command,
        torque=np.where(keep, wanted - by_gains, wanted),
        stiffness=np.where(keep, command.stiffness, 0.0),
        damping=np.where(keep, command.damping, 0.0),
    )
