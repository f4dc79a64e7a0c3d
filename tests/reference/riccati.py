"""The backward pass of Gauss-Newton DDP in plain numpy: the oracle of the native recursion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

Array = NDArray[np.float64]


class Model(NamedTuple):
    """A linear-quadratic model along a trajectory, with gaps d; shapes as of `_native.riccati`."""

    f_x: Array
    f_u: Array
    l_x: Array
    l_u: Array
    l_xx: Array
    l_uu: Array
    l_ux: Array
    gaps: Array


class Policy(NamedTuple):
    """du = k + K dx;  the predicted change of the cost is dV[0] + dV[1] for the full step."""

    k: Array
    K: Array
    dV: Array


def riccati(
    m: Model, reg: float = 0.0, lower: Array | None = None, upper: Array | None = None
) -> Policy:
    """Backward pass; lower, upper (N, nu) bound du."""
    N, ndx, nu = m.f_u.shape
    V_x, V_xx = m.l_x[N], m.l_xx[N]
    k, K, dV = np.zeros((N, nu)), np.zeros((N, nu, ndx)), np.zeros(2)
    for i in reversed(range(N)):
        F, G = m.f_x[i], m.f_u[i]
        p = V_x + V_xx @ m.gaps[i]
        Q_x, Q_u = m.l_x[i] + F.T @ p, m.l_u[i] + G.T @ p
        Q_xx, Q_uu = m.l_xx[i] + F.T @ V_xx @ F, m.l_uu[i] + G.T @ V_xx @ G
        Q_ux = m.l_ux[i] + G.T @ V_xx @ F
        H = Q_uu + reg * np.diag(np.diag(Q_uu))
        lo = np.full(nu, -np.inf) if lower is None else lower[i]
        hi = np.full(nu, np.inf) if upper is None else upper[i]
        k[i], free = bounded_qp(H, Q_u, lo, hi)
        K[i][free] = -np.linalg.solve(H[np.ix_(free, free)], Q_ux[free])
        dV += [k[i] @ Q_u, 0.5 * k[i] @ Q_uu @ k[i]]
        # The value of the policy u = k + K dx, whatever it was made from.
        V_x = Q_x + K[i].T @ (Q_uu @ k[i] + Q_u) + Q_ux.T @ k[i]
        V_xx = Q_xx + K[i].T @ Q_uu @ K[i] + K[i].T @ Q_ux + Q_ux.T @ K[i]
    return Policy(k, K, dV)


def bounded_qp(H: Array, g: Array, lo: Array, hi: Array) -> tuple[Array, NDArray[np.bool_]]:
    """argmin 1/2 x' H x + g' x over lo <= x <= hi, and which x are off their bounds."""
    if not (np.isfinite(lo) | np.isfinite(hi)).any():
        return np.linalg.solve(H, -g), np.ones(len(g), dtype=bool)
    L = np.linalg.cholesky(H)  # 1/2 || L' x + L^-1 g ||^2
    result = lsq_linear(L.T, -np.linalg.solve(L, g), (lo, hi), method="bvls", tol=1e-15)
    return result.x, result.active_mask == 0


def dense_optimum(
    m: Model, lower: Array | None = None, upper: Array | None = None
) -> tuple[Array, Array, float]:
    """dx (N+1, ndx), du (N, nu) and value of the model's optimum, from dx_0 = 0, in one QP."""
    N, ndx, nu = m.f_u.shape
    # dx = S du + s
    S, s = np.zeros((N + 1, ndx, N * nu)), np.zeros((N + 1, ndx))
    for i in range(N):
        S[i + 1], s[i + 1] = m.f_x[i] @ S[i], m.f_x[i] @ s[i] + m.gaps[i]
        S[i + 1][:, i * nu : (i + 1) * nu] += m.f_u[i]
    H, g, constant = np.zeros((N * nu, N * nu)), np.zeros(N * nu), 0.0
    for i in range(N + 1):
        H += S[i].T @ m.l_xx[i] @ S[i]
        g += S[i].T @ (m.l_x[i] + m.l_xx[i] @ s[i])
        constant += m.l_x[i] @ s[i] + 0.5 * s[i] @ m.l_xx[i] @ s[i]
    for i in range(N):
        at = slice(i * nu, (i + 1) * nu)
        cross = m.l_ux[i] @ S[i]
        H[at] += cross
        H[:, at] += cross.T
        H[at, at] += m.l_uu[i]
        g[at] += m.l_u[i] + m.l_ux[i] @ s[i]
    lo = np.full(N * nu, -np.inf) if lower is None else lower.ravel()
    hi = np.full(N * nu, np.inf) if upper is None else upper.ravel()
    du, _ = bounded_qp(H, g, lo, hi)
    value = constant + g @ du + 0.5 * du @ H @ du
    return S @ du + s, du.reshape(N, nu), float(value)
