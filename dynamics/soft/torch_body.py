"""Poses at rest as a differentiable function of PyTorch tensors.

    x = torch_equilibrium(body, A, held)      # (b, m, d, d), (b, k, d) -> (b, n, d)

Forward: the solver of `equilibrium`, to its tolerance. Backward: the adjoint of `adjoint`, with the
same factors. The gradient with respect to A is that of symmetric matrices. Only double precision on
the CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

try:
    import torch
except ImportError as error:
    raise ImportError(
        "torch_equilibrium needs PyTorch: pip install '.[learn]' in cito's folder"
    ) from error

from cito.dynamics.soft.adjoint import equilibrium_vjp
from cito.dynamics.soft.body import SoftBody
from cito.dynamics.soft.equilibrium import Equilibrium, solve_equilibrium
from cito.dynamics.torch_step import check_doubles
from cito.dynamics.types import Array


def torch_equilibrium(
    body: SoftBody,
    actuation: torch.Tensor,
    held: torch.Tensor | None = None,
    start: ArrayLike | None = None,
    *,
    tolerance: float = 1e-8,
    max_iterations: int = 1000,
) -> torch.Tensor:
    """Poses at rest.

    Args:
        body: what is deformed.
        actuation: A, (b, m, d, d), symmetric.
        held: where the bones hold their vertices, (b, k, d) [m]; the reference by default.
        start: (b, n, d) or (n, d) [m], where the solver starts; the reference by default.
        tolerance: of the solver's residual, and of the adjoint's.
        max_iterations: of the solver, and of the adjoint.

    Returns:
        Positions (b, n, d) [m].

    Raises:
        ValueError: tensors of the wrong shape, NaN, or not of doubles on the CPU.
    """
    for name, value, shape in (
        ("actuation", actuation, (body.m, body.d, body.d)),
        ("held", held, (len(body.held), body.d)),
    ):
        if value is not None:
            _check(name, value, shape)
    positions: torch.Tensor = _Equilibrium.apply(
        actuation, held, body, start, tolerance, max_iterations
    )
    return positions


class _Equilibrium(torch.autograd.Function):  # type: ignore[misc]
    """Actuation and bones to positions."""

    @staticmethod
    def forward(
        ctx: Any,
        actuation: torch.Tensor,
        held: torch.Tensor | None,
        body: SoftBody,
        start: ArrayLike | None,
        tolerance: float,
        max_iterations: int,
    ) -> torch.Tensor:
        found: Equilibrium = solve_equilibrium(
            body, _array(actuation), None if held is None else _array(held), start,
            tolerance=tolerance, max_iterations=max_iterations,
        )  # fmt: skip
        positions = torch.from_numpy(found.positions)
        ctx.save_for_backward(actuation, positions)
        ctx.body, ctx.limits = body, (tolerance, max_iterations)
        return positions

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        actuation, positions = ctx.saved_tensors
        tolerance, max_iterations = ctx.limits
        out = equilibrium_vjp(
            ctx.body, _array(actuation), _array(positions), _array(gradient),
            tolerance=tolerance, max_iterations=max_iterations,
        )  # fmt: skip
        by_held = torch.from_numpy(out.held) if ctx.needs_input_grad[1] else None
        return torch.from_numpy(out.actuation), by_held, None, None, None, None


def symmetric_matrices(entries: torch.Tensor) -> torch.Tensor:
    """(..., 3) or (..., 6), the diagonal and then what is above it, -> (..., d, d)."""
    d = {3: 2, 6: 3}[entries.shape[-1]]
    i, j = np.triu_indices(d, 1)
    order = np.empty((d, d), dtype=np.int64)
    order[np.arange(d), np.arange(d)] = np.arange(d)
    order[i, j] = order[j, i] = d + np.arange(len(i))
    return entries[..., torch.from_numpy(order)]


def _array(value: torch.Tensor) -> Array:
    return np.ascontiguousarray(value.detach().numpy())


def _check(name: str, value: torch.Tensor, shape: tuple[int, ...]) -> None:
    """Refuse what is no tensor (b, *shape) of doubles on the CPU."""
    check_doubles(name, value)
    if value.ndim != len(shape) + 1 or tuple(value.shape[1:]) != shape:
        wanted = ", ".join(["b", *map(str, shape)])
        raise ValueError(f"`{name}` must have shape ({wanted}), got {tuple(value.shape)}")
