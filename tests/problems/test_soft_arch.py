"""A soft bar with lumped masses, muscles and the chain's contacts."""

import numpy as np
import pytest

import cito
from cito.dynamics.gradients import FullCone
from cito.dynamics.soft import SoftBody, solve_equilibrium
from cito.problems.registry import make
from cito.problems.soft_arch import HEIGHT, arched, bar_mesh, soft_bar

CURVATURE = 2.0


@pytest.fixture(scope="module")
def system():  # type: ignore[no-untyped-def]
    return soft_bar()


def forces(system, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[no-untyped-def]
    """Bias c(q, v) (nv,) and actuation B(q) (nv, nu)."""
    _, c, Bt, _, _ = (m.full() for m in system.terms_function(system.nominal, q, v))
    return c.ravel(), Bt.T


def test_its_forces_are_those_of_the_soft_body(system) -> None:  # type: ignore[no-untyped-def]
    mesh = bar_mesh()
    body = SoftBody(mesh, [0, 1], stiffness=1000.0)
    x = mesh.vertices + 0.01 * np.random.default_rng(0).normal(size=mesh.vertices.shape)
    inner, eye = body.positions_in("x", x), np.broadcast_to(np.eye(2), (body.m, 2, 2))
    A = body.actuation_in("A", eye)
    still = np.zeros(x.size)
    bias, B = forces(system, x.ravel(), still)
    bias -= forces(system, mesh.vertices.ravel(), still)[0]  # gravity
    gradient = body.energy(inner, A).gradient[..., 0].T
    assert np.allclose(bias, gradient.ravel(), atol=1e-9)
    u, h = np.random.default_rng(1).normal(size=body.m), 1e-6
    changed = eye.copy()
    changed[:, 0, 0] += h * u
    pulled = body.energy(inner, body.actuation_in("A", changed)).gradient[..., 0].T
    assert np.allclose(-(pulled - gradient).ravel() / h, B @ u, rtol=1e-4, atol=1e-4)


def test_dampers_let_rigid_motions_be_and_take_energy(system) -> None:  # type: ignore[no-untyped-def]
    q = arched(CURVATURE)
    spin = np.stack([-q[1::2], q[::2]], axis=1).ravel() + np.tile([1.0, -2.0], len(q) // 2)
    still, turning = (forces(system, q, v)[0] for v in (np.zeros_like(q), spin))
    assert np.allclose(still, turning, atol=1e-9)
    v = np.random.default_rng(2).normal(size=len(q))
    assert v @ (forces(system, q, v)[0] - still) > 0


def test_the_arch_is_a_shape_at_rest_with_its_feet_on_the_ground() -> None:
    mesh = bar_mesh()
    x = arched(CURVATURE).reshape(-1, 2)
    ground = np.isclose(x[:, 1], 0, atol=1e-12)
    assert ground.sum() == 2 and x[:, 1].min() >= 0
    fine = SoftBody(mesh.quadratic(), np.flatnonzero(mesh.vertices[:, 0] == 0))
    A = np.broadcast_to(np.eye(2), (fine.m, 2, 2)).copy()
    A[:, 0, 0] += CURVATURE * (fine.mesh.points[:, 1] - HEIGHT / 2)
    bent = solve_equilibrium(fine, A, tolerance=1e-8).positions[: len(mesh.vertices)]
    lengths = [np.linalg.norm(y[:, None] - y, axis=2) for y in (x, bent)]
    assert np.abs(lengths[0] - lengths[1]).max() < 0.01  # congruent: the same distances


def test_it_bends_over_hard_contact() -> None:
    problem = make("soft-arch", horizon=40)
    solution = cito.solve(problem, FullCone(rho=1e-3), max_iterations=40)
    costs = [record["cost"] for record in solution.history]
    assert costs[-1] < 0.5 * costs[0]
    assert np.abs(solution.controls).max() <= 0.4
    assert {0, 2} <= set(solution.modes.ravel())  # it lifts what it stood on
    assert solution.states[-1].reshape(-1, 2)[:10, 1].min() > -1e-6


def test_misuse_is_told() -> None:
    with pytest.raises(ValueError, match="`stiffness` must be > 0"):
        make("soft-arch", stiffness=0)
    with pytest.raises(ValueError, match="`curvature` must be > 0"):
        make("soft-arch", curvature=-1)
