"""A symmetric positive definite matrix from a network, with its derivatives.

    H = L L',   L_ii = softplus(raw_i + shift) + floor > 0,   L_ij = raw_ij below the diagonal
    dH = dL L' + L dL'

det H = prod L_ii^2 >= floor^(2 n): H is positive definite wherever the weights are finite.
"""

from __future__ import annotations

import numpy as np

from cito.dynamics.learned.network import Network, Tensor, torch
from cito.dynamics.learned.shape import Shape
from cito.dynamics.types import Array


def entries(n: int) -> int:
    """Of a triangular factor, and so of the network's output: the diagonal first."""
    return n * (n + 1) // 2


def places(n: int) -> Array:
    """0 and 1, (entries, n n): from entries to the factor, row by row."""
    rows, columns = np.tril_indices(n, -1)
    order = [*((i, i) for i in range(n)), *zip(rows.tolist(), columns.tolist())]
    E = np.zeros((len(order), n * n))
    for k, (i, j) in enumerate(order):
        E[k, i * n + j] = 1.0
    return E


class PositiveMatrix:
    """H(q) of a network's output.

    Args:
        shape: n, floor and shift.
        unit: sqrt of the typical size of each diagonal entry, (n,).
    """

    def __init__(self, shape: Shape, unit: Tensor) -> None:
        self._n, self._floor, self._shift = shape.n, shape.floor, shape.shift
        self._places = torch.tensor(places(shape.n), dtype=unit.dtype)
        self._unit = unit[:, None]

    def value(self, network: Network, z: Tensor) -> Tensor:
        """H (B, n, n)."""
        L = self._factor(network.value(z))
        return L @ L.mT

    def first(self, network: Network, z: Tensor, dz: Tensor) -> tuple[Tensor, Tensor]:
        """H (B, n, n) and its derivatives along the directions dz (B, k, nz), (B, k, n, n)."""
        raw, draw = network.first(z, dz)
        L = self._factor(raw)
        n = self._n
        slope = torch.cat([torch.sigmoid(raw[:, :n] + self._shift), torch.ones_like(raw[:, n:])], 1)
        dL = self._placed(slope[:, None] * draw)
        half = dL @ L[:, None].mT
        return L @ L.mT, half + half.mT

    def _factor(self, raw: Tensor) -> Tensor:
        n = self._n
        diagonal = torch.nn.functional.softplus(raw[:, :n] + self._shift) + self._floor
        return self._placed(torch.cat([diagonal, raw[:, n:]], 1))

    def _placed(self, values: Tensor) -> Tensor:
        """Entries (..., m) as lower triangular matrices in units, (..., n, n)."""
        square = (values @ self._places).reshape(*values.shape[:-1], self._n, self._n)
        return self._unit * square
