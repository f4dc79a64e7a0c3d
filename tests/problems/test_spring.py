"""The mass on a spring moves as the textbook says, and DDP steers it in one iteration."""

from __future__ import annotations

import numpy as np
import pytest

import cito
from cito.problems.spring import mass_spring_damper, spring_damper


def test_it_swings_at_its_natural_frequency_and_decays():
    m, k, c, h = 2.0, 30.0, 0.8, 1e-4
    dynamics = cito.ContactDynamics(spring_damper(m, k, c), h)
    states = dynamics.rollout([1.0, 0.0], np.zeros((20000, 1))).states
    t = h * np.arange(20001)
    omega, zeta = np.sqrt(k / m), c / (2 * np.sqrt(k * m))
    damped = omega * np.sqrt(1 - zeta**2)
    decay = np.exp(-zeta * omega * t)
    expected = decay * (np.cos(damped * t) + zeta * omega / damped * np.sin(damped * t))
    np.testing.assert_allclose(states[:, 0], expected, atol=5e-4)


def test_ddp_needs_one_iteration_to_reach_the_optimum_of_the_least_squares_problem():
    problem = mass_spring_damper(horizon=20)
    solution = cito.solve(problem, cito.Exact())
    N, h, m, k, c = 20, 0.01, 1.0, 15.0, 0.5
    A = np.array([[1 - h * h * k / m, h * (1 - h * c / m)], [-h * k / m, 1 - h * c / m]])
    B = np.array([h * h / m, h / m])
    powers = [np.linalg.matrix_power(A, i) for i in range(N + 1)]
    rows, rhs = [], []
    for i in range(N + 1):  # x_i = A^i x_0 + sum_j A^(i-1-j) B u_j
        S = np.array([powers[i - 1 - j] @ B if j < i else np.zeros(2) for j in range(N)]).T
        root = np.sqrt([100.0, 10.0] if i == N else [1.0, 0.0])
        rows.append(root[:, None] * S)
        rhs.append(-root * (powers[i] @ problem.start))
    rows.append(np.sqrt(1e-4) * np.eye(N))
    rhs.append(np.zeros(N))
    u = np.linalg.lstsq(np.vstack(rows), np.concatenate(rhs), rcond=None)[0]
    np.testing.assert_allclose(solution.controls[:, 0], u, rtol=1e-8)
    assert abs(solution.states[-1]).max() < 0.2 < abs(solution.states[0]).max()


@pytest.mark.parametrize("name", ["mass", "stiffness", "damping"])
def test_negative_values_are_refused(name):
    with pytest.raises(ValueError, match=name):
        spring_damper(**{name: -1.0})
