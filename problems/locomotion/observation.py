"""What a policy observes of the robot, and the transposed derivative of that.

    o = ( up_x, up_y, v (3), w/4 (3), q - q0 (nj), dq/20 (nj), previous action (nj),
          2 command (3), sin and cos of the gait's phase (2, with a gait only) )

The height of the base is not observed: no sensor of such a robot measures it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cito.dynamics.types import Array
from cito.problems.locomotion.features import Features, to_tangent
from cito.problems.locomotion.finite import check_finite
from cito.problems.locomotion.task import LocomotionTask

ANGULAR, RATES, COMMAND = 0.25, 0.05, 2.0  # scales that bring all entries to about one


class Layout(NamedTuple):
    """Where the groups of an observation are."""

    up: slice
    velocity: slice
    angular_velocity: slice
    joints: slice
    rates: slice
    action: slice
    command: slice
    clock: slice

    @property
    def size(self) -> int:
        """Entries of an observation."""
        return int(self.clock.stop)


def layout(task: LocomotionTask) -> Layout:
    """Of the observations of a task."""
    nj, first = len(task.nominal), 0
    slices: list[slice] = []
    for width in (2, 3, 3, nj, nj, nj, 3, 2 if task.gait else 0):
        slices.append(slice(first, first + width))
        first += width
    return Layout(*slices)


class Observer:
    """Observations of a task, in batches."""

    def __init__(self, task: LocomotionTask) -> None:
        self.task, self.layout = task, layout(task)
        self.noise = np.zeros(self.layout.size)
        for name, deviation in task.randomization.observation_noise.items():
            if name not in Layout._fields:
                raise ValueError(
                    f"`observation_noise` must name one of {', '.join(Layout._fields)}, "
                    f"got {name!r}"
                )
            self.noise[getattr(self.layout, name)] = deviation

    def __call__(self, f: Features, action: Array, command: Array, phase: Array) -> Array:
        """Observations (..., n).

        Args:
            f: features of the state.
            action: the one before, (..., nj).
            command: v_x, v_y, yaw rate (..., 3) [m/s, rad/s].
            phase: of the gait (...) [cycles].
        """
        at = self.layout
        o = np.empty((*f.height.shape, at.size))
        o[..., at.up] = f.up[..., :2]
        o[..., at.velocity] = f.twist[..., :3]
        o[..., at.angular_velocity] = ANGULAR * f.twist[..., 3:]
        o[..., at.joints] = f.joints - self.task.nominal
        o[..., at.rates] = RATES * f.rates
        o[..., at.action] = action
        o[..., at.command] = COMMAND * command
        if self.task.gait:
            angle = 2 * np.pi * phase
            o[..., at.clock.start] = np.sin(angle)
            o[..., at.clock.start + 1] = np.cos(angle)
        return o

    def check(self, frames: Array, step: int) -> None:
        """Raise where observations (B, frames, n) of a control step are not finite.

        Raises:
            NotFinite: says which group of the observation, which robot and when.
        """
        if not np.isfinite(frames).all():
            for name, group in self.layout._asdict().items():
                check_finite(f"observation {name}", frames[..., group], step)

    def transposed(self, f: Features, g: Array) -> tuple[Array, Array]:
        """Gradients in the tangent space of the state (..., ndx) and of the previous action
        (..., nj), from one g (..., n) with respect to the observation."""
        at = self.layout
        up = np.zeros_like(f.up)
        up[..., :2] = g[..., at.up]
        twist = np.empty_like(f.twist)
        twist[..., :3] = g[..., at.velocity]
        twist[..., 3:] = ANGULAR * g[..., at.angular_velocity]
        own = Features(
            np.zeros_like(f.height), up, twist, g[..., at.joints], RATES * g[..., at.rates]
        )
        return to_tangent(f, own), g[..., at.action].copy()
