"""Motions of the articulated simulator, for models of dynamics to learn, and to be judged by.

    two-link-arm   uniform: q, v, a drawn uniformly; characters: strokes of a hand over a 3 x 3 pad
    cart-pole      uniform: q, v, u drawn uniformly; only the cart is driven
    furuta         the same, only the arm is driven

All of the truth is M(q) a + c(q, v) = tau of the tree (dynamics/tree.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cito.dynamics import _native
from cito.dynamics.learned.motions import Motions
from cito.dynamics.tree import TreeSystem
from cito.dynamics.types import Array, whole_number
from cito.problems.cart_pole import FORCE_LIMIT, TORQUE_LIMIT, cart_pole, furuta
from cito.problems.two_link_arm import two_link_arm

TURN = 1e-5  # [s] along v, in the central difference that gives dM/dt


@dataclass(frozen=True)
class Modelled:
    """A system that models are learned of, and the box that its samples are drawn from.

    Args:
        build: the true system.
        periodic: of each coordinate.
        place, speed: largest |q| and |v|, (n,) [rad or m, per s].
        acceleration: largest |a|, (n,), of a system with a motor at each joint; None: forces are
            drawn in its place.
        force: largest |u| of each motor, (nu,) [N m or N].
    """

    build: Callable[[], TreeSystem]
    periodic: tuple[bool, ...]
    place: tuple[float, ...]
    speed: tuple[float, ...]
    acceleration: tuple[float, ...] | None
    force: tuple[float, ...]

    @cached_property
    def tree(self) -> TreeSystem:
        """The true system."""
        return self.build()


PI = float(np.pi)
SYSTEMS = {
    "two-link-arm": Modelled(
        two_link_arm, (True, True), (PI, PI), (6.0, 6.0), (20.0, 30.0), (20.0, 8.0)
    ),
    "cart-pole": Modelled(
        cart_pole, (False, True), (1.5, PI), (4.0, 12.0), None, (1.2 * FORCE_LIMIT,)
    ),
    "furuta": Modelled(furuta, (True, True), (PI, PI), (15.0, 20.0), None, (1.2 * TORQUE_LIMIT,)),
}


class Truth(NamedTuple):
    """M (N, n, n), c(q, v) and gravity c(q, 0), (N, n)."""

    M: Array
    c: Array
    gravity: Array


def truth(tree: TreeSystem, q: Array, v: Array) -> Truth:
    """Mass matrix and bias of the tree at q, v, (N, n)."""
    rows = [_terms(tree, q_k, v_k) for q_k, v_k in zip(q, v)]
    gravity = [_terms(tree, q_k, 0 * q_k)[1] for q_k in q]
    return Truth(np.array([M for M, _ in rows]), np.array([c for _, c in rows]), np.array(gravity))


def true_parts(tree: TreeSystem, q: Array, v: Array, a: Array) -> dict[str, Array]:
    """tau as inertial + coriolis + gravity, each (N, n); see `Model.parts`."""
    M, c, gravity = truth(tree, q, v)
    inertial = np.einsum("kij,kj->ki", M, a)
    return {"inertial": inertial, "coriolis": c - gravity, "gravity": gravity}


def true_energy(tree: TreeSystem, q: Array, v: Array) -> Array:
    """Kinetic and potential energy (N,) [J] of a tree without contact, from its centres of mass."""
    M = truth(tree, q, v).M
    kinetic: Array = 0.5 * np.einsum("ki,kij,kj->k", v, M, v)
    return kinetic + potential(tree, q)


def potential(tree: TreeSystem, q: Array) -> Array:
    """V (N,) [J], zero at q = 0: the work of c(q, 0) along a straight line, by Gauss's rule."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    V = np.zeros(len(q))
    for s, w in zip((nodes + 1) / 2, weights / 2):
        pull = np.array([_terms(tree, s * q_k, 0 * q_k)[1] for q_k in q])
        V += w * (pull * q).sum(1)
    return V


def completed(tree: TreeSystem, q: Array, v: Array, a: Array) -> Motions:
    """Samples with forces and momenta: p = M v, dp/dt = M a + dM/dt v."""
    M, c, _ = truth(tree, q, v)
    ahead, behind = (
        np.array([_terms(tree, q_k + s * v_k, v_k)[0] for q_k, v_k in zip(q, v)])
        for s in (TURN, -TURN)
    )
    Ma = np.einsum("kij,kj->ki", M, a)
    Mdot_v = np.einsum("kij,kj->ki", (ahead - behind) / (2 * TURN), v)
    return Motions(q, v, a, Ma + c, np.einsum("kij,kj->ki", M, v), Ma + Mdot_v)


def uniform_motions(name: str, count: int, seed: int) -> Motions:
    """Samples drawn uniformly from the box of the system `name`.

    Raises:
        ValueError: there is no such system.
    """
    modelled, rng = _modelled(name), np.random.default_rng(seed)
    N = whole_number("count", count, 1)

    def drawn(reach: tuple[float, ...]) -> Array:
        box: Array = rng.uniform(-1.0, 1.0, (N, len(reach))) * np.array(reach)
        return box

    q, v = drawn(modelled.place), drawn(modelled.speed)
    tree = modelled.tree
    if modelled.acceleration is not None:
        return completed(tree, q, v, drawn(modelled.acceleration))
    assert tree.actuation is not None
    tau = drawn(modelled.force) @ tree.actuation.T
    M, c, _ = truth(tree, q, v)
    motions = completed(tree, q, v, solved(M, tau - c))
    return Motions(q, v, motions.a, tau, motions.p, motions.pdot)  # tau without rounding


def solved(M: Array, force: Array) -> Array:
    """a (N, n) with M a = force."""
    a: Array = np.asarray(np.linalg.solve(M, force[..., None])[..., 0], float)
    return a


def _modelled(name: str) -> Modelled:
    if name not in SYSTEMS:
        raise ValueError(f"`name` must be one of {', '.join(SYSTEMS)}, got {name!r:.80}")
    return SYSTEMS[name]


def _terms(tree: TreeSystem, q: Array, v: Array) -> tuple[Array, Array]:
    M, c, *_ = _native.system_terms(
        tree.native, None, np.ascontiguousarray(q), np.ascontiguousarray(v)
    )
    return M, c
