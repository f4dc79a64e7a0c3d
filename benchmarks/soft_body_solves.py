"""What soft bodies cost and how right their derivatives are, for `cito bench soft-body`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from cito.dynamics.soft import SoftBody, block, equilibrium_vjp, held_end, solve_equilibrium
from cito.dynamics.soft.newton import adjoint_by_factors, polished
from cito.dynamics.types import Array

Row = dict[str, Any]
LARGE = {2: ((1.0, 0.2), (110, 22)), 3: ((1.0, 0.2, 0.2), (40, 5, 5))}  # 10^4 vertices


def solve_times(d: int) -> Row:
    """Seconds of the parts of a solve on a large mesh."""
    lengths, cells = LARGE[d]
    mesh = block(lengths, cells).quadratic()
    clock = time.process_time
    begin = clock()
    body = SoftBody(mesh, held_end(mesh).vertices)
    body.step(np.zeros((d, len(body.free), 1)))
    factorized = clock()
    A = bent(mesh.points)
    found = solve_equilibrium(body, A, tolerance=1e-4)
    solved = clock()
    changed = solve_equilibrium(
        body, A + 0.02 * (A - np.eye(d)), start=found.positions, tolerance=1e-4
    )
    again = clock()
    vjp = equilibrium_vjp(body, A, found.positions, np.ones_like(found.positions), tolerance=1e-4)
    return {
        "name": f"solve-{d}d", "seed": 0, "vertices": body.n, "elements": len(mesh.elements),
        "points": body.m, "factor_seconds": factorized - begin,
        "seconds": solved - factorized, "iterations": found.iterations,
        "residual": float(found.residual[0]), "warm_seconds": again - solved,
        "warm_iterations": changed.iterations, "adjoint_seconds": clock() - again,
        "adjoint_iterations": vjp.iterations,
    }  # fmt: skip


def derivatives(d: int) -> Row:
    """Errors against central differences, relative."""
    mesh = block((0.5, 0.25, 0.2)[:d], (2, 1, 1)[:d]).quadratic()
    body = SoftBody(mesh, held_end(mesh).vertices)
    rng = np.random.default_rng(0)
    A = bent(mesh.points)
    upright = mesh.vertices + 0.01 * rng.normal(size=mesh.vertices.shape)
    inverted = mesh.vertices + 0.1 * rng.normal(size=mesh.vertices.shape)
    x = polished(body, A, solve_equilibrium(body, A).positions)
    g, held = rng.normal(size=x.shape), mesh.vertices[body.held]
    dA = rng.normal(size=A.shape)
    dA += dA.swapaxes(1, 2)
    dh, h = rng.normal(size=held.shape), 1e-5

    def loss(step: float) -> float:
        moved = solve_equilibrium(body, A + step * dA, held + step * dh, x)
        return float((g * polished(body, A + step * dA, moved.positions)).sum())

    numeric = (loss(h) - loss(-h)) / (2 * h)
    oracle = adjoint_by_factors(body, A, x, g)
    row: Row = {
        "name": f"derivatives-{d}d", "seed": 0,
        "gradient_error": _gradient_error(body, A, upright),
        "inverted_gradient_error": _gradient_error(body, A, inverted),
        "inverted_elements": _inverted(body, inverted),
    }  # fmt: skip
    for method in ("conjugate", "fixed-point"):
        found = equilibrium_vjp(body, A, x, g, method=method, max_iterations=20_000)
        slope = (found.actuation * dA).sum() + (found.held * dh).sum()
        key = method.replace("-", "_")
        row[f"{key}_error"] = float(abs(numeric / slope - 1))
        row[f"{key}_iterations"] = found.iterations
        off = np.abs(found.actuation - oracle.actuation).max() / np.abs(oracle.actuation).max()
        row[f"{key}_from_exact"] = float(off)
    return row


def bent(X: Array) -> Array:
    """An actuation that bends and shears, at points (m, d)."""
    d = X.shape[1]
    A = np.broadcast_to(np.eye(d), (len(X), d, d)).copy()
    A[:, 0, 0] += 2 * (X[:, -1] - X[:, -1].mean()) * np.cos(2 * X[:, 0])
    A[:, 0, 1] += 0.1 * X[:, 0]
    A[:, 1, 0] = A[:, 0, 1]
    return A


def _gradient_error(body: SoftBody, A: Array, x: Array) -> float:
    """Of dE/dx along eight random directions, over the largest slope."""
    rng, h = np.random.default_rng(1), 1e-6
    inner_A, inner = body.actuation_in("A", A), body.positions_in("x", x)
    gradient = body.energy(inner, inner_A).gradient
    errors, slopes = [], []
    for _ in range(8):
        dx = rng.normal(size=inner.shape)
        high, low = (body.energy(inner + s * h * dx, inner_A).value[0] for s in (1, -1))
        slopes.append(abs((gradient * dx).sum()))
        errors.append(abs((high - low) / (2 * h) - (gradient * dx).sum()))
    return float(max(errors) / max(slopes))


def _inverted(body: SoftBody, x: Array) -> int:
    F = body.deformation(body.positions_in("x", x))
    return int((np.linalg.det(np.moveaxis(F, 2, 0)) < 0).sum())
