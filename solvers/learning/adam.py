"""Adam on a flat vector of parameters, and AdamP's projection for weights whose scale is idle.

    m <- b1 m + (1 - b1) g,   s <- b2 s + (1 - b2) g^2,   w <- w - rate m^ / (sqrt s^ + eps)

AdamP (Heo et al. 2021) takes the part along w out of the step of weights whose gradient is nearly
orthogonal to them, |cos(g, w)| < 0.1 / sqrt(size): there the step only makes the weights grow. A
weight matrix is looked at output by output, and as a whole where one of its outputs is not so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cito.dynamics.types import Array

ORTHOGONAL = 0.1
TINY = 1e-8  # added to norms that are divided by


class Adam:
    """Adam's state for parameters (n,).

    Args:
        size: n.
        betas: b1, b2.
        eps: added to the denominator.
        matrices: where weight matrices are in the parameters, and their shapes (inputs, outputs):
            AdamP treats each on its own; plain Adam by default.
        single: whether the parameters are of single precision.
    """

    def __init__(
        self,
        size: int,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        matrices: Sequence[tuple[slice, tuple[int, int]]] = (),
        single: bool = False,
    ) -> None:
        self.betas, self.eps, self.matrices = betas, eps, tuple(matrices)
        self.mean, self.square = np.zeros((2, size), np.float32 if single else float)
        self.steps = 0

    def update(self, parameters: Array, g: Array, rate: float) -> None:
        """One step on `parameters`, in place."""
        b1, b2 = self.betas
        self.steps += 1
        self.mean += (1 - b1) * (g - self.mean)
        self.square += (1 - b2) * (g * g - self.square)
        step = self.mean / (1 - b1**self.steps)
        step /= np.sqrt(self.square / (1 - b2**self.steps)) + self.eps
        for part, shape in self.matrices:
            _project(
                parameters[part].reshape(shape), g[part].reshape(shape), step[part].reshape(shape)
            )
        parameters -= rate * step


def _project(w: Array, g: Array, step: Array) -> None:
    """Take the part along w out of the step, in place; all are (inputs, outputs)."""
    for one in ("output", "whole"):
        W, G, S = (a if one == "output" else a.reshape(-1, 1) for a in (w, g, step))
        norm = np.sqrt((W * W).sum(axis=0))
        cosine = abs((W * G).sum(axis=0)) / (norm * np.sqrt((G * G).sum(axis=0)) + TINY)
        if cosine.max() < ORTHOGONAL / np.sqrt(len(W)):
            n = W / (norm + TINY)
            S -= n * (n * S).sum(axis=0)
            return


def clip_norm(g: Array, largest: float) -> float:
    """Scale g in place so that its norm is at most `largest`; returns the norm it had."""
    norm = float(np.linalg.norm(g))
    if norm > largest:
        g *= largest / norm
    return norm
