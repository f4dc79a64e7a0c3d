"""Redundant contacts: many impulses do the same, what they do together is one and the same."""

import numpy as np
import pytest

from cito.benchmarks.contact_problems import quadruped_batch, scaled_residual
from cito.benchmarks.scaling_robots import go2_on_points, humanoid
from cito.benchmarks.standing import standing
from cito.dynamics import _native
from cito.dynamics.contact import (
    CLAMPING,
    SLIDING,
    ContactProblem,
    HardStatus,
    RelaxedStatus,
)
from cito.dynamics.gradients import Exact, FullCone


def repeated(problem, copies):
    """Every contact `copies` times at its place."""
    return ContactProblem(
        np.tile(problem.A, (copies, copies)), np.tile(problem.b, copies),
        np.tile(problem.mu, copies), np.tile(problem.dims, copies),
    )  # fmt: skip


def quadrupeds(count, seed=0):
    batch = quadruped_batch(count, seed)
    return [ContactProblem(A, b, mu) for A, b, mu in zip(batch.A, batch.b, batch.mu)]


def residual(problem, impulse):
    p = problem
    return float(scaled_residual(p.dims, p.A[None], p.b[None], p.mu[None], impulse[None])[0])


def slab(count, push, seed=0):
    """A slab of 10 kg on `count` points of its lower face, falling and pushed (6,) sideways."""
    rng = np.random.default_rng(seed)
    points = np.full((count, 3), -0.05)
    points[:, :2] = rng.uniform([-0.4, -0.3], [0.4, 0.3], (count, 2))
    points[:4, :2] = [(0.4, 0.3), (0.4, -0.3), (-0.4, 0.3), (-0.4, -0.3)]
    J = np.concatenate([_point_jacobian(r) for r in points])
    M = np.diag([10, 10, 10, 0.31, 0.54, 0.83])
    v = np.array([0, 0, -0.2, 0, 0, 0]) + push
    return ContactProblem(J @ np.linalg.solve(M, J.T), J @ v, 0.6), J, M, v


def _point_jacobian(r):
    skew = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    return np.concatenate([np.eye(3), -skew], axis=1)


@pytest.mark.parametrize("copies", [2, 4])
def test_copies_of_contacts_change_no_velocity(copies):
    modes = set()
    for problem in quadrupeds(40):
        single, many = problem.solve(), repeated(problem, copies).solve()
        assert many.status is HardStatus.SOLVED
        assert residual(repeated(problem, copies), many.impulse) < 1e-9
        size = np.abs(problem.b).max()
        assert np.abs(many.velocity - np.tile(single.velocity, copies)).max() < 1e-9 * size
        together = many.impulse.reshape(copies, -1).sum(axis=0)
        assert np.abs(together - single.impulse).max() < 1e-7 * np.abs(single.impulse).max() + 1e-12
        modes.update(single.modes)
    assert modes == {0, 1, 2}


@pytest.mark.parametrize("count", [4, 6, 8, 16, 40])
def test_a_slab_stops_at_once_on_any_number_of_points(count):
    problem, J, M, v = slab(count, np.array([0.05, 0.03, 0, 0, 0, 0.05]))
    solution = problem.solve()
    assert solution.status is HardStatus.SOLVED and (solution.modes == CLAMPING).all()
    after = v + np.linalg.solve(M, J.T @ solution.impulse)
    assert np.abs(after).max() < 1e-12


@pytest.mark.parametrize("count", [4, 6, 8, 16, 40])
def test_a_slab_slides_with_full_friction_on_any_number_of_points(count):
    problem, J, M, v = slab(count, np.array([2.0, -1.0, 0, 0, 0, 0]))
    solution = problem.solve()
    assert solution.status is HardStatus.SOLVED and residual(problem, solution.impulse) < 1e-9
    wrench = J.T @ solution.impulse
    direction = np.array([2, -1]) / np.sqrt(5)
    np.testing.assert_allclose(wrench[2], 10 * 0.2, rtol=1e-10)
    np.testing.assert_allclose(wrench[:2], -0.6 * 10 * 0.2 * direction, rtol=1e-9)
    loaded = solution.impulse[2::3] > 1e-9
    assert loaded.any() and (solution.modes[loaded] == SLIDING).all()


@pytest.mark.parametrize("size", [1e-14, 1e-12, 1e-10])
@pytest.mark.parametrize("push", [(0.05, 0.02, 0, 0, 0, 0.05), (2.0, -1.0, 0, 0, 0, 0)])
def test_what_no_impulse_answers_is_borne(size, push):
    """Corners of a tilted sole can not all stop at once: b is a little out of the reach of A."""
    for seed in range(5):
        problem, *_ = slab(8, np.array(push), seed)
        off = np.random.default_rng(seed).standard_normal(24) * np.abs(problem.b).max()
        disturbed = ContactProblem(problem.A, problem.b + size * off, 0.6)
        solution, undisturbed = disturbed.solve(), problem.solve()
        assert solution.status is HardStatus.SOLVED and solution.sweeps <= 80
        assert residual(disturbed, solution.impulse) < 1.01e-9
        assert np.abs(solution.velocity - undisturbed.velocity).max() < 1e3 * size + 1e-12


@pytest.mark.parametrize("count", [6, 16])
@pytest.mark.parametrize("spin", [0.3, 3.0])
def test_a_spinning_slab_is_braked_at_every_point(count, spin):
    problem, J, M, v = slab(count, np.array([0.4, 0, 0, 0, 0, spin]))
    solution = problem.solve()
    assert solution.status is HardStatus.SOLVED and residual(problem, solution.impulse) < 1e-9
    lost = 0.5 * v @ M @ v
    after = v + np.linalg.solve(M, J.T @ solution.impulse)
    assert 0.5 * after @ M @ after < lost and abs(after[5]) < spin


def test_robots_on_redundant_points_take_few_iterations():
    for robot in (humanoid(), go2_on_points(8), go2_on_points(16)):
        work = standing(robot.system, robot.stance, 0.002, 24, pose=0.02, velocity=0.02, torque=0.3)
        rollout = work.dynamics.rollout(work.states, work.controls[:, None])
        assert rollout.residual.max() < 1e-11
        for x, u in zip(work.states[:6], work.controls):
            problem = problem_of(work, x, u)
            assert problem.solve().sweeps <= 60


def problem_of(work, x, u):
    """The contact problem of one step."""
    dynamics, nq = work.dynamics, work.dynamics.manifold.nq
    M, _, _, J, _ = _native.system_terms(dynamics.manifold, None, x[:nq], x[nq:])
    b = dynamics.linearize(dynamics.rollout(x, u[None])).free_velocity[0]
    A = J @ np.linalg.solve(M, J.T)
    return ContactProblem(0.5 * (A + A.T), b, dynamics.friction)


@pytest.mark.parametrize("decade", [-6, -4, -2, 0])
def test_copies_share_the_relaxed_law_and_its_sensitivity(decade):
    """Each of m copies has lambda_N sigma_N = rho / m where a single contact has rho."""
    copies = 3
    for problem in quadrupeds(12, seed=3):
        hard, n = problem.solve(), len(problem.b)
        a = np.diag(problem.A)[2::3].max()
        rho = 10.0**decade * np.abs(problem.b).max() ** 2 / a
        eps = 0.1 * rho / (hard.impulse[2::3].max() + np.sqrt(rho / a))
        whole, share = FullCone(rho, eps=eps), FullCone(rho / copies, eps=eps)
        many = repeated(problem, copies)
        many_hard = many.solve()
        one, shared = problem.relax(whole, hard), many.relax(share, many_hard)
        assert shared.status is one.status is RelaxedStatus.SOLVED
        scale = np.abs(one.impulse).max()
        each = np.tile(one.impulse / copies, copies)
        assert np.abs(shared.impulse - each).max() < 1e-8 * scale
        D, D_many = problem.derivatives(whole, start=hard), many.derivatives(share, start=many_hard)
        assert D_many.fallbacks == D.fallbacks == 0
        together = D_many.db.reshape(copies, n, copies, n).sum(axis=(0, 2))
        assert np.abs(together - D.db).max() < 1e-6 * np.abs(D.db).max()
        mu = D_many.dmu.reshape(copies, n, copies, -1).sum(axis=(0, 2))
        assert np.abs(mu - D.dmu).max() < 1e-6 * np.abs(D.dmu).max()


def test_exact_sensitivity_of_copies_holds_the_same_velocities():
    """d sigma / d b where all copies of a contact move alike."""
    copies = 3
    for problem in quadrupeds(12, seed=4):
        hard, n = problem.solve(), len(problem.b)
        many = repeated(problem, copies)
        alike = np.tile(np.eye(n), (copies, 1))
        one = problem.A @ problem.sensitivity(Exact(), start=hard)
        start = many.solve(warm=np.tile(hard.impulse / copies, copies))
        every = many.A @ many.sensitivity(Exact(), start=start) @ alike
        assert np.abs(every - np.tile(one, (copies, 1))).max() < 1e-6 * max(np.abs(one).max(), 1)
