"""What lies beyond a window: a critic whose value is added at the end (Xu et al. 2022, SHAC).

Values are discounted means of the running cost, so that they do not grow with the horizon:

    v(o_t) ~ (1 - gamma) sum_(k >= 0) gamma^k c_(t+k)

and the cost of a window of T steps, with the weights w_t of its steps, becomes

    sum_t w_t c_t + gamma^T / (1 - gamma^T) v(o_T),       w_t = gamma^t (1 - gamma) / (1 - gamma^T)

which is the discounted cost for ever but for one factor. A fall costs a constant for ever after.
After every window the critic is fitted to returns of TD(lambda), by its values before the fit.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.types import Array
from cito.solvers.learning.adam import Adam, clip_norm
from cito.solvers.learning.advantages import advantages
from cito.solvers.learning.critic import Critic

EPOCHS, LARGEST_NORM = 4, 1.0  # of a fit: passes over the window, norm of a gradient


class TerminalCritic:
    """A critic in training.

    Args:
        sizes: of its layers, observation first and 1 last.
        discount: gamma.
        rate: of Adam.
        decay: lambda.
        fall_cost: of a control step, for ever after a fall.
        seed: of the first weights.
    """

    def __init__(
        self,
        sizes: tuple[int, ...],
        discount: float,
        rate: float,
        decay: float,
        fall_cost: float,
        seed: int = 0,
    ) -> None:
        self.network = Critic(sizes, seed + 1)
        self.adam = Adam(len(self.network.parameters))
        self.discount, self.rate, self.decay, self.fall_cost = discount, rate, decay, fall_cost

    def slope(self, observation: Array, length: int) -> Array:
        """Gradient of gamma^T / (1 - gamma^T) v with respect to observations (B, n), a robot each;
        T = `length`."""
        share = self.discount**length
        h = self.network.layers(observation)
        g: Array = self.network.transposed(h, np.ones_like(h[-1]))[1]
        return g * (share / (1 - share))

    def fit(
        self,
        observation: Array,
        last: Array,
        cost: Array,
        fell: NDArray[np.bool_],
        ended: NDArray[np.bool_],
    ) -> float:
        """Learn from a window; the mean square of what the values were off.

        Args:
            observation: before each step, (T, B, n).
            last: after each step, before a new episode began, (T, B, n).
            cost: of each step (T, B).
            fell, ended: whether the robot fell, whether the episode ended with the step, (T, B).
        """
        value, after = (self.network(o)[..., 0] for o in (observation, last))
        after = np.where(fell, self.fall_cost, after)
        gain = (1 - self.discount) * cost
        error = advantages(gain, value, after, ended, self.discount, self.decay)
        target = (value + error).reshape(-1, 1)
        o = observation.reshape(len(target), -1)
        for _ in range(EPOCHS):
            h = self.network.layers(o)
            wrong = h[-1] - target
            g = self.network.gradient(h[:-1], self.network.deltas(h, 2 * wrong / len(o)))
            clip_norm(g, LARGEST_NORM)
            self.adam.update(self.network.parameters, g, self.rate)
        return float((error * error).mean())

    def arrays(self) -> dict[str, Array]:
        """All that is to be saved but how many steps Adam made."""
        return {
            "critic": self.network.parameters,
            "critic_mean": self.adam.mean,
            "critic_square": self.adam.square,
        }

    def restore(self, arrays: Mapping[str, Array], fits: int) -> None:
        """Continue where `arrays` were taken, after so many fits."""
        for name, own in self.arrays().items():
            own[:] = arrays[name]
        self.adam.steps = EPOCHS * fits
