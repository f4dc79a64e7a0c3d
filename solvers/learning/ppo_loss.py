"""The loss of proximal policy optimization (Schulman et al. 2017) and its gradient.

    a ~ N(m, s^2),   ln p = sum_j -z_j^2/2 - ln s_j - ln(2 pi)/2,   z = (a - m)/s
    r = p / p_old,   L = mean( -min(r A, clip(r, 1 - c, 1 + c) A) + c_v (V - R)^2 ) - c_e H
    H = sum_j ln s_j + ln(2 pi e)/2

With w = -r A / n where the first argument is the smaller one, else 0, for a batch of n:

    dL/dm = w z/s,   dL/ds = sum w (z^2 - 1)/s - c_e/s,   dL/dV = 2 c_v (V - R)/n
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.types import Array

LOG_2PI = float(np.log(2 * np.pi))


class Batch(NamedTuple):
    """n steps: observation (n, no), action (n, nj), ln p_old, advantage A and return R (n,)."""

    observation: Array
    action: Array
    log_density: Array
    advantage: Array
    target: Array

    def rows(self, which: NDArray[np.int64] | slice) -> Batch:
        """Some of the steps."""
        return Batch(*(part[which] for part in self))


class Loss(NamedTuple):
    """L, its gradients with respect to m (n, nj), s (nj,) and V (n,), and the share of steps whose
    ratio was out of the clip's range."""

    value: float
    mean: Array
    deviation: Array
    critic: Array
    clipped: float


def log_density(action: Array, mean: Array, deviation: Array) -> Array:
    """ln p (...) of actions (..., nj)."""
    z = (action - mean) / deviation
    density: Array = -(0.5 * (z * z + LOG_2PI) + np.log(deviation)).sum(axis=-1)
    return density


def loss(
    batch: Batch,
    mean: Array,
    deviation: Array,
    value: Array,
    clip: float,
    value_weight: float,
    entropy_weight: float,
) -> Loss:
    """L of a batch for means m (n, nj), deviations s (nj,) and values V (n,)."""
    n, A, s = len(batch.action), batch.advantage, deviation
    z = (batch.action - mean) / s
    r = np.exp(log_density(batch.action, mean, s) - batch.log_density)
    free, held = r * A, np.clip(r, 1 - clip, 1 + clip) * A
    entropy = float((np.log(s) + 0.5 * (LOG_2PI + 1)).sum())
    wrong = value - batch.target
    total = float(np.mean(-np.minimum(free, held) + value_weight * wrong * wrong))
    w = np.where(free <= held, -free / n, 0.0)[:, None]
    return Loss(
        total - entropy_weight * entropy,
        w * z / s,
        (w * (z * z - 1) / s).sum(axis=0) - entropy_weight / s,
        2 * value_weight * wrong / n,
        float(np.mean(abs(r - 1) > clip)),
    )
