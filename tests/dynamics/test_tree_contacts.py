"""Contacts of trees with curved ground and with each other: geometry and derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import cito
from cito.dynamics import _native
from cito.dynamics.candidates import ContactPair, ContactPoint
from cito.dynamics.check import check_gradients, check_transition, finite_difference
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import (
    Bundled,
    Exact,
    FullCone,
    Gradient,
    Randomized,
    Signorini,
)
from cito.dynamics.linear import point_mass
from cito.dynamics.parameters import Parameter
from cito.dynamics.shapes import Box, Capsule, Plane, Shape, Sphere, contact_frame
from cito.dynamics.terrain import HeightField
from cito.dynamics.tree import TreeSystem
from tests.reference.contact_scenes import SCENES, at, ball, samples
from tests.reference.trees import bodies_in_world, random_forest, random_state

SHAPES: dict[str, Shape] = {
    "plane": Plane([0.2, -0.3, 1.0], -0.4),
    "sphere": Sphere(0.3, [0.1, 0.2, -0.1]),
    "capsule": Capsule(0.1, [-0.2, 0.1, 0.0], [0.3, 0.4, 0.2]),
    "box": Box([0.2, 0.3, 0.4], [0.1, 0.0, 0.1], rounding=0.02),
    "sharp box": Box([0.2, 0.3, 0.4], [0.1, 0.0, 0.1]),
    "heights": HeightField.waves(0.3, 3.0, (-9, 9), (-9, 9)),
}
# against the world, another tree, a parent, a child, a cousin, and a free body
PARTNERS = [("a4", None), ("a4", "b2"), ("a4", "a1"), ("a1", "a4"), ("a5", "a3"), ("b0", "c0")]
LAWS: list[Gradient] = [Exact(), Signorini(0.1), FullCone(0.1, eps=0.01)]


def forest(shape: Shape, radius: float = 0.05) -> TreeSystem:
    rng = np.random.default_rng(8)
    contacts = [
        ContactPair(f"c{i}", a, 0.3 * rng.standard_normal(3), radius * i, shape=shape, other=b)
        for i, (a, b) in enumerate(PARTNERS)
    ]
    return random_forest(5, contacts)


# ---------------------------------------------------------------------------- geometry


@pytest.mark.parametrize("name", SHAPES)
def test_gaps_and_jacobians_are_those_of_the_bodies(name: str) -> None:
    """phi = d(centre) - radius; J w is the velocity of two material points where they touch."""
    tree, rng = forest(SHAPES[name]), np.random.default_rng(1)
    nq, nv = tree.native.nq, tree.native.nv
    x = random_state(tree, rng)
    *_, J, phi = _native.system_terms(tree.native, None, x[:nq], x[nq:])
    frames = bodies_in_world(tree, x[:nq])
    touch, normals = [], []
    for contact, gap in zip(tree.contacts, phi):
        (R_a, p_a), (R_b, p_b) = frames[contact.body], frames[contact.other]
        centre = p_a + R_a @ contact.position
        value, normal = contact.shape.distance(R_b.T @ (centre - p_b))
        assert gap == pytest.approx(value - contact.radius, abs=1e-12)
        normals.append(R_b @ normal)
        touch.append(centre - contact.radius * normals[-1])

    def apart(dq: np.ndarray) -> np.ndarray:
        """Where the two material points of each contact go, one minus the other, (K, 3 nc)."""
        start = np.tile(np.append(x[:nq], np.zeros(nv)), (len(dq), 1))
        moved = _native.on_manifold(tree.native, start, np.hstack([dq, 0 * dq]), True)
        out = []
        for row in moved:
            new = bodies_in_world(tree, row[:nq])
            for contact, point in zip(tree.contacts, touch):
                (R, p), (R0, p0) = new[contact.body], frames[contact.body]
                (S, s), (S0, s0) = new[contact.other], frames[contact.other]
                out.append((p + R @ R0.T @ (point - p0)) - (s + S @ S0.T @ (point - s0)))
        return np.reshape(out, (len(dq), -1))

    velocity = finite_difference(apart, np.zeros(nv), step=1e-3).reshape(-1, 3, nv)
    for rows, normal, v in zip(J.reshape(-1, 3, nv), normals, velocity):
        assert np.abs(rows).max() > 0.1
        assert np.allclose(rows, contact_frame(normal) @ v, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", SHAPES)
def test_derivatives_of_terms(name: str) -> None:
    tree = forest(SHAPES[name])
    system, rng = tree.native, np.random.default_rng(2)
    nq, nv, nu, n = system.nq, system.nv, system.nu, system.n
    for _ in range(3):
        x = random_state(tree, rng)
        a, u, f, w = (rng.standard_normal(k) for k in (nv, nu, n, nv))

        def residual(rows: np.ndarray, a=a, u=u, f=f, w=w) -> np.ndarray:
            out = []
            for row in rows:
                M, c, B, J, phi = _native.system_terms(system, None, row[:nq], row[nq:])
                out.append(np.concatenate([M @ a + c - B @ u - J.T @ f, J @ w, phi]))
            return np.array(out)

        def move(x0: np.ndarray, dx: np.ndarray) -> np.ndarray:
            return _native.on_manifold(system, np.ascontiguousarray(x0), dx, True)

        numeric = finite_difference(residual, x, step=1e-4, integrate=move, tangent=2 * nv)
        r_q, _, Jw_q, phi_q, *_ = _native.system_derivatives(
            system, None, x[:nq], x[nq:], a, u, f, w
        )
        analytic, expected = np.vstack([r_q, Jw_q, phi_q]), numeric[:, :nv]
        assert (np.abs(expected[nv:]).max(axis=1) > 0.01).all()
        assert np.allclose(analytic, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("name", SHAPES)
def test_derivatives_by_parameters(name: str) -> None:
    plain = forest(SHAPES[name])
    moved = ("a0", "a1", "a3", "b0", "b2", "c0")
    tree = plain.with_parameters(
        [Parameter.placement(b) for b in moved]
        + [Parameter.contact(c.name) for c in plain.contacts]
    )
    system, rng = tree.native, np.random.default_rng(3)
    nq, nv, n, nc = system.nq, system.nv, system.n, system.nc
    x = random_state(tree, rng)
    q, v = x[:nq], x[nq:]
    a, u, f, w = (rng.standard_normal(k) for k in (nv, system.nu, n, nv))

    def residual(rows: np.ndarray) -> np.ndarray:
        out = []
        for theta in rows:
            M, c, B, J, phi = _native.system_terms(system, theta, q, v)
            out.append(np.concatenate([M @ a + c - B @ u - J.T @ f, J @ w, phi]))
        return np.array(out)

    theta = 0.05 * rng.standard_normal(system.np)
    numeric = finite_difference(residual, theta, step=1e-4)
    *_, r_theta, Jw_theta, phi_theta = _native.system_derivatives(system, theta, q, v, a, u, f, w)
    analytic = np.vstack([r_theta, Jw_theta, phi_theta])
    assert (np.abs(numeric[nv + n :]).max(axis=1) > 0.1).all() and len(phi_theta) == nc
    assert np.allclose(analytic, numeric, rtol=0, atol=1e-7 * np.abs(numeric).max())


def test_ground_of_a_tree_is_what_its_points_touch() -> None:
    """A plane as ground, as a pair with the world, and under a height field that is plane."""
    contact = ContactPoint("p", "ball", [0.02, 0.01, 0.03], 0.1)
    slope = Plane([-0.3, 0.0, 1.0])
    field = HeightField.from_function(lambda x, y: 0.3 * x, (-9, 9), (-9, 9), 0.5)
    pair = ContactPair("p", "ball", contact.position, 0.1, shape=slope)
    trees = [
        TreeSystem([ball()], [contact], ground=slope),
        TreeSystem([ball()], [contact]).with_ground(field),
        TreeSystem([ball()], [pair]),
    ]
    x = at(trees[0], ball=[0.1, 0.2, 0.115, 0.5, 0.2, -0.4])
    dynamics = [ContactDynamics(tree, 0.02, 0.5) for tree in trees]
    steps = [d.step(x, np.zeros(0)) for d in dynamics]
    assert steps[0].modes[0] == 1
    for d, step in zip(dynamics[1:], steps[1:]):
        assert np.allclose(step.state, steps[0].state, rtol=0, atol=1e-9)
        f_x = d.transition(x, np.zeros(0), FullCone(0.1)).f_x
        expected = dynamics[0].transition(x, np.zeros(0), FullCone(0.1)).f_x
        assert np.allclose(f_x, expected, rtol=0, atol=1e-6)
    replaced = ContactDynamics(trees[2].with_ground(field), 0.02, 0.5).step(x, np.zeros(0))
    assert np.array_equal(replaced.state, steps[2].state)  # pairs keep their own shape


def test_ground_by_keyword() -> None:
    robot = cito.load_robot("go2")
    slope = cito.Plane([0.1, 0.0, 1.0])
    dynamics = cito.ContactDynamics(robot, time_step=0.02, friction=0.8, ground=slope)
    assert dynamics.system.system.ground is slope and robot.system.ground is not slope
    x = np.concatenate([robot.stance, np.zeros(18)])
    flat = cito.ContactDynamics(robot, time_step=0.02).step(x, np.zeros(12))
    assert np.abs(dynamics.step(x, np.zeros(12)).state - flat.state).max() > 0.01
    assert dynamics.contact_names == flat_names(robot)
    with pytest.raises(ValueError, match="`ground` can only be given with a TreeSystem"):
        ContactDynamics(point_mass(), 0.05, ground=slope)
    with pytest.raises(ValueError, match="`ground` must be a Plane or a HeightField, got float"):
        ContactDynamics(robot, 0.02, ground=0.3)  # type: ignore[arg-type]


def test_stances_follow_the_ground() -> None:
    robot = cito.load_robot("go2")
    for ground in (Plane(height=0.3), Plane([0.3, 0.1, 1.0]), HeightField.waves(0.1, 1.0)):
        other = robot.with_ground(ground)
        *_, phi = _native.system_terms(other.native, None, other.stance, np.zeros(18))
        assert phi.min() == pytest.approx(0, abs=1e-9)
        assert np.array_equal(np.delete(other.stance, 2), np.delete(robot.stance, 2))
        assert abs(other.stance[2] - robot.stance[2]) > 1e-3
    assert np.allclose(robot.with_ground(Plane()).stance, robot.stance, rtol=0, atol=1e-12)


def flat_names(robot: cito.Robot) -> tuple[str, ...]:
    return tuple(contact.name for contact in robot.contacts)


# ---------------------------------------------------------------------------- transitions


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_transitions_against_finite_differences(name: str, restitution: float) -> None:
    scene = SCENES[name]()
    dynamics = ContactDynamics(scene.tree, 0.02, friction=0.5, restitution=restitution)
    X, U = samples(dynamics, scene)
    steps = dynamics.step(X, U)
    assert steps.residual.max() < 1e-9
    assert (steps.modes > 0).any(axis=1).mean() > 0.4
    touched = (steps.modes > 0).any(axis=0)
    pairs = [isinstance(contact, ContactPair) for contact in scene.tree.contacts]
    assert touched[pairs].all() and touched.sum() >= min(3, dynamics.nc)
    for gradient in LAWS:
        checks = [check_transition(dynamics, x, u, gradient) for x, u in zip(X, U)]
        passed = [check for check in checks if check is not None]
        assert len(passed) > 20
        assert max(error for error, _ in passed) < 1e-6
        assert max(size for _, size in passed) > 1


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize(
    "gradient",
    [*LAWS, Randomized(0.1, 8), Randomized(0.1, 8, order=0), Bundled(0.01, 4)],
    ids=lambda gradient: gradient.name + str(getattr(gradient, "order", "")),
)
def test_transposed_steps(name: str, gradient: Gradient) -> None:
    scene = SCENES[name]()
    dynamics = ContactDynamics(scene.tree, 0.02, friction=0.5, restitution=0.6)
    X, U = samples(dynamics, scene, 8)
    steps, g = dynamics.step(X, U), np.random.default_rng(1).standard_normal((8, dynamics.ndx))
    for x, u, impulse, velocity, modes, row in zip(X, U, *steps[1:4], g):
        f_x, f_u = dynamics.transition(x, u, gradient)
        got = dynamics.vjp(x, u, impulse, velocity, modes, row, gradient)
        scale = np.abs(f_x).max()
        assert np.allclose(got.state, row @ f_x, rtol=0, atol=1e-10 * scale)
        assert np.allclose(got.control, row @ f_u, rtol=0, atol=1e-10 * scale)


def test_transposed_steps_by_parameters_with_restitution() -> None:
    """A hit depends on theta through the velocity it comes with, too."""
    scene = SCENES["link_hits_ball"]()
    tree = scene.tree.with_parameters([Parameter.placement("hand"), Parameter.contact("hit")])
    theta, rng = np.zeros(6), np.random.default_rng(4)

    def world(offsets: np.ndarray) -> ContactDynamics:
        return ContactDynamics(tree, 0.02, 0.5, theta=offsets, restitution=0.6)

    here, hits = world(theta), 0
    for x, u in zip(*samples(here, scene, 60)):
        step = here.step(x, u)
        *_, J, _ = _native.system_terms(tree.native, theta, x[:9], x[9:])
        if step.modes[0] == 0 or (J[2] @ x[9:]) > -0.2:
            continue

        def moved(rows: np.ndarray, x=x, u=u, step=step) -> np.ndarray:
            states = np.array([world(row).step(x, u).state for row in rows])
            return here.difference(np.broadcast_to(step.state, states.shape), states)

        g = rng.standard_normal(here.ndx)
        numeric = g @ finite_difference(moved, theta, step=1e-6)
        got = here.vjp(x, u, step.impulse, step.velocity, step.modes, g).theta
        assert np.abs(numeric).max() > 0.1
        assert np.allclose(got, numeric, rtol=0, atol=1e-6 * np.abs(numeric).max())
        hits += 1
    assert hits >= 3


def test_robots_on_rough_ground_pass_the_derivative_check() -> None:
    ground = HeightField.rough(1, 0.05, 0.3, flat=0.0)
    robot = cito.load_robot("go2")
    dynamics = ContactDynamics(robot, 0.02, 0.6, ground=ground)
    x = np.concatenate([robot.with_ground(ground).stance, np.zeros(18)])
    report = check_gradients(dynamics, center=x, samples=40)
    assert report.passed and {letter for row in report.rows for letter in row.modes} == set("slc")


# ---------------------------------------------------------------------------- misuse


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ContactPair("c", "ball", np.zeros(3), shape=0.3), "`shape` of contact 'c'"),
        (
            lambda: ContactPair("c", "a", np.zeros(3), shape=Plane(), other="a"),
            "`other` of contact",
        ),
        (lambda: ContactPair("c", "ball", np.zeros(2), shape=Plane()), "position of contact 'c'"),
        (
            lambda: TreeSystem(
                [ball()], [ContactPair("c", "ball", np.zeros(3), shape=Plane(), other="hand")]
            ),
            "`other` of contact 'c' must be one of ball, got 'hand'",
        ),
        (lambda: TreeSystem([ball()], ground=0.0), "`ground` must be"),
    ],
)
def test_broken_contacts_are_refused(build: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()  # type: ignore[operator]
