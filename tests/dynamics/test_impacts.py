"""Laws of motion of contacts between bodies: momentum, restitution, friction, several trees."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.candidates import ContactPair, ContactPoint, corner_contacts
from cito.dynamics.check import check_transition
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import (
    Exact,
    FullCone,
    Gradient,
    Signorini,
)
from cito.dynamics.joints import Body
from cito.dynamics.linear import point_mass
from cito.dynamics.shapes import Box, Capsule, Plane, Shape, Sphere
from cito.dynamics.terrain import HeightField
from cito.dynamics.tree import TreeSystem
from tests.reference.contact_scenes import SCENES, arm, at, ball, brick, samples
from tests.reference.trees import bodies_in_world, random_state

SOLIDS: dict[str, Shape] = {
    "sphere": Sphere(0.3, [0.1, 0.2, -0.1]),
    "capsule": Capsule(0.1, [-0.2, 0.1, 0.0], [0.3, 0.4, 0.2]),
    "box": Box([0.4, 0.3, 0.2]),
    "plane": Plane([0.1, 0.2, 1.0], 0.1),
}
LAWS: list[Gradient] = [Exact(), Signorini(0.1), FullCone(0.1, eps=0.01)]


# ---------------------------------------------------------------------------- laws of motion


def momentum(tree: TreeSystem, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Linear and angular momentum of free bodies about the world's origin, (6,)."""
    frames, total = bodies_in_world(tree, q), np.zeros(6)
    for i, body in enumerate(tree.bodies):
        (R, p), twist = frames[body.name], v[6 * i : 6 * i + 6]
        omega = R @ twist[3:]
        linear = body.mass * (R @ twist[:3] + np.cross(omega, R @ body.com))
        spin = R @ body.inertia @ twist[3:]
        total += np.concatenate([linear, np.cross(p + R @ body.com, linear) + spin])
    return total


def kinetic(tree: TreeSystem, q: np.ndarray, v: np.ndarray) -> float:
    return float(0.5 * v @ _native.system_terms(tree.native, None, q, v)[0] @ v)


def meeting(solid: Shape, rng: np.random.Generator) -> tuple[TreeSystem, np.ndarray]:
    """A ball that touches a solid on another free body, both in motion towards each other."""
    target = replace(brick((0.4, 0.3, 0.2), 2.0, "target"), com=np.array([0.05, -0.02, 0.03]))
    contact = ContactPair("hit", "ball", [0.01, 0.0, 0.02], 0.1, shape=solid, other="target")
    tree = TreeSystem([target, ball()], [contact], gravity=0.0)
    while True:
        x = random_state(tree, rng)
        frames = bodies_in_world(tree, x[:14])
        (R, p), (R_ball, _) = frames["target"], frames["ball"]
        y = rng.uniform(-0.6, 0.6, 3)
        value, normal = solid.distance(y)
        x[7:10] = p + R @ (y - (value - 0.1) * normal) - R_ball @ contact.position
        *_, J, phi = _native.system_terms(tree.native, None, x[:14], x[14:])
        if value > 0.1 and J[2] @ x[14:] < -0.3:
            assert abs(phi[0]) < 1e-14
            return tree, x


@pytest.mark.parametrize("name", ["sphere", "capsule", "box", "plane"])
@pytest.mark.parametrize("restitution", [0.0, 0.7])
def test_an_impact_of_two_free_bodies(name: str, restitution: float) -> None:
    """Equal and opposite impulses at one point: momenta stay, energy falls, v_N turns round."""
    rng, modes = np.random.default_rng(5), set()
    for _ in range(25):
        tree, x = meeting(SOLIDS[name], rng)
        dynamics = ContactDynamics(tree, 1e-8, friction=0.8, restitution=restitution)
        step = dynamics.step(x, np.zeros(0))
        (q, v), v_next = np.split(x, [14]), step.state[14:]
        *_, J, _ = _native.system_terms(tree.native, None, q, v)
        modes.add(int(step.modes[0]))
        before = momentum(tree, q, v)
        assert np.abs(before).max() > 0.1 and step.impulse[2] > 0.02
        assert np.allclose(momentum(tree, q, v_next), before, rtol=0, atol=1e-6)
        assert (J @ v_next)[2] == pytest.approx(-restitution * (J @ v)[2], abs=1e-6)
        assert kinetic(tree, q, v_next) < kinetic(tree, q, v) - 1e-3
        # Coulomb: within the cone, against the slip that remains
        tangential, slip = step.impulse[:2], (J @ v_next)[:2]
        assert np.linalg.norm(tangential) <= 0.8 * step.impulse[2] * (1 + 1e-9)
        assert tangential @ slip <= 1e-9
    assert modes == {1, 2}


def test_an_elastic_impact_without_friction_keeps_the_energy() -> None:
    rng = np.random.default_rng(6)
    for _ in range(10):
        tree, x = meeting(SOLIDS["capsule"], rng)
        dynamics = ContactDynamics(tree, 1e-8, friction=0.0, restitution=1.0)
        q, v = np.split(x, [14])
        after = dynamics.step(x, np.zeros(0)).state[14:]
        assert np.abs(after - v).max() > 0.1
        assert kinetic(tree, q, after) == pytest.approx(kinetic(tree, q, v), rel=1e-6)


def test_a_ball_swings_with_the_hand_that_carries_it() -> None:
    """A ball on a plate that an arm holds still and level: the arm feels its weight."""
    plate = Box([0.3, 0.3, 0.02], [0.3, 0.0, 0.0])
    contact = ContactPair("hold", "ball", np.zeros(3), 0.05, shape=plate, other="hand")
    tree = TreeSystem([*arm(), ball(0.05, 0.3)], [contact])
    x = at(tree, ball=[0.7, 0.0, 0.56, 0, 0, 0])
    *_, J, phi = _native.system_terms(tree.native, None, x[:9], x[9:])
    assert phi[0] == pytest.approx(0, abs=1e-12)
    weight = 0.3 * 9.81
    hold = (_native.system_terms(tree.native, None, x[:9], 0 * x[9:])[1] - weight * J[2])[:2]
    dynamics = ContactDynamics(tree, 0.005, friction=0.5)
    rollout = dynamics.rollout(x, np.tile(hold, (100, 1)))
    assert np.allclose(rollout.impulses[:, 2], weight * 0.005, rtol=1e-6)
    assert np.abs(rollout.states[-1] - x).max() < 1e-9


@pytest.mark.parametrize("ground", [Plane(), HeightField.waves(0.0, 1.0), Plane([0.3, 0.1, 1.0])])
def test_a_bouncing_ball_leaves_with_e_times_the_speed_it_came_with(ground: Shape) -> None:
    """Whatever the gap at the start of the step in which it hits."""
    e, normal = 0.8, ground.distance(np.zeros(3)).normal
    tree = TreeSystem([ball()], [ContactPoint("touch", "ball", np.zeros(3), 0.1)], ground=ground)
    dynamics = ContactDynamics(tree, 0.01, friction=0.0, restitution=e)
    rollout = dynamics.rollout(at(tree, ball=[0, 0, 0.6, 0, 0, 0]), np.zeros((150, 0)))
    velocity = rollout.states[:, 7:10] @ normal  # the ball does not turn
    hits = np.flatnonzero((rollout.modes[:, 0] > 0) & (velocity[:-1] < 0))
    assert len(hits) >= 3
    assert np.allclose(velocity[hits + 1], -e * velocity[hits], rtol=0, atol=1e-12)
    gaps = ground.distance(rollout.states[:, :3]).value - 0.1
    assert gaps.min() > -1e-12 and gaps[hits].max() > 0.005


@pytest.mark.parametrize("radius", [0.0, 0.02])
def test_a_mass_that_slides_in_a_bowl_without_friction_keeps_its_energy(radius: float) -> None:
    bowl = HeightField.from_function(lambda x, y: (x**2 + y**2) / 2, (-1, 1), (-1, 1), 0.05)
    tree = TreeSystem([ball()], [ContactPoint("p", "ball", np.zeros(3), radius)], ground=bowl)
    dynamics = ContactDynamics(tree, 1e-3, friction=0.0)
    x = at(tree, ball=[0.5, 0, 0.125 + 1.118 * radius, 0, 0.5, 0])
    run = dynamics.rollout(x, np.zeros((1000, 0)))
    energy = 0.5 * (run.states[:, 7:10] ** 2).sum(axis=1) + 9.81 * run.states[:, 2]
    assert (run.modes > 0).all() and np.ptp(run.states[:, 2]) > 0.1
    # time step, and radius x slope x curvature: see HeightField
    assert np.abs(energy - energy[1]).max() < (2e-3 + radius) * 9.81 * 0.125
    assert np.abs(bowl.distance(run.states[1:, :3]).value - radius).max() < 1e-5


def test_bounces_die_out_and_the_ball_rests() -> None:
    tree = TreeSystem([ball()], [ContactPoint("touch", "ball", np.zeros(3), 0.1)])
    dynamics = ContactDynamics(tree, 0.01, restitution=0.5)
    end = dynamics.rollout(at(tree, ball=[0, 0, 0.3, 0, 0, 0]), np.zeros((200, 0)))
    assert end.modes[-1, 0] == 2 and np.abs(end.states[-1, 7:]).max() < 1e-6
    assert end.states[-1, 2] == pytest.approx(0.1, abs=1e-6)
    assert end.impulses[-1, 2] == pytest.approx(9.81 * 0.01, rel=1e-5)


def test_no_restitution_is_the_law_without_it() -> None:
    scene = SCENES["tree_on_waves"]()
    plain, zero = (ContactDynamics(scene.tree, 0.02, 0.5, **kw) for kw in ({}, {"restitution": 0}))
    X, U = samples(plain, scene)
    a, b = plain.step(X, U), zero.step(X, U)
    assert np.array_equal(a.state, b.state) and (a.modes > 0).any()


def test_restitution_belongs_to_its_contact() -> None:
    bodies = [ball(name="one"), ball(name="two")]
    points = [ContactPoint(body.name, body.name, np.zeros(3), 0.1) for body in bodies]
    tree = TreeSystem(bodies, points)
    dynamics = ContactDynamics(tree, 0.01, friction=0.0, restitution=[0.0, 0.5])
    x = at(tree, one=[0, 0, 0.1, 0, 0, -2], two=[1, 0, 0.1, 0, 0, -2])
    step = dynamics.step(x, np.zeros(0))
    assert step.state[[16, 22]] == pytest.approx([0.0, 1.0], abs=1e-12)
    assert step.velocity[[2, 5]] == pytest.approx([0.0, 0.0], abs=1e-12)
    for bad in (-0.1, 1.1, [0.5] * 3, np.nan):
        with pytest.raises(ValueError, match="`restitution`"):
            ContactDynamics(tree, 0.01, restitution=bad)


def test_restitution_travels_and_is_fixed() -> None:
    tree = TreeSystem([ball()], [ContactPoint("touch", "ball", np.zeros(3), 0.1)])
    dynamics = ContactDynamics(tree, 0.01, restitution=0.5)
    x = at(tree, ball=[0, 0, 0.1, 0, 0, -2])
    copied = pickle.loads(pickle.dumps(dynamics))
    assert np.array_equal(copied.step(x, np.zeros(0)).state, dynamics.step(x, np.zeros(0)).state)
    with pytest.raises(AttributeError, match="`restitution`"):
        dynamics.restitution = np.zeros(1)


@pytest.mark.parametrize("restitution", [0.0, 0.6])
@pytest.mark.parametrize("gradient", LAWS, ids=lambda gradient: gradient.name)
def test_restitution_of_a_point_mass(restitution: float, gradient: Gradient) -> None:
    """Any system has it: the linear one in the plane."""
    dynamics = ContactDynamics(point_mass(), 0.05, 0.8, restitution=restitution)
    x, u = np.array([0.0, 0.03, 2.5, -2.0]), np.array([0.1, 0.2])
    error, size = check_transition(dynamics, x, u, gradient)  # type: ignore[misc]
    assert error < 1e-6 and size > 0.5
    rebound = dynamics.step(x, u).state[3]
    assert rebound == pytest.approx(1.2 if restitution else -0.03 / 0.05, abs=1e-12)


@pytest.mark.parametrize("gradient", LAWS, ids=lambda gradient: gradient.name)
def test_a_door_rebounds_from_its_stop(gradient: Gradient) -> None:
    """Joint limits have restitution too, and drives and friction act beside it."""
    drag = {"damping": 0.05, "dry_friction": 0.02}
    door = Body("door", None, "revolute", 2.0, [0.4, 0, 0], 0.1 * np.eye(3), upper=0.5, **drag)
    tree = TreeSystem([door], joint_limits=True)
    dynamics = ContactDynamics(tree, 0.02, restitution=0.4)
    x, u = np.array([0.49, 1.5]), np.array([0.1])
    assert dynamics.step(x, u).state[1] == pytest.approx(-0.4 * 1.5, abs=1e-12)
    check = check_transition(dynamics, x, u, gradient)
    assert check is not None and check[0] < 1e-6 and check[1] > 1


# ---------------------------------------------------------------------------- several trees


def test_trees_that_do_not_meet_move_as_if_alone() -> None:
    box = Box([0.3, 0.2, 0.1])
    corners = corner_contacts("c", "box", box)[:8:2]
    pair = ContactPair("far", "ball", np.zeros(3), 0.1, shape=box, other="box")
    touch = ContactPoint("touch", "ball", np.zeros(3), 0.1)
    together = TreeSystem([*arm(), brick((0.3, 0.2, 0.1), 2.0), ball()], [*corners, touch, pair])
    alone = [
        TreeSystem(arm()),
        TreeSystem([brick((0.3, 0.2, 0.1), 2.0)], corners),
        TreeSystem([ball()], [touch]),
    ]
    places = {
        "upper": [0.3, 0.5],
        "hand": [0.2, -0.4],
        "box": [0, 0, 0.05, 0.5, 0.1, 0],
        "ball": [3, 0, 0.1, 1, 0, 0],
    }
    u = np.array([0.4, -0.2])
    whole = ContactDynamics(together, 0.01).rollout(at(together, **places), np.tile(u, (20, 1)))
    assert (whole.modes > 0).any(axis=0).tolist() == [True] * 5 + [False]
    iq, iv = 0, 16
    for tree in alone:
        nq, nv, nu = tree.native.nq, tree.native.nv, tree.native.nu
        end = ContactDynamics(tree, 0.01).rollout(at(tree, **places), np.tile(u[:nu], (20, 1)))
        assert np.allclose(end.states[-1, :nq], whole.states[-1, iq : iq + nq], rtol=0, atol=1e-9)
        assert np.allclose(end.states[-1, nq:], whole.states[-1, iv : iv + nv], rtol=0, atol=1e-9)
        iq, iv = iq + nq, iv + nv


def test_a_foot_on_a_real_step_and_a_body_on_an_obstacle() -> None:
    """Shapes on the world: a ball on a box with a sharp edge, another on a fixed pole."""
    step, pole = Box([1.0, 1.0, 0.2], [0.5, 0, 0.1]), Capsule(0.05, [-1, -1, 0.3], [-1, 1, 0.3])
    bodies = [ball(name="one"), ball(name="two")]
    contacts = [
        ContactPair("one", "one", np.zeros(3), 0.1, shape=step),
        ContactPair("two", "two", np.zeros(3), 0.1, shape=pole),
    ]
    tree = TreeSystem(bodies, contacts)
    x = at(
        tree,
        one=[0.3, 0, 0.3, 0, 0, 0],
        two=[-1 + 0.15 * np.sin(0.5), 0, 0.3 + 0.15 * np.cos(0.5), 0, 0, 0],
    )
    run = ContactDynamics(tree, 0.01).rollout(x, np.zeros((10, 0)))
    assert np.allclose(run.states[-1, :3], x[:3], rtol=0, atol=1e-12)  # lies still
    assert run.states[-1, 7] > x[7] + 1e-3 and run.modes[-1, 1] > 0  # rolls off
