"""Cart-pole and Furuta's pendulum: the true systems, and that they swing up."""

import numpy as np
import pytest

import cito
from cito.dynamics import _native
from cito.problems.cart_pole import cart_pole, furuta


def test_the_cart_pole_is_that_of_the_textbook() -> None:
    M_c, m, l, g = 1.0, 0.2, 0.6, 9.81
    inertia = m * (3 * 0.01**2 + l**2) / 12 + m * l**2 / 4  # about the pivot
    q, v = np.array([0.4, 0.7]), np.array([0.5, -1.3])
    M, c, Bt, *_ = _native.system_terms(cart_pole(M_c, m, l).native, None, q, v)
    coupling = m * l / 2 * np.cos(q[1])
    np.testing.assert_allclose(M, [[M_c + m, coupling], [coupling, inertia]], rtol=1e-12)
    pull, weight = -m * l / 2 * np.sin(q[1]) * v[1] ** 2, m * g * l / 2 * np.sin(q[1])
    np.testing.assert_allclose(c, [pull, weight], rtol=1e-12)
    np.testing.assert_array_equal(np.ravel(Bt), [1, 0])


def test_furutas_arm_feels_the_pendulum_swing_out() -> None:
    """The inertia about the vertical grows with the pendulum's angle; gravity sees that only."""
    terms = [
        _native.system_terms(furuta().native, None, np.array([0.3, angle]), np.zeros(2))
        for angle in (0.0, np.pi / 2, np.pi)
    ]
    inertia = [M[0, 0] for M, *_ in terms]
    assert inertia[1] > 1.2 * inertia[0] and inertia[2] == pytest.approx(inertia[0])
    np.testing.assert_allclose([c[0] for _, c, *_ in terms], 0, atol=1e-12)
    assert terms[1][1][1] == pytest.approx(0.1 * 9.81 * 0.15)


@pytest.mark.parametrize("name", ["cart-pole", "furuta"])
def test_it_swings_up_within_its_limits(name: str) -> None:
    problem = cito.make(name)
    solution = cito.solve(problem, cito.Exact())
    assert abs(solution.states[-1, 1] - np.pi) < 0.1
    assert np.abs(solution.controls).max() <= problem.control_upper[0]
    assert np.abs(solution.controls).max() > 0.5 * problem.control_upper[0]


def test_model_predictive_control_holds_it_up() -> None:
    problem = cito.make("cart-pole")
    controller = cito.MPC(problem, gradient=cito.Exact(), first_iterations=50)
    x, h = problem.start, problem.dynamics.time_step
    tilt = []
    for k in range(150):
        x = problem.dynamics.step(x, controller.update(k * h, x).control(k * h, x)).state
        tilt.append(abs(x[1] - np.pi))
    assert max(tilt[-30:]) < 0.1


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="`force_limit` must be > 0"):
        cito.make("cart-pole", force_limit=-1.0)
    with pytest.raises(ValueError, match="`length` must be > 0"):
        cito.make("furuta", length=0.0)
