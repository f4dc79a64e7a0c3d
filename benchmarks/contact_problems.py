"""Random contact problems, hard ones included, and the residual that judges their solutions.

Each batch has one layout (dims) and one kind:

    spectral      random eigenvectors, eigenvalues log-uniform down to 1/cond, any b
    articulated   A = J M^-1 J' of nv coordinates, often fewer than rows (redundant), b = J v
    masses        a chain of bodies of mass 1 to 1000 kg, each contact between neighbours
    duplicate     every contact twice
    degenerate    built backwards from a solution with contacts at the apex (impulse and velocity
                  zero), grazing, on the edge of the cone without slip, besides ordinary ones
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.types import Array, IntArray

KINDS = ("spectral", "articulated", "masses", "duplicate", "degenerate")


class Batch(NamedTuple):
    """Contact problems of one layout: A (m,n,n) [1/kg], b (m,n) [m/s], mu (m,nc), cond (m)."""

    kind: str
    dims: IntArray
    A: Array
    b: Array
    mu: Array
    cond: Array


def random_batches(count: int, seed: int = 0, size: int = 100) -> Iterator[Batch]:
    """`count` problems in batches of `size`: 1 to 8 contacts, mu from 0 to 2, cond up to 1e8."""
    rng = np.random.default_rng(seed)
    for start in range(0, count, size):
        kind = KINDS[(start // size) % len(KINDS)]
        yield random_batch(rng, kind, min(size, count - start))


def random_batch(rng: np.random.Generator, kind: str, m: int) -> Batch:
    """`m` problems of one kind and one random layout."""
    nc = int(rng.integers(1, 9))
    if kind == "duplicate":
        nc = 2 * ((nc + 1) // 2)
    dims = rng.choice([1, 2, 3], size=nc, p=[0.1, 0.2, 0.7]).astype(np.int32)
    if rng.random() < 0.5:
        dims[:] = 3
    if kind == "duplicate":
        dims[nc // 2 :] = dims[: nc // 2]
    mu = rng.uniform(0, 2, (m, nc)) * (rng.random((m, nc)) > 0.05)
    J = _square_root(rng, kind, dims, m)
    v = rng.normal(size=(m, J.shape[2]))
    b = np.einsum("mij,mj->mi", J, v)
    if kind == "duplicate":
        mu[:, nc // 2 :] = mu[:, : nc // 2]
    A = np.einsum("mij,mkj->mik", J, J)
    A = 0.5 * (A + A.transpose(0, 2, 1))
    if kind == "degenerate":
        impulse, velocity = _degenerate_solution(rng, dims, mu)
        b = velocity - np.einsum("mij,mj->mi", A, impulse)
    units = 10 ** rng.uniform(-2, 2, (2, m))  # of impulse and velocity
    A *= (units[1] / units[0])[:, None, None]
    b *= units[1][:, None]
    singular = np.linalg.svd(J, compute_uv=False)
    nonzero = np.where(singular > 1e-10 * singular[:, :1], singular, np.inf).min(axis=1)
    return Batch(kind, dims, A, b, mu, (singular[:, 0] / nonzero) ** 2)


def _square_root(rng: np.random.Generator, kind: str, dims: IntArray, m: int) -> Array:
    """J (m, n, k) with A = J J'."""
    n = int(dims.sum())
    if kind in ("spectral", "degenerate"):
        decades = rng.uniform(0, 8 if kind == "spectral" else 4, (m, 1))
        Q = np.linalg.qr(rng.normal(size=(m, n, n)))[0]
        exponents = np.sort(rng.random((m, n)), axis=1)
        exponents[:, 0], exponents[:, -1] = 0, 1
        return np.asarray(Q * 10 ** (-0.5 * decades * exponents)[:, None, :])
    if kind == "masses":
        return _chain(rng, dims, m)
    half = dims[: len(dims) // 2] if kind == "duplicate" else dims
    nv = int(rng.integers(1, n + 7))
    J = rng.normal(size=(m, int(half.sum()), nv))
    J *= 10 ** rng.uniform(-0.75, 0.75, (m, 1, nv))
    if kind == "duplicate":
        J = np.concatenate([J, J], axis=1)
    return J


def _chain(rng: np.random.Generator, dims: IntArray, m: int) -> Array:
    """Point masses in a row, each contact between one and the next, the first with the ground."""
    nc = len(dims)
    inverse_root_mass = 10 ** rng.uniform(-1.5, 0, (m, nc))
    J = np.zeros((m, int(dims.sum()), 3 * nc))
    row = 0
    for i, d in enumerate(dims):
        for a in range(d):
            axis = a if a < d - 1 else 2
            J[:, row, 3 * i + axis] = inverse_root_mass[:, i]
            if i:
                J[:, row, 3 * (i - 1) + axis] = -inverse_root_mass[:, i - 1]
            row += 1
    return J


def _degenerate_solution(
    rng: np.random.Generator, dims: IntArray, mu: Array
) -> tuple[Array, Array]:
    """Impulses and velocities that solve the hard law, many of them at its corners."""
    m, n = len(mu), int(dims.sum())
    impulse, velocity = np.zeros((m, n)), np.zeros((m, n))
    row = 0
    for i, d in enumerate(dims):
        N = row + d - 1
        # separating, clamping, sliding, apex, grazing, edge without slip
        mode = rng.integers(0, 6, m)
        t = rng.normal(size=(m, d - 1))
        t /= np.maximum(np.linalg.norm(t, axis=1, keepdims=True), 1e-300)
        normal = rng.exponential(size=m)
        slip = np.where(np.isin(mode, (0, 2, 4)), rng.exponential(size=m), 0)
        loaded = np.isin(mode, (1, 2, 5))
        share = np.where(mode == 1, rng.random(m), 1.0)
        velocity[:, row:N] = slip[:, None] * t
        velocity[:, N] = np.where(mode == 0, rng.exponential(size=m), 0)
        impulse[:, N] = np.where(loaded, normal, 0)
        impulse[:, row:N] = -(mu[:, i] * share * impulse[:, N])[:, None] * t
        row += d
    return impulse, velocity


def scaled_residual(
    dims: IntArray, A: Array, b: Array, mu: Array, impulse: Array
) -> NDArray[np.longdouble]:
    """Largest violation of K_mu, of K_mu* and of <lambda, sigma + Gamma> = 0, per problem, scaled.

    Velocities are formed anew in extended precision. Shapes as in `Batch`, impulse (m,n).
    """
    wide = np.longdouble
    l, A_, b_ = impulse.astype(wide), A.astype(wide), b.astype(wide)
    s = np.einsum("mij,mj->mi", A_, l) + b_
    normals = np.cumsum(dims) - 1
    sigma_ref = np.maximum(np.abs(b_).max(axis=1, initial=0), wide(1e-3))
    A_NN = A_[:, normals, normals].max(axis=1, initial=0)
    lambda_ref = sigma_ref / np.where(A_NN > 0, A_NN, 1)
    worst = np.zeros(len(A), dtype=wide)
    for i, (d, N) in enumerate(zip(dims, normals)):
        k = mu[:, i].astype(wide) if d > 1 else np.zeros(len(A), dtype=wide)
        T = slice(N - d + 1, N)
        r, slip = np.linalg.norm(l[:, T], axis=1), np.linalg.norm(s[:, T], axis=1)
        s_N = s[:, N] + k * slip
        primal = _distance(r, l[:, N], k, wide(1)) / lambda_ref
        dual = _distance(slip, s_N, wide(1), k) / sigma_ref
        product = np.abs((l[:, T] * s[:, T]).sum(axis=1) + l[:, N] * s_N)
        worst = np.max([worst, primal, dual, product / (lambda_ref * sigma_ref)], axis=0)
    return worst


def _distance(r: Any, z: Any, p: Any, q: Any) -> Any:
    """Distance of points (r >= 0, z) to the cone { q r <= p z }."""
    outside = (q * r - p * z) / np.sqrt(p * p + q * q)
    apex = np.hypot(r, z)
    return np.where((z >= 0) & (q * r <= p * z), 0, np.where(p * r <= -q * z, apex, outside))


def quadruped_batch(m: int, seed: int = 0) -> Batch:
    """Four feet of a 16 kg quadruped in random postures and motion; all modes occur.

    A = J M^-1 J' with 18 coordinates, b = J v with one step of gravity and gaps of centimetres.
    """
    rng = np.random.default_rng(seed)
    link, hip, step = 0.213, np.array([[x, y] for x in (0.19, -0.19) for y in (0.14, -0.14)]), 0.02
    A, b = np.empty((m, 12, 12)), np.empty((m, 12))
    for k in range(m):
        J, M = np.zeros((12, 18)), np.zeros((18, 18))
        M[:6, :6] = np.diag([16.1, 16.1, 16.1, 0.13, 0.28, 0.32])
        for i in range(4):
            foot, J_leg = _leg(rng.normal([0, 0.8, -1.6], [0.2, 0.3, 0.3]), link, hip[i])
            rows, leg = slice(3 * i, 3 * i + 3), slice(6 + 3 * i, 9 + 3 * i)
            x, y, z = foot
            J[rows, :3] = np.eye(3)
            J[rows, 3:6] = [[0, z, -y], [-z, 0, x], [y, -x, 0]]
            J[rows, leg] = J_leg
            M[leg, leg] = np.diag([0.04, 0.04, 0.025]) + [[0, 0, 0], [0, 0, 0.008], [0, 0.008, 0]]
            M[:3, leg] = 0.24 * J_leg  # the leg's mass times how its centre follows the foot
            M[leg, :3] = M[:3, leg].T
        v = rng.normal(size=18) * np.repeat([0.3, 0.6, 2.0], [3, 3, 12])
        v[2] -= 9.81 * step
        A[k] = J @ np.linalg.solve(M, J.T)
        b[k] = J @ v
        b[k, 2::3] += np.maximum(0, rng.normal(-0.3, 0.6, 4))  # gaps over the time step
    A = 0.5 * (A + A.transpose(0, 2, 1))
    dims = np.full(4, 3, dtype=np.int32)
    return Batch("quadruped", dims, A, b, rng.uniform(0.4, 1, (m, 4)), np.linalg.cond(A))


def _leg(q: Array, link: float, hip: Array) -> tuple[Array, Array]:
    """Foot in the base frame and d foot / d q of a leg with abduction, hip and knee."""
    side = 0.09 * np.sign(hip[1])
    c0, s0 = np.cos(q[0]), np.sin(q[0])
    x = -link * (np.sin(q[1]) + np.sin(q[1] + q[2]))
    z = -link * (np.cos(q[1]) + np.cos(q[1] + q[2]))
    x_q = np.array([0, z, -link * np.cos(q[1] + q[2])])
    z_q = np.array([0, -x, link * np.sin(q[1] + q[2])])
    foot = np.array([hip[0] + x, hip[1] + side * c0 - z * s0, side * s0 + z * c0])
    turn = np.array([1.0, 0, 0])
    y_q = -s0 * z_q + turn * (-side * s0 - z * c0)
    return foot, np.stack([x_q, y_q, c0 * z_q + turn * (side * c0 - z * s0)])
