"""Small worlds with contacts between bodies and on curved ground, for tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cito.dynamics.candidates import ContactPair, ContactPoint, corner_contacts
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.shapes import Box, Capsule, Plane
from cito.dynamics.terrain import HeightField
from cito.dynamics.tree import Body, TreeSystem
from tests.reference.trees import neutral, random_bodies


class Scene(NamedTuple):
    """A system, a state in which its contacts are about to act, and how far to stray from it."""

    tree: TreeSystem
    x: np.ndarray
    spread: float = 0.3  # of velocities [m/s, rad/s]; positions stray by a tenth [m, rad]


def ball(radius: float = 0.1, mass: float = 1.0, name: str = "ball") -> Body:
    """A full ball, free."""
    return Body(name, None, "free", mass, inertia=0.4 * mass * radius**2 * np.eye(3))


def brick(size: tuple[float, float, float], mass: float, name: str = "box") -> Body:
    """A full box, free."""
    s = np.array(size)
    return Body(name, None, "free", mass, inertia=mass / 12 * np.diag(s @ s - s**2))


def arm(hand: float = 0.3) -> list[Body]:
    """Two links that turn about y and x, the second with a tool along its x axis."""
    I = np.diag([0.002, 0.01, 0.01])
    upper = Body("upper", None, "revolute", 1.0, [0.2, 0, 0], I, [0, 0, 0.5], axis=[0, 1.0, 0])
    lower = Body(
        "hand", "upper", "revolute", 0.5, [hand / 2, 0, 0], I, [0.4, 0, 0], axis=[1.0, 0.2, 0]
    )
    return [upper, lower]


def at(tree: TreeSystem, **placed: object) -> np.ndarray:
    """A state with bodies placed: a joint's value, or a free body's position and velocity (6,)."""
    x = neutral(tree)
    iq, iv = 0, tree.native.nq
    for body in tree.bodies:
        value = placed.get(body.name)
        if body.joint == "free":
            if value is not None:
                x[iq : iq + 3], x[iv : iv + 3] = np.split(np.asarray(value, float), 2)
            iq, iv = iq + 7, iv + 6
        else:
            if value is not None:
                x[iq], x[iv] = np.asarray(value, float)
            iq, iv = iq + 1, iv + 1
    return x


def box_on_slope() -> Scene:
    """A box with rounded corners slides down a slope, on three of them: four would be too many."""
    box = Box([0.3, 0.2, 0.1], rounding=0.01)
    ground = Plane([0.2, 0.1, 1.0])
    tree = TreeSystem(
        [brick((0.3, 0.2, 0.1), 2.0)], corner_contacts("c", "box", box)[:6:2], ground=ground
    )
    return Scene(tree, at(tree, box=[0, 0, 0.05, 0.5, 0.1, -0.3]))


def tree_on_waves() -> Scene:
    """A floating tree with sphere contacts on round hills."""
    parts = random_bodies(np.random.default_rng(11), 5, floating=True)
    points = [
        ContactPoint(f"c{i}", f"b{i}", 0.1 * np.arange(3), 0.02 + 0.02 * i) for i in (0, 2, 3, 4)
    ]
    ground = HeightField.waves(0.15, 1.5, (-4, 4), (-4, 4))
    tree = TreeSystem(parts, points, ground=ground)
    return Scene(tree, at(tree, b0=[0.3, 0.2, 0.3, 0.4, 0.2, -1.0]), 1.0)


def ball_on_stairs() -> Scene:
    """A ball against the riser of a smooth stair."""
    tree = TreeSystem(
        [ball(0.03)],
        [ContactPoint("touch", "ball", np.zeros(3), 0.03)],
        ground=HeightField.stairs(2, 0.1, 0.4, start=0.5, riser=0.1),
    )
    return Scene(tree, at(tree, ball=[0.48, 0.1, 0.08, 0.8, 0.3, -0.5]), 0.2)


def ball_on_edge() -> Scene:
    """A ball that falls on the edge of a free box, which stands on the ground."""
    box = Box([0.4, 0.4, 0.2])
    contacts = [
        *corner_contacts("corner", "box", box)[:6:2],  # three: four would share a load at will
        ContactPair("ball-box", "ball", np.zeros(3), 0.1, shape=box, other="box"),
    ]
    tree = TreeSystem([brick((0.4, 0.4, 0.2), 3.0), ball(0.1)], contacts)
    offset = 0.1 * np.array([np.sin(0.6), 0, np.cos(0.6)])
    place = np.array([0.2, 0.05, 0.2]) + offset
    return Scene(tree, at(tree, box=[0, 0, 0.1, 0, 0, 0], ball=[*place, -0.5, 0.2, -1.0]), 0.1)


def ball_in_hand() -> Scene:
    """A ball that lies on a plate which an arm moves."""
    plate = Box([0.3, 0.3, 0.02], [0.3, 0.0, 0.0])
    contacts = [ContactPair("hold", "ball", np.zeros(3), 0.05, shape=plate, other="hand")]
    tree = TreeSystem([*arm(), ball(0.05, 0.3)], contacts)
    x = at(tree, upper=[0, -0.8], hand=[0, 0.4], ball=[0.7, 0.02, 0.56, 0.2, 0.1, 0.4])
    return Scene(tree, x, 0.2)


def link_hits_ball() -> Scene:
    """A capsule link swings into a ball on the ground."""
    link = Capsule(0.03, [0, 0, 0], [0.3, 0, 0])
    contacts = [
        ContactPair("hit", "ball", np.zeros(3), 0.1, shape=link, other="hand"),
        ContactPoint("ground", "ball", np.zeros(3), 0.1),
    ]
    tree = TreeSystem([*arm(), ball(0.1, 0.5)], contacts)
    x = at(tree, upper=[0.71, 0.5], hand=[0.3, 1.0], ball=[0.6, 0.08, 0.1, 0, -0.2, 0])
    return Scene(tree, x, 0.3)


def spheres_of_one_tree() -> Scene:
    """The two ends of a folded chain touch, and stand on a fixed box."""
    I = 0.01 * np.eye(3)
    bodies = [
        Body("base", None, "free", 1.0, inertia=I),
        Body("left", "base", "revolute", 0.4, [0, 0, -0.2], I, [0, 0.1, 0], axis=[1.0, 0, 0]),
        Body("right", "base", "revolute", 0.4, [0, 0, -0.2], I, [0, -0.1, 0], axis=[1.0, 0.1, 0]),
    ]
    foot = Capsule(0.05, [0, 0, -0.1], [0, 0, -0.4])
    step = Box([1.0, 1.0, 0.3], [0, 0, 0.15], rounding=0.02)
    contacts = [
        ContactPair("knock", "left", [0, 0, -0.4], 0.05, shape=foot, other="right"),
        ContactPair("left", "left", [0, 0, -0.4], 0.05, shape=step),
        ContactPair("right", "right", [0, 0, -0.4], 0.05, shape=step),
    ]
    tree = TreeSystem(bodies, contacts)
    x = at(tree, base=[0.1, 0, 0.75, 0.2, 0.1, -0.5], left=[-0.12, -0.5], right=[0.1, 0.6])
    return Scene(tree, x, 0.3)


def samples(
    dynamics: ContactDynamics, scene: Scene, count: int = 30
) -> tuple[np.ndarray, np.ndarray]:
    """States around that of a scene, (count, nx), and controls, (count, nu)."""
    rng = np.random.default_rng(0)
    dx = scene.spread * rng.standard_normal((count, dynamics.ndx))
    dx[:, : dynamics.ndx // 2] *= 0.1
    states = dynamics.integrate(np.broadcast_to(scene.x, (count, dynamics.nx)), dx)
    return states, rng.standard_normal((count, dynamics.nu))


SCENES = {
    scene.__name__: scene
    for scene in (
        box_on_slope,
        tree_on_waves,
        ball_on_stairs,
        ball_on_edge,
        ball_in_hand,
        link_hits_ball,
        spheres_of_one_tree,
    )
}
