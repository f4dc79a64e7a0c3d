"""The relaxed laws: points of the central path and of the Signorini relaxation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cito.benchmarks.contact_problems import KINDS, random_batch
from cito.dynamics.contact import (
    CLAMPING,
    SEPARATING,
    SLIDING,
    ContactProblem,
    RelaxedStatus,
    relax_batch,
    solve_batch,
)
from cito.dynamics.gradients import Bundled, Exact, FullCone, Randomized, Signorini
from tests.reference.contact import (
    full_cone_law,
    point,
    pushed,
    signorini_law,
    slip_directions,
)


def scaled_energy(problem):
    """lambda_ref sigma_ref [J]: the unit in which rho is meant here."""
    normals = np.cumsum(problem.dims) - 1
    return np.abs(problem.b).max() ** 2 / problem.A[normals, normals].max()


def default_eps(problem, rho, hard):
    """0.1 rho / (mu lambda_N,start); any number for frictionless contacts."""
    N = np.cumsum(problem.dims) - 1
    start = np.maximum(hard.impulse[N], 0) + np.sqrt(rho / problem.A[N, N])
    mu = np.where((problem.dims > 1) & (problem.mu > 0), problem.mu, 1)
    return 0.1 * rho / (mu * start)


def random_problems(count, kinds=KINDS, cond=1e4, seed=0):
    rng = np.random.default_rng(seed)
    for k in range(count):
        batch = random_batch(rng, kinds[k % len(kinds)], 1)
        if batch.cond[0] <= cond and batch.b.any():
            yield ContactProblem(batch.A[0], batch.b[0], batch.mu[0], batch.dims)


@pytest.mark.parametrize("relative", [False, True])
def test_full_cone_point_solves_the_law_inside_the_cones(relative):
    compared = 0
    for k, problem in enumerate(random_problems(60)):
        N = np.cumsum(problem.dims) - 1
        energy, delta = 10.0 ** (k % 4 - 3) * scaled_energy(problem), 0.1 * np.abs(problem.b).max()
        if relative:
            gradient = FullCone(
                0.5, delta, relative=True, v_ref=np.sqrt(energy * problem.A[N, N].max())
            )
            rho = 0.5 * gradient.v_ref**2 / problem.A[N, N]
        else:
            gradient, rho = FullCone(energy, delta), np.full(len(N), energy)
        hard = problem.solve()
        got = problem.relax(gradient, hard)
        if got.status is not RelaxedStatus.SOLVED:
            continue
        compared += 1
        eps = default_eps(problem, rho, hard)
        b = problem.b.copy()
        b[N] += delta
        law = full_cone_law(problem.dims, rho, eps)
        residual = law(got.impulse, got.velocity, problem.mu)
        scale = rho[np.repeat(np.arange(len(N)), problem.dims)]
        assert np.abs(residual / scale).max() < 1e-7
        gap = problem.A @ got.impulse + b - got.velocity
        assert np.abs(gap).max() < 1e-10 * np.abs(problem.b).max()
        for i, r in enumerate(problem.rows):
            l, s = got.impulse[r], got.velocity[r]
            mu = problem.mu[i] if len(l) > 1 else 0
            assert l[-1] > 0
            assert np.linalg.norm(l[:-1]) < mu * l[-1] or mu == 0
            s_N = s[-1] + mu * np.hypot(np.linalg.norm(s[:-1]), eps[i])
            assert s_N > mu * np.linalg.norm(s[:-1])
    assert compared >= 40


def test_full_cone_point_equals_the_oracle():
    for k, problem in enumerate(random_problems(30, ("spectral", "masses"), cond=100, seed=2)):
        rho = np.full(len(problem.mu), 10.0 ** (k % 3 - 2) * scaled_energy(problem))
        hard = problem.solve()
        got = problem.relax(FullCone(rho[0]), hard)
        law = full_cone_law(problem.dims, rho, default_eps(problem, rho, hard))
        start = pushed(problem.dims, problem.A, rho, hard.impulse, hard.velocity)
        l, s = point(law, problem.dims, problem.A, problem.b, problem.mu, *start)
        size = np.abs(l).max()
        assert np.allclose(got.impulse, l, rtol=0, atol=1e-9 * size)


def test_closed_form_of_the_path():
    for problem in random_problems(40, ("spectral",), cond=1e3, seed=3):
        rho = 0.1 * scaled_energy(problem)
        hard = problem.solve()
        got = problem.relax(FullCone(rho), hard)
        eps = default_eps(problem, np.full(len(problem.mu), rho), hard)
        for i, r in enumerate(problem.rows):
            l, s, mu = got.impulse[r], got.velocity[r], problem.mu[i]
            if len(l) == 1 or mu == 0:
                assert np.isclose(l[-1] * s[-1], rho, rtol=1e-8)
                assert np.abs(l[:-1]).max(initial=0) < 1e-15 * l[-1]
                continue
            slip = mu * np.linalg.norm(s[:-1])
            m = np.hypot(slip, mu * eps[i])
            # lambda_T = -mu^2 lambda_N sigma_T / s_N
            assert np.allclose(l[:-1], -(mu**2) * l[-1] * s[:-1] / (s[-1] + m), rtol=1e-8)
            # lambda_N (s_N^2 - mu^2 ||sigma_T||^2) = rho s_N;  with eps = 0 and s = ||sigma_T||:
            # lambda_N sigma_N = rho (sigma_N + mu s) / (sigma_N + 2 mu s)
            assert np.isclose(l[-1] * ((s[-1] + m) ** 2 - slip**2), rho * (s[-1] + m), rtol=1e-7)


def test_signorini_product_is_rho_at_rest_and_half_of_it_in_fast_slip():
    rho = 1e-3
    slow = ContactProblem(np.eye(3), [0, 0, 1.0], [0.5]).relax(FullCone(rho), smoothing=[1e-9])
    fast = ContactProblem(np.eye(3), [1e4, 0, 1.0], [0.5]).relax(FullCone(rho), smoothing=[1e-9])
    assert np.isclose(slow.impulse[2] * slow.velocity[2], rho, rtol=1e-6)
    assert np.isclose(fast.impulse[2] * fast.velocity[2], rho / 2, rtol=1e-3)


def test_path_ends_at_the_hard_solution():
    for problem in random_problems(30, ("spectral", "articulated"), cond=100, seed=4):
        hard = problem.solve()
        for gradient, tolerance in ((FullCone, 1e-3), (Signorini, 1e-3)):
            got = problem.relax(gradient(1e-12 * scaled_energy(problem)), hard)
            if got.status is not RelaxedStatus.SOLVED:
                continue  # wedged: no path
            error = np.abs(problem.A @ (got.impulse - hard.impulse)).max()
            assert error < tolerance * np.abs(problem.b).max()


def test_newton_from_the_pushed_hard_solution_is_short_and_never_leaves_the_cones():
    rng = np.random.default_rng(7)
    iterations, status = [], []
    for k in range(40):
        batch = random_batch(rng, KINDS[k % len(KINDS)], 25)
        if not batch.b.any():
            continue
        for decade in (-6, -3, -1, 0):
            rho = 10.0**decade * np.median(np.abs(batch.b).max() ** 2 / np.abs(batch.A).max())
            out = relax_batch(batch.A, batch.b, batch.mu, FullCone(rho), batch.dims)
            iterations.append(out.iterations)
            status.append(out.status)
    iterations, status = np.concatenate(iterations), np.concatenate(status)
    assert (status != 2).all()
    assert (status == 1).mean() <= 2e-3
    assert np.median(iterations) <= 8


def test_signorini_point_equals_the_oracle():
    compared = 0
    for problem in random_problems(60, ("spectral", "masses"), cond=1e3, seed=5):
        rho = np.full(len(problem.mu), 0.05 * scaled_energy(problem))
        hard = problem.solve()
        got = problem.relax(Signorini(rho[0]), hard)
        if got.fallbacks:
            continue
        compared += 1
        t = slip_directions(problem.dims, hard.impulse, hard.velocity)
        law = signorini_law(problem.dims, rho, hard.modes, t)
        start = pushed(problem.dims, problem.A, rho, hard.impulse, hard.velocity)
        l, _ = point(law, problem.dims, problem.A, problem.b, problem.mu, *start)
        assert np.allclose(got.impulse, l, rtol=0, atol=1e-9 * np.abs(l).max())
        N = np.cumsum(problem.dims) - 1
        assert np.allclose(got.impulse[N] * got.velocity[N], rho, rtol=1e-8)
        for i, r in enumerate(problem.rows):
            l, s = got.impulse[r], got.velocity[r]
            if hard.modes[i] == CLAMPING:
                assert np.abs(s[:-1]).max(initial=0) < 1e-9 * np.abs(problem.b).max()
            elif hard.modes[i] == SLIDING and len(l) > 1:
                assert np.allclose(l[:-1], -problem.mu[i] * l[-1] * t[i], rtol=1e-9)
            elif hard.modes[i] == SEPARATING:
                assert np.abs(l[:-1]).max(initial=0) < 1e-15 * l[-1]
    assert compared > 20


def test_signorini_without_a_root_falls_back_and_is_counted():
    # Two contacts of one point mass, both clamped: sigma_T = 0 at both leaves no sigma_N > 0.
    J = np.array([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]])
    problem = ContactProblem(J @ J.T, J @ [0.1, -1], [1, 1])
    hard = problem.solve()
    got = problem.relax(Signorini(0.1), hard)
    assert got.fallbacks >= 1 and np.isfinite(got.impulse).all()
    assert problem.derivatives(Signorini(0.1), start=hard).fallbacks >= 1


def test_separated_contact_has_both_relaxations():
    problem = ContactProblem(np.eye(3), [0.3, 0, 1], [0.8])
    for gradient in (Signorini(0.1), FullCone(0.1)):
        got = problem.relax(gradient)
        assert got.impulse[2] > 0.01
    assert problem.relax(Signorini(0.1)).impulse[0] == 0
    assert problem.relax(FullCone(0.1)).impulse[0] < -0.005  # friction before touch-down


@pytest.mark.parametrize("gradient", [Exact(), Randomized(), Bundled()])
def test_gradients_of_the_hard_law_relax_to_it(gradient):
    problem = ContactProblem(np.eye(3), [0.3, 0, -1], [0.8])
    hard = problem.solve()
    assert np.array_equal(problem.relax(gradient).impulse, hard.impulse)


@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(1e-3, 1), st.floats(0.1, 1.5))
@settings(max_examples=60)
def test_path_is_continuous_across_modes_and_through_zero_slip(b_T, b_N, rho, mu):
    A = np.array([[1.2, 0.1, 0.2], [0.1, 1.0, -0.1], [0.2, -0.1, 0.9]])
    step = 1e-7

    def impulses(b):
        A_, mu_ = np.broadcast_to(A, (len(b), 3, 3)), np.full((len(b), 1), mu)
        hard = solve_batch(A_, b, mu_)
        return relax_batch(A_, b, mu_, FullCone(rho), hard=hard).impulse

    line = np.linspace(-step, step, 5)[:, None]
    across = impulses(np.array([b_T, 0, b_N]) + line)  # any point
    at_zero = impulses(np.array([0, 0, b_N]) + line * [1, 1, 0])  # zero slip
    at_touch = impulses(np.array([b_T, 0, 0]) + line * [0, 0, 1])  # apex
    for path in (across, at_zero, at_touch):
        assert np.abs(np.diff(path, axis=0)).max() < 100 * step


def test_delta_moves_the_normal_free_velocity():
    problem = ContactProblem(np.eye(3), [0.3, 0, -1], [0.8])
    shifted = ContactProblem(np.eye(3), [0.3, 0, -0.5], [0.8])
    hard, eps = problem.solve(), [0.01]
    got = problem.relax(FullCone(0.1, delta=0.5), hard, smoothing=eps)
    same = shifted.relax(FullCone(0.1), hard, smoothing=eps)
    assert np.allclose(got.impulse, same.impulse, atol=1e-12)
    assert np.allclose(got.velocity, same.velocity, atol=1e-12)
