"""The objective of a problem, evaluated on trajectories and expanded for Gauss-Newton."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from cito.dynamics import _native
from cito.dynamics.base import Dynamics
from cito.dynamics.types import Array
from cito.problems.costs import NativeCost, ResidualCost, active_knots
from cito.problems.problem import Problem

STEP = 1e-5  # of central differences: errors of about STEP^2 and of 1e-16 / STEP


class CostExpansion(NamedTuple):
    """Gradient and Gauss-Newton Hessian of the cost along one trajectory.

    l_x (N+1, ndx), l_u (N, nu), l_xx (N+1, ndx, ndx), l_uu (N, nu, nu), l_ux (N, nu, ndx) or None.
    """

    l_x: Array
    l_u: Array
    l_xx: Array
    l_uu: Array
    l_ux: Array | None


class Objective:
    """J of a problem: native terms in one table, residuals of the user's on top."""

    def __init__(self, problem: Problem) -> None:
        self._horizon, self._dynamics = problem.horizon, problem.dynamics
        self._residuals = [t for t in problem.costs if isinstance(t, ResidualCost)]
        self._table = _native.CostTable(problem.dynamics.manifold, problem.horizon)
        for i, term in enumerate(problem.costs):
            if isinstance(term, NativeCost):
                native = term.native(f"costs[{i}]", problem.dynamics, problem.horizon)
                active = active_knots(term.knots, self._horizon)
                self._table.add(
                    native.kind,
                    native.weight,
                    native.reference,
                    active[:-1] if term.in_controls else active,
                    native.where,
                    native.parameters,
                )

    def value(self, states: Array, controls: Array) -> Array:
        """J of trajectories (..., N+1, nx), (..., N, nu): shape (...); inf where not finite."""
        batch = states.shape[:-2]
        X = states.reshape(-1, *states.shape[-2:])
        U = controls.reshape(-1, *controls.shape[-2:])
        total = self._table.value(X, U)
        for term in self._residuals:
            r = _residual(term, X, _pad(U))[:, active_knots(term.knots, self._horizon)]
            total = total + 0.5 * np.einsum("mkr,r->m", r * r, term.weight)
        return np.where(np.isfinite(total), total, np.inf).reshape(batch)

    def expansion(self, states: Array, controls: Array) -> CostExpansion:
        """Gradient and Gauss-Newton Hessian along (N+1, nx), (N, nu)."""
        l_x, l_u, l_xx, l_uu = self._table.expansion(states, controls)
        l_ux = None
        if self._residuals:
            l_ux = np.zeros((*l_u.shape, l_x.shape[-1]))
        for term in self._residuals:
            active = active_knots(term.knots, self._horizon)
            U = _pad(controls)
            W, r = term.weight, _residual(term, states, U)
            r_x, r_u = _jacobians(term, states, U, self._dynamics)
            on, run = active[:, None], active[:-1]
            # l_x += r_x' W r,  l_xx += r_x' W r_x, ...
            l_x += np.where(on, np.einsum("kri,r,kr->ki", r_x, W, r), 0)
            l_xx += np.where(on[..., None], np.einsum("kri,r,krj->kij", r_x, W, r_x), 0)
            r_x, r_u, r = r_x[:-1][run], r_u[:-1][run], r[:-1][run]
            l_u[run] += np.einsum("kri,r,kr->ki", r_u, W, r)
            l_uu[run] += np.einsum("kri,r,krj->kij", r_u, W, r_u)
            assert l_ux is not None
            l_ux[run] += np.einsum("kri,r,krj->kij", r_u, W, r_x)
        return CostExpansion(l_x, l_u, l_xx, l_uu, l_ux)


def _residual(term: ResidualCost, X: Array, U: Array) -> Array:
    r = np.asarray(term.residual(X, U), dtype=np.float64)
    shape = (*X.shape[:-1], len(term.weight))
    if r.shape != shape:
        raise ValueError(f"`residual` must return shape {shape}, got {r.shape}")
    return r


def _jacobians(term: ResidualCost, X: Array, U: Array, dynamics: Dynamics) -> tuple[Array, Array]:
    if term.jacobians is None:
        return residual_differences(partial(_residual, term), X, U, dynamics)
    ndx = dynamics.ndx
    r_x, r_u = (np.asarray(J, dtype=np.float64) for J in term.jacobians(X, U))
    rows = (len(X), len(term.weight))
    if r_x.shape != (*rows, ndx) or r_u.shape != (*rows, U.shape[-1]):
        raise ValueError(
            f"`jacobians` must return shapes {(*rows, ndx)} and {(*rows, U.shape[-1])}, "
            f"got {r_x.shape} and {r_u.shape}"
        )
    return r_x, r_u


def residual_differences(
    residual: Callable[[Array, Array], Array], X: Array, U: Array, dynamics: Dynamics
) -> tuple[Array, Array]:
    """Central differences of a residual (..., N+1, nr), all knots at once: a knot's sees its own
    x, u only. Returns r_x (N+1, nr, ndx), r_u (N+1, nr, nu).
    """

    def slopes(plus: tuple[Array, Array], minus: tuple[Array, Array]) -> Array:
        change = (residual(*plus) - residual(*minus)) / (2 * STEP)
        return np.moveaxis(change, 0, -1)  # (n, N+1, nr) -> (N+1, nr, n)

    def repeated(z: Array, n: int) -> Array:
        return np.broadcast_to(z, (n, *z.shape))

    dx, du = (STEP * np.eye(n)[:, None] for n in (dynamics.ndx, dynamics.nu))
    XX, XU = repeated(X, len(dx)), repeated(X, len(du))
    UX, UU = repeated(U, len(dx)), repeated(U, len(du))
    DX = np.broadcast_to(dx, (*XX.shape[:-1], dynamics.ndx))
    r_x = slopes((dynamics.integrate(XX, DX), UX), (dynamics.integrate(XX, -DX), UX))
    return r_x, slopes((XU, UU + du), (XU, UU - du))


def _pad(controls: Array) -> Array:
    """Controls with a zero row for the terminal knot."""
    zero = np.zeros((*controls.shape[:-2], 1, controls.shape[-1]))
    return np.concatenate([controls, zero], axis=-2)
