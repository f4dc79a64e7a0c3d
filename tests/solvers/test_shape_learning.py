"""Fields that make a soft body take shapes: they fit, know no mesh, and resume to the bit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cito.dynamics.soft import block, held_end  # noqa: E402
from cito.dynamics.soft.fields import (  # noqa: E402
    KINDS,
    Siren,
    make_field,
    moved_bone,
    parameter_count,
)
from cito.problems.soft_bodies import ShapeTask, moved, shape_task  # noqa: E402
from cito.solvers.shape_learning import ShapeLearner, ShapeTraining  # noqa: E402

QUICK = ShapeTraining(width=10, layers=2, steps=30, tolerance=1e-4)


def small_task() -> ShapeTask:
    bending = shape_task("bending-bar")
    mesh = block((1.0, 0.2), (6, 1)).quadratic()
    return replace(bending, mesh=mesh, bones=held_end(mesh))


def small_targets(task: ShapeTask) -> np.ndarray:
    return task.shapes([0.2, 0.4, 0.6], level=1).positions[:, : len(task.mesh.vertices)]


TASK = small_task()
TARGETS = small_targets(TASK)


@pytest.fixture(scope="module")
def learned() -> ShapeLearner:
    return ShapeLearner(TASK, TARGETS, QUICK).learn()


def test_it_learns_the_shapes(learned: ShapeLearner) -> None:
    begin, end = (learned.history[k].error for k in (0, -1))
    assert learned.step == 30 and begin > 0.05 and end < 0.5 * begin
    found = learned.shapes()
    assert found.converged.all()
    assert learned.error(found.positions, TARGETS) == pytest.approx(end, rel=0.3)


def test_the_same_network_serves_a_refined_mesh(learned: ShapeLearner) -> None:
    coarse, fine = learned.shapes().positions, learned.shapes(level=1).positions
    assert fine.shape[1] > 3 * coarse.shape[1]
    assert learned.error(fine[:, : coarse.shape[1]], coarse) < 0.02


def test_a_decoder_does_not() -> None:
    decoder = ShapeLearner(TASK, TARGETS, replace(QUICK, field="decoder"))
    assert decoder.shapes().positions.shape == TARGETS.shape
    with pytest.raises(ValueError, match="it knows the elements of its own mesh only"):
        decoder.shapes(level=1)


@pytest.mark.parametrize("field", KINDS)
def test_a_killed_training_goes_on_to_the_bit(field: str, tmp_path: Path) -> None:
    training = replace(QUICK, field=field, steps=8)
    whole = ShapeLearner(TASK, TARGETS, training).learn()
    file = tmp_path / "training.npz"
    ShapeLearner(TASK, TARGETS, training).learn(checkpoint=file, every=5, until=6)
    resumed = ShapeLearner.load(TASK, file)
    assert resumed.step == 6
    resumed.learn()
    assert resumed.history == whole.history
    assert torch.equal(resumed.codes, whole.codes)
    assert np.array_equal(resumed.shapes().positions, whole.shapes().positions)
    assert [path.name for path in tmp_path.iterdir()] == ["training.npz"]


def test_seeds_decide() -> None:
    first, again, other = (
        ShapeLearner(TASK, TARGETS, replace(QUICK, steps=3, seed=seed)).learn().history
        for seed in (0, 0, 1)
    )
    assert first == again and first != other


def test_the_jaw_is_learned_with_the_field() -> None:
    face = shape_task("face")
    targets = face.shapes([0.5], level=0).positions
    learner = ShapeLearner(face, targets, replace(QUICK, steps=12)).learn()
    assert learner.history[-1].error < 0.6 * learner.history[0].error
    moved_jaw = learner.shapes().positions[0, face.bones.vertices[face.bones.bone == 1]]
    rest = face.mesh.vertices[face.bones.vertices[face.bones.bone == 1]]
    assert np.abs(moved_jaw - rest).max() > 1e-3


@pytest.mark.parametrize("d", [2, 3])
def test_bones_move_alike_in_torch(d: int) -> None:
    rng = np.random.default_rng(0)
    X, hinge = rng.normal(size=(5, d)), rng.normal(size=d)
    motion = rng.normal(size=(2, d * (d + 1) // 2))
    found = moved_bone(*map(torch.from_numpy, (motion, X, hinge)))
    assert np.allclose(found.numpy(), moved(motion, X, hinge), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_fields_have_about_as_many_parameters_and_begin_at_rest(kind: str) -> None:
    siren = parameter_count(Siren(2, 4, 24, 3, 5.0))
    field = make_field(kind, 2, 4, 50, 24, 3, 5.0)
    assert 0.9 * siren <= parameter_count(field) <= siren
    where = torch.zeros(7, dtype=torch.long if kind == "decoder" else torch.float64)
    points = where if kind == "decoder" else torch.zeros(7, 2, dtype=torch.float64)
    entries = field(points, torch.ones(3, 4, dtype=torch.float64)).detach()
    assert entries.shape == (3, 7, 3) and float(entries.abs().max()) < 0.05


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (TARGETS[:, 1:], r"`targets` must have shape \(any, 39, 2\)"),
        (np.where(TARGETS > 0.5, np.nan, TARGETS), "`targets` must be finite"),
        (TARGETS[:0], "`targets` must have one shape at least"),
    ],
)
def test_bad_targets_are_refused(targets: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ShapeLearner(TASK, targets, QUICK)


def test_bad_settings_and_files_are_refused(learned: ShapeLearner, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`steps` must be a whole number >= 1"):
        replace(QUICK, steps=0)
    with pytest.raises(ValueError, match="`field` must be one of siren, mlp, decoder"):
        ShapeLearner(TASK, TARGETS, replace(QUICK, field="net"))
    with pytest.raises(ValueError, match=r"`codes` must have shape \(any, 4\)"):
        learned.shapes(np.zeros((2, 3)))
    file = learned.save(tmp_path / "training.npz")
    with pytest.raises(ValueError, match="is no training of the shapes of face"):
        ShapeLearner.load(shape_task("face"), file)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ValueError, match="is damaged"):
        ShapeLearner.load(TASK, file)
    with pytest.raises(FileNotFoundError):
        ShapeLearner.load(TASK, tmp_path / "none.npz")
