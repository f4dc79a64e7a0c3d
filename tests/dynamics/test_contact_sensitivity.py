"""Sensitivities of every gradient's law: against central differences, oracles and limits."""

import numpy as np
import pytest

from cito.benchmarks.contact_problems import random_batch
from cito.dynamics.contact import ContactProblem, HardStatus, sensitivity_batch, solve_batch
from cito.dynamics.gradients import Bundled, Exact, FullCone, Randomized, Signorini
from tests.dynamics.test_contact_hard import box_on_four_corners
from tests.dynamics.test_contact_relaxed import default_eps, random_problems, scaled_energy
from tests.reference.contact import (
    exact_law,
    full_cone_law,
    sensitivity,
    signorini_law,
    slip_directions,
)
from tests.reference.normals import standard_normals

KINDS = ("spectral", "articulated", "masses")


def replaced(problem, b=None, mu=None):
    return ContactProblem(
        problem.A, problem.b if b is None else b, problem.mu if mu is None else mu, problem.dims
    )


def central_differences(function, x, step):
    columns = [(function(x + e) - function(x - e)) / (2 * step) for e in step * np.eye(len(x))]
    return np.stack(columns, axis=1)


def reach(A):
    """Orthonormal columns that span the range of A."""
    values, vectors = np.linalg.eigh(A)
    return vectors[:, values > 1e-10 * values[-1]]


def assert_close(got, wanted, scale, tolerance=1e-6):
    assert np.abs(got - wanted).max(initial=0) <= tolerance * scale


def test_exact_is_the_derivative_of_the_hard_solve_in_every_mode():
    seen, compared = set(), 0
    for problem in random_problems(60, KINDS, seed=21):
        hard, size = problem.solve(), np.abs(problem.b).max()
        D = problem.derivatives(Exact(), start=hard)
        modes = []

        def impulse(b=None, mu=None, problem=problem, hard=hard, modes=modes):
            solution = replaced(problem, b, mu).solve(warm=hard.impulse)
            modes.append((solution.modes == hard.modes).all() and solution.residual < 1e-11)
            return solution.impulse

        step = 1e-6 * size
        db = central_differences(lambda b: impulse(b=b), problem.b, step)
        has_friction = problem.mu > 0
        dmu = central_differences(lambda mu: impulse(mu=np.abs(mu)), problem.mu, 1e-6)
        stiffness = np.abs(D.db).max() * np.abs(problem.A).max()
        if not all(modes) or stiffness > 1e5:
            continue  # next to a change of modes, or nearly singular
        compared += 1
        seen.update(hard.modes)
        unique = problem.A if np.linalg.matrix_rank(problem.A) < len(db) else np.eye(len(db))
        assert_close(unique @ D.db, unique @ db, max(np.abs(unique @ D.db).max(), 1e-9))
        dmu_scale = max(np.abs(D.dmu).max(), np.abs(hard.impulse).max(), 1e-9)
        for i in np.flatnonzero(has_friction):
            wanted = unique @ dmu[:, i]
            assert_close(unique @ D.dmu[:, i], wanted, np.abs(unique).max() * dmu_scale * 10)
    assert compared >= 30 and seen == {0, 1, 2}


@pytest.mark.parametrize("law", [Signorini, FullCone])
def test_relaxed_sensitivity_is_the_derivative_of_the_relaxed_point(law):
    compared = 0
    for k, problem in enumerate(random_problems(60, KINDS, seed=22)):
        hard, size = problem.solve(), np.abs(problem.b).max()
        gradient = law(10.0 ** (k % 4 - 3) * scaled_energy(problem), delta=0.1 * size)
        D = problem.derivatives(gradient, start=hard)
        if D.status or D.fallbacks:
            continue
        compared += 1
        eps = default_eps(problem, np.full(len(problem.mu), gradient.rho), hard)
        step = min(1e-6 * size, 1e-2 * eps.min())

        def impulse(b=None, mu=None, problem=problem, gradient=gradient, hard=hard, eps=eps):
            return replaced(problem, b, mu).relax(gradient, hard, smoothing=eps).impulse

        # Sticking contacts that are redundant hold no b out of their reach, nor are they unique.
        U = reach(problem.A) if law is Signorini else np.eye(len(problem.b))

        def moved(y, problem=problem, U=U, impulse=impulse):
            return U.T @ impulse(b=problem.b + U @ y)

        db = central_differences(moved, np.zeros(U.shape[1]), step)
        noise = 1e-14 * np.abs(impulse()).max() / step
        assert_close(U.T @ D.db @ U, db, np.abs(D.db).max() + noise / 1e-6)
        friction = problem.mu > 1e-3
        dmu = U.T @ central_differences(lambda mu: impulse(mu=np.abs(mu)), problem.mu, 1e-6)
        scale = max(np.abs(D.dmu).max(), np.abs(impulse()).max())
        assert_close((U.T @ D.dmu)[:, friction], dmu[:, friction], scale)
    assert compared >= 40


def test_sensitivities_equal_their_oracles():
    for problem in random_problems(40, KINDS, cond=1e3, seed=23):
        hard, n = problem.solve(), len(problem.b)
        rho = np.full(len(problem.mu), 0.05 * scaled_energy(problem))
        t = slip_directions(problem.dims, hard.impulse, hard.velocity)
        full = problem.relax(FullCone(rho[0]), hard)
        half = problem.relax(Signorini(rho[0]), hard)
        eps = default_eps(problem, rho, hard)
        cases = [
            (Exact(), exact_law(problem.dims, hard.modes), hard),
            (FullCone(rho[0]), full_cone_law(problem.dims, rho, eps), full),
            (Signorini(rho[0]), signorini_law(problem.dims, rho, hard.modes, t), half),
        ]
        friction = (problem.mu > 0) & (problem.dims > 1)
        for gradient, law, at in cases:
            D = problem.derivatives(gradient, start=hard)
            if D.status or D.fallbacks:
                continue
            if isinstance(gradient, Exact):
                slips = [np.linalg.norm(hard.velocity[r][:-1]) for r in problem.rows]
                frictionless = (problem.mu == 0) & (hard.modes == 1)
                if min(slips) == 0 and 1 in hard.modes or frictionless.any():
                    continue  # the plain law divides by the slip
            db, dmu = sensitivity(law, problem.A, problem.mu, at.impulse, at.velocity)
            scale = np.abs(D.db).max() + 1e-300
            if scale * np.abs(problem.A).max() > 1e6:
                continue
            null = np.linalg.matrix_rank(problem.A) < n
            project = problem.A / np.abs(problem.A).max() if null else np.eye(n)
            assert_close(project @ D.db, project @ db, scale, 1e-8)
            size = np.abs(D.dmu).max() + np.abs(at.impulse).max()
            assert_close((project @ D.dmu)[:, friction], (project @ dmu)[:, friction], size, 1e-7)


@pytest.mark.parametrize("law", [Signorini, FullCone])
def test_limit_of_vanishing_rho_is_exact_inside_modes(law):
    for b in ([0.1, 0.05, -1], [2.0, 1.0, -1], [0.5, 0.2, 1.0]):  # clamped, sliding, separated
        A = np.array([[1.2, 0.1, 0.2], [0.1, 1.0, -0.1], [0.2, -0.1, 0.9]])
        problem = ContactProblem(A, b, [0.8])
        exact = problem.derivatives(Exact())
        errors = []
        for rho in (1e-3, 1e-5, 1e-7, 1e-9):
            D = problem.derivatives(law(rho))
            if law is Signorini and problem.solve().modes[0] == 1:
                # its slip direction is frozen: it differs from the exact law by that term alone
                turning = exact.db - D.db
                t = problem.solve().velocity[:2] / np.linalg.norm(problem.solve().velocity[:2])
                errors.append(np.abs(t @ turning[:2] + 0.8 * turning[2]).max())
            else:
                errors.append(np.abs(D.db - exact.db).max())
        assert errors[-1] < 1e-4 and errors[-1] < 0.2 * errors[0] + 1e-9


def test_friction_in_three_dimensions_turns_with_the_slip():
    D = ContactProblem(np.eye(3), [2, 0, -1], [0.5]).sensitivity(Exact())
    # lambda_T = -mu lambda_N t: a sideways db_T2 turns t by d sigma_T2 / ||sigma_T||, and
    # sigma_T2 itself feels the friction: d lambda = -x / (1 + x) db,  x = mu lambda_N / ||sigma_T||
    x = 0.5 / 1.5
    assert np.allclose(D, [[0, 0, 0.5], [0, -x / (1 + x), 0], [0, 0, -1]])


def test_corners_follow_the_reported_mode():
    def db(b, mu=0.5):
        return ContactProblem(np.eye(3), b, [mu]).sensitivity(Exact())

    assert not db([0, 0, 0]).any()  # apex: separating
    assert np.allclose(db([0.5, 0, -1]), -np.eye(3))  # edge of stick: clamping
    assert np.allclose(db([0, 0, -1], mu=0), np.diag([0, 0, -1]))


def test_full_cone_sees_every_change_of_mode():
    gradient = FullCone(0.1)
    for b in ([0.3, 0, 1.0], [0.1, 0, -1.0], [2.0, 0, -1.0]):
        D = ContactProblem(np.eye(3), b, [0.8]).sensitivity(gradient)
        assert D[0, 0] < -0.01 and D[2, 2] < -0.01 and abs(D[0, 2]) > 0.01
    separated = ContactProblem(np.eye(3), [0.3, 0, 1.0], [0.8])
    assert not separated.sensitivity(Exact()).any()
    signorini = separated.sensitivity(Signorini(0.1))
    assert signorini[2, 2] < -0.01 and not signorini[:2].any()


def test_relaxed_sensitivity_is_continuous_across_modes_and_zero_slip():
    line = np.linspace(-1e-7, 1e-7, 4)  # not through zero, with zero in between
    for gradient in (FullCone(0.1), FullCone(0.01)):
        for direction, b in (
            ([0, 0, 1], [0.3, 0.1, 0.0]),
            ([1, 0, 0], [0.0, 0.0, -1.0]),
            ([1, 1, 0], [0.0, 0.0, 1.0]),
            ([1, 0, 0], [0.8, 0.0, -1.0]),
        ):
            bs = np.array(b) + line[:, None] * direction
            A = np.broadcast_to(np.eye(3), (4, 3, 3))
            D = sensitivity_batch(A, bs, np.full((4, 1), 0.8), gradient).db
            assert np.abs(np.diff(D, axis=0)).max() < 1e-3


@pytest.mark.parametrize("slip", [0.0, 0.05, 2.0])
def test_rank_deficient_contacts(slip):
    A, b, J, M = box_on_four_corners(slip=slip)
    problem = ContactProblem(A, b + 0 * b, 0.5)
    hard = problem.solve()
    D = problem.sensitivity(Exact(), start=hard)

    def velocity(v):
        solution = replaced(problem, b=J @ v).solve(warm=hard.impulse)
        assert solution.status is HardStatus.SOLVED
        return v + np.linalg.solve(M, J.T @ solution.impulse)

    v = np.array([slip, 0, -0.25, 0, 0, 0])
    wanted = central_differences(velocity, v, 1e-6)
    got = np.eye(6) + np.linalg.solve(M, J.T @ D @ J)
    assert_close(got, wanted, 1, 1e-6)
    if slip < 0.1:  # all clamped: d lambda is the one of least norm
        assert np.allclose(D, -np.linalg.pinv(A), atol=1e-9 * np.abs(D).max())
    for gradient in (FullCone(0.05), Signorini(0.05)):
        info = problem.derivatives(gradient, start=hard)
        assert info.status == 0 and info.fallbacks == 0 and np.isfinite(info.db).all()


@pytest.mark.parametrize("order", [0, 1])
def test_randomized_equals_its_twin(order):
    batch = random_batch(np.random.default_rng(4), "spectral", 1)
    problem = ContactProblem(batch.A[0], batch.b[0], batch.mu[0], batch.dims)
    std = 0.2 * np.abs(problem.b).max()
    gradient, hard, n = Randomized(std, 10, order, seed=9), problem.solve(), len(problem.b)
    db, dmu = np.zeros((n, n)), np.zeros((n, len(problem.mu)))
    for sample in range(10):
        xi = standard_normals(9, 3, sample, n)
        moved = replaced(problem, b=problem.b + std * xi)
        solution = moved.solve()
        D = moved.derivatives(Exact(), start=solution)
        db += np.outer(solution.impulse - hard.impulse, xi) / std if order == 0 else D.db
        dmu += D.dmu
    got = problem.derivatives(gradient, knot=3, start=hard)
    assert np.allclose(got.db, db / 10, rtol=1e-9, atol=1e-12 * np.abs(db).max())
    assert np.allclose(got.dmu, dmu / 10, rtol=1e-9, atol=1e-12 * np.abs(dmu).max(initial=0))
    assert not np.array_equal(got.db, problem.sensitivity(gradient, knot=4, start=hard))


@pytest.mark.parametrize("order", [0, 1])
def test_randomized_converges_to_the_derivative_of_the_smoothed_law(order):
    # Signorini alone, A = 1: E lambda(b + xi) has the derivative -P(b + xi < 0) = -Phi(-b / std).
    truth = -0.30853753872598694  # -Phi(-0.5)
    errors = []
    for samples in (100, 10000):
        problem = ContactProblem([[1.0]], [0.1], [0], [1])
        D = [problem.sensitivity(Randomized(0.2, samples, order, seed=s))[0, 0] for s in range(8)]
        errors.append(np.sqrt(np.mean((np.array(D) - truth) ** 2)))
    assert errors[1] < 0.25 * errors[0] and errors[1] < 0.02


def test_bundled_is_exact_at_this_level():
    problem = ContactProblem(np.eye(3), [2, 0, -1], [0.5])
    assert np.array_equal(problem.sensitivity(Bundled()), problem.sensitivity(Exact()))


def test_batch_of_hard_solutions_can_be_passed_in():
    batch = random_batch(np.random.default_rng(8), "articulated", 6)
    hard = solve_batch(batch.A, batch.b, batch.mu, batch.dims)
    gradient = FullCone(0.1 * np.abs(batch.b).max() ** 2 / np.abs(batch.A).max())
    one = sensitivity_batch(batch.A, batch.b, batch.mu, gradient, batch.dims, hard=hard)
    two = sensitivity_batch(batch.A, batch.b, batch.mu, gradient, batch.dims)
    assert np.array_equal(one.db, two.db) and np.array_equal(one.dmu, two.dmu)
