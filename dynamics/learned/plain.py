"""The baseline without physics: one network for the inverse model and one for the forward model.

    tau = f(z(q), v, a),   a = g(z(q), v, tau)

Both are trained at once, each on its own error; neither knows of the other, of an energy or of
a mass matrix.
"""

from __future__ import annotations

from cito.dynamics.learned.model import Batch, Model
from cito.dynamics.learned.network import Tensor, torch


class PlainNetwork(Model):
    """Two networks of (features of q, v, a or tau)."""

    kind = "network"
    has_energy = False

    def network_ends(self) -> dict[str, tuple[int, int]]:
        """See `Model.network_ends`."""
        inputs = self.shape.features + 2 * self.n
        return {"inverse": (inputs, self.n), "forward": (inputs, self.n)}

    def torque(self, q: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """See `Model.torque`."""
        spread = self.spread
        z = torch.cat([self.features(q), v / spread.v, a / spread.a], 1)
        return spread.tau * self.networks["inverse"].value(z)

    def acceleration(self, q: Tensor, v: Tensor, tau: Tensor) -> Tensor:
        """See `Model.acceleration`."""
        spread = self.spread
        z = torch.cat([self.features(q), v / spread.v, tau / spread.tau], 1)
        return spread.a * self.networks["forward"].value(z)

    def loss(self, batch: Batch) -> Tensor:
        """See `Model.loss`: the errors of both networks over their variances."""
        of_tau = (self.torque(batch.q, batch.v, batch.a) - batch.tau) / self.spread.tau
        of_a = (self.acceleration(batch.q, batch.v, batch.tau) - batch.a) / self.spread.a
        return (of_tau * of_tau).mean() + (of_a * of_a).mean()
