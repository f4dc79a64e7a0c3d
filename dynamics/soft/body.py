"""An actuated soft body: the shape-targeting energy, its gradient and its Hessian.

    E(x, A) = sum_p  w_p / 2  min over R_p in SO(d) of || F_p(x) - R_p A_p ||^2  -  sum_i f_i . x_i

At each of the mesh's m points p the material wants the shape A_p (symmetric: the stretch that
actuation asks for) and does not mind how it is turned. R_p is the rotation nearest to F_p A_p,
w_p = stiffness * volume [J]. Some vertices are held by bones and are no unknowns. With G of the
mesh, F = G x, at the best R:

    dE/dx    = G' w (F - R A) - f
    d2E/dx2  = G' w (I - A dR/dM A) G  =  K - G' w A dR/dM A G,        K = G' w G

K never changes: it is factorized once, in __init__, and serves every solve. Material with this
energy does not resist volume changes (Poisson's ratio 0), and inverted elements turn back.

Beyond this file, positions are (..., n, d) and matrices (..., m, d, d). In it and below it they are
component first, x (d, n, b) and A (d, d, m b), with b poses side by side: poses share K.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import SuperLU, splu

from cito.dynamics.soft.mesh import Indices, Mesh
from cito.dynamics.soft.polar import gains, local_step, stress_change
from cito.dynamics.types import Array, as_array, as_vector


class Energy(NamedTuple):
    """What one evaluation finds: energy (b,) [J], its gradient (d, n, b) [N], F, R (d, d, m b)."""

    value: Array
    gradient: Array
    F: Array
    R: Array


class SoftBody:
    """A mesh of one soft material with bones.

    Args:
        mesh: the reference shape.
        held: vertices that bones hold, at least d of them, (k,).
        stiffness: of the material, one number or (m,), at each point, > 0 [Pa] ([N/m] in 2-D).
        load: dead forces on the vertices, (n, d) [N]; none by default.

    Raises:
        ValueError: vertices that do not exist or that leave the body free to turn, stiffness not
            positive, wrong shapes.
    """

    def __init__(
        self,
        mesh: Mesh,
        held: ArrayLike,
        stiffness: ArrayLike = 1.0,
        load: ArrayLike | None = None,
    ) -> None:
        if not isinstance(mesh, Mesh):
            raise ValueError(f"`mesh` must be a Mesh, got {type(mesh).__name__}")
        n, d = mesh.vertices.shape
        self.mesh, self.n, self.d, self.m = mesh, n, d, len(mesh.points)
        self.held = _checked_held(held, mesh)
        self.free: Indices = np.setdiff1d(np.arange(n), self.held)
        moduli = as_vector("stiffness", stiffness, self.m)
        if (moduli <= 0).any():
            raise ValueError(f"`stiffness` must be > 0, got {moduli.min():g}")
        self.weights = moduli * mesh.weights
        forces = np.zeros((n, d)) if load is None else as_array("load", load, (n, d))
        self._load = np.ascontiguousarray(forces.T)[:, :, None]
        self._G = mesh.gradient_operator
        self._Gw = (self._G.T @ sp.diags(np.tile(self.weights, d))).tocsr()

    @cached_property
    def stiffness_matrix(self) -> sp.csc_matrix:
        """K of the free vertices, the same for each coordinate, (nf, nf) [N/m]."""
        return (self._Gw @ self._G).tocsr()[self.free][:, self.free].tocsc()

    @cached_property
    def _factors(self) -> SuperLU:
        return factorized(self.stiffness_matrix)

    def step(self, force: Array) -> Array:
        """K^-1 of forces on the free vertices, (d, nf, b) -> (d, nf, b) [m]: one global step."""
        d, nf, b = force.shape
        right = np.asfortranarray(force.transpose(1, 0, 2).reshape(nf, d * b))
        moved: Array = self._factors.solve(right).reshape(nf, d, b).transpose(1, 0, 2)
        return moved

    def deformation(self, x: Array) -> Array:
        """F = G x, (d, n, b) -> (d, d, m b)."""
        return np.stack([(self._G @ row).reshape(self.d, -1) for row in x])

    def forces(self, P: Array) -> Array:
        """G' w P, (d, d, m b) -> (d, n, b)."""
        b = P.shape[2] // self.m
        return np.stack([self._Gw @ row.reshape(-1, b) for row in P])

    def energy(self, x: Array, A: Array, near: Array | None = None) -> Energy:
        """E and dE/dx; `near` (d, d, m b) are rotations to start from."""
        b = x.shape[2]
        F = self.deformation(x)
        R, P, energy = local_step(F, A, near)
        elastic = self.weights @ energy.reshape(self.m, b)
        value = elastic - (self._load * x).sum(axis=(0, 1))
        return Energy(value, self.forces(P) - self._load, F, R)

    def noise_scale(self, at: Energy, A: Array) -> Array:
        """What the energy is a small difference of, (b,) [J]: rounding errors are parts of it."""
        squares = (at.F**2 + A**2).sum(axis=(0, 1)).reshape(self.m, -1)
        scale: Array = self.weights @ squares + np.abs(self._load).sum() * self.mesh.size
        return scale

    def curvature(self, F: Array, R: Array, A: Array) -> Array:
        """What `hessian` needs of a pose: the gains of dR/dM."""
        return gains(F, A, R)

    def hessian(self, z: Array, A: Array, R: Array, gains: Array) -> Array:
        """d2E/dx2 z, (d, n, b) -> (d, n, b)."""
        return self.forces(stress_change(self.deformation(z), A, R, gains))

    # --- arrays as users have them

    def positions_in(self, name: str, value: ArrayLike) -> Array:
        """Positions (b, n, d) or (n, d), checked -> (d, n, b)."""
        x = as_array(name, value)
        if x.ndim not in (2, 3) or x.shape[-2:] != (self.n, self.d):
            raise ValueError(
                f"`{name}` must have shape ({self.n}, {self.d}) or (b, {self.n}, {self.d}), "
                f"got {x.shape}"
            )
        return np.ascontiguousarray(x.reshape(-1, self.n, self.d).transpose(2, 1, 0))

    def actuation_in(self, name: str, value: ArrayLike) -> Array:
        """Actuation (b, m, d, d) or (m, d, d), symmetric, checked -> (d, d, m b)."""
        A, shape = as_array(name, value), (self.m, self.d, self.d)
        if A.ndim not in (3, 4) or A.shape[-3:] != shape:
            raise ValueError(
                f"`{name}` must have shape {shape} or (b, {str(shape)[1:]}, got {A.shape}"
            )
        if not np.allclose(A, A.swapaxes(-1, -2), rtol=0, atol=1e-9):
            raise ValueError(f"`{name}` must be symmetric matrices")
        moved = A.reshape(-1, *shape).transpose(2, 3, 1, 0)
        return np.ascontiguousarray(moved).reshape(self.d, self.d, -1)


def factorized(matrix: sp.csc_matrix) -> SuperLU:
    """Factors of a symmetric positive definite matrix, without pivoting."""
    return splu(
        matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )


def positions_out(x: Array) -> Array:
    """(d, n, b) -> (b, n, d)."""
    return np.ascontiguousarray(x.transpose(2, 1, 0))


def _checked_held(value: ArrayLike, mesh: Mesh) -> Indices:
    n, d = mesh.vertices.shape
    given = np.asarray(value)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(f"`held` must be numbers of vertices (k,), got {value!r:.60}")
    held: NDArray[np.int64] = np.unique(given.astype(np.int64))
    if len(held) != len(given) or not len(held) or held[0] < 0 or held[-1] >= n:
        raise ValueError(f"`held` must be different vertices 0 to {n - 1}, got {value!r:.60}")
    if len(held) == n:
        raise ValueError("`held` must leave some vertex free")
    X = mesh.vertices[held]
    if np.linalg.matrix_rank(X - X[0], tol=1e-9 * mesh.size) < d - 1:
        raise ValueError(
            f"`held` must be at least {d} vertices, not on one line: the body can turn"
        )
    return held
