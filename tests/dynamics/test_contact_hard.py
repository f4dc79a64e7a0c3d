"""The hard contact law as physics: answers are judged by the law, not by a solver's number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cito.benchmarks.contact_problems import KINDS, random_batch, random_batches, scaled_residual
from cito.dynamics.contact import (
    CLAMPING,
    SEPARATING,
    SLIDING,
    ContactProblem,
    HardStatus,
    solve_batch,
)
from tests.reference.contact import blocks, hard_by_modes
from tests.reference.step import hard_solve as hard_by_projection


def residual(problem, impulse):
    p = problem
    return float(scaled_residual(p.dims, p.A[None], p.b[None], p.mu[None], impulse[None])[0])


def random_problem(seed, dims, cond=10.0, mu=None):
    rng = np.random.default_rng(seed)
    n = int(np.sum(dims))
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    J = Q * np.sqrt(np.geomspace(1, 1 / cond, n))
    friction = rng.uniform(0, 1, len(dims)) if mu is None else mu
    return ContactProblem(J @ J.T, J @ rng.normal(size=n), friction, dims)


@pytest.mark.parametrize("dims", [(2,), (1,), (2, 2), (2, 1), (2, 2, 2), (1, 2, 1)])
def test_planar_solution_is_among_all_combinations_of_modes(dims):
    unique = 0
    for seed in range(60):
        problem = random_problem(seed, dims)
        solution = problem.solve()
        every = hard_by_modes(dims, problem.A, problem.b, problem.mu)
        unique += len(every) == 1
        assert solution.status is HardStatus.SOLVED
        assert min(np.abs(l - solution.impulse).max() for l in every) < 1e-10
    assert unique > 50


@pytest.mark.parametrize("dims", [(3,), (3, 3), (3, 2, 1), (3, 3, 3, 3)])
def test_spatial_solution_equals_projection_method(dims):
    for seed in range(8):
        problem = random_problem(seed, dims, cond=4, mu=np.full(len(dims), 0.5))
        oracle = hard_by_projection(problem.A, problem.b, dims, problem.mu)
        assert residual(problem, oracle) < 1e-11
        assert np.allclose(problem.solve().impulse, oracle, rtol=0, atol=1e-9)


def judge(batch):
    """Statuses; checks everything that the law says about answers of good status."""
    out = solve_batch(batch.A, batch.b, batch.mu, batch.dims)
    good = out.status == 0
    recomputed = scaled_residual(batch.dims, batch.A, batch.b, batch.mu, out.impulse)
    assert (recomputed[good] <= 1e-8).all()
    assert (out.residual[good] <= 1e-9).all() and (out.residual[~good] > 1e-9).all()
    sigma = np.einsum("mij,mj->mi", batch.A.astype(np.longdouble), out.impulse) + batch.b
    normals = np.cumsum(batch.dims) - 1
    sigma_ref = np.maximum(np.abs(batch.b).max(axis=1), 1e-3)
    lambda_ref = sigma_ref / batch.A[:, normals, normals].max(axis=1)
    for i, r in enumerate(blocks(batch.dims)):
        T = slice(r.start, r.stop - 1)
        slip, friction = (np.linalg.norm(x[:, T], axis=1) for x in (sigma, out.impulse))
        moving = good & (slip > 1e-6 * sigma_ref) & (friction > 1e-6 * lambda_ref)
        along = out.impulse[moving, T] / friction[moving, None]
        against = sigma[moving, T] / slip[moving, None]
        assert np.linalg.norm(along + against, axis=1).max(initial=0) < 1e-7
        separating = good & (out.modes[:, i] == SEPARATING)
        size = np.abs(out.impulse[:, r]).max(axis=1) / lambda_ref
        assert (size[separating] <= 1e-4).all()  # not zero at the apex, where only products vanish
    return out.status


def test_random_suite():
    status, cond = [], []
    for batch in random_batches(4000, seed=11, size=40):
        status.append(judge(batch))
        cond.append(batch.cond)
    status, easy = np.concatenate(status), np.concatenate(cond) <= 1e4
    assert (status[easy] != 0).sum() == 0
    assert (status != 0).mean() <= 1e-3


@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS), st.floats(-3, 3), st.floats(0, 2 * np.pi))
@settings(max_examples=40)
def test_units_and_tangent_frames_do_not_matter(seed, kind, decade, angle):
    batch = random_batch(np.random.default_rng(seed), kind, 1)
    A, b, mu = batch.A[0], batch.b[0], batch.mu[0]
    if np.abs(b).max() < 1:  # below 1e-3 m/s the residual's floor sees the unit
        b = b / np.abs(b).max() if b.any() else b
    first = ContactProblem(A, b, mu, batch.dims).solve()
    u, w = 10**decade, 2.0**5  # of impulse and velocity
    scaled = ContactProblem(A * w / u, b * w, mu, batch.dims).solve()
    R = np.eye(len(b))
    for r, d in zip(blocks(batch.dims), batch.dims):
        if d == 3:
            c, s = np.cos(angle), np.sin(angle)
            R[r, r] = [[c, -s, 0], [s, c, 0], [0, 0, 1]]
    turned = ContactProblem(R @ A @ R.T, R @ b, mu, batch.dims).solve()
    assert first.status is scaled.status is turned.status is HardStatus.SOLVED
    if len(np.unique(first.modes)) and batch.cond[0] < 1e3 and kind == "spectral":
        size = np.abs(first.impulse).max()
        assert np.allclose(scaled.impulse / u, first.impulse, rtol=0, atol=1e-8 * size)
        assert np.allclose(R.T @ turned.impulse, first.impulse, rtol=0, atol=1e-8 * size)


def test_powers_of_two_as_units_change_nothing_but_rounding():
    problem = random_problem(3, (3, 3, 2), cond=100)
    scaled = ContactProblem(problem.A * 2.0**10, problem.b * 2.0**3, problem.mu, problem.dims)
    impulse = scaled.solve().impulse * 2.0**7
    np.testing.assert_allclose(impulse, problem.solve().impulse, rtol=1e-12)


def test_friction_opposes_slip_where_normal_and_tangent_are_coupled():
    # Minimising energy on the ellipse cone * (sigma_N = 0) fails this by 0.8 rad in places.
    for seed in range(200):
        rng = np.random.default_rng(seed)
        L = rng.normal(size=(3, 3))
        problem = ContactProblem(L @ L.T + 0.05 * np.eye(3), rng.normal(size=3), [0.8])
        impulse, velocity, modes, *_ = problem.solve()
        if modes[0] == SLIDING:
            t = velocity[:2] / np.linalg.norm(velocity[:2])
            assert np.allclose(impulse[:2], -0.8 * impulse[2] * t, rtol=0, atol=1e-12)
            assert abs(velocity[2]) < 1e-13


def test_friction_dissipates_and_no_contact_pulls():
    for seed in range(100):
        problem = random_problem(seed, (3, 3, 3))
        impulse, velocity, *_ = problem.solve()
        for r in problem.rows:
            T = slice(r.start, r.stop - 1)
            assert impulse[T] @ velocity[T] <= 1e-13
            assert impulse[r.stop - 1] >= 0 and velocity[r.stop - 1] >= -1e-13


def test_modes_at_the_corners():
    def modes(b, mu=0.5):
        return ContactProblem(np.eye(3), b, [mu]).solve().modes[0]

    assert modes([0, 0, 0]) == SEPARATING  # apex
    assert modes([1, 0, 0]) == SEPARATING  # grazing
    assert modes([0.5, 0, -1]) == CLAMPING  # on the edge between stick and slip
    assert modes([0.5 + 1e-9, 0, -1]) == SLIDING
    assert modes([0, 0, -1]) == CLAMPING
    assert modes([0, 0, -1], mu=0) == SLIDING  # nothing holds the tangent
    assert ContactProblem([[1.0]], [-1], [0], [1]).solve().modes[0] == CLAMPING


def test_frictionless_contact_has_no_friction():
    solution = random_problem(1, (3, 2), mu=np.zeros(2)).solve()
    assert solution.status is HardStatus.SOLVED
    assert not solution.impulse[[0, 1, 3]].any()


def box_on_four_corners(b_N=-0.25, slip=0.0):
    corners = [(x, y, -0.1) for x in (-0.3, 0.3) for y in (-0.2, 0.2)]
    J = np.concatenate([_point_jacobian(np.array(c)) for c in corners])
    M = np.diag([2, 2, 2, 0.02, 0.03, 0.04])
    v = np.array([slip, 0, b_N, 0, 0, 0])
    return J @ np.linalg.inv(M) @ J.T, J @ v, J, M


def _point_jacobian(r):
    skew = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    return np.concatenate([np.eye(3), -skew], axis=1)


@pytest.mark.parametrize("slip", [0.0, 0.05, 2.0])
def test_redundant_contacts(slip):
    A, b, J, _ = box_on_four_corners(slip=slip)
    solution = ContactProblem(A, b, 0.5).solve()
    assert solution.status is HardStatus.SOLVED
    total = J.T @ solution.impulse
    assert np.isclose(total[2], 2 * 0.25, atol=1e-12)
    assert np.isclose(total[0], -min(2 * slip, 0.5 * 0.5), atol=1e-12)


def test_redundant_contacts_at_rest_share_the_load_and_do_not_brace():
    A, b, *_ = box_on_four_corners()
    solution = ContactProblem(A, b, 0.5).solve()
    assert (solution.modes == CLAMPING).all()
    assert np.allclose(solution.impulse.reshape(4, 3), [0, 0, 2 * 0.25 / 4], atol=1e-10)


def test_contact_without_inertia_coupling_and_zero_block():
    A = np.zeros((6, 6))
    A[:3, :3] = np.eye(3)
    solution = ContactProblem(A, [1, 0, -1, 0.3, 0, 0.2], 0.5).solve()
    assert solution.status is HardStatus.SOLVED
    assert np.allclose(solution.impulse, [-0.5, 0, 1, 0, 0, 0])


def test_infeasible_is_a_status():
    J = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1.0], [1, 0, 0], [0, -1, 0], [0, 0, -1]])
    floor_and_ceiling = J @ J.T / 2

    def status(b_ceiling):
        b = [0.1, 0, -1, 0.1, 0, b_ceiling]
        solution = ContactProblem(floor_and_ceiling, b, 0.5).solve()
        assert np.isfinite(solution.impulse).all()
        return solution.status

    assert status(-1) is HardStatus.INFEASIBLE
    assert status(0.9) is HardStatus.INFEASIBLE
    assert status(1.0) is HardStatus.SOLVED
    assert status(1.1) is HardStatus.SOLVED
    assert ContactProblem([[0.0]], [-1], [0], [1]).solve().status is HardStatus.INFEASIBLE
    stiff = ContactProblem(np.diag([1.0, 1e-9]), [-1, -1], [0, 0], [1, 1]).solve()
    assert stiff.status is not HardStatus.INFEASIBLE  # nearly singular, not singular


def test_cold_start_is_pure_and_warm_start_agrees():
    cold_sweeps = warm_sweeps = 0
    for seed in range(50):
        problem = random_problem(seed, (3, 3, 3, 3), cond=50, mu=np.full(4, 0.6))
        cold = problem.solve()
        assert np.array_equal(cold.impulse, problem.solve().impulse)
        near = ContactProblem(problem.A, problem.b * (1 + 1e-4), problem.mu)
        warm = near.solve(warm=cold.impulse)
        assert residual(near, warm.impulse) < 1e-12
        assert np.allclose(warm.impulse, near.solve().impulse, atol=1e-10)
        cold_sweeps += near.solve().sweeps
        warm_sweeps += warm.sweeps
    assert warm_sweeps < 0.5 * cold_sweeps


@pytest.mark.parametrize("warm", [[1e9, 0, -1e9], [0, 0, 5], [-3, 2, 0], [np.inf, 0, 0]])
def test_any_warm_start_is_survived(warm):
    problem = ContactProblem(np.eye(3), [0.4, 0.4, -1], [0.5])
    if not np.isfinite(warm).all():
        with pytest.raises(ValueError, match="`warm` must be finite"):
            problem.solve(warm)
        return
    solution = problem.solve(warm)
    assert solution.status is HardStatus.SOLVED
    assert np.allclose(solution.impulse, problem.solve().impulse, atol=1e-12)


def test_where_several_slips_exist_the_warm_start_chooses():
    # Strong coupling of normal and tangent: two slip directions fulfil the law.
    A = np.array([[1.0, 0.0, 0.9], [0.0, 1.0, 0.0], [0.9, 0.0, 1.0]])
    found = {}
    for angle in np.linspace(0, 2 * np.pi, 40):
        for tangent in np.linspace(-2, 2, 21):
            problem = ContactProblem(A, [tangent, 0.02, -1], [1.05])
            warm = problem.solve(warm=[np.cos(angle), np.sin(angle), 1])
            assert residual(problem, warm.impulse) < 1e-12
            known = found.setdefault(tangent, [])
            if all(np.abs(warm.impulse - l).max() > 1e-6 for l in known):
                known.append(warm.impulse)
    for tangent, solutions in found.items():
        problem = ContactProblem(A, [tangent, 0.02, -1], [1.05])
        cold = problem.solve().impulse
        work = [l[:2] @ (A @ l + problem.b)[:2] for l in solutions]
        assert cold[:2] @ (A @ cold + problem.b)[:2] <= min(work) + 1e-9
        for l in solutions:
            assert np.allclose(problem.solve(warm=l).impulse, l, atol=1e-9)


@pytest.mark.parametrize(
    ("A", "b"),
    [
        ([[1.0, -1.0], [-1.0, 1.0]], [-3.0, -1.0]),
        ([[0.4444, -0.4444], [-0.4444, 0.4444]], [1.0, -2.0]),
        ([[1.0, 1.0], [1.0, 1.0]], [3.0, -1.0]),
    ],
)
def test_jam_without_solution_is_not_called_solved(A, b):
    """Impulses on the cone's edge move nothing here (A lambda = 0): none of any size stops b."""
    solution = ContactProblem(A, b, [1.0], [2]).solve()
    assert solution.status is not HardStatus.SOLVED
    assert solution.residual > 0.1
    assert np.abs(solution.impulse).max() < 1e3
