"""How well a policy walks: rollouts over commands and frictions, and what is counted of them.

Every pair of 25 commands of the task's range and 9 frictions of its range is walked for ten seconds
from a mild and from a rough start, without noise. Errors are counted from one second on and until
a fall: of velocity in the plane |v_xy - command| [m/s] and of the yaw rate [rad/s], root mean
squares over all ticks. `gait_phase` is the share of ticks, averaged over the pairs, in which the
two feet of a pair agree whether they are on the ground.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.types import Array, positive
from cito.problems.locomotion import LocomotionEnvironment, LocomotionTask
from cito.problems.locomotion.episodes import draw_commands
from cito.problems.locomotion.task import MILD, ROUGH, Reset

COMMANDS, FRICTIONS = 25, 9
SETTLE = 1.0  # [s]
RESETS = {"mild": MILD, "rough": ROUGH}
Act = Callable[[Array], Array]


class Rollouts(NamedTuple):
    """B rollouts of T control steps: base velocity (T, B, 6) in its frame, contact (T, B, L) of
    the feet, cost (T, B), command (B, 3), friction (B,), alive (T, B): before a fall."""

    velocity: Array
    contact: NDArray[np.bool_]
    cost: Array
    command: Array
    friction: Array
    alive: NDArray[np.bool_]


def evaluate(
    task: LocomotionTask,
    act: Act,
    friction: float | None = None,
    *,
    seconds: float = 10.0,
    threads: int = 2,
) -> dict[str, Any]:
    """Figures of a policy on its task, of all rollouts and of each kind of start.

    Args:
        task: with the ranges of commands and frictions.
        act: actions (B, nj) of observations (B, n).
        friction: one instead of the range.
        seconds: of a rollout [s].
        threads: of the simulator.

    Returns:
        fall_rate, velocity_rmse [m/s], yaw_rate_rmse [rad/s], cost, rollouts, gait_phase, and the
        same under "mild" and "rough".
    """
    bounds = task.randomization.friction
    if friction is not None:
        bounds = (positive("friction", friction, allow_zero=True),) * 2
    kinds = {
        name: roll_out(task, act, reset, bounds, seconds, threads) for name, reset in RESETS.items()
    }
    return summary(task, kinds)


def summary(task: LocomotionTask, kinds: Mapping[str, Rollouts]) -> dict[str, Any]:
    """Scores of all rollouts together, and of each kind under its name."""
    axes = (1, 1, 1, 0, 0, 1)
    both = Rollouts(
        *(np.concatenate(parts, axis) for axis, parts in zip(axes, zip(*kinds.values())))
    )
    return scores(task, both) | {name: scores(task, own) for name, own in kinds.items()}


def roll_out(
    task: LocomotionTask,
    act: Act,
    reset: Reset,
    friction: tuple[float, float],
    seconds: float = 10.0,
    threads: int = 2,
) -> Rollouts:
    """Rollouts over commands and frictions from one kind of start."""
    still = replace(
        task,
        episode=2 * seconds,
        randomization=replace(task.randomization, reset=reset, observation_noise={}, push=0.0),
    )
    command, mu = grid(task, friction)
    B = len(command)
    e = LocomotionEnvironment(still, B, seed=2, threads=threads, automatic=False)
    e.plant.friction[:] = mu[:, None]
    start = e.state.copy()
    e.put(np.ones(B, bool), start, command, e.random.random(B))
    alive, kept = np.ones(B, bool), []
    for _ in range(round(seconds / task.control_step)):
        a = e.advance(act(e.observe()))
        alive = alive & ~a.fell
        cost = e.cost(a.state, a.action, a.before, a.command, a.phase).total
        nj = len(task.nominal)
        feet = a.step.substeps[-1].motions.modes[:, 0, : e.legs.count] > 0
        kept.append((a.state[:, 7 + nj : 13 + nj], feet, cost, alive))
        if (
            a.fell.any()
        ):  # what has fallen lies in the ground: its place is taken by one that stands
            e.put(a.fell, start[a.fell], command[a.fell], e.phase[a.fell])
        e.renew(a)
    velocity, contact, cost, lived = (np.stack(part) for part in zip(*kept))
    return Rollouts(velocity, contact, cost, command, mu, lived)


def grid(task: LocomotionTask, friction: tuple[float, float]) -> tuple[Array, Array]:
    """Commands (B, 3), one of them zero, and frictions (B,) of all pairs; always the same."""
    moving = replace(task, stand_share=0.0, command_margin=0.0)
    commands = draw_commands(moving, COMMANDS, np.random.default_rng(2026))
    commands[0] = 0.0
    mu = np.linspace(*friction, FRICTIONS)
    return np.repeat(commands, FRICTIONS, axis=0), np.tile(mu, COMMANDS)


def scores(task: LocomotionTask, rollouts: Rollouts) -> dict[str, Any]:
    """What is counted of rollouts, see the head of this file."""
    r = rollouts
    counted = r.alive.copy()
    counted[: round(SETTLE / task.control_step)] = False
    error = r.velocity[..., [0, 1, 5]] - r.command
    agree = np.mean([r.contact[..., i] == r.contact[..., j] for i, j in pairs(task)], axis=0)

    def mean(values: Array, where: NDArray[np.bool_]) -> float | None:
        return float(values[where].mean()) if where.any() else None

    def root(values: Array) -> float | None:
        square = mean(values, counted)
        return None if square is None else float(np.sqrt(square))

    return {
        "fall_rate": float(1 - r.alive[-1].mean()),
        "velocity_rmse": root((error[..., :2] ** 2).sum(-1)),
        "yaw_rate_rmse": root(error[..., 2] ** 2),
        "cost": mean(r.cost, r.alive),
        "rollouts": int(r.alive.shape[1]),
        "gait_phase": mean(agree, counted),
    }


def pairs(task: LocomotionTask) -> list[tuple[int, int]]:
    """Feet that should be on the ground together: of one offset in the gait, else diagonal ones."""
    L = len(task.robot.feet)
    offsets = task.gait.offsets if task.gait else [(i in (1, 2)) / 2 for i in range(L)]
    found = [(i, j) for i in range(L) for j in range(i + 1, L) if offsets[i] == offsets[j]]
    return found or [(0, 0)]  # a robot of two feet has no pair: they agree
