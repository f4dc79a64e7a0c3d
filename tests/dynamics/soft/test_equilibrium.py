"""Energy, equilibria and their sensitivities, against finite differences and Newton's method."""

import numpy as np
import pytest

from cito.dynamics.soft import (
    Mesh,
    SoftBody,
    block,
    equilibrium_vjp,
    face_patch,
    held_end,
    solve_equilibrium,
)
from cito.dynamics.soft.newton import adjoint_by_factors, hessian_matrix, polished

MESHES = {2: block((1.0, 0.25), (4, 1)).quadratic(), 3: block((1.0, 0.25, 0.2), (5, 2, 1))}


def body_of(d: int) -> SoftBody:
    mesh = MESHES[d]
    rng = np.random.default_rng(0)
    moduli = rng.uniform(0.5, 2.0, len(mesh.points))
    load = 1e-4 * rng.normal(size=mesh.vertices.shape)
    return SoftBody(mesh, held_end(mesh).vertices, moduli, load)


def bent(mesh: Mesh) -> np.ndarray:
    """An actuation that bends and shears."""
    d, X = mesh.dimension, mesh.points
    A = np.broadcast_to(np.eye(d), (len(X), d, d)).copy()
    A[:, 0, 0] += 3 * (X[:, -1] - X[:, -1].mean()) * np.cos(2 * X[:, 0])
    A[:, 0, 1] += 0.1 * X[:, 0]
    A[:, 1, 0] = A[:, 0, 1]
    return A


def inside_out(body: SoftBody) -> np.ndarray:
    """Positions where some elements are inverted, others nearly flat."""
    rng = np.random.default_rng(5)
    return body.mesh.vertices + 0.07 * rng.normal(size=body.mesh.vertices.shape)


def symmetric(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    A = rng.normal(size=shape)
    return 0.5 * (A + A.swapaxes(-1, -2))


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("inverted", [False, True])
def test_gradient_and_hessian_of_the_energy(d: int, inverted: bool) -> None:
    body, rng = body_of(d), np.random.default_rng(1)
    A = body.actuation_in("A", bent(body.mesh))
    x = inside_out(body) if inverted else body.mesh.vertices + 0.01 * rng.normal(size=(body.n, d))
    x = body.positions_in("x", x)
    at = body.energy(x, A)
    det = np.linalg.det(np.moveaxis(at.F, 2, 0))
    assert (det < 0).any() == inverted
    dx = rng.normal(size=x.shape)
    h = 1e-6
    high, low = body.energy(x + h * dx, A), body.energy(x - h * dx, A)
    slope = (at.gradient * dx).sum()
    assert (high.value - low.value)[0] / (2 * h) == pytest.approx(slope, rel=1e-6)
    H_dx = body.hessian(dx, A, at.R, body.curvature(at.F, at.R, A))
    numeric = (high.gradient - low.gradient) / (2 * h)
    assert np.abs(numeric - H_dx).max() < 1e-6 * np.abs(H_dx).max()
    matrix = hessian_matrix(body, A, at)
    dx[:, body.held] = 0
    H_dx = body.hessian(dx, A, at.R, body.curvature(at.F, at.R, A))
    assert np.allclose(matrix @ dx[:, body.free].ravel(), H_dx[:, body.free].ravel())


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("history", [0, 8])
def test_the_solver_reaches_the_minimum_that_newton_confirms(d: int, history: int) -> None:
    body = body_of(d)
    A = bent(body.mesh)
    found = solve_equilibrium(body, A, history=history, tolerance=1e-9, max_iterations=20_000)
    assert found.converged.all() and found.residual[0] <= 1e-9
    x = polished(body, A, found.positions)
    assert np.abs(x - found.positions).max() < 1e-6 * body.mesh.size
    assert np.abs(x - body.mesh.vertices).max() > 0.1 * body.mesh.size  # it has bent


def test_steps_that_remember_each_other_are_fewer() -> None:
    body = body_of(2)
    A = bent(body.mesh)
    alone, together = (
        solve_equilibrium(body, A, history=h, tolerance=1e-6, max_iterations=20_000).iterations
        for h in (0, 8)
    )
    assert together < alone / 5


@pytest.mark.parametrize("d", [2, 3])
def test_local_and_global_steps_alone_never_raise_the_energy(d: int) -> None:
    body = body_of(d)
    A = bent(body.mesh)
    energies = [
        solve_equilibrium(body, A, history=0, max_iterations=k, start=inside_out(body)).energy[0]
        for k in range(1, 12)
    ]
    assert (np.diff(energies) < 0).all()


@pytest.mark.parametrize("d", [2, 3])
def test_a_body_turned_inside_out_turns_back(d: int) -> None:
    body = SoftBody(MESHES[d], held_end(MESHES[d]).vertices)
    eye = np.broadcast_to(np.eye(d), (body.m, d, d))
    found = solve_equilibrium(body, eye, start=inside_out(body), tolerance=1e-10)
    assert np.abs(found.positions - body.mesh.vertices).max() < 1e-7


def test_the_reference_is_at_rest_and_a_uniform_stretch_is_exact() -> None:
    body = SoftBody(MESHES[2], held_end(MESHES[2]).vertices)
    A = np.broadcast_to(np.diag([1.5, 1.0]), (body.m, 2, 2))
    found = solve_equilibrium(body, A, tolerance=1e-12)
    assert np.abs(found.positions - body.mesh.vertices * [1.5, 1.0]).max() < 1e-9
    assert found.energy[0] < 1e-18


def test_poses_side_by_side_are_those_alone() -> None:
    body = body_of(3)
    A = np.stack([bent(body.mesh), np.broadcast_to(np.eye(3), (body.m, 3, 3))])
    held = np.stack([body.mesh.vertices[body.held], 1.1 * body.mesh.vertices[body.held]])
    both = solve_equilibrium(body, A, held, tolerance=1e-9)
    assert both.positions.shape == (2, body.n, 3) and both.converged.all()
    for k in range(2):
        one = solve_equilibrium(body, A[k], held[k], tolerance=1e-9)
        assert np.abs(one.positions - both.positions[k]).max() < 1e-6
        assert np.array_equal(both.positions[k][body.held], held[k])
    assert both.residual.shape == both.force.shape == (2,)


def loss(body: SoftBody, A: np.ndarray, held: np.ndarray, x: np.ndarray, g: np.ndarray) -> float:
    found = solve_equilibrium(body, A, held, x, tolerance=1e-8)
    return float((g * polished(body, A, found.positions)).sum())


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("method", ["conjugate", "fixed-point"])
def test_adjoint_against_finite_differences_and_factors(d: int, method: str) -> None:
    body, rng = body_of(d), np.random.default_rng(2)
    A, held = bent(body.mesh), body.mesh.vertices[body.held]
    x = polished(body, A, solve_equilibrium(body, A).positions)
    g = rng.normal(size=x.shape)
    found = equilibrium_vjp(body, A, x, g, method=method, tolerance=1e-10, max_iterations=20_000)  # type: ignore[arg-type]
    assert found.residual.max() < 1e-10
    oracle = adjoint_by_factors(body, A, x, g)
    assert np.abs(found.actuation - oracle.actuation).max() < 1e-7 * np.abs(oracle.actuation).max()
    assert np.abs(found.held - oracle.held).max() < 1e-7 * np.abs(oracle.held).max()
    dA, dh, h = symmetric(rng, A.shape), rng.normal(size=held.shape), 1e-5
    exact = (found.actuation * dA).sum() + (found.held * dh).sum()
    high, low = (loss(body, A + s * h * dA, held + s * h * dh, x, g) for s in (1, -1))
    assert abs(exact) > 1e-2
    assert (high - low) / (2 * h) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("d", [2, 3])
def test_adjoint_of_a_pose_with_an_inverted_element(d: int) -> None:
    """Bones that press an element inside out: its pose is at rest all the same."""
    mesh = block((1.0,) * d, (2,) * d)
    edge = np.flatnonzero(np.abs(mesh.vertices[:, 0] - 0.5) > 0.4)
    body = SoftBody(mesh, edge)
    held = mesh.vertices[edge].copy()
    held[np.argmax(held @ np.ones(d))] -= 0.9  # one corner through the body
    eye = np.broadcast_to(np.eye(d), (body.m, d, d))
    x = polished(body, eye, solve_equilibrium(body, eye, held).positions)
    at = body.energy(body.positions_in("x", x), body.actuation_in("A", eye))
    assert np.linalg.det(np.moveaxis(at.F, 2, 0)).min() < -0.05
    rng = np.random.default_rng(3)
    g, dA, h = rng.normal(size=x.shape), symmetric(rng, eye.shape), 1e-6
    found = equilibrium_vjp(body, eye, x, g)
    high, low = (loss(body, eye + s * h * dA, held, x, g) for s in (1, -1))
    assert (high - low) / (2 * h) == pytest.approx((found.actuation * dA).sum(), rel=1e-6)


def test_the_face_is_solved_with_its_jaw_open() -> None:
    mesh, bones = face_patch((6, 7, 1))
    body = SoftBody(mesh, bones.vertices)
    held = mesh.vertices[bones.vertices].copy()
    held[bones.bone == 1] += [0.0, -0.02, -0.01]
    eye = np.broadcast_to(np.eye(3), (body.m, 3, 3))
    found = solve_equilibrium(body, eye, held)
    assert found.converged.all() and found.energy[0] > 0


BAR = body_of(2)
EYE = np.broadcast_to(np.eye(2), (BAR.m, 2, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SoftBody(MESHES[2], [0]), "`held` must be at least 2 vertices"),
        (lambda: SoftBody(MESHES[2], [0, 99]), "`held` must be different vertices"),
        (lambda: SoftBody(MESHES[2], [0, 1], -1.0), "`stiffness` must be > 0"),
        (lambda: SoftBody("bar", [0, 1]), "`mesh` must be a Mesh, got str"),  # type: ignore[arg-type]
        (lambda: solve_equilibrium(BAR, EYE[1:]), r"`actuation` must have shape \(24, 2, 2\)"),
        (lambda: solve_equilibrium(BAR, EYE * np.nan), "`actuation` must be finite"),
        (lambda: solve_equilibrium(BAR, EYE + np.triu(np.ones((2, 2)), 1)), "symmetric"),
        (lambda: solve_equilibrium(BAR, EYE, [[0.0, 0.0]]), r"`held` must have shape \(3, 2\)"),
        (lambda: solve_equilibrium(BAR, EYE, tolerance=0), "`tolerance` must be > 0"),
        (
            lambda: equilibrium_vjp(BAR, EYE, BAR.mesh.vertices, np.zeros((2, 3))),
            "`gradient` must have shape",
        ),
        (
            lambda: equilibrium_vjp(
                BAR,
                EYE,
                BAR.mesh.vertices,
                BAR.mesh.vertices,
                method="newton",  # type: ignore[arg-type]
            ),
            "`method` must be conjugate or fixed-point",
        ),
    ],
)
def test_misuse_is_told_in_one_sentence(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
