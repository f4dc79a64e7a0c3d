"""Adam on a flat vector of parameters, and AdamP's projection for weights whose scale is idle.

    m <- b1 m + (1 - b1) g,   s <- b2 s + (1 - b2) g^2,   w <- w - rate m^ / (sqrt s^ + eps)

AdamP (Heo et al. 2021) takes the part along w out of the step of a weight matrix whose gradient is
nearly orthogonal to it, cos(g, w) < 0.1 / sqrt(size): there the step only makes the weights grow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cito.dynamics.types import Array

ORTHOGONAL = 0.1


class Adam:
    """Adam's state for parameters (n,).

    Args:
        size: n.
        betas: b1, b2.
        eps: added to the denominator.
        matrices: slices of the parameters that AdamP treats each on its own; plain Adam by default.
    """

    def __init__(
        self,
        size: int,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        matrices: Sequence[slice] = (),
    ) -> None:
        self.betas, self.eps, self.matrices = betas, eps, tuple(matrices)
        self.mean, self.square, self.steps = np.zeros(size), np.zeros(size), 0

    def update(self, parameters: Array, g: Array, rate: float) -> None:
        """One step on `parameters`, in place."""
        b1, b2 = self.betas
        self.steps += 1
        self.mean += (1 - b1) * (g - self.mean)
        self.square += (1 - b2) * (g * g - self.square)
        step = self.mean / (1 - b1**self.steps)
        step /= np.sqrt(self.square / (1 - b2**self.steps)) + self.eps
        for part in self.matrices:
            w, along = parameters[part], g[part]
            norm = np.linalg.norm(w)
            if abs(w @ along) < ORTHOGONAL * norm * np.linalg.norm(along) / np.sqrt(len(w)):
                step[part] -= (w @ step[part]) / (norm * norm + self.eps) * w
        parameters -= rate * step


def clip_norm(g: Array, largest: float) -> float:
    """Scale g in place so that its norm is at most `largest`; returns the norm it had."""
    norm = float(np.linalg.norm(g))
    if norm > largest:
        g *= largest / norm
    return norm
