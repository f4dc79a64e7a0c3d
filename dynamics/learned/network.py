"""A multilayer perceptron, and its derivatives along given directions by forward accumulation.

    h_0 = z,   a_l = W_l h_{l-1} + b_l,   h_l = tanh(a_l),   y = a_K

    first    da = W dh,        dh = h' da                            h'  = 1 - h^2
    second   dda = W ddh,      ddh = h' dda + h'' da_i da_j          h'' = -2 h h'

Directions are rows of the same matrix product as the value, so that a derivative costs what one
more sample costs, and the result is an ordinary graph for the gradient with respect to weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

try:
    import torch
except ImportError as error:
    raise ImportError(
        "learned models need PyTorch: pip install '.[learn]' in cito's folder"
    ) from error

from torch import Tensor
from torch.nn.functional import linear

__all__ = ["Network", "Tensor", "torch"]


class Network:
    """Weights W_l (out, in) and b_l (out,) of each layer, in `parameters` one after the other.

    Args:
        sizes: of input, hidden layers and output.
        rng: draws the weights (Glorot's uniform range); biases start at zero.
        dtype: of all tensors.
    """

    def __init__(
        self, sizes: Sequence[int], rng: np.random.Generator, dtype: torch.dtype = torch.float64
    ) -> None:
        self.sizes = tuple(sizes)
        self.parameters: list[Tensor] = []
        for inputs, outputs in zip(self.sizes, self.sizes[1:]):
            width = np.sqrt(6.0 / (inputs + outputs))
            W = rng.uniform(-width, width, (outputs, inputs))
            self.parameters += [
                torch.tensor(W, dtype=dtype, requires_grad=True),
                torch.zeros(outputs, dtype=dtype, requires_grad=True),
            ]

    @property
    def layers(self) -> list[tuple[Tensor, Tensor]]:
        """(W, b) of each layer."""
        return list(zip(self.parameters[::2], self.parameters[1::2]))

    def value(self, z: Tensor) -> Tensor:
        """y (..., outputs) at z (..., inputs)."""
        *hidden, (W, b) = self.layers
        for W_l, b_l in hidden:
            z = torch.tanh(linear(z, W_l, b_l))
        return linear(z, W, b)

    def first(self, z: Tensor, dz: Tensor) -> tuple[Tensor, Tensor]:
        """Value and derivatives along some directions.

        Args:
            z: (B, inputs).
            dz: (B, k, inputs).

        Returns:
            y (B, outputs) and dy (B, k, outputs).
        """
        rows = torch.cat([z[:, None], dz], dim=1)
        *hidden, (W, b) = self.layers
        for W_l, b_l in hidden:
            a = linear(rows, W_l)
            h = torch.tanh(a[:, :1] + b_l)
            rows = torch.cat([h, (1 - h * h) * a[:, 1:]], dim=1)
        y = linear(rows, W)
        return y[:, 0] + b, y[:, 1:]

    def second(self, z: Tensor, dz: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Value, first derivatives, and second ones in the first `count` directions and all.

        The input is taken to depend on the directions linearly: it has no second derivative.

        Args:
            z: (B, inputs).
            dz: (B, k, inputs).
            count: c <= k.

        Returns:
            y (B, outputs), dy (B, k, outputs), ddy (B, c, k, outputs).
        """
        B, k, _ = dz.shape
        one = 1 + k  # rows of ddh start here
        rows = torch.cat([z[:, None], dz], dim=1)
        *hidden, (W, b) = self.layers
        for layer, (W_l, b_l) in enumerate(hidden):
            a = linear(rows, W_l)
            h = torch.tanh(a[:, :1] + b_l)
            h1 = 1 - h * h
            da = a[:, 1:one]
            ddh = (-2 * h * h1)[:, None] * da[:, :count, None] * da[:, None]
            ddh = ddh.reshape(B, count * k, -1)
            if layer > 0:
                ddh = ddh + h1 * a[:, one:]
            rows = torch.cat([h, h1 * da, ddh], dim=1)
        y = linear(rows, W)
        return y[:, 0] + b, y[:, 1:one], y[:, one:].reshape(B, count, k, -1)
