"""A pendulum of n driven links that hangs and shall stand up.

    q_1, ..., q_n   angles of the joints [rad]; all zero: it hangs.  theta_k = q_1 + ... + q_k
    tip             p = l sum_k (sin theta_k, -cos theta_k) [m]

    r = - |p - p*|^2 / (2 n l)^2 - RATE_COST |v|^2 / n - ACTION_COST |a|^2 / n,   p* = (0, n l)

An episode in which a joint turns faster than RUNAWAY, more than such long steps can follow, is over
and costs RUNAWAY_COST, as much as hanging for all its time.

From three links on the motors are too weak to lift all links straight: they must fold, or swing.
"""

from __future__ import annotations

import numpy as np

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.tree import Body, TreeSystem
from cito.dynamics.types import Array, whole_number
from cito.problems.arm import rod
from cito.problems.episodic.task import EpisodicTask, Flags, Reward

LINK_MASS, LINK_LENGTH, LINK_RADIUS = 0.5, 0.5, 0.02  # [kg], [m], [m]
ROTOR_INERTIA, DAMPING = 0.02, 0.05  # of every joint [kg m^2], [N m s/rad]
TORQUE = 10.0  # of every motor [N m]
TIME_STEP = 1 / 60  # [s]
RATE_COST, ACTION_COST = 1e-3, 1e-2
RATE = 5.0  # that is one in observations [rad/s]
RUNAWAY, RUNAWAY_COST = 100.0, 100.0  # [rad/s]
START = 0.1  # largest angle and rate at the start [rad], [rad/s]
MOST = 12  # links


def links(n: int, gravity: float = 9.81) -> TreeSystem:
    """n equal rods that hang from the world, one from the other, in the x-z plane."""
    com, inertia = rod(LINK_MASS, LINK_LENGTH, LINK_RADIUS)
    down = np.array([0.0, 0.0, -LINK_LENGTH])
    bodies = [
        Body(
            f"link {k}", f"link {k - 1}" if k else None, "revolute", LINK_MASS, -com, inertia,
            position=down if k else np.zeros(3), axis=np.array([0.0, -1.0, 0.0]),
            armature=ROTOR_INERTIA, damping=DAMPING,
        )
        for k in range(n)
    ]  # fmt: skip
    return TreeSystem(bodies, gravity=gravity)


class LinkPendulum(EpisodicTask):
    """The task, with n links.

    Observations are sines and cosines of the joints' angles, and their rates over RATE.
    """

    def __init__(self, n: int = 3) -> None:
        self.n = whole_number("n", n, 1, MOST)
        super().__init__(
            f"links-{n}", ContactDynamics(links(n), TIME_STEP), TORQUE, 0.0, observation_size=3 * n
        )
        self.target = np.array([0.0, n * LINK_LENGTH])

    def starts(self, count: int, random: np.random.Generator) -> Array:
        """Hanging, nearly at rest."""
        return random.uniform(-START, START, (count, 2 * self.n))

    def observe(self, x: Array) -> Array:
        """See `EpisodicTask.observe`."""
        q, v = x[:, : self.n], x[:, self.n :]
        return np.hstack([np.sin(q), np.cos(q), v / RATE])

    def observation_jacobian(self, x: Array) -> Array:
        """See `EpisodicTask.observation_jacobian`."""
        n, q = self.n, x[:, : self.n]
        J, i = np.zeros((len(x), 3 * n, 2 * n)), np.arange(self.n)
        J[:, i, i], J[:, n + i, i] = np.cos(q), -np.sin(q)
        J[:, 2 * n + i, n + i] = 1 / RATE
        return J

    def tip(self, x: Array) -> tuple[Array, Array]:
        """p (B, 2) [m] and dp/dq (B, 2, n)."""
        theta = np.cumsum(x[:, : self.n], axis=1)
        along = LINK_LENGTH * np.stack([np.sin(theta), -np.cos(theta)], axis=1)
        turned = LINK_LENGTH * np.stack([np.cos(theta), np.sin(theta)], axis=1)
        # q_j turns the links from j on: d p / d q_j = sum_{k >= j} d p / d theta_k
        return along.sum(axis=2), turned[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]

    def reward(self, x: Array, action: Array) -> Reward:
        """See `EpisodicTask.reward`."""
        n, v = self.n, x[:, self.n :]
        p, J = self.tip(x)
        off, size = p - self.target, (2 * n * LINK_LENGTH) ** 2
        value = (
            -(off**2).sum(axis=1) / size
            - RATE_COST / n * (v**2).sum(axis=1)
            - ACTION_COST / n * (action**2).sum(axis=1)
            - RUNAWAY_COST * self.fallen(x)
        )
        r_q = -2 / size * np.einsum("bi,bij->bj", off, J)
        return Reward(
            value, np.hstack([r_q, -2 * RATE_COST / n * v]), -2 * ACTION_COST / n * action
        )

    def fallen(self, x: Array) -> Flags:
        """Whether a joint runs away."""
        fast: Flags = np.abs(x[:, self.n :]).max(axis=1) > RUNAWAY
        return fast
