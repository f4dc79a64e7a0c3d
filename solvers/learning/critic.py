"""The value of an observation: a policy's network whose last layer is linear.

h_0 = o,   h_i = elu(h_(i-1) W_i + b_i),   V = h_(n-1) W_n + b_n
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cito.dynamics.types import Array
from cito.solvers.learning.policy import Policy


class Critic(Policy):
    """A multilayer perceptron from observations (..., n) to values (..., 1); see `Policy`."""

    def layers(self, observation: Array) -> list[Array]:
        """Outputs of all layers, the observation first and the value last."""
        h = super().layers(observation)
        h[-1] = h[-2] @ self.weights[-1] + self.biases[-1]
        return h

    def deltas(self, h: Sequence[Array], g: Array) -> list[Array]:
        """As those of a policy: where tanh is zero, its slope is one."""
        return super().deltas([*h[:-1], np.zeros_like(h[-1])], g)
