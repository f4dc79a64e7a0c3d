"""Trees that move in the plane y = 0: the second tangent row of their contacts vanishes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cito.dynamics import ContactDynamics, Exact, FullCone, Signorini
from cito.dynamics.contact import sensitivity_batch, solve_batch
from cito.dynamics.step_terms import step_terms
from cito.problems.robots import load_robot

H, MU = 0.01, 0.8


def problems(name: str, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A (count, n, n) and b (count, n) near the stance, and the rows that do not vanish."""
    robot = load_robot(name)
    dynamics, nv = ContactDynamics(robot, H, MU), robot.native.nv
    rng = np.random.default_rng(0)
    start = np.append(robot.stance, np.zeros(nv))
    A, b = [], []
    for _ in range(count):
        dx = np.append(0.003 * rng.standard_normal(nv), 0.3 * rng.standard_normal(nv))
        x = dynamics.integrate(start, dx)
        terms = step_terms(dynamics, x)
        c, B, J, phi = terms.c, terms.B, terms.J, terms.phi
        M = terms.inertia(x[-nv:], H)
        assert not J[1::3].any()
        v_free = x[-nv:] + H * np.linalg.solve(M, B @ rng.standard_normal(dynamics.nu) - c)
        A.append(J @ np.linalg.solve(M, J.T))
        b.append(J @ v_free)
        b[-1][2::3] += phi / H
    rows = np.flatnonzero(np.arange(len(b[0])) % 3 != 1)
    return np.array(A), np.array(b), rows


@pytest.mark.parametrize("name", ["hopper", "biped"])
@pytest.mark.parametrize("gradient", [Exact(), Signorini(0.1), FullCone(0.1), FullCone(0.3, 0.5)])
def test_three_rows_are_as_good_as_two(name: str, gradient: Any) -> None:
    A, b, rows = problems(name, 60)
    A2 = np.ascontiguousarray(A[:, rows[:, None], rows])
    b2, dims = np.ascontiguousarray(b[:, rows]), (2,) * (len(rows) // 2)
    hard, planar = solve_batch(A, b, MU), solve_batch(A2, b2, MU, dims=dims)
    assert set(hard.modes.ravel().tolist()) == {0, 1, 2} and not hard.impulse[:, 1::3].any()
    assert np.array_equal(hard.modes, planar.modes)
    assert np.allclose(hard.impulse[:, rows], planar.impulse, rtol=0, atol=1e-12)
    ours = sensitivity_batch(A, b, MU, gradient).db
    expected = sensitivity_batch(A2, b2, MU, gradient, dims=dims).db
    scale = np.abs(expected).max()
    assert scale > 0.1
    assert np.allclose(ours[:, rows[:, None], rows], expected, rtol=0, atol=1e-8 * scale)
    assert np.isfinite(ours).all() and np.abs(ours[:, rows, 1::3]).max() < 1e-12 * scale
