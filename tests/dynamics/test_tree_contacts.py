"""Contacts of trees with curved ground and with each other."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.candidates import ContactPair
from cito.dynamics.check import finite_difference
from cito.dynamics.shapes import Box, Capsule, Plane, Shape, Sphere
from cito.dynamics.terrain import HeightField
from tests.reference.trees import random_forest, random_state

SHAPES: dict[str, Shape] = {
    "plane": Plane([0.2, -0.3, 1.0], -0.4),
    "sphere": Sphere(0.3, [0.1, 0.2, -0.1]),
    "capsule": Capsule(0.1, [-0.2, 0.1, 0.0], [0.3, 0.4, 0.2]),
    "box": Box([0.2, 0.3, 0.4], [0.1, 0.0, 0.1], rounding=0.02),
    "sharp box": Box([0.2, 0.3, 0.4], [0.1, 0.0, 0.1]),
    "heights": HeightField.waves(0.3, 3.0, (-9, 9), (-9, 9)),
}


def pairs(shape: Shape, bodies: tuple[tuple[str, str | None], ...]) -> list[ContactPair]:
    rng = np.random.default_rng(8)
    return [
        ContactPair(f"c{i}", a, 0.3 * rng.standard_normal(3), 0.05 * i, shape=shape, other=b)
        for i, (a, b) in enumerate(bodies)
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_derivatives_of_terms(shape: str) -> None:
    """Against the world, another tree, a parent, a child and a cousin."""
    bodies = (("a4", None), ("a4", "b2"), ("a4", "a1"), ("a1", "a4"), ("a5", "a3"), ("b0", "a0"))
    tree = random_forest(5, pairs(SHAPES[shape], bodies))
    system, rng = tree.native, np.random.default_rng(2)
    nq, nv, nu, n = system.nq, system.nv, system.nu, system.n
    x = random_state(tree, rng)
    a, u, f, w = (rng.standard_normal(k) for k in (nv, nu, n, nv))

    def residual(rows: np.ndarray) -> np.ndarray:
        out = []
        for row in rows:
            M, c, B, J, phi = _native.system_terms(system, None, row[:nq], row[nq:])
            out.append(np.concatenate([M @ a + c - B @ u - J.T @ f, J @ w, phi]))
        return np.array(out)

    def move(x0: np.ndarray, dx: np.ndarray) -> np.ndarray:
        return _native.on_manifold(system, np.ascontiguousarray(x0), dx, True)

    numeric = finite_difference(residual, x, step=1e-4, integrate=move, tangent=2 * nv)[:, :nv]
    r_q, _, Jw_q, phi_q, *_ = _native.system_derivatives(system, None, x[:nq], x[nq:], a, u, f, w)
    analytic = np.vstack([r_q, Jw_q, phi_q])
    assert (np.abs(numeric[nv:]).max(axis=1) > 0.01).all()
    assert np.allclose(analytic, numeric, rtol=0, atol=1e-7 * np.abs(numeric).max())
