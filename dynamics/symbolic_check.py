"""Checks of what a user says about a symbolic system: each failure is one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

if TYPE_CHECKING:
    from cito.dynamics.symbolic import SymbolicSystem

SAMPLES = 8


def symbols(name: str, value: Any, length: int | None = None) -> Any:
    """`value` as a column of SX symbols, checked."""
    if not isinstance(value, ca.SX) or value.shape[1] != 1 or not value.is_valid_input():
        raise ValueError(f"`{name}` must be a column of casadi.SX symbols, got {value!r:.80}")
    if length is not None and value.shape[0] != length:
        raise ValueError(f"`{name}` must have {length} symbols, got {value.shape[0]}")
    return value


def expression(name: str, value: Any, shape: tuple[int, int]) -> Any:
    """`value` as an SX of the given shape; numbers and lists of expressions are taken too."""
    try:
        if isinstance(value, list | tuple):
            rows = [row if isinstance(row, list | tuple) else [row] for row in value]
            value = ca.blockcat(rows) if rows else ca.SX(*shape)
        sx = ca.SX(value)
    except (NotImplementedError, TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be a casadi.SX expression, got {value!r:.80}") from error
    if sx.shape != shape:
        raise ValueError(f"`{name}` must have shape {shape}, got {sx.shape}")
    return sx


def check_symbols(system: SymbolicSystem) -> None:
    """Nothing depends on a symbol that it must not hold.

    Raises:
        ValueError: naming the expression and the symbols.
    """
    q, v, theta = (_symbols_in(s) for s in (system.q, system.v, system.parameters))
    state = q | v
    if len(state | theta | _symbols_in(system.u)) < sum(map(ca.SX.numel, system.inputs)):
        raise ValueError("`q`, `v`, `u` and `parameters` must not share symbols")
    for name, sx, allowed in (
        ("mass_matrix", system.mass_matrix, q),
        ("bias", system.bias, state),
        ("actuation", system.actuation, q),
        ("contact velocities", system.contact_jacobian, q),
        ("gap", system.gaps, q),
    ):
        free = [symbol for symbol in ca.symvar(sx) if symbol.element_hash() not in allowed | theta]
        if free:
            raise ValueError(
                f"`{name}` must not depend on {', '.join(map(str, free))}: it may hold the symbols "
                f"passed as {'`q`, `v`' if allowed is state else '`q`'} and `parameters`"
                + (", and must be linear in v" if name == "contact velocities" else "")
            )


def check_numbers(system: SymbolicSystem) -> None:
    """M is symmetric positive definite and each normal row is the gradient of its gap.

    Sampled at q in [-1, 1]^nv; samples at which an expression is not finite are passed over.

    Raises:
        ValueError: naming what does not hold.
    """
    gap_gradient = ca.Function(
        "gap_gradient", [system.parameters, system.q], [ca.jacobian(system.gaps, system.q)]
    )
    random = np.random.default_rng(0)
    for _ in range(SAMPLES):
        q, v = random.uniform(-1, 1, (2, system.nv))
        Mt, _, _, Jt, _ = (entry.full() for entry in system.terms_function(system.nominal, q, v))
        if np.isfinite(Mt).all():
            _check_mass_matrix(Mt, q)
        G = gap_gradient(system.nominal, q).full()
        if np.isfinite(Jt).all() and np.isfinite(G).all():
            _check_normals(system, Jt.T, G)


def _check_mass_matrix(M: Any, q: Any) -> None:
    where = f"at q = {np.array2string(q, precision=3)}"
    if not np.allclose(M, M.T, rtol=1e-9, atol=1e-12 * np.abs(M).max()):
        raise ValueError(f"`mass_matrix` must be symmetric, but is not {where}")
    if np.linalg.eigvalsh(M)[0] <= 0:
        raise ValueError(
            "`mass_matrix` (or the Hessian of `kinetic`) must be positive definite, but is not "
            + where
        )


def _check_normals(system: SymbolicSystem, J: Any, gap_gradient: Any) -> None:
    last_rows = np.cumsum(system.contact_dims, dtype=int) - 1
    for i, (normal, gradient) in enumerate(zip(J[last_rows], gap_gradient)):
        if not np.allclose(normal, gradient, rtol=1e-6, atol=1e-6 * np.abs(normal).max(initial=1)):
            raise ValueError(
                f"`contacts[{i}]` is inconsistent: its normal velocity is {normal} v but its gap "
                f"changes at {gradient} v; the gap must be a distance in metres along a unit "
                "normal and the velocity that of the material point"
            )


def _symbols_in(sx: Any) -> set[int]:
    return {symbol.element_hash() for symbol in ca.symvar(sx)}
