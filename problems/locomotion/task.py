"""Locomotion tasks: a robot follows velocity commands, with a gait that is given or its own.

The running cost of a control step is a sum of weighted squares, see `running_cost`. Weights that
are published for this family of tasks (base height 40, roll-pitch 20, joint velocity 5e-3, hip
roll 1, foot x 3) are the start; where another number is used here, tracking was too weak or steps
never began (`COST_WEIGHTS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, as_vector, positive, whole_number
from cito.problems.robots import load_robot

# Per square of m, rad, m/s, rad/s and actions.
COST_WEIGHTS: dict[str, float] = {
    "height": 40.0,
    "tilt": 20.0,
    "velocity_xy": 8.0,  # published: 4; then 1 m/s is followed at 0.83
    "velocity_z": 0.5,
    "yaw_rate": 4.0,
    "roll_pitch_rate": 0.1,
    "joint_position": 0.2,  # published: 0.5
    "hip_roll": 1.0,
    "joint_velocity": 2e-3,  # published: 5e-3
    "foot_x": 3.0,
    "foot_y": 3.0,
    "foot_z": 500.0,  # of 100 no step comes: a foot that stays down pays less than it may lose
    "knee": 500.0,
    "action_rate": 0.5,
}
# Where no gait is given: steps come from feet that shall be below the hips. With a quarter of this
# weight some seeds never learn to step slowly: they lean after small commands, and fall over.
GAIT_FREE_WEIGHTS = COST_WEIGHTS | {
    "foot_x": 400.0,
    "foot_y": 240.0,
    "foot_z": 0.0,
    "tilt": 40.0,
    "velocity_xy": 20.0,
    "yaw_rate": 10.0,
}
# On the legs of one side a robot sways less with its feet near the middle, and if the other side
# follows soon: feet may go below the body, and steps are short.
PACE_WEIGHTS = COST_WEIGHTS | {"foot_y": 0.0, "hip_roll": 0.2}
KNEE_ROOM = 0.08  # of a knee's axis above the ground, less is punished [m]
Range = tuple[float, float]


@dataclass(frozen=True)
class Gait:
    """A clock for the feet: foot i swings while sin 2 pi (t / period + offset_i) > 0.

    Args:
        period: of a cycle [s].
        offsets: of the feet, in cycles.
        swing_height: of a foot's centre above where it stands, at mid-swing [m].
    """

    period: float
    offsets: tuple[float, ...]
    swing_height: float = 0.08


@dataclass(frozen=True)
class Reset:
    """How far from standing an episode begins.

    Args:
        uniform: whether deviations are uniform up to these bounds, else normal with these
            standard deviations; tilt, joints [rad], velocity of the base [m/s, rad/s], rates of
            the joints [rad/s].
        clearance: largest height of the lowest foot above the ground, uniform [m].
        command_share: largest part of the commanded velocity to begin with, uniform.
    """

    uniform: bool
    tilt: float
    joints: float
    velocity: float
    rates: float
    clearance: float = 0.0
    command_share: float = 0.0


TRAINING = Reset(False, 0.08, 0.1, 0.3, 0.6, clearance=0.02, command_share=1.0)
# A pace is easily upset to the side: it learns from more starts, that are further from standing.
UPSET = replace(TRAINING, tilt=0.12, velocity=0.4)
UPSET_EPISODE = 4.0  # [s]
MILD = Reset(True, 0.0, 0.05, 0.0, 0.0)
ROUGH = Reset(True, 0.2, 0.2, 0.5, 0.5)


@dataclass(frozen=True)
class Randomization:
    """What differs between episodes, each uniform in a range.

    Args:
        friction: of all feet [-].
        base_mass: factor of the base's mass and inertia.
        motor_strength: factor of each motor's torque.
        latency: from an action to its effect [s], at most one control step.
        push: largest change of the base's horizontal velocity [m/s] ...
        push_interval: ... which comes once in so many seconds on average.
        observation_noise: standard deviations of the groups of an observation, by name.
        reset: state that an episode begins with.
    """

    friction: Range = (0.6, 1.0)
    base_mass: Range = (1.0, 1.0)
    motor_strength: Range = (1.0, 1.0)
    latency: Range = (0.0, 0.0)
    push: float = 0.4
    push_interval: float = 2.0
    observation_noise: Mapping[str, float] = field(default_factory=dict)
    reset: Reset = TRAINING

    def __post_init__(self) -> None:
        for name in ("friction", "base_mass", "motor_strength", "latency"):
            low, high = getattr(self, name)
            if not 0 <= low <= high:
                raise ValueError(f"`{name}` must be a range 0 <= low <= high, got {low}, {high}")
        positive("push", self.push, allow_zero=True)
        positive("push_interval", self.push_interval)


@dataclass(frozen=True, eq=False)
class LocomotionTask:
    """A robot, how it is driven and what is wanted of it.

    Args:
        name: of the task.
        robot: with a free base, revolute legs and a motor at every joint.
        nominal: joint angles (nj,) about which actions move the joints [rad].
        height: of the base that is wanted [m].
        action_scale: (nj,) [rad]; targets are nominal + action_scale * action, |action| <= 1.
        gait: None where the robot shall find its own.
        kp, kd: of the motors [N m/rad, N m s/rad].
        time_step, substeps: of the simulator [s]; a control step has so many of them.
        episode: length [s].
        command_low, command_high: v_x, v_y [m/s] and yaw rate [rad/s] that are commanded.
        command_margin: by which commands go beyond that where robots learn, on either side: the
            ends of the range are then not the ends of what was seen.
        stand_share: of episodes with the command zero.
        command_interval: after which a command changes, on average [s].
        history: how many of the last observations a policy sees.
        weights: of the running cost, by the names of `COST_WEIGHTS`.
        randomization: between episodes.
    """

    name: str
    robot: Robot
    nominal: Array
    height: float
    action_scale: Array
    gait: Gait | None
    kp: float = 50.0
    kd: float = 2.0
    time_step: float = 0.01
    substeps: int = 2
    episode: float = 10.0
    command_low: tuple[float, float, float] = (-0.5, -0.3, -0.5)
    command_high: tuple[float, float, float] = (1.0, 0.3, 0.5)
    command_margin: float = 0.0
    stand_share: float = 0.1
    command_interval: float = 12.8
    history: int = 1
    weights: Mapping[str, float] = field(default_factory=lambda: dict(COST_WEIGHTS))
    randomization: Randomization = field(default_factory=Randomization)

    def __post_init__(self) -> None:
        set_, nj = object.__setattr__, len(self.robot.joints)
        if sorted(self.robot.actuated) != sorted(self.robot.joints):
            raise ValueError("`robot` must have a motor at every joint")
        for name in ("nominal", "action_scale"):
            set_(self, name, as_vector(name, getattr(self, name), nj))
        for name in ("height", "kp", "time_step", "episode", "command_interval"):
            set_(self, name, positive(name, getattr(self, name)))
        set_(self, "kd", positive("kd", self.kd, allow_zero=True))
        margin = positive("command_margin", self.command_margin, allow_zero=True)
        set_(self, "command_margin", margin)
        set_(self, "substeps", whole_number("substeps", self.substeps, 1, 1000))
        set_(self, "history", whole_number("history", self.history, 1, 1000))
        unknown = set(self.weights) - set(COST_WEIGHTS)
        if unknown:
            raise ValueError(
                f"`weights` must be named {', '.join(COST_WEIGHTS)}, got {', '.join(unknown)}"
            )
        if self.gait is not None and len(self.gait.offsets) != len(self.robot.feet):
            raise ValueError(
                f"`gait` must have an offset for each of {len(self.robot.feet)} feet, "
                f"got {len(self.gait.offsets)}"
            )
        if self.randomization.latency[1] > self.control_step + 1e-12:
            raise ValueError(f"`latency` must be at most one control step, {self.control_step:g} s")

    @property
    def control_step(self) -> float:
        """Time that an action acts [s]."""
        return self.time_step * self.substeps

    @property
    def episode_steps(self) -> int:
        """Control steps of an episode."""
        return round(self.episode / self.control_step)

    def with_randomization(self, **changes: Any) -> LocomotionTask:
        """The same task with other ranges, by the names of `Randomization`."""
        return replace(self, randomization=replace(self.randomization, **changes))


TROT = Gait(0.5, (0.0, 0.5, 0.5, 0.0))  # feet FL, FR, RL, RR
PACE = Gait(0.36, (0.0, 0.5, 0.0, 0.5))
SLIPPERY: Range = (0.2, 0.4)
SLIPPERY_MARGIN = 0.2
SUMMARIES = {
    "trot": "diagonal legs swing together; friction 0.6 to 1",
    "pace": "legs of one side swing together; friction 0.6 to 1",
    "gait-free": "no gait is given; friction 0.6 to 1",
    "gait-free-slippery": "no gait is given; friction 0.2 to 0.4",
}


def locomotion_task(name: str, robot: str | Robot = "go2", **changes: Any) -> LocomotionTask:
    """A task by name, of the Go2 or a robot of your own.

    Args:
        name: trot, pace, gait-free or gait-free-slippery.
        robot: a name or path as of `load_robot`, or a robot. It moves about its stance, 6 % lower
            than it stands in it.
        changes: of the arguments of `LocomotionTask`, by name.

    Raises:
        ValueError: there is no such task, or the robot does not suit it.
    """
    if name not in SUMMARIES:
        raise ValueError(f"`name` must be one of {', '.join(SUMMARIES)}, got {name!r}")
    known = {entry.name for entry in fields(LocomotionTask)}
    if unknown := set(changes) - known:
        raise ValueError(f"`changes` must be named {', '.join(sorted(known))}, got {unknown}")
    model = robot if isinstance(robot, Robot) else load_robot(robot)
    settings: dict[str, Any] = {
        "nominal": model.stance[7:],
        "height": 0.94 * float(model.stance[2]),
        "gait": {"trot": TROT, "pace": PACE}.get(name),
        "action_scale": np.full(len(model.joints), 0.8),
    }
    if model.name == "go2":
        settings |= {"nominal": np.tile([0.0, 0.8, -1.6], 4), "height": 0.30}
        settings |= {"action_scale": np.tile([0.4, 0.8, 0.8], 4)}
    if settings["gait"] is None:
        settings["weights"] = GAIT_FREE_WEIGHTS
    if name == "pace":
        settings |= {"weights": PACE_WEIGHTS, "episode": UPSET_EPISODE}
        settings["randomization"] = Randomization(reset=UPSET)
    if name == "gait-free-slippery":
        settings["randomization"] = Randomization(friction=SLIPPERY)
        settings["command_margin"] = SLIPPERY_MARGIN
    return LocomotionTask(name=name, robot=model, **(settings | changes))
