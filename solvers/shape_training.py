"""Settings of the training of shapes, and its small parts: points, first codes, edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from cito.dynamics.soft.fields import Kind
from cito.dynamics.types import Array, as_array, positive, whole_number


@dataclass(frozen=True)
class ShapeTraining:
    """Settings of a training.

    Args:
        field: "siren", "mlp" or "decoder", see `cito.dynamics.soft.fields`.
        code: L, numbers of a code.
        width, layers, omega: of the SIREN; other fields get as many parameters as it has.
        steps: of Adam, each with all shapes.
        rate: of Adam, at the beginning.
        strain_weight: w.
        code_weight: w_z.
        tolerance: of the equilibria while training.
        seed: of the parameters.

    Raises:
        ValueError: a number out of range.
    """

    field: Kind = "siren"
    code: int = 4
    width: int = 20
    layers: int = 3
    omega: float = 5.0
    steps: int = 300
    rate: float = 1e-2
    strain_weight: float = 1.0
    code_weight: float = 1e-7
    tolerance: float = 3e-5
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("code", 1), ("width", 2), ("layers", 1), ("steps", 1), ("seed", 0)):
            whole_number(name, getattr(self, name), least)
        for name in ("omega", "rate", "tolerance"):
            positive(name, getattr(self, name))
        for name in ("strain_weight", "code_weight"):
            positive(name, getattr(self, name), allow_zero=True)


class Progress(NamedTuple):
    """A step's number, the loss before it, and the RMS distance of vertices over the size."""

    step: int
    loss: float
    error: float


def unit_points(vertices: Array, points: Array) -> Array:
    """Points as parts of half the longest side of the box of `vertices`, from its middle."""
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    units: Array = (points - (low + high) / 2) / ((high - low).max() / 2)
    return units


def smooth_codes(b: int, length: int) -> Array:
    """Codes on a curve: cosines of 1, 2, ... half periods over the sequence, (b, L)."""
    t = (np.arange(b) + 0.5) / b
    codes: Array = 0.5 * np.cos(np.pi * t[:, None] * np.arange(1, length + 1))
    return codes


def checked_codes(codes: ArrayLike, length: int) -> Tensor:
    return torch.from_numpy(as_array("codes", codes, (None, length)))


def edge_ends(edges: Any, vertices: Array) -> tuple[Tensor, Tensor, Tensor]:
    lengths = np.linalg.norm(vertices[edges[:, 1]] - vertices[edges[:, 0]], axis=1)
    return (
        torch.from_numpy(np.array(edges[:, 0])),
        torch.from_numpy(np.array(edges[:, 1])),
        torch.from_numpy(lengths[:, None]),
    )
