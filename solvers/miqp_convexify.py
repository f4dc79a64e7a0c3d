"""How much a quadratic objective may be bent by products that are never positive.

At every feasible point some products of affine functions satisfy (p'y)(r'y) <= 0, y = (z, 1):
"impulse times opening", for example. Added to the objective with weights w >= 0 they never raise it
there, but they bend it, and a relaxation that ignores complementarity now pays for violating it.
The weights that give the best bound solve the semidefinite program

    max t   s.t.   [[H/2, f/2], [f'/2, J_0 - t]] + sum_i w_i (p_i r_i' + r_i p_i')/2  >= 0,  w >= 0

in which plain inequalities a'z + a_0 <= 0 are products with the constant 1. It is solved by a
primal-dual interior point method (HKM direction, predictor and corrector). Any w >= 0 gives a valid
bound as long as the objective stays convex, so its tolerance costs strength and never validity.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from cito.dynamics.types import Array
from cito.solvers.miqp_model import Quadratic

ITERATIONS = 60
TOLERANCE = 1e-3  # relative gap of the semidefinite program at which it stops
KEPT = (0.99, 0.9, 0.5)  # of the weights: a little less than the optimum is safely convex


class Products(NamedTuple):
    """Products (p_i'y)(r_i'y) <= 0 with y = (z, 1): left p (m, nz + 1), right r (m, nz + 1)."""

    left: Array
    right: Array


def bend(
    objective: Quadratic, products: Products, inequalities: Array, deadline: float = np.inf
) -> Quadratic | None:
    """The objective plus the best weighted sum of products; None where nothing is gained.

    Args:
        objective: strictly convex.
        products: never positive at feasible points.
        inequalities: rows (a, a_0), (k, nz + 1), with a'z + a_0 <= 0 at feasible points.
        deadline: of `time.perf_counter`; the weights found by then are used.
    """
    constant = np.zeros_like(inequalities)
    constant[:, -1] = 1.0
    all_products = Products(
        np.vstack([products.left, inequalities]), np.vstack([products.right, constant])
    )
    try:
        weights = _best_weights(objective, all_products, deadline)[: len(products.left)]
    except np.linalg.LinAlgError:
        return None
    P, R = products
    for kept in KEPT:
        bent = (P.T * (kept * weights)) @ R
        bent = bent + bent.T
        H = objective.hessian + bent[:-1, :-1]
        try:
            np.linalg.cholesky(H)
        except np.linalg.LinAlgError:
            continue
        f = objective.gradient + bent[:-1, -1]
        return Quadratic(H, f, objective.constant + 0.5 * float(bent[-1, -1]))
    return None


def _best_weights(objective: Quadratic, products: Products, deadline: float) -> Array:
    """w >= 0 (m,) of the semidefinite program, near enough."""
    H, f, constant = objective
    n = len(f) + 1
    lowest = float(constant - 0.5 * f @ np.linalg.solve(H, f))
    t = lowest - max(1.0, abs(constant - lowest))
    # Coordinates in which S at w = 0 and this t is the identity.
    S = np.block([[0.5 * H, 0.5 * f[:, None]], [0.5 * f, constant - t]])
    L = np.linalg.cholesky(S)
    P, R = (solve_triangular(L, side.T, lower=True).T for side in products)
    scale = 1 / np.sqrt(np.linalg.norm(P, axis=1) * np.linalg.norm(R, axis=1))
    e = solve_triangular(L, np.eye(n)[-1], lower=True)
    unit = float(np.linalg.norm(e))
    # The last unknown is t: S falls by e e' when it rises.
    P = np.vstack([P * scale[:, None], e / unit])
    R = np.vstack([R * scale[:, None], -e / unit])
    program = _SemidefiniteProgram(P, R)
    iterate = program.start()
    for _ in range(ITERATIONS):
        value = t + iterate.theta[-1] / unit**2
        gap = iterate.gap / unit**2
        if gap < TOLERANCE * max(abs(value), 1e-9) and program.infeasibility(iterate) < 1e-5:
            break
        if time.perf_counter() > deadline:
            break
        iterate = program.advance(iterate)
    return np.asarray(iterate.theta[:-1] * scale**2)


class _Iterate(NamedTuple):
    """theta = (w, t) (m + 1,), S (n, n), and the multipliers X (n, n) of S, x (m,) of w."""

    theta: Array
    S: Array
    X: Array
    x: Array

    @property
    def gap(self) -> float:
        return float(np.sum(self.X * self.S) + self.x @ self.theta[:-1])


class _SemidefiniteProgram:
    """max theta_t  s.t.  S = I + sum_i theta_i A_i >= 0,  w >= 0;  A_i = (p_i r_i' + r_i p_i')/2.

    Its dual: min tr X  s.t.  <A_i, X> + x_i = -b_i,  X >= 0,  x >= 0  (b = e_t, no x for t).
    """

    def __init__(self, P: Array, R: Array) -> None:
        self.P, self.R = P, R
        self.m, self.n = len(P) - 1, P.shape[1]
        self.b = np.eye(len(P))[-1]

    def start(self) -> _Iterate:
        theta = np.append(np.full(self.m, 0.3 / self.m), 0.0)
        return _Iterate(theta, np.eye(self.n) + self.sum(theta), np.eye(self.n), np.ones(self.m))

    def sum(self, theta: Array) -> Array:
        """sum_i theta_i A_i."""
        half = (self.P.T * theta) @ self.R
        return np.asarray(0.5 * (half + half.T))

    def products(self, X: Array) -> Array:
        """<A_i, X> of every i."""
        return np.asarray(np.einsum("ij,ij->i", self.P @ X, self.R))

    def infeasibility(self, iterate: _Iterate) -> float:
        residual = self.b + self.products(iterate.X)
        residual[:-1] += iterate.x
        return float(np.abs(residual).max())

    def advance(self, it: _Iterate) -> _Iterate:
        """One predictor-corrector step."""
        m, (theta, S, X, x) = self.m, it
        S_inv = np.linalg.inv(S)
        S_inv = 0.5 * (S_inv + S_inv.T)
        factor = cho_factor(self._schur(X, S_inv, x / theta[:-1]))
        towards_center = self.products(S_inv)
        towards_center[:-1] += 1 / theta[:-1]

        def direction(
            mu: float, bend_X: Array | float = 0.0, bend_x: Array | float = 0.0
        ) -> _Iterate:
            rhs = self.b + mu * towards_center
            if isinstance(bend_X, np.ndarray):
                rhs -= self.products(bend_X)
                rhs[:-1] -= bend_x
            d_theta = cho_solve(factor, rhs)
            d_S = self.sum(d_theta)
            T = X @ d_S @ S_inv
            d_X = mu * S_inv - X - 0.5 * (T + T.T) - bend_X
            d_x = mu / theta[:-1] - x - x * d_theta[:-1] / theta[:-1] - bend_x
            return _Iterate(d_theta, d_S, d_X, d_x)

        predicted = direction(0.0, np.zeros_like(X), np.zeros_like(x))
        primal, dual = self._steps(it, predicted, 1.0)
        left = _moved(it, predicted, primal, dual).gap / it.gap
        centering = max(min(1.0, max(left, 0.0)) ** 2, 1e-3) if min(primal, dual) > 0.1 else 0.5
        T = predicted.X @ predicted.S @ S_inv
        mu = centering * it.gap / (self.n + m)
        corrected = direction(mu, 0.5 * (T + T.T), predicted.x * predicted.theta[:-1] / theta[:-1])
        return _moved(it, corrected, *self._steps(it, corrected, 0.9))

    def _schur(self, X: Array, S_inv: Array, ratio: Array) -> Array:
        """<A_i, X A_j S^-1> + diag(x/w) from Gram matrices, since every A_i has rank two."""
        P, R = self.P, self.R
        PX, RX, PS, RS = P @ X, R @ X, P @ S_inv, R @ S_inv
        PXR, PSR = PX @ R.T, PS @ R.T
        G = (RX @ R.T) * (PS @ P.T) + (PX @ P.T) * (RS @ R.T) + PXR.T * PSR + PXR * PSR.T
        G = 0.125 * (G + G.T)
        diagonal = np.diag(G).copy()
        diagonal[:-1] += ratio
        np.fill_diagonal(G, diagonal * (1 + 1e-14))
        return np.asarray(G)

    def _steps(self, it: _Iterate, d: _Iterate, part: float) -> tuple[float, float]:
        """Step lengths of (X, x) and of (theta, S) that stay inside, at most 1."""
        primal = min(_ray(it.x, d.x), _cone(it.X, d.X))
        dual = min(_ray(it.theta[:-1], d.theta[:-1]), _cone(it.S, d.S))
        return min(1.0, part * primal), min(1.0, part * dual)


def _moved(it: _Iterate, d: _Iterate, primal: float, dual: float) -> _Iterate:
    return _Iterate(
        it.theta + dual * d.theta, it.S + dual * d.S, it.X + primal * d.X, it.x + primal * d.x
    )


def _ray(x: Array, d: Array) -> float:
    """How far x + a d stays >= 0."""
    falling = d < 0
    return float(np.min(x[falling] / -d[falling])) if falling.any() else np.inf


def _cone(V: Array, D: Array) -> float:
    """How far V + a D stays positive definite."""
    L_inv = np.linalg.inv(np.linalg.cholesky(V))
    lowest = float(np.linalg.eigvalsh(L_inv @ D @ L_inv.T)[0])
    return np.inf if lowest >= 0 else -1 / lowest
