"""Learned Lagrangians.

    d/dt dL/dv - dL/dq = tau

    structured   L = 1/2 v' H(q) v - V(q):    tau = H a + (sum_k v_k dH/dq_k) v - 1/2 d(v'Hv)/dq + dV/dq
    black box    L(q, v) one network:         tau = L_vv a + L_vq v - L_q

Both are trained by the residual of this equation: the mean of |tau - tau^|^2 over its variance.
After Lutter, Ritter, Peters, Deep Lagrangian Networks (ICLR 2019), and Lutter, Peters, Combining
Physics and Deep Learning to Learn Continuous-Time Dynamics Models (2021).
"""  # noqa: E501

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from cito.dynamics.learned.cholesky import PositiveMatrix, entries
from cito.dynamics.learned.model import Batch, Model
from cito.dynamics.learned.network import Tensor, torch
from cito.dynamics.types import Array

RIDGE = 1e-4  # added to L_vv of a black box before it is solved with, in units of tau/a


class Terms(NamedTuple):
    """H (B, n, n), dH[b, k] = dH/dq_k (B, n, n, n), V (B,), dV = dV/dq (B, n)."""

    H: Tensor
    dH: Tensor
    V: Tensor
    dV: Tensor


class StructuredLagrangian(Model):
    """Mass matrix by its Cholesky factor, and a potential: two networks of q."""

    kind = "lagrangian-structured"

    def __post_init__(self) -> None:
        super().__post_init__()
        # H is about tau / a, V about tau times a radian or the spread of q.
        self._matrix = PositiveMatrix(self.shape, torch.sqrt(self.spread.tau / self.spread.a))
        self._potential_unit = float(self.spread.tau.mean())

    def network_ends(self) -> dict[str, tuple[int, int]]:
        """See `Model.network_ends`."""
        return {
            "mass": (self.shape.features, entries(self.n)),
            "potential": (self.shape.features, 1),
        }

    def terms(self, q: Tensor) -> Terms:
        """Mass matrix, potential and their derivatives at q (B, n)."""
        z = self.features(q)
        dz = self.feature_directions(z)
        H, dH = self._matrix.first(self.networks["mass"], z, dz)
        V, dV = self.networks["potential"].first(z, dz)
        unit = self._potential_unit
        return Terms(H, dH, unit * V[:, 0], unit * dV[..., 0])

    def mass_matrix(self, q: ArrayLike) -> Array:
        """H (..., n, n) at q (..., n)."""
        mass = self.networks["mass"]
        return self._evaluate(lambda q: self._matrix.value(mass, self.features(q)), q=q)

    def potential(self, q: ArrayLike) -> Array:
        """V (...) at q (..., n) [J], up to a constant."""
        return self._evaluate(lambda q: self.terms(q).V, q=q)

    def torque(self, q: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """See `Model.torque`."""
        terms = self.terms(q)
        return (terms.H @ a[..., None])[..., 0] + bias(terms, v)

    def acceleration(self, q: Tensor, v: Tensor, tau: Tensor) -> Tensor:
        """See `Model.acceleration`."""
        terms = self.terms(q)
        return torch.linalg.solve(terms.H, tau - bias(terms, v))

    def total_energy(self, q: Tensor, s: Tensor) -> Tensor:
        """See `Model.total_energy`."""
        terms = self.terms(q)
        return 0.5 * (s[:, None] @ terms.H @ s[..., None])[:, 0, 0] + terms.V

    def loss(self, batch: Batch) -> Tensor:
        """See `Model.loss`."""
        return residual(self, batch)


def bias(terms: Terms, v: Tensor) -> Tensor:
    """c (B, n) = (sum_k v_k dH_k) v - 1/2 (v' dH_i v)_i + dV."""
    dHv = (terms.dH @ v[:, None, :, None])[..., 0]  # (B, k, n)
    return (v[..., None] * dHv).sum(1) - 0.5 * (dHv * v[:, None]).sum(2) + terms.dV


def residual(model: Model, batch: Batch) -> Tensor:
    """Mean over samples and joints of the squared error of tau over its variance."""
    error = (model.torque(batch.q, batch.v, batch.a) - batch.tau) / model.spread.tau
    return (error * error).mean()


class BlackBoxLagrangian(Model):
    """One network of q and v, of which nothing is required."""

    kind = "lagrangian-black-box"

    def __post_init__(self) -> None:
        super().__post_init__()
        spread = self.spread
        self._unit = float((spread.tau / spread.a * spread.v**2).mean())
        self._ridge = RIDGE * torch.diag(spread.tau / spread.a)

    def network_ends(self) -> dict[str, tuple[int, int]]:
        """See `Model.network_ends`."""
        return {"lagrangian": (self.shape.features + self.n, 1)}

    def derivatives(self, q: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """L (B,), L_v, L_q (B, n), L_vv, L_vq (B, n, n)."""
        n = self.n
        z, dz = state_directions(self, q, v / self.spread.v, 1 / self.spread.v)
        L, dL, ddL = self.networks["lagrangian"].second(z, dz, n)
        L, dL, ddL = self._unit * L[:, 0], self._unit * dL[..., 0], self._unit * ddL[..., 0]
        return L, dL[:, :n], dL[:, n:], ddL[:, :, :n], ddL[:, :, n:]

    def torque(self, q: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """See `Model.torque`."""
        _, _, L_q, L_vv, L_vq = self.derivatives(q, v)
        return (L_vv @ a[..., None] + L_vq @ v[..., None])[..., 0] - L_q

    def acceleration(self, q: Tensor, v: Tensor, tau: Tensor) -> Tensor:
        """See `Model.acceleration`."""
        _, _, L_q, L_vv, L_vq = self.derivatives(q, v)
        return torch.linalg.solve(L_vv + self._ridge, tau + L_q - (L_vq @ v[..., None])[..., 0])

    def total_energy(self, q: Tensor, s: Tensor) -> Tensor:
        """See `Model.total_energy`: L_v . v - L."""
        L, L_v, *_ = self.derivatives(q, s)
        return (L_v * s).sum(1) - L

    def loss(self, batch: Batch) -> Tensor:
        """See `Model.loss`."""
        return residual(self, batch)


def state_directions(model: Model, q: Tensor, s: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    """Input (z(q), s) of a black box, s free of units, and its directions: first s, then q.

    Returns:
        (B, nz + n) and (B, 2 n, nz + n); `slope` (n,) is ds over the derivative's own variable.
    """
    z = model.features(q)
    dz = model.feature_directions(z)
    B, n, nz = dz.shape
    along_s = torch.cat([torch.zeros(n, nz, dtype=z.dtype), torch.diag(slope)], 1)
    along_q = torch.cat([dz, torch.zeros(B, n, n, dtype=z.dtype)], 2)
    return torch.cat([z, s], 1), torch.cat([along_s.expand(B, n, nz + n), along_q], 1)
