"""Actuation as a function of the material point and of a pose's code: networks in PyTorch.

    A(X, z) = 1 + symmetric(out(X, z)),       X in [-1, 1]^d (the body's box), z (L,) the code

- `siren`: h_0 = X, h_{i+1} = sin(omega (1 + g_i(z)) (W_i h_i + b_i) + s_i(z)), out = W h + b, with
  gains g and shifts s from a small network of the code. It knows no mesh: any point of any mesh of
  the body can be asked for.
- `mlp`: a plain network of (X, z), tanh.
- `decoder`: the code to one A for each element of one mesh, tanh. It means nothing on another mesh.

All begin at A = 1. What bones do comes from a network of the same code, `BoneMotion`. Everything is
in double precision and seeded.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from cito.dynamics.soft.torch_body import symmetric_matrices

Kind = Literal["siren", "mlp", "decoder"]
KINDS: tuple[Kind, ...] = ("siren", "mlp", "decoder")
FIRST_OUTPUT = 1e-3  # largest weight of the last layers before training


class Siren(nn.Module):  # type: ignore[misc]
    """The modulated sine network, `layers` sine layers of `width`.

    Args:
        d: of the points.
        code: L.
        width, layers: of the sine layers; the code's own network has one layer, of width / 2.
        omega: frequency of the sines at unit weights.
    """

    def __init__(self, d: int, code: int, width: int, layers: int, omega: float) -> None:
        super().__init__()
        inputs = [d] + [width] * (layers - 1)
        self.layers = nn.ModuleList(nn.Linear(n, width) for n in inputs)
        self.modulation = nn.Sequential(
            nn.Linear(code, width // 2), nn.Tanh(), nn.Linear(width // 2, 2 * width * layers)
        )
        self.out = nn.Linear(width, d * (d + 1) // 2)
        self.omega = omega
        for i, layer in enumerate(self.layers):
            bound = 1 / d if i == 0 else math.sqrt(6 / width) / omega
            nn.init.uniform_(layer.weight, -bound, bound)
        _small(self.out)

    def forward(self, X: Tensor, z: Tensor) -> Tensor:
        """Points (p, d), codes (b, L) -> entries (b, p, d(d+1)/2)."""
        gains, shifts = self.modulation(z).reshape(len(z), 2, len(self.layers), 1, -1).unbind(1)
        h = X
        for i, layer in enumerate(self.layers):
            h = torch.sin(self.omega * (1 + gains[:, i]) * layer(h) + shifts[:, i])
        entries: Tensor = self.out(h)
        return entries


class Plain(nn.Module):  # type: ignore[misc]
    """A network of points and codes side by side, `layers` tanh layers of `width`."""

    def __init__(self, d: int, code: int, width: int, layers: int) -> None:
        super().__init__()
        sizes = [d + code] + [width] * layers
        hidden = [m for n, k in zip(sizes, sizes[1:]) for m in (nn.Linear(n, k), nn.Tanh())]
        self.body = nn.Sequential(*hidden, nn.Linear(width, d * (d + 1) // 2))
        _small(self.body[-1])

    def forward(self, X: Tensor, z: Tensor) -> Tensor:
        """Points (p, d), codes (b, L) -> entries (b, p, d(d+1)/2)."""
        b, p = len(z), len(X)
        both = torch.cat([X.expand(b, -1, -1), z[:, None].expand(-1, p, -1)], dim=-1)
        entries: Tensor = self.body(both)
        return entries


class Decoder(nn.Module):  # type: ignore[misc]
    """The code to the entries of each of `elements` elements, one tanh layer of `width`."""

    def __init__(self, d: int, code: int, width: int, elements: int) -> None:
        super().__init__()
        self.elements = elements
        self.body = nn.Sequential(
            nn.Linear(code, width), nn.Tanh(), nn.Linear(width, elements * d * (d + 1) // 2)
        )
        _small(self.body[-1])

    def forward(self, element: Tensor, z: Tensor) -> Tensor:
        """Elements of the points (p,), codes (b, L) -> entries (b, p, d(d+1)/2)."""
        entries: Tensor = self.body(z).reshape(len(z), self.elements, -1)[:, element]
        return entries


class BoneMotion(nn.Module):  # type: ignore[misc]
    """The code to the spin and the translation of one bone; still before training.

    Args:
        d: of space.
        code: L.
        length: what translations are parts of [m].
    """

    def __init__(self, d: int, code: int, length: float) -> None:
        super().__init__()
        spins = d * (d - 1) // 2
        self.body = nn.Sequential(nn.Linear(code, 16), nn.Tanh(), nn.Linear(16, spins + d))
        _small(self.body[-1])
        self.scale = torch.tensor([1.0] * spins + [length] * d, dtype=torch.float64)

    def forward(self, z: Tensor) -> Tensor:
        """(b, L) -> (b, 3) or (b, 6) [rad, m]."""
        motion: Tensor = self.scale * self.body(z)
        return motion


def moved_bone(motion: Tensor, X: Tensor, hinge: Tensor) -> Tensor:
    """X (k, d) turned about `hinge` and shifted, by motions (b, 3) or (b, 6) -> (b, k, d)."""
    d = X.shape[1]
    spins = d * (d - 1) // 2
    spin, shift = motion[:, :spins], motion[:, None, spins:]
    order = [[-1, 0], [0, -1]] if d == 2 else [[-1, 2, 1], [2, -1, 0], [1, 0, -1]]
    signs = [[0, -1], [1, 0]] if d == 2 else [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]
    hat = spin[:, torch.tensor(order)] * torch.tensor(signs, dtype=torch.float64)
    return hinge + shift + (X - hinge) @ torch.linalg.matrix_exp(hat).mT


def actuation(entries: Tensor) -> Tensor:
    """Entries (b, p, d(d+1)/2) -> A = 1 + symmetric, (b, p, d, d)."""
    A = symmetric_matrices(entries)
    return A + torch.eye(A.shape[-1], dtype=A.dtype)


def make_field(
    kind: Kind, d: int, code: int, elements: int, width: int, layers: int, omega: float
) -> nn.Module:
    """A field of a kind with about the parameters that a SIREN of `width` and `layers` has.

    Args:
        kind: "siren", "mlp" or "decoder".
        d: of the points.
        code: L.
        elements: of the mesh, for the decoder.
        width, layers, omega: of the SIREN, even where another kind is wanted; this one's width is
            the largest with no more parameters (1 at least).

    Raises:
        ValueError: an unknown kind.
    """
    if kind not in KINDS:
        raise ValueError(f"`field` must be one of {', '.join(KINDS)}, got {kind!r:.40}")
    budget = parameter_count(Siren(d, code, width, layers, omega))
    if kind == "siren":
        made: nn.Module = Siren(d, code, width, layers, omega)
        return made.double()
    best = 1
    while parameter_count(_other(kind, d, code, best + 1, layers, elements)) <= budget:
        best += 1
    return _other(kind, d, code, best, layers, elements).double()


def parameter_count(module: Any) -> int:
    """How many numbers are learned."""
    return sum(p.numel() for p in module.parameters())


def _other(kind: Kind, d: int, code: int, width: int, layers: int, elements: int) -> nn.Module:
    if kind == "mlp":
        return Plain(d, code, width, layers)
    return Decoder(d, code, width, elements)


def _small(layer: nn.Linear) -> None:
    nn.init.uniform_(layer.weight, -FIRST_OUTPUT, FIRST_OUTPUT)
    nn.init.zeros_(layer.bias)
