"""Generalized advantage estimation (Schulman et al. 2016).

    d_t = r_t + gamma V'_t - V_t
    A_t = d_t + gamma lambda A_(t+1),      A_(t+1) = 0 where an episode ended with step t

V'_t is the value of what was observed after step t, before a new episode began: zero where the
robot fell, its own where only the time was up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.types import Array


def advantages(
    reward: Array,
    value: Array,
    after: Array,
    ended: Array | NDArray[np.bool_],
    discount: float,
    decay: float,
) -> Array:
    """A (T, B).

    Args:
        reward: r (T, B).
        value: V (T, B) before each step.
        after: V' (T, B).
        ended: whether an episode ended with the step, (T, B).
        discount: gamma.
        decay: lambda.
    """
    A, later = np.empty_like(reward), np.zeros(reward.shape[1])
    for t in reversed(range(len(reward))):
        d = reward[t] + discount * after[t] - value[t]
        A[t] = later = d + discount * decay * np.where(ended[t], 0.0, later)
    return A
