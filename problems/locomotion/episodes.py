"""How episodes begin: commands, what is randomized, and states about the stance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cito.dynamics.types import Array
from cito.problems.locomotion.driven_steps import Plant
from cito.problems.locomotion.legs import Legs
from cito.problems.locomotion.task import LocomotionTask, Range, Reset


class Episode(NamedTuple):
    """The first state (B, nx), plant, command (B, 3) and phase (B,) [cycles] of B episodes."""

    state: Array
    plant: Plant
    command: Array
    phase: Array


def draw_commands(task: LocomotionTask, count: int, random: np.random.Generator) -> Array:
    """Uniform in the task's range with its margin, some zero: (count, 3) [m/s, rad/s]."""
    low, high, margin = task.command_low, task.command_high, task.command_margin
    command = random.uniform(np.subtract(low, margin), np.add(high, margin), (count, 3))
    command[random.random(count) < task.stand_share] = 0.0
    return command


def draw_plant(
    task: LocomotionTask, count: int, contacts: int, parameters: int, random: np.random.Generator
) -> Plant:
    """Robots and grounds of `count` episodes."""
    ranges, nj = task.randomization, len(task.nominal)

    def between(bounds: Range, *shape: int) -> Array:
        return random.uniform(*bounds, (count, *shape))

    friction = np.repeat(between(ranges.friction, 1), contacts, axis=1)
    mass = np.repeat(np.log(between(ranges.base_mass, 1)), parameters, axis=1)
    strength = between(ranges.motor_strength, nj)
    lag = np.rint(between(ranges.latency) / task.time_step)
    return Plant(friction, mass, strength, lag)


def draw_states(
    task: LocomotionTask, legs: Legs, command: Array, reset: Reset, random: np.random.Generator
) -> Array:
    """States (B, nx) about the nominal pose, the lowest foot at the clearance above the ground."""
    count, nj = len(command), len(task.nominal)

    def around(size: float, *shape: int) -> Array:
        if reset.uniform:
            return random.uniform(-size, size, (count, *shape))
        return size * random.standard_normal((count, *shape))

    x = np.zeros((count, 13 + 2 * nj))
    x[:, 7 : 7 + nj] = task.nominal + around(reset.joints, nj)
    tilt = around(reset.tilt, 2)
    if reset.uniform:  # a direction, and an angle up to the bound
        angle, size = random.uniform(0, 2 * np.pi, count), abs(tilt[:, 0])
        tilt = size[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    size = np.linalg.norm(tilt, axis=1, keepdims=True)
    x[:, 3:5] = 0.5 * np.sinc(size / (2 * np.pi)) * tilt
    x[:, 6] = np.cos(0.5 * size[:, 0])
    up = np.stack(
        [-2 * x[:, 6] * x[:, 4], 2 * x[:, 6] * x[:, 3], 1 - 2 * (x[:, 3:5] ** 2).sum(1)], 1
    )
    feet = legs(x[:, 7 : 7 + nj]).position
    lowest = ((feet @ up[:, :, None])[..., 0] - legs.radius).min(axis=1)
    x[:, 2] = random.uniform(0, reset.clearance, count) - lowest
    moving = random.uniform(0, reset.command_share, (count, 1))
    v = 7 + nj
    x[:, v : v + 6] = around(reset.velocity, 6)
    x[:, v : v + 2] += moving * command[:, :2]
    x[:, v + 5] += moving[:, 0] * command[:, 2]
    x[:, v + 6 :] = around(reset.rates, nj)
    return x
