"""Shapes that a soft body shall take: a bar bends, a bar twists, a slab inflates, a face moves.

A task is a mesh with bones and a sequence of target shapes, one for each time t in [0, 1]. Nobody
drew the targets: a hidden actuation field A(t, X), and hidden motions of the bones, make them on a
finer mesh: the task's own, refined twice (16 triangles for one) or, in space, once (8 tetrahedra
for one). Whoever matches them sees positions only. As refinement keeps vertices, the first n
positions of a fine target are those of the task's own vertices.

The hidden fields travel along the body as t grows, so that the shapes of a sequence are not sums
of a few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.soft.body import SoftBody
from cito.dynamics.soft.equilibrium import Equilibrium, solve_equilibrium
from cito.dynamics.soft.mesh import Mesh
from cito.dynamics.soft.shapes import Bones, block, face_patch, held_end, refined_bones
from cito.dynamics.types import Array, as_array, whole_number

HiddenField = Callable[[float, Array], Array]  # t, X (m, d) -> A (m, d, d)
HiddenMotion = Callable[[float], Array]  # t -> spin and translation of the moving bone
FINEST = {2: 2, 3: 1}  # refinements of the mesh that the targets are made on, by dimension


@dataclass(frozen=True)
class ShapeTask:
    """Shapes over time that a soft body shall take.

    Args:
        name, summary: for tables.
        mesh, bones: the body, and which vertices bones hold.
        actuation: the hidden field.
        jaw: the hidden motion of bone 1, (d(d-1)/2 + d,) [rad, m]; None: all bones stand still.
        hinge: what bone 1 turns about, (d,) [m].
        bar: RMS distance of vertices from their targets that a match must reach, over the size.
    """

    name: str
    summary: str
    mesh: Mesh
    bones: Bones
    actuation: HiddenField
    jaw: HiddenMotion | None = None
    hinge: tuple[float, ...] = ()
    bar: float = 0.01

    @cached_property
    def levels(self) -> list[tuple[Mesh, Bones]]:
        """The mesh and its bones, refined 0, 1, ... times, up to that of the targets."""
        found = [(self.mesh, self.bones)]
        for _ in range(FINEST[self.mesh.dimension]):
            mesh, bones = found[-1]
            fine = mesh.refined()
            found.append((fine, refined_bones(mesh, bones)))
        return found

    def body(self, level: int = 0) -> SoftBody:
        """The soft body, its mesh refined `level` times, of unit stiffness."""
        mesh, bones = self.levels[whole_number("level", level, 0, len(self.levels) - 1)]
        return SoftBody(mesh, bones.vertices)

    def held(self, motion: Array, level: int = 0) -> Array:
        """Where the bones hold their vertices when bone 1 has moved, (..., 3 or 6) -> (..., k, d).

        Args:
            motion: spin [rad] and translation [m] of bone 1.
            level: refinements of the mesh.
        """
        mesh, bones = self.levels[level]
        X = mesh.vertices[bones.vertices]
        moves = (bones.bone == 1)[:, None]
        return np.where(moves, moved(motion, X, np.array(self.hinge or np.zeros(X.shape[1]))), X)

    def shapes(self, times: ArrayLike, level: int | None = None) -> Equilibrium:
        """The hidden shapes.

        Args:
            times: t, (b,) in [0, 1].
            level: refinements of the mesh; by default that which targets are made on.
        """
        level = len(self.levels) - 1 if level is None else level
        t = as_array("times", times, (None,))
        body = self.body(level)
        A = np.stack([self.actuation(time, body.mesh.points) for time in t])
        still = np.zeros(3 if body.d == 2 else 6)
        held = np.stack([self.held(still if self.jaw is None else self.jaw(s), level) for s in t])
        return solve_equilibrium(body, A, held, tolerance=1e-6)


def moved(motion: Array, X: Array, hinge: Array) -> Array:
    """X (k, d) turned about `hinge` and shifted, by motions (..., 3) or (..., 6) -> (..., k, d)."""
    d = X.shape[1]
    spin, shift = motion[..., : d * (d - 1) // 2], motion[..., None, d * (d - 1) // 2 :]
    Y = X - hinge
    if d == 2:
        c, s = np.cos(spin)[..., None], np.sin(spin)[..., None]
        turned = np.concatenate([c * Y[:, :1] - s * Y[:, 1:], s * Y[:, :1] + c * Y[:, 1:]], axis=-1)
    else:
        angle = np.linalg.norm(spin, axis=-1)[..., None, None]
        axis = spin[..., None, :] / np.maximum(angle, 1e-300)
        along = (axis * Y).sum(axis=-1, keepdims=True) * axis
        turned = along + np.cos(angle) * (Y - along) + np.sin(angle) * np.cross(axis, Y)
    positions: Array = hinge + shift + turned
    return positions


def _bump(x: Array, center: float, width: float) -> Array:
    return np.exp(-(((x - center) / width) ** 2))


def bending_bar() -> ShapeTask:
    """A flat bar of 1.0 x 0.2 m, held at its left end, with a bend that travels along it."""

    def actuation(t: float, X: Array) -> Array:
        curvature = 5 * _bump(X[:, 0], 0.15 + 0.7 * t, 0.18) - 2.5 * np.sin(2 * np.pi * t)
        A = _identity(X)
        A[:, 0, 0] -= curvature * (X[:, 1] - 0.1)
        return A

    mesh = block((1.0, 0.2), (20, 3)).quadratic()
    return ShapeTask("bending-bar", "a bend travels along a bar", mesh, held_end(mesh), actuation)


def twisting_bar() -> ShapeTask:
    """A bar of 1.0 x 0.2 x 0.2 m, held at its left end, twisted here and then there.

    x -> rot(angle(x)) x has F'F = 1 + angle' (e_x a' + a e_x') + ..., a = (0, -z, y).
    """

    def actuation(t: float, X: Array) -> Array:
        rate = 4 * _bump(X[:, 0], 0.2 + 0.6 * t, 0.2) - 2 * t
        A = _identity(X)
        for j, arm in ((1, -(X[:, 2] - 0.1)), (2, X[:, 1] - 0.1)):
            A[:, 0, j] += 0.5 * rate * arm
            A[:, j, 0] = A[:, 0, j]
        A[:, 0, 0] += 0.25 * np.sin(np.pi * t) * X[:, 0]
        return A

    mesh = block((1.0, 0.2, 0.2), (6, 1, 1)).quadratic()
    return ShapeTask("twisting-bar", "a bar is twisted", mesh, held_end(mesh), actuation)


def inflating_slab() -> ShapeTask:
    """A slab of 1.0 x 1.0 x 0.15 m, held along the rim below, swollen where a bubble wanders."""

    def actuation(t: float, X: Array) -> Array:
        angle = 1.5 * np.pi * t
        bubble = _bump(X[:, 0], 0.5 + 0.2 * np.cos(angle), 0.25)
        bubble *= _bump(X[:, 1], 0.5 + 0.2 * np.sin(angle), 0.25)
        growth = 0.6 * (0.5 + 0.5 * t) * bubble
        A = _identity(X)
        for j, share in ((0, 0.4 + 4 * X[:, 2]), (1, 0.4 + 4 * X[:, 2]), (2, 1.0)):
            A[:, j, j] += growth * share
        return A

    mesh = block((1.0, 1.0, 0.15), (6, 6, 1)).quadratic()
    X = mesh.vertices
    rim = (np.abs(X[:, :2] - 0.5) > 0.5 - 1e-9).any(axis=1) & (X[:, 2] < 1e-9)
    held = np.flatnonzero(rim)
    bones = Bones(held, np.zeros_like(held))
    return ShapeTask("inflating-slab", "a bubble wanders in a slab", mesh, bones, actuation)


def face() -> ShapeTask:
    """A patch of skin with a mouth: it smiles, purses its lips and opens its jaw."""

    def actuation(t: float, X: Array) -> Array:
        smile, purse = np.sin(np.pi * t) ** 2, np.sin(2 * np.pi * t) ** 2
        A = _identity(X)
        for side in (-1.0, 1.0):  # from a corner of the mouth to a cheekbone
            start, end = np.array([side * 0.035, -0.005]), np.array([side * 0.06, 0.05])
            along = (end - start) / np.linalg.norm(end - start)
            offset = (X[:, :2] - start) - ((X[:, :2] - start) @ along)[:, None] * along
            reach = _bump((X[:, :2] - start) @ along, 0.03, 0.03)
            near = reach * np.exp(-(offset**2).sum(axis=1) / 0.015**2)
            fibre = np.array([along[0] * 0.8, along[1], -side * along[0] * 0.6])
            fibre /= np.linalg.norm(fibre)
            A -= 0.5 * smile * near[:, None, None] * np.outer(fibre, fibre)
        ring = _bump(np.hypot(X[:, 0] / 0.04, X[:, 1] / 0.02), 1.0, 0.6)
        A[:, 0, 0] -= 0.35 * purse * ring
        A[:, 2, 2] += 0.35 * purse * ring
        return A

    def jaw(t: float) -> Array:
        opened = 0.22 * np.sin(np.pi * t) ** 2 + 0.1 * t
        return np.array([opened, 0.0, 0.06 * np.sin(2 * np.pi * t), 0.0, 0.0, 0.004 * t])

    linear, bones = face_patch((6, 7, 1))
    mesh, bones = linear.quadratic(), refined_bones(linear, bones)
    return ShapeTask(
        "face", "a patch of skin smiles, purses its lips and opens its jaw", mesh, bones,
        actuation, jaw, hinge=(0.0, 0.0, 0.0), bar=0.03,
    )  # fmt: skip


SHAPE_TASKS = {
    "bending-bar": bending_bar,
    "twisting-bar": twisting_bar,
    "inflating-slab": inflating_slab,
    "face": face,
}


def shape_task(name: str) -> ShapeTask:
    """The task called `name`, a key of SHAPE_TASKS."""
    if name not in SHAPE_TASKS:
        raise ValueError(f"`name` must be one of {', '.join(SHAPE_TASKS)}, got {name!r:.40}")
    return SHAPE_TASKS[name]()


def _identity(X: Array) -> Array:
    d = X.shape[1]
    return np.broadcast_to(np.eye(d), (len(X), d, d)).copy()
