"""Signed distances against brute force and finite differences; the helpers that make ground."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.check import finite_difference
from cito.dynamics.shapes import Box, Capsule, Plane, Shape, Sphere, contact_frame
from cito.dynamics.terrain import HeightField
from tests.reference.trees import random_rotation

TURN = random_rotation(np.random.default_rng(7))
SOLIDS: dict[str, Shape] = {
    "sphere": Sphere(0.3, [0.1, 0.2, -0.1]),
    "capsule": Capsule(0.1, [-0.2, 0.1, 0.0], [0.3, 0.4, 0.2]),
    "stub": Capsule(0.2, [0.1, 0.1, 0.1], [0.1, 0.1, 0.1]),
    "box": Box([0.4, 0.6, 0.3], [0.1, 0.0, 0.1], TURN),
    "rounded box": Box([0.4, 0.6, 0.3], [0.1, 0.0, 0.1], TURN, rounding=0.1),
}
SHAPES: dict[str, Shape] = {
    **SOLIDS,
    "plane": Plane([0.2, -0.3, 1.0], -0.4),
    "waves": HeightField.waves(0.2, 1.5),
    "rough": HeightField.rough(3, 0.1, 0.25, flat=0.0),
}


def evaluate(shape: Shape, points: np.ndarray) -> tuple[np.ndarray, ...]:
    """Distance, gradient, normal and its Jacobian."""
    return _native.shape_distance(shape.native, np.ascontiguousarray(points))


def surface_points(shape: Shape, rng: np.random.Generator, count: int) -> np.ndarray:
    """Points on the surface of a solid, from its definition: core + radius n, or on box faces."""
    n = rng.standard_normal((count, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    if isinstance(shape, Sphere):
        return np.asarray(shape.position) + shape.radius * n
    if isinstance(shape, Capsule):
        start, end = np.asarray(shape.start), np.asarray(shape.end)
        along = (end - start) / max(np.linalg.norm(end - start), 1e-12)
        s = n @ along
        t = rng.random(count)[:, None]
        tube = start + t * (end - start)
        across = n - s[:, None] * along
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        ends = np.where(s[:, None] > 0, end, start) + shape.radius * n
        return np.vstack([tube + shape.radius * across, ends])
    assert isinstance(shape, Box)
    half = np.asarray(shape.size) / 2 - shape.rounding
    core = rng.uniform(-half, half, (count, 3))
    faces, axis = core.copy(), rng.integers(3, size=count)
    rows = np.arange(count)
    sign = np.sign(core[rows, axis])
    faces[rows, axis] = sign * (half[axis] + shape.rounding)
    edges, corners = core.copy(), np.sign(n) * half + shape.rounding * n
    other = (axis + 1) % 3
    for a in (axis, other):
        edges[rows, a] = np.sign(n[rows, a]) * half[a]
    across = n.copy()
    across[rows, (axis + 2) % 3] = 0
    edges += shape.rounding * across / np.linalg.norm(across, axis=1, keepdims=True)
    return np.asarray(shape.position) + np.vstack([faces, edges, corners]) @ shape.rotation.T


@pytest.mark.parametrize("name", SOLIDS)
def test_distance_is_that_to_the_nearest_of_many_surface_points(name: str) -> None:
    shape, rng = SOLIDS[name], np.random.default_rng(0)
    cloud = surface_points(shape, rng, 20000)
    assert np.abs(shape.distance(cloud).value).max() < 1e-12
    points = rng.uniform(-0.8, 0.8, (60, 3))
    value, normal = shape.distance(points)
    brute = np.array([np.linalg.norm(cloud - p, axis=1).min() for p in points])
    assert np.allclose(np.abs(value), brute, rtol=0, atol=0.02) and (value > 0.1).any()
    assert (np.abs(value) <= brute + 1e-12).all()
    # Down the normal by the distance one meets the surface.
    assert np.abs(shape.distance(points - value[:, None] * normal).value).max() < 1e-12
    assert np.allclose(np.linalg.norm(normal, axis=1), 1, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", SHAPES)
def test_gradients_normals_and_curvatures(name: str) -> None:
    shape, rng = SHAPES[name], np.random.default_rng(1)
    worst = curved = 0.0
    for point in rng.uniform(-0.6, 0.6, (40, 3)):
        d, gradient, normal, turn = (a[0] for a in evaluate(shape, point[None]))
        if d < -0.05 and name in SOLIDS:
            continue  # inside, where the nearest face changes

        def values(points: np.ndarray) -> np.ndarray:
            d, _, n, _ = evaluate(shape, points)
            return np.column_stack([d, n])

        numeric = finite_difference(values, point, step=1e-5)
        error = np.abs(np.vstack([gradient, turn]) - numeric).max()
        worst, curved = max(worst, error), max(curved, np.abs(turn).max())
        assert np.abs(normal @ turn).max() < 1e-12  # n stays a unit vector
        if not isinstance(shape, HeightField):
            assert np.array_equal(gradient, normal)
            assert np.abs(turn - turn.T).max() < 1e-12
            assert np.abs(turn @ normal).max() < 1e-12  # and is constant along itself
    assert worst < 1e-5  # a third derivative of a spline, or of a distance, jumps
    assert (curved > 0.5) == (name != "plane")


def test_inside_a_box_the_nearest_face_counts() -> None:
    box = Box([2.0, 4.0, 6.0])
    value, normal = box.distance([[0.7, 0.1, 0.2], [0.0, -1.9, 0.0], [0.0, 0.0, 2.5]])
    assert np.allclose(value, [-0.3, -0.1, -0.5], rtol=0, atol=1e-15)
    assert np.array_equal(normal, [[1, 0, 0], [0, -1, 0], [0, 0, 1]])


def test_the_middle_of_a_solid_has_a_normal_too() -> None:
    for shape in (Sphere(0.3), Capsule(0.1, [-1, 0, 0], [1, 0, 0]), Box([1, 1, 1])):
        value, normal = shape.distance(np.zeros(3))
        assert value < 0 and np.linalg.norm(normal) == pytest.approx(1)


def test_right_above_a_sphere_its_curvature_is_complete() -> None:
    """Coordinates that vanish exactly are no special case."""
    *_, turn = evaluate(Sphere(0.5), np.array([[0.0, 0.0, 2.0]]))
    assert np.allclose(turn[0], np.diag([0.5, 0.5, 0.0]), rtol=0, atol=1e-15)


def test_corners_of_a_rounded_box_touch_its_sides() -> None:
    box = Box([0.4, 0.6, 0.3], [0.1, 0.0, 0.1], TURN, rounding=0.05)
    assert len(np.unique(box.corners.round(9), axis=0)) == 8
    assert np.allclose(box.distance(box.corners).value, -0.05, rtol=0, atol=1e-14)


def test_planes_agree_with_their_equation() -> None:
    plane, rng = Plane([1.0, 2.0, 2.0], 0.3), np.random.default_rng(2)
    points = rng.standard_normal((4, 5, 3))
    value, normal = plane.distance(points)
    assert np.allclose(value, points @ np.array([1, 2, 2]) / 3 - 0.3, rtol=0, atol=1e-14)
    assert normal.shape == points.shape and np.allclose(normal[0, 0], np.array([1, 2, 2]) / 3)


@pytest.mark.parametrize("normal", [[0, 0, 1.0], [0.3, 0.2, 0.9], [1.0, 0, 0], [0.9, 0.1, 0.4]])
def test_contact_frames_are_right_handed_with_x_along_the_ground(normal: list[float]) -> None:
    unit = np.array(normal) / np.linalg.norm(normal)
    frame = contact_frame(unit)
    assert np.allclose(frame @ frame.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(frame) == pytest.approx(1)
    assert np.allclose(frame[2], unit)
    assert (
        np.linalg.matrix_rank(np.vstack([frame[[0, 2]], np.eye(3)[0 if unit[0] < 0.9 else 1]])) == 2
    )


# ---------------------------------------------------------------------------- height fields


def test_surface_goes_through_its_heights_and_is_smooth_across_cells() -> None:
    rng = np.random.default_rng(3)
    field = HeightField(rng.standard_normal((7, 9)), [0.1, 0.3], [1.0, 2.0])
    x, y = 1 + 0.1 * np.arange(7), 2 + 0.3 * np.arange(9)
    grid = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)
    assert np.allclose(field.height(grid), field.heights, rtol=0, atol=1e-12)
    # f, f_x, f_xx from both sides of the line x = 1.2
    side = np.array([[1.2, 3.1, 0.0]])
    below, above = (evaluate(field, side + [[s * 1e-9, 0, 0]]) for s in (-1, 1))
    for a, b in zip(below, above):
        assert np.abs(a - b).max() < 1e-5 * np.abs(a).max() and np.abs(a).max() > 0.1


def test_beyond_the_grid_the_ground_is_level_and_joins_with_the_same_slope() -> None:
    rng = np.random.default_rng(4)
    field = HeightField(rng.standard_normal((6, 5)), 0.5)  # [0, 2.5] x [0, 2]
    assert field.height([9.0, 1.0]) == pytest.approx(field.height([2.5, 1.0]), abs=1e-12)
    assert field.height([-9.0, -3.0]) == pytest.approx(field.heights[0, 0], abs=1e-12)
    for edge in ([2.5, 0.7], [0.0, 0.7], [1.1, 0.0], [1.1, 2.0]):
        inner, outer = (np.array(edge) + s * 1e-8 * (np.array(edge) - 1.2) for s in (-1, 1))
        normals = field.distance([[*inner, 0.0], [*outer, 0.0]]).normal
        assert np.abs(normals[0] - normals[1]).max() < 1e-5
    value, normal = field.distance([1e300, -1e300, 0.0])
    assert np.isfinite(value) and np.array_equal(normal, [0, 0, 1])


def test_functions_are_sampled_where_the_surface_is_asked_for() -> None:
    field = HeightField.from_function(lambda x, y: np.sin(x) + y**2, (-1, 1), (0, 3), 0.05)
    x, y = np.random.default_rng(5).uniform([-0.7, 0.3], [0.7, 2.7], (50, 2)).T
    assert np.allclose(field.height(np.column_stack([x, y])), np.sin(x) + y**2, rtol=0, atol=1e-4)
    level = HeightField.from_function(lambda x, y: 0.3, (-1, 1), (-1, 1), 0.3)
    assert np.allclose(level.height([[0.2, 0.1], [5, 5]]), 0.3, rtol=0, atol=1e-15)


def test_stairs_rise_step_by_step_and_never_fall() -> None:
    stairs = HeightField.stairs(3, rise=0.1, run=0.4, start=1.0, riser=0.06)
    assert np.allclose(
        stairs.height([[0.5, 0], [1.2, 0.3], [1.6, -1], [2.0, 0], [9.0, 0]]),
        [0, 0.1, 0.2, 0.3, 0.3],
        rtol=0,
        atol=2e-5,
    )
    heights = stairs.height(np.column_stack([np.linspace(0, 3, 2000), np.zeros(2000)]))
    assert np.diff(heights).min() > -1e-5
    assert np.diff(heights).max() / (3 / 1999) == pytest.approx(1.875 * 0.1 / 0.06, rel=0.01)
    down = HeightField.stairs(2, rise=-0.1, run=0.4)
    assert down.height([3.0, 0.0]) == pytest.approx(-0.2, abs=2e-5)


def test_ramp_waves_and_rough_ground() -> None:
    ramp = HeightField.ramp(0.3, 1.0, start=0.5)
    assert np.allclose(ramp.height([[0, 0], [1.0, 1], [2.5, 0]]), [0, 0.15, 0.3], atol=1e-6)
    slope = ramp.distance([1.0, 0.0, 1.0]).normal
    assert -slope[0] / slope[2] == pytest.approx(0.3, rel=1e-6)
    waves = HeightField.waves(0.1, 0.8)
    assert waves.height([0.2, 0.2]) == pytest.approx(0.1, rel=1e-3)
    one, same, other = (HeightField.rough(seed, 0.05) for seed in (1, 1, 2))
    assert np.array_equal(one.heights, same.heights)
    assert not np.array_equal(one.heights, other.heights)
    around = 0.4 * np.random.default_rng(6).uniform(-0.7, 0.7, (50, 2))
    assert np.abs(one.height(around)).max() < 2e-3 and 0.03 < np.abs(one.heights).max() <= 0.05


# ---------------------------------------------------------------------------- misuse


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Plane([0, 0, 0]), "`normal`"),
        (lambda: Plane([0, 1]), "`normal`"),
        (lambda: Plane(height=np.nan), "`height`"),
        (lambda: Sphere(0), "`radius`"),
        (lambda: Sphere(1, [0, 0]), "`position`"),
        (lambda: Capsule(-1, np.zeros(3), np.ones(3)), "`radius`"),
        (lambda: Capsule(1, np.zeros(3), np.ones(2)), "`end`"),
        (lambda: Box([1, 0, 1]), "`size`"),
        (lambda: Box([1, 1, 1], rotation=2 * np.eye(3)), "`rotation`"),
        (lambda: Box([1, 2, 3], rounding=0.6), "`rounding`"),
        (lambda: HeightField(np.zeros((1, 4)), 0.1), "`heights`"),
        (lambda: HeightField(np.zeros(4), 0.1), "`heights`"),
        (lambda: HeightField(np.zeros((4, 4)), 0), "`spacing`"),
        (lambda: HeightField(np.zeros((4, 4)), [1, 1, 1]), "`spacing`"),
        (lambda: HeightField(np.zeros((4, 4)), 1, [0]), "`origin`"),
        (lambda: HeightField.from_function(lambda x, y: x, (1, 0), (0, 1), 0.1), "`x`"),
        (lambda: HeightField.from_function(lambda x, y: x, (0, 1), (0, 1), 0), "`spacing`"),
        (lambda: HeightField.from_function(lambda x, y: x[0], (0, 1), (0, 1), 0.3), "`function`"),
        (lambda: HeightField.stairs(0, 0.1, 0.3), "`steps`"),
        (lambda: HeightField.stairs(2, 0.1, 0.05), "`run`"),
        (lambda: HeightField.ramp(0.1, 0), "`length`"),
        (lambda: HeightField.waves(0.1, -1), "`wavelength`"),
        (lambda: HeightField.rough(-1, 0.1), "`seed`"),
        (lambda: Plane().distance([0, 0]), "`points`"),
        (lambda: HeightField.waves(0.1, 1).height([0, 0, 0]), "`points`"),
    ],
)
def test_broken_shapes_are_refused(build: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()  # type: ignore[operator]


def test_shapes_are_frozen_and_travel() -> None:
    heights = np.zeros((3, 3))
    field = HeightField(heights, 0.1)
    heights[:] = 1
    assert field.height([0.1, 0.1]) == 0
    with pytest.raises(ValueError, match="read-only"):
        field.heights[0, 0] = 1
    for shape in SHAPES.values():
        points = np.random.default_rng(9).standard_normal((5, 3))
        for other in (copy.deepcopy(shape), pickle.loads(pickle.dumps(shape))):
            assert np.array_equal(other.distance(points).value, shape.distance(points).value)
