"""The step of a linear system in plain numpy: the oracle of the native step and rollout."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cito.dynamics import LinearSystem

Array = NDArray[np.float64]


def contact_problem(
    system: LinearSystem, h: float, x: Array, u: Array, theta: float = 0.0
) -> tuple[Array, Array, Array, Array]:
    """A = J M^-1 J',  b = J v_free + e_N phi / h,  v_free,  Y = M^-1 J'."""
    q, v = np.split(x, 2)
    M, J = np.exp(theta) * system.mass_matrix, system.contact_jacobian
    c = np.exp(theta) * system.bias + system.stiffness @ q + system.damping @ v
    v_free = v + h * np.linalg.solve(M, system.actuation @ u - c)
    Y = np.linalg.solve(M, J.T)
    b = J @ v_free
    b[np.cumsum(system.contact_dims, dtype=int) - 1] += (
        system.gap_jacobian @ q + system.gap_offset
    ) / h
    return J @ Y, b, v_free, Y


def project_on_cone(y: Array, mu: float) -> Array:
    """The point of K_mu = { ||l_T|| <= mu l_N } next to y."""
    t, n = np.linalg.norm(y[:-1]), y[-1]
    if len(y) == 1 or mu == 0:
        return np.append(0 * y[:-1], max(n, 0.0))
    if t <= mu * n:
        return y
    if mu * t <= -n:
        return 0 * y
    l_N = (mu * t + n) / (1 + mu**2)
    return np.append(mu * l_N * y[:-1] / t, l_N)


def hard_solve(A: Array, b: Array, dims: tuple[int, ...], mu: Array, sweeps: int = 20000) -> Array:
    """Impulses of the hard law, as the fixed point of projections with the de Saxce correction:

    lambda_i = P_K( lambda_i - r_i (sigma_i + mu_i ||sigma_T,i|| e_N) )
    """
    lam, rows = np.zeros(len(b)), np.split(np.arange(len(b)), np.cumsum(dims, dtype=int)[:-1])
    for _ in range(sweeps if len(b) else 0):
        before = lam.copy()
        for i, r in enumerate(rows):
            sigma = A[r] @ lam + b[r]
            sigma[-1] += mu[i] * np.linalg.norm(sigma[:-1])
            lam[r] = project_on_cone(lam[r] - sigma / np.linalg.norm(A[np.ix_(r, r)], 2), mu[i])
        if np.abs(lam - before).max() <= 1e-15 * np.abs(lam).max(initial=1e-300):
            break
    return lam


def step(
    system: LinearSystem, h: float, mu: Array, x: Array, u: Array, theta: float = 0.0
) -> tuple[Array, Array]:
    """x+ and lambda."""
    A, b, v_free, Y = contact_problem(system, h, x, u, theta)
    lam = hard_solve(A, b, system.contact_dims, mu)
    v = v_free + Y @ lam
    return np.concatenate([x[: len(v)] + h * v, v]), lam


def rollout(system: LinearSystem, h: float, mu: Array, start: Array, controls: Array) -> Array:
    """States (N+1, nx) of open-loop controls."""
    states = [start]
    for u in controls:
        states.append(step(system, h, mu, states[-1], u)[0])
    return np.array(states)
