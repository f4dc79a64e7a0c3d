"""The shapes that soft bodies shall take."""

import numpy as np
import pytest

from cito.dynamics.soft import solve_equilibrium
from cito.problems.soft_bodies import SHAPE_TASKS, ShapeTask, moved, shape_task


@pytest.fixture(scope="module", params=SHAPE_TASKS)
def task(request: pytest.FixtureRequest) -> ShapeTask:
    return shape_task(request.param)


def test_every_shape_is_reached_from_rest(task: ShapeTask) -> None:
    found = task.shapes([0.0, 0.3, 0.9], level=0)
    assert found.converged.all() and found.residual.max() <= 1e-6
    move = np.sqrt(((found.positions - task.mesh.vertices) ** 2).sum(axis=2).mean(axis=1))
    assert move.max() > 0.02 * task.mesh.size
    # and they differ from each other
    assert np.abs(np.diff(found.positions, axis=0)).max() > 0.01 * task.mesh.size


def test_finer_meshes_have_the_same_shapes(task: ShapeTask) -> None:
    """What is left is the discretization's, far below what a match must reach."""
    n = len(task.mesh.vertices)
    coarse, fine = (task.shapes([0.6], level=k).positions[0, :n] for k in (0, 1))
    assert np.sqrt(((coarse - fine) ** 2).sum(axis=1).mean()) < 0.5 * task.bar * task.mesh.size


def test_the_hidden_fields_are_symmetric_and_stretch(task: ShapeTask) -> None:
    for t in (0.0, 0.5, 1.0):
        A = task.actuation(t, task.mesh.points)
        assert np.array_equal(A, A.swapaxes(1, 2))
        assert np.linalg.eigvalsh(A).min() > 0.1


def test_bones_move_as_told() -> None:
    face = shape_task("face")
    still = face.held(np.zeros(6))
    assert np.array_equal(still, face.mesh.vertices[face.bones.vertices])
    opened = face.held(np.array([0.2, 0, 0, 0, 0, 0]))
    jaw = face.bones.bone == 1
    assert np.array_equal(opened[~jaw], still[~jaw])
    assert (opened[jaw, 1] < still[jaw, 1]).all()  # the chin goes down
    x = solve_equilibrium(
        face.body(), np.broadcast_to(np.eye(3), (face.body().m, 3, 3)), opened
    ).positions
    assert np.array_equal(x[face.bones.vertices], opened)


def test_a_motion_is_a_rotation_and_a_shift() -> None:
    X = np.random.default_rng(0).normal(size=(5, 3))
    motion = np.array([0.3, -1.2, 0.8, 1.0, 2.0, 3.0])
    hinge = np.array([0.5, 0.1, -0.3])
    Y = moved(motion, X, hinge)
    assert np.allclose(
        np.linalg.norm(Y - hinge - motion[3:], axis=1), np.linalg.norm(X - hinge, axis=1)
    )
    assert np.allclose(moved(motion, hinge[None], hinge), hinge + motion[3:])
    axis = motion[:3] / np.linalg.norm(motion[:3])
    assert np.allclose((Y - hinge - motion[3:]) @ axis, (X - hinge) @ axis)
    quarter = moved(np.array([np.pi / 2, 0.0, 0.0]), np.array([[1.0, 0.0]]), np.zeros(2))
    assert np.allclose(quarter, [[0.0, 1.0]])
    assert moved(np.zeros((4, 6)), X, hinge).shape == (4, 5, 3)


def test_what_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="`name` must be one of bending-bar"):
        shape_task("bending")
    with pytest.raises(ValueError, match="`level` must be <= 2"):
        shape_task("bending-bar").body(3)
    with pytest.raises(ValueError, match="`times` must be finite"):
        shape_task("bending-bar").shapes([np.nan])
