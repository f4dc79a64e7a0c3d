"""The derivatives of a tree transposed in one pass, against the rows that they are products of."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import ContactDynamics, Exact, FullCone, Gradient, Parameter, _native
from cito.dynamics.candidates import ContactPair
from cito.dynamics.shapes import Box, Capsule, Plane, Shape, Sphere
from cito.dynamics.terrain import HeightField
from cito.dynamics.tree import TreeSystem
from tests.reference.trees import random_forest, random_state, random_tree

SHAPES: dict[str, Shape] = {
    "plane": Plane([0.2, -0.3, 1.0], -0.4),
    "sphere": Sphere(0.3, [0.1, 0.2, -0.1]),
    "capsule": Capsule(0.1, [-0.2, 0.1, 0.0], [0.3, 0.4, 0.2]),
    "box": Box([0.2, 0.3, 0.4], [0.1, 0.0, 0.1], rounding=0.02),
    "heights": HeightField.waves(0.3, 3.0, (-9, 9), (-9, 9)),
}


def forest(shape: Shape) -> TreeSystem:
    """Contacts with the world, another tree, a parent, a child and a cousin."""
    rng = np.random.default_rng(8)
    bodies = (("a4", None), ("a4", "b2"), ("a4", "a1"), ("a1", "a4"), ("a5", "a3"), ("b0", "a0"))
    contacts = [
        ContactPair(f"c{i}", a, 0.3 * rng.standard_normal(3), 0.05 * i, shape=shape, other=b)
        for i, (a, b) in enumerate(bodies)
    ]
    return random_forest(5, contacts)


TREES = {
    "floating": random_tree(0),
    "fixed": random_tree(3, floating=False),
    "limits": random_tree(4, limits=True),
    "balls": random_tree(7, floating=False, balls=True),
    "no contact": random_tree(6, contacts=0),
    **{f"forest, {name}": forest(shape) for name, shape in SHAPES.items()},
}


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("varied", [False, True])
def test_is_the_product_with_the_rows(name: str, varied: bool) -> None:
    tree, rng = TREES[name], np.random.default_rng(7)
    theta = None
    if varied:
        body = tree.bodies[2].name
        named = [Parameter.mass(body), Parameter.placement(body), Parameter.damping(body)]
        tree = tree.with_parameters(named + [Parameter.contact(c.name) for c in tree.contacts[:1]])
        theta = 0.2 * rng.standard_normal(tree.native.np)
    s = tree.native
    for _ in range(5):
        x = random_state(tree, rng)
        a, u, f, w, y, z, zeta = (
            rng.standard_normal(k) for k in (s.nv, s.nu, s.n, s.nv, s.nv, s.n, s.nc)
        )
        held = (s, theta, x[: s.nq], x[s.nq :], a, u, f, w)
        r_q, r_v, Jw_q, phi_q, r_t, Jw_t, phi_t = _native.system_derivatives(*held)
        wanted = (y @ r_q + z @ Jw_q + zeta @ phi_q, y @ r_v, y @ r_t + z @ Jw_t + zeta @ phi_t)
        for ours, row in zip(_native.transposed_derivatives(*held, y, z, zeta), wanted):
            scale = max(1.0, np.abs(row).max(initial=0))
            np.testing.assert_allclose(ours, row, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("gradient", [Exact(), FullCone(0.1)], ids=lambda g: g.name)
def test_transposed_step_is_the_transpose_of_the_transition(name: str, gradient: Gradient) -> None:
    tree, rng = TREES[name], np.random.default_rng(9)
    dynamics = ContactDynamics(tree, 0.01, 0.7)
    x = np.array([random_state(tree, rng) for _ in range(6)])
    u, g = (rng.standard_normal((6, k)) for k in (dynamics.nu, dynamics.ndx))
    f_x, f_u = dynamics.transition(x, u, gradient)
    hard = dynamics.step(x, u)
    ours = dynamics.vjp(x, u, hard.impulse, hard.velocity, hard.modes, g, gradient)
    for part, jacobian in ((ours.state, f_x), (ours.control, f_u)):
        wanted = np.einsum("ki,kij->kj", g, jacobian)
        scale = np.abs(wanted).max(axis=1, keepdims=True)
        assert (np.abs(part - wanted) <= 1e-9 * scale).all()
