"""The derivative of an equilibrium: what a pose's loss says of its actuation and its bones.

At rest dE/dx_f = 0 on the free vertices. With L(x) a loss of the pose, g = dL/dx, H = d2E/dx2:

    H_ff z = g_f
    dL/dA_p = w_p sym( R' Z + F' dR(Z A) ),   Z = G z          (z is zero on held vertices)
    dL/dx_h = g_h - H_hf z

H is never formed. As H = K - G' w A dR/dM A G and the last term is positive semidefinite and less
than K wherever the pose is stable, z follows from solves with the factors of K alone:

    fixed-point   z+ = z + K^-1 (g - H z), the transposed local/global iteration
    conjugate     conjugate gradients on H with K^-1 as preconditioner: the same work an iteration,
                  the square root of their number

and `newton.adjoint_by_factors` solves with factors of H itself, an oracle for both.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.soft.body import Energy, SoftBody, positions_out
from cito.dynamics.soft.polar import rotation_change, transposed_product
from cito.dynamics.types import Array, positive, whole_number

Method = Literal["conjugate", "fixed-point"]


class Sensitivity(NamedTuple):
    """dL/dA, dL/dx_h of poses, and how well H z = g was solved.

    actuation (b, m, d, d) symmetric; held (b, k, d); residual (b,): |g - H z| / |g|; iterations.
    Without the axis b where `positions` had none.
    """

    actuation: Array
    held: Array
    residual: Array
    iterations: int


class Adjoint(NamedTuple):
    """z (d, n, b), zero on held vertices; |g - H z| / |g| (b,); iterations."""

    z: Array
    residual: Array
    iterations: int


def equilibrium_vjp(
    body: SoftBody,
    actuation: ArrayLike,
    positions: ArrayLike,
    gradient: ArrayLike,
    *,
    method: Method = "conjugate",
    tolerance: float = 1e-10,
    max_iterations: int = 2000,
) -> Sensitivity:
    """Transposed sensitivities of poses at rest.

    Args:
        body, actuation: as of `solve_equilibrium`.
        positions: of the equilibrium, (b, n, d) or (n, d) [m].
        gradient: g = dL/dx, shaped like `positions`.
        method: "conjugate" or "fixed-point"; see the module.
        tolerance: of |g - H z| / |g|.
        max_iterations: of the linear solver; a pose on the edge of buckling may want them all.

    Raises:
        ValueError: wrong shapes, NaN, an unknown method.
    """
    if method not in ("conjugate", "fixed-point"):
        raise ValueError(f"`method` must be conjugate or fixed-point, got {method!r:.40}")
    tolerance = positive("tolerance", tolerance)
    max_iterations = whole_number("max_iterations", max_iterations, 1)
    x, g = body.positions_in("positions", positions), body.positions_in("gradient", gradient)
    A = body.actuation_in("actuation", actuation)
    if not x.shape == g.shape or A.shape[2] != body.m * x.shape[2]:
        raise ValueError(
            f"`actuation`, `positions` and `gradient` must have as many poses, got "
            f"{A.shape[2] // body.m}, {x.shape[2]} and {g.shape[2]}"
        )
    at = body.energy(x, A)
    gains = body.curvature(at.F, at.R, A)
    solve = conjugate_gradients if method == "conjugate" else fixed_point
    found = solve(body, A, at, gains, g, tolerance, max_iterations)
    by_actuation, by_held = transposed(body, A, at, gains, g, found.z)
    single = np.ndim(positions) == 2
    return Sensitivity(
        by_actuation[0] if single else by_actuation,
        by_held[0] if single else by_held,
        found.residual,
        found.iterations,
    )


def transposed(
    body: SoftBody, A: Array, at: Energy, gains: Array, g: Array, z: Array
) -> tuple[Array, Array]:
    """dL/dA (b, m, d, d) and dL/dx_h (b, k, d) from H z = g."""
    d, m = body.d, body.m
    b = z.shape[2]
    Z = body.deformation(z)
    dR = rotation_change(Z, A, at.R, gains)
    P = transposed_product(at.R, Z) + transposed_product(at.F, dR)
    by_actuation = (0.5 * (P + P.swapaxes(0, 1))).reshape(d, d, m, b)
    by_actuation *= body.weights[:, None]
    by_held = (g - body.hessian(z, A, at.R, gains))[:, body.held]
    return np.ascontiguousarray(by_actuation.transpose(3, 2, 0, 1)), positions_out(by_held)


def fixed_point(
    body: SoftBody,
    A: Array,
    at: Energy,
    gains: Array,
    g: Array,
    tolerance: float,
    max_iterations: int,
) -> Adjoint:
    """z+ = z + K^-1 (g - H z)."""
    z = np.zeros_like(g)
    length = _norm(g[:, body.free]) + np.finfo(float).tiny
    for iteration in range(max_iterations + 1):
        r = (g - body.hessian(z, A, at.R, gains))[:, body.free]
        left = _norm(r) / length
        if (left <= tolerance).all() or iteration == max_iterations:
            return Adjoint(z, left, iteration)
        z[:, body.free] += body.step(r)
    raise AssertionError


def conjugate_gradients(
    body: SoftBody,
    A: Array,
    at: Energy,
    gains: Array,
    g: Array,
    tolerance: float,
    max_iterations: int,
) -> Adjoint:
    """H z = g by conjugate gradients, preconditioned by K^-1, every pose with its own step."""
    free = body.free
    z, p = np.zeros_like(g), np.zeros_like(g)
    r = g[:, free].copy()
    length = _norm(r) + np.finfo(float).tiny
    rho = np.zeros(g.shape[2])
    for iteration in range(max_iterations + 1):
        left = _norm(r) / length
        active = left > tolerance
        if not active.any() or iteration == max_iterations:
            return Adjoint(z, left, iteration)
        y = body.step(r)
        before, rho = rho, _dot(r, y)
        beta = np.where(before > 0, rho / np.where(before > 0, before, 1.0), 0.0)
        p[:, free] = y + beta * p[:, free]
        Hp = body.hessian(p, A, at.R, gains)[:, free]
        curvature = _dot(p[:, free], Hp)
        sound = active & (curvature > 0)  # else the pose is no minimum: it keeps what it has
        if not sound.any():
            return Adjoint(z, left, iteration)
        alpha = np.where(sound, rho / np.where(sound, curvature, 1.0), 0.0)
        z[:, free] += alpha * p[:, free]
        r -= alpha * Hp
    raise AssertionError


def _dot(a: Array, b: Array) -> Array:
    dots: Array = np.einsum("inb,inb->b", a, b)
    return dots


def _norm(a: Array) -> Array:
    return np.sqrt(_dot(a, a))
