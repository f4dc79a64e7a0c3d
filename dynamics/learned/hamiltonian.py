"""Learned Hamiltonians.

    dq/dt = dH/dp,   dp/dt = tau - dH/dq

    structured   H = 1/2 p' N(q) p + V(q), N the inverse mass matrix by its Cholesky factor
    black box    H(q, p) one network

Both are trained by the forward error: 1/2 ( |dq/dt error|^2 / var + |dp/dt error|^2 / var ), on
samples with momenta. Velocities become momenta by dH/dp(q, p) = v.
"""

from __future__ import annotations

from typing import NamedTuple

from cito.dynamics.learned.cholesky import PositiveMatrix, entries
from cito.dynamics.learned.lagrangian import state_directions
from cito.dynamics.learned.model import Batch, Model, Rate
from cito.dynamics.learned.network import Tensor, torch

NEWTON_STEPS = 40  # from velocity to momentum of a black box
NEWTON_TOLERANCE = 1e-6  # relative to the spread of v
LEAST_STEP = 1e-3  # share of a Newton step below which there is no progress


class Terms(NamedTuple):
    """N (B, n, n), dN[b, k] = dN/dq_k (B, n, n, n), V (B,), dV (B, n)."""

    N: Tensor
    dN: Tensor
    V: Tensor
    dV: Tensor


def forward_loss(model: Model, batch: Batch) -> Tensor:
    """The error of dq/dt and dp/dt over their variances."""
    assert batch.p is not None and batch.pdot is not None  # `Model.batch` has seen to it
    rate = model.rate(batch.q, batch.p, batch.tau)
    of_q = (rate.q - batch.v) / model.spread.v
    of_p = (rate.s - batch.pdot) / model.spread.pdot
    return 0.5 * ((of_q * of_q).mean() + (of_p * of_p).mean())


class StructuredHamiltonian(Model):
    """Inverse mass matrix by its Cholesky factor, and a potential: two networks of q."""

    kind = "hamiltonian-structured"
    needs_momenta = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._matrix = PositiveMatrix(self.shape, torch.sqrt(self.spread.v / self.spread.p))
        self._potential_unit = float(self.spread.pdot.mean())

    def network_ends(self) -> dict[str, tuple[int, int]]:
        """See `Model.network_ends`."""
        return {
            "inverse_mass": (self.shape.features, entries(self.n)),
            "potential": (self.shape.features, 1),
        }

    def terms(self, q: Tensor) -> Terms:
        """Inverse mass matrix, potential and their derivatives at q (B, n)."""
        z = self.features(q)
        dz = self.feature_directions(z)
        N, dN = self._matrix.first(self.networks["inverse_mass"], z, dz)
        V, dV = self.networks["potential"].first(z, dz)
        unit = self._potential_unit
        return Terms(N, dN, unit * V[:, 0], unit * dV[..., 0])

    def conjugate(self, q: Tensor, v: Tensor) -> Tensor:
        """p = N^-1 v."""
        return torch.linalg.solve(self.terms(q).N, v)

    def rate(self, q: Tensor, s: Tensor, tau: Tensor) -> Rate:
        """See `Model.rate`, s = p."""
        terms = self.terms(q)
        return Rate((terms.N @ s[..., None])[..., 0], tau - _slope(terms, s))

    def torque(self, q: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """See `Model.torque`: a = dN/dt p + N dp/dt, tau = dp/dt + dH/dq."""
        terms = self.terms(q)
        p = torch.linalg.solve(terms.N, v)
        pdot = torch.linalg.solve(terms.N, a - _turning(terms, p, v))
        return pdot + _slope(terms, p)

    def acceleration(self, q: Tensor, v: Tensor, tau: Tensor) -> Tensor:
        """See `Model.acceleration`."""
        terms = self.terms(q)
        p = torch.linalg.solve(terms.N, v)
        pdot = tau - _slope(terms, p)
        return _turning(terms, p, v) + (terms.N @ pdot[..., None])[..., 0]

    def total_energy(self, q: Tensor, s: Tensor) -> Tensor:
        """See `Model.total_energy`, s = p."""
        terms = self.terms(q)
        return 0.5 * (s[:, None] @ terms.N @ s[..., None])[:, 0, 0] + terms.V

    def loss(self, batch: Batch) -> Tensor:
        """See `Model.loss`."""
        return forward_loss(self, batch)


def _slope(terms: Terms, p: Tensor) -> Tensor:
    """dH/dq = 1/2 (p' dN_i p)_i + dV, (B, n)."""
    dNp = (terms.dN @ p[:, None, :, None])[..., 0]
    return 0.5 * (dNp * p[:, None]).sum(2) + terms.dV


def _turning(terms: Terms, p: Tensor, v: Tensor) -> Tensor:
    """dN/dt p = sum_k v_k dN_k p, (B, n)."""
    dNp = (terms.dN @ p[:, None, :, None])[..., 0]
    return (v[..., None] * dNp).sum(1)


class BlackBoxHamiltonian(Model):
    """One network of q and p, of which nothing is required."""

    kind = "hamiltonian-black-box"
    needs_momenta = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._unit = float((self.spread.p * self.spread.v).mean())

    def network_ends(self) -> dict[str, tuple[int, int]]:
        """See `Model.network_ends`."""
        return {"hamiltonian": (self.shape.features + self.n, 1)}

    def slopes(self, q: Tensor, p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """H (B,), H_p, H_q (B, n)."""
        z, dz = state_directions(self, q, p / self.spread.p, 1 / self.spread.p)
        H, dH = self.networks["hamiltonian"].first(z, dz)
        dH = self._unit * dH[..., 0]
        return self._unit * H[:, 0], dH[:, : self.n], dH[:, self.n :]

    def curvatures(self, q: Tensor, p: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """H_p, H_q (B, n), H_pp, H_pq (B, n, n)."""
        n = self.n
        z, dz = state_directions(self, q, p / self.spread.p, 1 / self.spread.p)
        _, dH, ddH = self.networks["hamiltonian"].second(z, dz, n)
        dH, ddH = self._unit * dH[..., 0], self._unit * ddH[..., 0]
        return dH[:, :n], dH[:, n:], ddH[:, :, :n], ddH[:, :, n:]

    def conjugate(self, q: Tensor, v: Tensor) -> Tensor:
        """p with H_p(q, p) = v by Newton's method; NaN where it does not converge, or to a place
        where H is not convex in p, so that no mass belongs to it.

        Each sample has its own step size: a quarter after a step that was too long, else twice.
        """
        unit = self.spread.v
        p, size = v * self.spread.p / unit, torch.ones_like(v[:, :1])
        H_p, _, H_pp, _ = self.curvatures(q, p)
        error = H_p - v
        for _ in range(NEWTON_STEPS):
            settled = (error.abs() < 1e-6 * NEWTON_TOLERANCE * unit).all(1, keepdim=True)
            if bool((settled | (size < LEAST_STEP)).all()):
                break
            step, _ = torch.linalg.solve_ex(H_pp, error)
            trial = p - size * step
            H_p, _, trial_H_pp, _ = self.curvatures(q, trial)
            better = ((H_p - v) / unit).norm(dim=1) < (error / unit).norm(dim=1)
            p = torch.where(better[:, None], trial, p)
            error = torch.where(better[:, None], H_p - v, error)
            H_pp = torch.where(better[:, None, None], trial_H_pp, H_pp)
            size = torch.where(better[:, None], (2 * size).clamp(max=1.0), size / 4)
        found = (error.abs() < NEWTON_TOLERANCE * unit).all(1)
        found &= torch.linalg.cholesky_ex(H_pp).info == 0
        return torch.where(found[:, None], p, torch.nan)

    def rate(self, q: Tensor, s: Tensor, tau: Tensor) -> Rate:
        """See `Model.rate`, s = p."""
        _, H_p, H_q = self.slopes(q, s)
        return Rate(H_p, tau - H_q)

    def torque(self, q: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """See `Model.torque`: a = H_pq v + H_pp dp/dt, tau = dp/dt + H_q."""
        p = self.conjugate(q, v)
        _, H_q, H_pp, H_pq = self.curvatures(q, p)
        pdot, _ = torch.linalg.solve_ex(H_pp, a - (H_pq @ v[..., None])[..., 0])
        return pdot + H_q

    def acceleration(self, q: Tensor, v: Tensor, tau: Tensor) -> Tensor:
        """See `Model.acceleration`."""
        p = self.conjugate(q, v)
        _, H_q, H_pp, H_pq = self.curvatures(q, p)
        return (H_pq @ v[..., None] + H_pp @ (tau - H_q)[..., None])[..., 0]

    def total_energy(self, q: Tensor, s: Tensor) -> Tensor:
        """See `Model.total_energy`, s = p."""
        return self.slopes(q, s)[0]

    def loss(self, batch: Batch) -> Tensor:
        """See `Model.loss`."""
        return forward_loss(self, batch)
