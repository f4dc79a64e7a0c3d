"""Sample enhancement: transitions near real ones, to first order.

From a real transition (x, a, r, x+) and any small dx (in the tangent space at x) and da,

    dx+ = f_x dx + f_a da,   dr = r_x dx+ + r_a da
    (x (+) dx,  a + da,  r + dr,  x+ (+) dx+)

is one that was not seen, right up to terms of second order. The Jacobians are the simulator's,
those of the reward the task's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cito.dynamics.types import Array
from cito.problems.episodic import EpisodicTask


class Transitions(NamedTuple):
    """state (B, nx), action (B, nu), reward (B,), next (B, nx)."""

    state: Array
    action: Array
    reward: Array
    next: Array


def neighbours(task: EpisodicTask, real: Transitions, dx: Array, da: Array) -> Transitions:
    """One neighbour of each transition.

    Args:
        task: whose transitions they are.
        real: as they were seen.
        dx, da: how far away, (B, ndx), (B, nu); actions stay within [-1, 1].
    """
    integrate = task.dynamics.integrate
    step = task.step(real.state, real.action)
    f, r = task.jacobians(step), task.reward(real.next, real.action)
    action = np.clip(real.action + da, -1.0, 1.0)
    da = action - real.action
    dx_next = np.einsum("bij,bj->bi", f.state, dx) + np.einsum("bij,bj->bi", f.action, da)
    dr = (r.state * dx_next).sum(axis=1) + (r.action * da).sum(axis=1)
    return Transitions(
        integrate(real.state, dx), action, real.reward + dr, integrate(real.next, dx_next)
    )


def drawn_neighbours(
    task: EpisodicTask, real: Transitions, count: int, radius: float, random: np.random.Generator
) -> Transitions:
    """`count` neighbours of each transition, uniformly within `radius` of every coordinate."""
    many = Transitions(*(np.repeat(part, count, axis=0) for part in real))
    dx = random.uniform(-radius, radius, (len(many.state), task.dynamics.ndx))
    da = random.uniform(-radius, radius, many.action.shape)
    return neighbours(task, many, dx, da)
