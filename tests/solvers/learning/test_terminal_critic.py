"""The critic of a window's end: what it learns, and its slope."""

import numpy as np
import pytest

from cito.dynamics.types import Array
from cito.solvers.learning.terminal_critic import TerminalCritic


def critic(discount: float = 0.8) -> TerminalCritic:
    return TerminalCritic((2, 16, 1), discount, rate=1e-2, decay=0.9, fall_cost=10.0)


def test_the_slope_is_that_of_finite_differences() -> None:
    own, o, h = critic(), np.random.default_rng(0).standard_normal((3, 2)), 1e-6
    share = 0.8**4 / (1 - 0.8**4)
    for k in range(2):
        d = h * np.eye(2)[k]
        slope = share * (own.network(o + d) - own.network(o - d))[:, 0] / (2 * h)
        assert own.slope(o, 4)[:, k] == pytest.approx(slope, rel=1e-6)


def test_it_learns_discounted_means() -> None:
    """Two rooms: in the first each step costs 1, and with the chance p the robot goes over to the
    second, where steps cost 3; there a step ends with a fall with the chance q. From

        v_2 = (1 - g) 3 + g (q fall + (1 - q) v_2),  v_1 = (1 - g) + g (p v_2 + (1 - p) v_1)
    """
    own, random = critic(), np.random.default_rng(1)
    T, B, p, q, g = 8, 16, 0.3, 0.2, 0.8
    room = np.zeros(B, int)
    seen = np.eye(2)
    for _ in range(400):
        rooms, later, falls, costs = [], [], [], []
        for _ in range(T):
            rooms.append(room)
            costs.append(np.where(room, 3.0, 1.0))
            falls.append((room == 1) & (random.random(B) < q))
            room = np.where((room == 0) & (random.random(B) < p), 1, room)
            later.append(room)
            room = np.where(falls[-1], 0, room)
        fell = np.array(falls)
        own.fit(seen[np.array(rooms)], seen[np.array(later)], np.array(costs), fell, fell)
    v_2 = ((1 - g) * 3 + g * q * 10) / (1 - g * (1 - q))
    v_1 = ((1 - g) + g * p * v_2) / (1 - g * (1 - p))
    found: Array = own.network(seen)[:, 0]
    assert found == pytest.approx([v_1, v_2], rel=0.1)
