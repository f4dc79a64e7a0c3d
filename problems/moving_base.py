"""Costs of a robot whose base shall follow a command, as they are seen from any time.

Weights are stated for a robot of the size of the Go2 and carried to others by `RobotSize`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from cito.dynamics.conversions import rotation_matrix
from cito.dynamics.robot import Robot
from cito.dynamics.types import Array
from cito.problems.base_motion import (
    BasePoses,
    Command,
    Drive,
    Reach,
    Rear,
    base_poses,
    carried,
    product,
    raised,
    turned,
)
from cito.problems.costs import CostTerm, Knots
from cito.problems.legged import joint_limit_costs
from cito.problems.posture import tilted_posture
from cito.problems.robot_costs import (
    BasePose,
    BaseVelocity,
    FootSlip,
    JointVelocity,
    Posture,
    Torque,
)
from cito.problems.robot_parts import Parts
from cito.problems.robot_size import RobotSize

LEASH, TURN_LEASH = 0.2, 0.4  # of a velocity's reference, for a robot of the Go2's size [m], [rad]
ALONG_AXES = np.array([1.0, 1.0, 2.0])  # how the position's weight is shared among x, y, z


@dataclass(frozen=True)
class Weights:
    """Of the residuals, for a robot of the size of the Go2.

    Args:
        position: along x and y, twice that along z [1/m^2].
        orientation: [1/rad^2].
        linear: of the base's velocity [s^2/m^2]; angular: [s^2/rad^2].
        posture: [1/rad^2]; joint_velocity: [s^2/rad^2]; torque: [1/(N m)^2].
        slip: of feet near the ground [s^2/m^2]; sharpness: how fast it falls with height [1/m].
        terminal: how much more the pose weighs at the last knot.
    """

    position: float = 200.0
    orientation: float = 40.0
    linear: float = 0.5
    angular: float = 0.05
    posture: float = 5.0
    joint_velocity: float = 5e-3
    torque: float = 2e-3
    slip: float = 1.0
    sharpness: float = 50.0
    terminal: float = 5.0


@dataclass(frozen=True, eq=False)
class MovingBase:
    """The costs of following a command: a function of time.

    Args:
        robot: a robot with drives, feet and a base that is free.
        command: where its base shall be.
        horizon: N; time_step: h [s].
        weights: of a robot of the Go2's size.
        extra: terms that do not move.
    """

    robot: Robot
    command: Command
    horizon: int
    time_step: float
    weights: Weights = field(default_factory=Weights)
    extra: tuple[CostTerm, ...] = ()

    def __call__(self, t: float, relief: Array | None = None) -> tuple[CostTerm, ...]:
        """The terms seen from time t [s]; from the command's end on the same object.

        relief: what `relieved` returned.
        """
        if relief is not None:
            return self._seen_from(t, relief)
        if t >= self.command.end:
            return self._last
        return self._first if t <= 0 else self._seen_from(t)

    def standing(self) -> tuple[CostTerm, ...]:
        """The terms of staying in the stance."""
        return replace(self, command=Reach((0.0, 0.0, 0.0), 0.0, 0.0, 1.0, 1.0))(0.0)

    def goal(self, t: float) -> BasePoses:
        """Where the base shall be at time t [s]."""
        return base_poses(self.robot, self.command, np.array([t]))

    def relieved(self, t: float, x: Array, relief: Array | None) -> Array | None:
        """The relief (3,) after which the reference of a velocity is not farther from the robot
        than a leash: x, y [m] and yaw [rad] of the motion that carries it. A robot that was held or
        pushed goes on from where it is; without that it would run after what it missed.

        Args:
            t: when the state was measured [s].
            x: the state (nx,).
            relief: the one so far; None: none, and none is returned as long as none is needed.
        """
        if not isinstance(self.command, Drive):
            return None
        known = np.zeros(3) if relief is None else relief
        poses = carried(base_poses(self.robot, self.command, np.array([t])), known)
        ahead = poses.position[0, :2] - x[:2]
        heading = rotation_matrix(poses.orientation[0]) @ rotation_matrix(x[3:7]).T
        turn = float(np.arctan2(heading[1, 0], heading[0, 0]))
        way = float(np.linalg.norm(ahead))
        leash = LEASH * RobotSize.of(self.robot).length
        if way <= leash and abs(turn) <= TURN_LEASH:
            return relief
        # Turn the reference about where it is, then pull it in.
        back = float(np.clip(turn, -TURN_LEASH, TURN_LEASH)) - turn
        c, s = np.cos(back), np.sin(back)
        R, place = np.array([[c, -s], [s, c]]), poses.position[0, :2]
        moved = R @ (known[:2] - place) + place - max(1 - leash / max(way, leash), 0.0) * ahead
        return np.append(moved, known[2] + back)

    def _seen_from(self, t: float, relief: Array | None = None) -> tuple[CostTerm, ...]:
        w, size = self.weights, RobotSize.of(self.robot)
        times: Array = t + self.time_step * np.arange(self.horizon + 1, dtype=float)
        poses = base_poses(self.robot, self.command, times)
        poses = poses if relief is None else carried(poses, relief)

        def pose(scale: float, knots: Knots) -> BasePose:
            return BasePose(
                poses.position,
                poses.orientation,
                scale * w.position / size.length**2 * ALONG_AXES,
                scale * w.orientation,
                knots=knots,
            )

        velocity = BaseVelocity(
            poses.linear,
            poses.angular,
            w.linear / size.speed**2,
            w.angular * size.time**2,
            frame="world",
            knots="all",
        )
        posture = Posture(self._postures(poses), w.posture, knots="all")
        moving = (pose(1.0, "running"), pose(w.terminal, "terminal"), velocity, posture)
        return (*moving, *self._effort)

    @cached_property
    def _first(self) -> tuple[CostTerm, ...]:
        return self._seen_from(0.0)

    @cached_property
    def _last(self) -> tuple[CostTerm, ...]:
        moves = 0 < self.command.end < np.inf
        return self._seen_from(self.command.end) if moves else self._first

    @cached_property
    def _postures(self) -> Postures:
        return Postures.along(self.robot, self.command)

    @cached_property
    def _effort(self) -> tuple[CostTerm, ...]:
        """What moving costs, wherever to."""
        w, size = self.weights, RobotSize.of(self.robot)
        return (
            JointVelocity(w.joint_velocity * size.time**2, knots="all"),
            Torque(w.torque / size.torque**2),
            FootSlip(w.slip / size.speed**2, sharpness=w.sharpness / size.length),
            *joint_limit_costs(
                self.robot, velocity_limit=25 / size.time, velocity_weight=0.05 * size.time**2
            ),
            *self.extra,
        )


@dataclass(frozen=True, eq=False)
class Postures:
    """Angles of the driven joints (nj,) as a function of the base's pitch or height.

    Args:
        keys: pitch [rad] or height above the stance [m], ascending, (m,).
        angles: (m, nj).
        by_pitch: which of both.
    """

    keys: Array
    angles: Array
    by_pitch: bool

    @classmethod
    def along(cls, robot: Robot, command: Command) -> Postures:
        """The postures that a command asks for."""
        joints = Parts.of_system("robot", robot).joints("robot", None)
        offset, _, pitches = command.stages()
        heights = offset[:, 2] + raised(robot, pitches)
        slides = isinstance(command, Rear)  # the feet stay where they are
        if len(pitches) == 1:
            return cls(np.zeros(1), robot.stance[joints.q][None], True)
        tilts = product(turned(np.zeros_like(pitches), pitches), robot.stance[3:7])
        angles = np.array(
            [
                tilted_posture(robot, R, np.append(shift[:2] * slides, h))
                for R, shift, h in zip(tilts, offset, heights)
            ]
        )
        keys = pitches if np.ptp(pitches) > 0 else heights
        order = np.argsort(keys)
        return cls(keys[order], angles[order], bool(np.ptp(pitches) > 0))

    def __call__(self, poses: BasePoses) -> Array:
        """(m, nj) at these poses."""
        key = poses.pitch if self.by_pitch else poses.height
        return np.stack([np.interp(key, self.keys, column) for column in self.angles.T], axis=1)
