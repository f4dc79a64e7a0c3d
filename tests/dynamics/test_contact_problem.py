"""Misuse of contact problems, their layouts, batches and threads."""

import numpy as np
import pytest

from cito.benchmarks.contact_problems import random_batch
from cito.dynamics.contact import (
    ContactProblem,
    HardStatus,
    relax_batch,
    sensitivity_batch,
    solve_batch,
)
from cito.dynamics.gradients import Exact, FullCone, Randomized, Signorini

I3 = np.eye(3)
ZERO = np.zeros(3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.full((3, 3), np.nan), ZERO, [1]), r"`A` must be finite, got nan at index \(0, 0\)"),
        ((I3, [0, np.inf, 0], [1]), r"`b` must be finite, got inf at index \(1,\)"),
        ((np.triu(np.ones((3, 3))), ZERO, [1]), r"`A` must be symmetric, got \|A - A'\| up to 1"),
        ((np.diag([1.0, 1, -1]), ZERO, [1]), "`A` must be positive semidefinite, .* -1"),
        ((I3, ZERO, [-0.5]), "`mu` must be >= 0, got -0.5"),
        ((I3, ZERO, [np.nan]), "`mu` must be finite"),
        ((np.eye(2), ZERO, [1]), r"`A` must have shape \(3, 3\), got \(2, 2\)"),
        ((I3, np.zeros((3, 1)), [1]), r"`b` must have shape \(any,\), got \(3, 1\)"),
        ((np.eye(4), np.zeros(4), [1]), "`dims` is needed: 4 rows do not divide among 1 contacts"),
        ((I3, ZERO, [1], [2]), r"`dims` must hold 1, 2 or 3 .* add up to 3 rows, got \[2\]"),
        ((I3, ZERO, [1], [4]), "`dims` must hold 1, 2 or 3"),
        ((I3, ZERO, [1, 1], [3]), r"`mu` must have shape \(1,\), got \(2,\)"),
        ((I3, "abc", [1]), "`b` must be an array of numbers"),
    ],
)
def test_misuse_is_one_clear_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        ContactProblem(*arguments)


def test_misuse_of_solves():
    problem = ContactProblem(I3, [0, 0, -1], [1])
    with pytest.raises(ValueError, match=r"`warm` must have shape \(3,\)"):
        problem.solve(warm=[0, 0])
    with pytest.raises(ValueError, match=r"`smoothing` must have shape \(1,\)"):
        problem.relax(FullCone(0.1), smoothing=[0.1, 0.1])
    with pytest.raises(ValueError, match="`threads` must be a whole number >= 1, got 0"):
        solve_batch(I3[None], ZERO[None], [[1]], threads=0)
    with pytest.raises(ValueError, match="`knots` must be whole numbers from 0 to .*, got -1"):
        sensitivity_batch(I3[None], ZERO[None], [[1]], Exact(), knots=[-1])
    with pytest.raises(ValueError, match="`A` must be positive semidefinite"):
        solve_batch(np.stack([I3, -I3]), np.zeros((2, 3)), [[1], [1]])


def test_layouts():
    b = np.array([0.1, -1, 0.2, -1])
    assert list(ContactProblem(np.eye(4), b, [1, 1]).dims) == [2, 2]
    assert list(ContactProblem(np.eye(6), np.zeros(6), 0.5).dims) == [3, 3]
    mixed = ContactProblem(np.eye(6), [1, 0, -1, 1, -1, -1], 0.5, [3, 2, 1])
    assert mixed.rows == [slice(0, 3), slice(3, 5), slice(5, 6)]
    assert np.allclose(mixed.solve().impulse, [-0.5, 0, 1, -0.5, 1, 1])


def test_no_contacts():
    nothing = ContactProblem(np.zeros((0, 0)), [], [])
    assert nothing.solve().status is HardStatus.SOLVED
    for gradient in (Exact(), Signorini(), FullCone(), Randomized()):
        assert nothing.sensitivity(gradient).shape == (0, 0)
        assert nothing.relax(gradient).impulse.shape == (0,)


def test_arrays_are_not_shared_or_changed():
    A, b = np.eye(3), np.array([0.3, 0, -1])
    problem = ContactProblem(A, b, [0.5])
    first = problem.solve()
    A[2, 2] = 7
    assert np.array_equal(problem.solve().impulse, first.impulse)
    assert np.array_equal(b, [0.3, 0, -1])


@pytest.mark.parametrize("kind", ["spectral", "articulated", "duplicate"])
def test_batches_and_threads_equal_single_solves(kind):
    batch = random_batch(np.random.default_rng(5), kind, 12)
    A, b, mu, dims = batch.A, batch.b, batch.mu, batch.dims
    scale = np.abs(b).max() ** 2 / np.abs(A).max()
    for gradient in (FullCone(0.1 * scale), Signorini(0.1 * scale), Randomized(0.1, 4), Exact()):
        one = solve_batch(A, b, mu, dims), relax_batch(A, b, mu, gradient, dims)
        two = (
            solve_batch(A, b, mu, dims, threads=3),
            relax_batch(A, b, mu, gradient, dims, threads=3),
        )
        for x, y in zip(one, two):
            assert all(np.array_equal(p, q) for p, q in zip(x, y))
        D = sensitivity_batch(A, b, mu, gradient, dims)
        assert np.array_equal(D.db, sensitivity_batch(A, b, mu, gradient, dims, threads=2).db)
        for k in (0, 7):
            single = ContactProblem(A[k], b[k], mu[k], dims)
            assert np.array_equal(single.solve().impulse, one[0].impulse[k])
            assert np.array_equal(single.relax(gradient).impulse, one[1].impulse[k])
            assert np.array_equal(single.sensitivity(gradient, knot=k), D.db[k])
