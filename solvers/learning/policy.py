"""A policy written by hand: a multilayer perceptron, and its transpose.

    h_0 = o,   h_i = elu(h_(i-1) W_i + b_i),   a = tanh(h_(n-1) W_n + b_n)

One control step asks for one forward pass, and later for the gradient with respect to the
observation only; the gradients of the weights are taken for a whole window at once:

    delta_n = g (1 - a^2),   delta_(i-1) = (delta_i W_i') elu'(h_(i-1)),
    dW_i = sum h_(i-1)' delta_i
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cito.dynamics.types import Array

LAST_LAYER = 0.01  # standard deviation of its weights at the start: first actions are small


class Policy:
    """A multilayer perceptron from observations to actions in [-1, 1].

    Args:
        sizes: of the layers, observation first and action last.
        seed: of the first weights: uniform up to 1/sqrt(inputs), those of the last layer small.
        single: whether numbers are of single precision: a third of the time, seven digits.

    `parameters` (n,) holds all weights and biases; the layers are views of it.
    """

    def __init__(self, sizes: Sequence[int], seed: int = 0, single: bool = False) -> None:
        self.sizes = tuple(int(size) for size in sizes)
        shapes = list(zip(self.sizes[:-1], self.sizes[1:]))
        self.parameters = np.zeros(
            sum((i + 1) * o for i, o in shapes), np.float32 if single else float
        )
        self.weights, self.biases = _views(self.parameters, self.sizes)
        random = np.random.default_rng([seed, 1])
        for W, b in zip(self.weights[:-1], self.biases[:-1]):
            bound = 1 / np.sqrt(len(W))
            W[:], b[:] = (
                random.uniform(-bound, bound, W.shape),
                random.uniform(-bound, bound, len(b)),
            )
        self.weights[-1][:] = LAST_LAYER * random.standard_normal(self.weights[-1].shape)

    def __call__(self, observation: Array) -> Array:
        """Actions (..., nj) for observations (..., n)."""
        return self.layers(observation)[-1]

    def layers(self, observation: Array) -> list[Array]:
        """Outputs of all layers, the observation first and the action last."""
        h = [observation]
        for W, b in zip(self.weights[:-1], self.biases[:-1]):
            z = h[-1] @ W
            z += b
            h.append(_elu(z))
        h.append(np.tanh(h[-1] @ self.weights[-1] + self.biases[-1]))
        return h

    def deltas(self, h: Sequence[Array], g: Array) -> list[Array]:
        """The deltas of all layers, from one g (..., nj) with respect to the action; h as `layers`
        returned them."""
        delta = g * (1 - h[-1] * h[-1])
        found = [delta]
        for W, out in zip(self.weights[:0:-1], h[-2:0:-1]):
            slope = np.minimum(out, 0)  # elu' = 1 or exp z = elu + 1
            slope += 1
            delta = delta @ W.T
            delta *= slope
            found.append(delta)
        return found[::-1]

    def transposed(self, h: Sequence[Array], g: Array) -> tuple[list[Array], Array]:
        """The `deltas`, and the gradient with respect to the observation."""
        found = self.deltas(h, g)
        return found, found[0] @ self.weights[0].T

    def gradient(self, h: Sequence[Array], deltas: Sequence[Array]) -> Array:
        """With respect to `parameters`, of layers (T, B, .) and deltas (T, B, .) of a window."""
        g = np.empty_like(self.parameters)
        for W, b, x, delta in zip(*_views(g, self.sizes), h, deltas):
            d = delta.reshape(-1, delta.shape[-1])
            np.matmul(x.reshape(len(d), -1).T, d, out=W)
            d.sum(axis=0, out=b)
        return g


def _elu(z: Array) -> Array:
    """z, or exp z - 1 where that is negative; z is overwritten."""
    e = np.minimum(z, 0)
    if z.dtype == np.float32:  # numpy's expm1 takes four times as long as its exp
        np.exp(e, out=e)
        e -= 1
    else:
        np.expm1(e, out=e)
    return np.maximum(z, e, out=z)


def _views(flat: Array, sizes: Sequence[int]) -> tuple[list[Array], list[Array]]:
    """Weights and biases of all layers in one vector, as views."""
    weights, biases, first = [], [], 0
    for i, o in zip(sizes[:-1], sizes[1:]):
        weights.append(flat[first : first + i * o].reshape(i, o))
        biases.append(flat[first + i * o : first + (i + 1) * o])
        first += (i + 1) * o
    return weights, biases
