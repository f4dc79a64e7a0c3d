"""Meshes and shapes: volumes, gradients, refinement, what is refused."""

import numpy as np
import pytest

from cito.dynamics.soft import Mesh, block, face_patch, held_end
from cito.dynamics.soft.shapes import JAW, SKULL, refined_bones

MESHES = {
    "bar": block((1.0, 0.25), (8, 2)),
    "slab": block((1.0, 0.8, 0.1), (4, 3, 1)),
    "face": face_patch()[0],
    "quadratic bar": block((1.0, 0.25), (4, 1)).quadratic(),
    "quadratic slab": block((1.0, 0.8, 0.1), (4, 3, 1)).quadratic(),
}


@pytest.mark.parametrize("name", MESHES)
def test_gradients_reproduce_linear_maps(name: str) -> None:
    mesh = MESHES[name]
    d = mesh.dimension
    F = np.random.default_rng(0).normal(size=(d, d))
    x = mesh.vertices @ F.T
    found = (mesh.gradient_operator @ x).reshape(d, -1, d)  # (j, p, i)
    assert np.abs(found - F.T[:, None]).max() < 1e-11
    assert mesh.weights.sum() == pytest.approx(mesh.volumes.sum())


@pytest.mark.parametrize("d", [2, 3])
def test_quadratic_meshes_reproduce_quadratic_maps(d: int) -> None:
    """x_i = X' Q_i X has F_ij = 2 (Q_i X)_j, and the squares of F are integrated exactly."""
    mesh = block((1.0, 0.25, 0.3)[:d], (2, 1, 1)[:d]).quadratic()
    Q = np.random.default_rng(1).normal(size=(d, d, d))
    Q = Q + Q.swapaxes(1, 2)
    x = np.einsum("na,iab,nb->ni", mesh.vertices, Q, mesh.vertices)
    found = (mesh.gradient_operator @ x).reshape(d, -1, d)
    assert np.abs(found - 2 * np.einsum("iab,pb->api", Q, mesh.points)).max() < 1e-11
    square = mesh.weights @ mesh.points[:, 0] ** 2
    assert square == pytest.approx(mesh.volumes.sum() / 3)  # of X_0^2 over 0..1


def test_a_quadratic_mesh_has_the_vertices_of_the_refined_one() -> None:
    mesh = block((1.0, 0.8, 0.1), (4, 3, 1))
    assert np.array_equal(mesh.quadratic().vertices, mesh.refined().vertices)
    assert np.array_equal(mesh.quadratic().refined().corners, mesh.refined().elements)
    middle = mesh.quadratic().vertices.copy()
    middle[-1] += 0.01
    with pytest.raises(ValueError, match="in the middle of straight ones"):
        Mesh(middle, mesh.quadratic().elements)


@pytest.mark.parametrize("name", MESHES)
def test_refinement_keeps_volume_and_first_vertices(name: str) -> None:
    mesh = MESHES[name]
    fine = mesh.refined()
    assert len(fine.elements) == 2**mesh.dimension * len(mesh.elements)
    assert np.array_equal(fine.vertices[: len(mesh.vertices)], mesh.vertices)
    assert fine.volumes.sum() == pytest.approx(mesh.volumes.sum(), rel=1e-12)
    assert len(np.unique(fine.vertices.round(9), axis=0)) == len(fine.vertices)
    assert fine.order == mesh.order
    # Neighbours fit: what one element only has, on the fine mesh, is the boundary's refinement.
    assert len(fine.boundary) == 2 ** (mesh.dimension - 1) * len(mesh.boundary)


@pytest.mark.parametrize("name", MESHES)
def test_the_boundary_encloses_the_volume(name: str) -> None:
    """Gauss: the volume is 1/d times the flux of X out of the boundary."""
    mesh = MESHES[name]
    X = mesh.vertices[mesh.boundary]
    flux = np.linalg.det(X).sum() / (2 if mesh.dimension == 2 else 6)
    assert flux == pytest.approx(mesh.volumes.sum(), rel=1e-9)


def test_the_face_has_a_mouth_a_skull_and_a_jaw() -> None:
    mesh, bones = face_patch((8, 9, 1))
    X = mesh.vertices
    assert 0.15 < mesh.size < 0.3
    upper, lower = (X[bones.vertices[bones.bone == b]] for b in (SKULL, JAW))
    assert upper[:, 1].min() >= 0 > lower[:, 1].max()
    # Lips do not hang together in the middle: no element crosses the slit.
    y, x = X[mesh.elements][..., 1], X[mesh.elements][..., 0]
    crossing = (y.min(axis=1) < -1e-3) & (y.max(axis=1) > 1e-3)
    assert crossing.any() and (np.abs(x[crossing]).min(axis=1) > 0.03).all()


def test_bones_of_a_refined_mesh_cover_the_same_surface() -> None:
    mesh, bones = face_patch()
    fine = refined_bones(mesh, bones)
    assert len(fine.vertices) > 2 * len(bones.vertices)
    finer = refined_bones(mesh.quadratic(), fine)
    again = refined_bones(mesh.refined(), fine)
    assert np.array_equal(finer.vertices, again.vertices)
    assert len(finer.vertices) > 2 * len(fine.vertices)
    for bone in (SKULL, JAW):
        coarse = mesh.vertices[bones.vertices[bones.bone == bone]]
        added = mesh.refined().vertices[fine.vertices[fine.bone == bone]]
        assert (added.min(axis=0) >= coarse.min(axis=0) - 1e-12).all()
        assert (added.max(axis=0) <= coarse.max(axis=0) + 1e-12).all()


def test_a_bar_is_held_at_one_end() -> None:
    bones = held_end(MESHES["bar"])
    assert len(bones.vertices) == 3 and (MESHES["bar"].vertices[bones.vertices, 0] == 0).all()


TRIANGLE = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("vertices", "elements", "message"),
    [
        (np.zeros((3, 4)), [[0, 1, 2]], r"`vertices` must have shape \(n, 2\) or \(n, 3\)"),
        ([[0.0, 0.0], [1.0, np.nan], [0.0, 1.0]], [[0, 1, 2]], "`vertices` must be finite"),
        (TRIANGLE, [[0, 1, 3]], "`elements` must name vertices 0 to 2"),
        (TRIANGLE, [[0, 1]], r"`elements` must be whole numbers of shape \(ne, 3\) or \(ne, 6\)"),
        (TRIANGLE, [[0, 2, 1]], "`elements` must have a positive volume"),
        ([*TRIANGLE, [5.0, 5.0]], [[0, 1, 2]], "vertex 3 belongs to no element"),
    ],
)
def test_what_is_no_mesh_is_refused(vertices: object, elements: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mesh(np.array(vertices), np.array(elements))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: block((1.0,), (3,)), "`lengths` must be 2 or 3 numbers > 0"),
        (lambda: block((1.0, -1.0), (3, 3)), "`lengths` must be 2 or 3 numbers > 0"),
        (lambda: block((1.0, 1.0), (3, 0)), "`cells` must be a whole number >= 1"),
        (lambda: face_patch((7, 9, 1)), "`cells` must be even and >= 6 to the side"),
    ],
)
def test_what_is_no_shape_is_refused(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
