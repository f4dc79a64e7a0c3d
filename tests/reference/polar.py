"""Nearest rotations and their derivatives in numpy: the twin of dynamics/native/soft.inc.

By SVD, and by Newton's method from a start; derivatives by the closed form of
`cito.dynamics.soft.polar`. Arrays are component first, (d, d, m).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.types import Array

FLOOR = 1e-9  # least s_i + s_j that the derivative divides by, in sizes of M
SHARP = 1e-14  # largest axial(R' M) that counts as none, in sizes of M
NEWTON_STEPS = 8


def rotation(M: Array, start: Array | None = None) -> Array:
    """R(M), also of inverted and singular matrices.

    Args:
        M: (d, d, m).
        start: (d, d, m), rotations that may be near R; the identity by default.

    Returns:
        R, (d, d, m), each in SO(d).
    """
    if len(M) == 2:
        return _rotation_2d(M)
    if start is None:
        return _rotation_by_svd(M)
    R = start.copy()
    todo = np.arange(M.shape[2])
    for _ in range(NEWTON_STEPS):
        P = product(R[..., todo], M[..., todo], transpose=True)
        found, step = _newton(P)
        todo = todo[~found]
        if not len(todo):
            return R
        R[..., todo] = product(R[..., todo], _cayley(step[:, ~found]))
    R[..., todo] = _rotation_by_svd(M[..., todo])
    return R


def gain(R: Array, M: Array) -> Array:
    """(tr(S) I - S)^-1 with S = R' M, what turns axial(R' dM) into a spin.

    Args:
        R, M: (d, d, m), with R = rotation(M).

    Returns:
        (1, 1, m) in 2-D, (3, 3, m) in 3-D, symmetric [1 / unit of M].
    """
    P = product(R, M, transpose=True)
    least = FLOOR * np.sqrt((M**2).sum(axis=(0, 1))) + np.finfo(float).tiny
    if len(M) == 2:
        pair: Array = 1 / np.maximum(P[0, 0] + P[1, 1], least)
        return pair[None, None]
    B = _stiffness(P)
    adjugate, det = _adjugate(B)
    # B is positive semidefinite with a trace of 2 (s_1 + s_2 + s_3)
    size = B[0, 0] + B[1, 1] + B[2, 2]
    weak = det <= 1e-6 * size**3
    G = adjugate / np.where(weak, 1.0, det)
    if weak.any():
        values, vectors = np.linalg.eigh(np.moveaxis(B[..., weak], 2, 0))
        inverse = 1 / np.maximum(values, least[weak, None])
        G[..., weak] = np.einsum("mik,mk,mjk->ijm", vectors, inverse, vectors)
    return G


def rotation_derivative(R: Array, gain: Array, dM: Array) -> Array:
    """dR of rotation(M) in the direction dM.

    Args:
        R: rotation(M), (d, d, m).
        gain: that of R and M.
        dM: (d, d, m) or (d, d, m, b), b directions for each matrix.

    Returns:
        dR, shaped like dM; the map is symmetric: <X, dR(Y)> = <dR(X), Y>.
    """
    P = product(R, dM, transpose=True)
    dR: Array = product(R, hat(_along(gain, axial(P))))
    return dR


def axial(P: Array) -> Array:
    """The spin of P - P': (1, ...) in 2-D, (3, ...) in 3-D."""
    if len(P) == 2:
        return np.stack([P[1, 0] - P[0, 1]])
    return np.stack([P[2, 1] - P[1, 2], P[0, 2] - P[2, 0], P[1, 0] - P[0, 1]])


def hat(w: Array) -> Array:
    """[w], the antisymmetric matrix of a spin (1, ...) or (3, ...)."""
    zero = np.zeros_like(w[0])
    if len(w) == 1:
        return np.stack([np.stack([zero, -w[0]]), np.stack([w[0], zero])])
    rows = ([zero, -w[2], w[1]], [w[2], zero, -w[0]], [-w[1], w[0], zero])
    return np.stack([np.stack(row) for row in rows])


def product(A: Array, B: Array, *, transpose: bool = False) -> Array:
    """A B, or A' B, of matrices (d, d, ...); trailing axes broadcast from the left."""
    d = len(A)
    if transpose:
        A = A.swapaxes(0, 1)
    A = A.reshape(*A.shape, *(1,) * (B.ndim - A.ndim))
    B = B.reshape(*B.shape, *(1,) * (A.ndim - B.ndim))
    out = np.empty((d, d, *np.broadcast_shapes(A.shape[2:], B.shape[2:])))
    for i in range(d):
        for j in range(d):
            row = A[i, 0] * B[0, j]
            for k in range(1, d):
                row += A[i, k] * B[k, j]
            out[i, j] = row
    return out


def _along(gain: Array, a: Array) -> Array:
    """gain a, of (k, k, m) and (k, m, ...)."""
    gain = gain.reshape(*gain.shape, *(1,) * (a.ndim - gain.ndim + 1))
    return np.stack([sum((row[k] * a[k] for k in range(len(a))), np.zeros(1)) for row in gain])


def _rotation_2d(M: Array) -> Array:
    """tr(R' M) = c (M_00 + M_11) + s (M_10 - M_01): the angle is that of this vector."""
    c, s = M[0, 0] + M[1, 1], M[1, 0] - M[0, 1]
    length = np.hypot(c, s)
    nothing = length == 0
    length = np.where(nothing, 1.0, length)
    c, s = np.where(nothing, 1.0, c / length), s / length
    return np.stack([np.stack([c, -s]), np.stack([s, c])])


def _rotation_by_svd(M: Array) -> Array:
    """U diag(1, 1, det(U V')) V'."""
    U, _, Vt = np.linalg.svd(np.moveaxis(M, 2, 0))
    U[:, :, -1] *= np.sign(np.linalg.det(U @ Vt))[:, None]
    return np.ascontiguousarray(np.moveaxis(U @ Vt, 0, 2))


def _newton(P: Array) -> tuple[NDArray[np.bool_], Array]:
    """Which P = R' M say that R is the maximum (m,), and Newton's step for the others (3, m)."""
    B = _stiffness(P)
    adjugate, det = _adjugate(B)
    a = axial(P)
    size = np.sqrt((P**2).sum(axis=(0, 1)))
    # leading minors: the second one is an entry of the adjugate
    convex = (B[0, 0] > 0) & (adjugate[2, 2] > 0) & (det > 1e-9 * size**3)
    found = convex & ((a**2).sum(axis=0) <= (SHARP * size) ** 2)
    step = _along(adjugate, a) / np.where(convex, det, np.inf)
    return found, step


def _stiffness(P: Array) -> Array:
    """B = tr(S) I - S with S = sym(P), (3, 3, m)."""
    S = 0.5 * (P + P.swapaxes(0, 1))
    trace = S[0, 0] + S[1, 1] + S[2, 2]
    B = -S
    for i in range(3):
        B[i, i] += trace
    return B


def _adjugate(B: Array) -> tuple[Array, Array]:
    """adj(B) (3, 3, m) and det(B) (m,) of symmetric B."""
    a, b, c = B[0, 0], B[0, 1], B[0, 2]
    e, f, i = B[1, 1], B[1, 2], B[2, 2]
    A, D, E = e * i - f * f, c * f - b * i, b * f - c * e
    F, H, K = a * i - c * c, b * c - a * f, a * e - b * b
    adjugate = np.stack([np.stack([A, D, E]), np.stack([D, F, H]), np.stack([E, H, K])])
    return adjugate, a * A + b * D + c * E


def _cayley(w: Array) -> Array:
    """A rotation that agrees with exp([w]) to second order, (3, m) -> (3, 3, m)."""
    W = hat(w)
    Q: Array = (W + 0.5 * product(W, W)) / (1 + 0.25 * (w**2).sum(axis=0))
    for i in range(3):
        Q[i, i] += 1
    return Q
