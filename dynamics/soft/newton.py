"""The exact Hessian of the energy, factorized: an oracle for equilibria and for their adjoints.

Slower than solves with the constant K wherever the mesh is large, as H changes with the pose, but
without any iteration in the adjoint and with quadratic convergence at the end of a solve.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.linalg import splu

from cito.dynamics.soft.adjoint import Adjoint, Sensitivity, transposed
from cito.dynamics.soft.body import Energy, SoftBody
from cito.dynamics.soft.polar import stress_change
from cito.dynamics.types import Array


def polished(
    body: SoftBody, actuation: ArrayLike, positions: ArrayLike, iterations: int = 10
) -> Array:
    """Newton's method from `positions` (n, d), already near rest, to rounding errors, (n, d)."""
    A = body.actuation_in("actuation", actuation)
    x = body.positions_in("positions", positions)
    at = body.energy(x, A)
    for _ in range(iterations):
        g = at.gradient[:, body.free, 0]
        step = splu(hessian_matrix(body, A, at)).solve(-g.ravel()).reshape(g.shape)
        trial = x.copy()
        trial[:, body.free, 0] += step
        found = body.energy(trial, A, at.R)
        if np.abs(found.gradient[:, body.free]).max() >= np.abs(g).max():
            break
        x, at = trial, found
    return np.ascontiguousarray(x[..., 0].T)


def adjoint_by_factors(
    body: SoftBody, actuation: ArrayLike, positions: ArrayLike, gradient: ArrayLike
) -> Sensitivity:
    """What `adjoint.equilibrium_vjp` finds, of one pose (n, d), by factors of H."""
    A = body.actuation_in("actuation", actuation)
    x, g = body.positions_in("positions", positions), body.positions_in("gradient", gradient)
    at = body.energy(x, A)
    gains = body.curvature(at.F, at.R, A)
    H = hessian_matrix(body, A, at)
    z = np.zeros_like(g)
    z[:, body.free, 0] = splu(H).solve(g[:, body.free, 0].ravel()).reshape(body.d, -1)
    left = (g - body.hessian(z, A, at.R, gains))[:, body.free]
    found = Adjoint(z, np.array([np.linalg.norm(left) / np.linalg.norm(g[:, body.free])]), 1)
    by_actuation, by_held = transposed(body, A, at, gains, g, z)
    return Sensitivity(by_actuation[0], by_held[0], found.residual, found.iterations)


def hessian_matrix(body: SoftBody, A: Array, at: Energy) -> sp.csc_matrix:
    """H of one pose on the free vertices, (d nf, d nf), all x coordinates first.

    Point by point (d^2, d^2): columns are the P = Z - dR(Z A) A of unit matrices Z.
    """
    d, m = body.d, body.m
    gains = body.curvature(at.F, at.R, A)
    units = np.repeat(np.eye(d * d).reshape(d * d, d, d, 1), m, axis=3)
    P = np.stack([stress_change(Z, A, at.R, gains) for Z in units], axis=-1)
    g = body.mesh.gradients  # F_ij = sum_a x_ai g_aj
    blocks = np.einsum(
        "ijekl,eaj,ebl,e->eiakb", P.reshape(d, d, m, d, d), g, g, body.weights, optimize=True
    )
    number = np.full(body.n, -1)
    number[body.free] = np.arange(len(body.free))
    vertex = number[body.mesh.elements[body.mesh.point_elements]]
    rows = vertex[:, None, :] + len(body.free) * np.arange(d)[:, None]
    rows = np.where(vertex[:, None, :] < 0, -1, rows).reshape(m, -1)
    i, j = np.broadcast_arrays(rows[:, :, None], rows[:, None, :])
    kept = (i >= 0) & (j >= 0)
    size = d * len(body.free)
    entries = (blocks.reshape(i.shape)[kept], (i[kept], j[kept]))
    return sp.csc_matrix(entries, shape=(size, size))
