"""The non-smooth Newton law: equal to the hard law, and its derivative that of its own root."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from cito import api
from cito.dynamics.check import finite_difference
from cito.dynamics.contact import solve_batch
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.fischer_burmeister import (
    FischerBurmeisterDynamics,
    complementarity_problem,
    sensitivity,
    solve,
)
from cito.dynamics.gradients import Exact
from cito.dynamics.linear import point_mass


def random_problem(rng: np.random.Generator, dims: tuple[int, ...]):
    n = sum(dims)
    W = rng.normal(size=(n, n + 1))
    return W @ W.T, rng.uniform(0.2, 1.0, len(dims)), rng.normal(size=n)


@pytest.mark.parametrize("dims", [(2,), (1, 2), (2, 2)])
def test_it_finds_what_the_hard_law_finds(dims: tuple[int, ...]) -> None:
    rng, modes = np.random.default_rng(0), set()
    for _ in range(30):
        A, mu, b = random_problem(rng, dims)
        problem = complementarity_problem(A, mu, dims)
        y, residual = solve(problem, b[None])
        hard = solve_batch(A[None], b[None], mu[None], np.array(dims, np.int32))
        if len(dims) == 1 or residual[0] < 1e-8:  # coupled contacts may have several solutions
            impulse = problem.E @ y[0]
            lawful = A @ impulse + b
            assert residual[0] < 1e-8 * max(1.0, np.abs(b).max())
            if len(dims) == 1:
                np.testing.assert_allclose(impulse, hard.impulse[0], atol=1e-8)
                np.testing.assert_allclose(lawful, hard.velocity[0], atol=1e-8)
        modes |= set(hard.modes[0].tolist())
    assert modes == {0, 1, 2}


@pytest.mark.parametrize("smoothing", [0.0, 1e-3, 0.1])
def test_its_derivative_is_that_of_its_root(smoothing: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        A, mu, b = random_problem(rng, (1, 2))
        problem = complementarity_problem(A, mu, (1, 2))
        impulse = partial(_impulses, problem, smoothing)
        numeric = finite_difference(impulse, b, step=1e-5)
        analytic = sensitivity(problem, solve(problem, b[None])[0], b[None], smoothing)[0]
        np.testing.assert_allclose(analytic, numeric, atol=2e-6 * max(1.0, np.abs(numeric).max()))


def _impulses(problem, smoothing: float, points: np.ndarray) -> np.ndarray:
    if smoothing == 0.0:
        return solve(problem, points)[0] @ problem.E.T
    return np.array([_path(problem, p, smoothing) for p in points])


def _path(problem, b: np.ndarray, t: float) -> np.ndarray:
    """lambda on the central path y w = t by scipy's root finder."""
    from scipy.optimize import root

    def phi(y: np.ndarray) -> np.ndarray:
        w = problem.H @ y + problem.F @ b
        return y + w - np.sqrt(y**2 + w**2 + 2 * t)

    start = np.maximum(solve(problem, b[None])[0][0], np.sqrt(t))
    found = root(phi, start, method="hybr", tol=1e-13)
    assert np.abs(phi(found.x)).max() < 1e-9
    return problem.E @ found.x


def test_rollouts_and_transitions_equal_those_of_the_hard_law() -> None:
    problem = api.make("traverse")
    hard = problem.dynamics
    law = FischerBurmeisterDynamics(hard)
    U = 15 * np.random.default_rng(0).standard_normal((problem.horizon, hard.nu))
    a, b = hard.rollout(problem.start, U), law.rollout(problem.start, U)
    np.testing.assert_allclose(b.states, a.states, atol=1e-8)
    assert (a.modes == b.modes).all() and set(a.modes.ravel()) == {0, 1, 2}
    ours, theirs = (d.linearize(r).with_gradient(Exact()) for d, r in ((hard, a), (law, b)))
    np.testing.assert_allclose(theirs.f_x, ours.f_x, atol=1e-4)
    np.testing.assert_allclose(theirs.f_u, ours.f_u, atol=1e-4)
    assert np.abs(ours.f_u).max() > 1e-3


def test_what_it_cannot_step_is_refused() -> None:
    with pytest.raises(ValueError, match="planar"):
        FischerBurmeisterDynamics(ContactDynamics(point_mass(3), 0.01))
    with pytest.raises(ValueError, match="LinearSystem"):
        FischerBurmeisterDynamics(api.make("hop").dynamics)
