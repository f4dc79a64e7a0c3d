"""What a body looks like: capsules along its links, a box for a trunk, spheres for contacts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.tree import TreeSystem
from cito.dynamics.types import Array

SIDES, RINGS = 12, 4  # of a capsule: around it, and from its equator to each pole


class Link(NamedTuple):
    """A straight part of a body in its frame: body index, ends (2, 3) [m]."""

    body: int
    ends: Array


class Box(NamedTuple):
    """A trunk in its body's frame: body index, centre (3,) and half sizes (3,) [m]."""

    body: int
    centre: Array
    half: Array


class Mesh(NamedTuple):
    """Vertices (n, 3) [m] and triangles (m, 3)."""

    vertices: Array
    faces: NDArray[np.int32]


def links(system: TreeSystem) -> list[Link]:
    """From the origin of each body to the joints of its children and to its contacts, but not
    inside a trunk."""
    index = {body.name: i for i, body in enumerate(system.bodies)}
    trunk = {box.body for box in boxes(system)}
    found = [
        Link(index[owner], np.array([np.zeros(3), position]))
        for owner, position in _attached(system)
        if index[owner] not in trunk and np.linalg.norm(position) > 1e-3
    ]
    return [link for link in found if np.isfinite(link.ends).all()]


def boxes(system: TreeSystem) -> list[Box]:
    """One for each body that carries three others or more, around their joints."""
    found = []
    for i, body in enumerate(system.bodies):
        joints = np.array([b.position for b in system.bodies if b.parent == body.name])
        if len(joints) >= 3:
            low, high = joints.min(axis=0), joints.max(axis=0)
            thickness = 0.15 * float(np.linalg.norm(high - low))
            found.append(Box(i, (low + high) / 2, np.maximum((high - low) / 2, thickness)))
    return found


def size(system: TreeSystem) -> float:
    """Length of the longest link, for what is drawn in proportion [m]."""
    lengths = [float(np.linalg.norm(position)) for _, position in _attached(system)]
    return max([0.05, *lengths])


def ground_height(system: TreeSystem, xy: Array) -> Array:
    """z (n,) of the ground at places x, y (n, 2) [m]: exact for planes and height fields."""
    at = np.column_stack([xy, np.zeros(len(xy))])
    distance = system.ground.distance(at)
    return -distance.value / np.maximum(distance.normal[:, 2], 0.1)


def surface(system: TreeSystem, low: Array, high: Array, count: int = 80) -> Mesh:
    """The ground between the corners `low` and `high`, (2,) each [m]."""
    x, y = (np.linspace(low[i], high[i], count) for i in (0, 1))
    xy = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    i, j = (a.ravel() for a in np.meshgrid(*[np.arange(count - 1)] * 2, indexing="ij"))
    a = i * count + j
    faces = np.concatenate(
        [
            np.stack([a, a + count, a + 1], axis=1),
            np.stack([a + 1, a + count, a + count + 1], axis=1),
        ]
    )
    vertices = np.column_stack([xy, ground_height(system, xy)])
    return Mesh(vertices, faces.astype(np.int32))


def capsule(start: Array, end: Array, radius: float) -> Mesh:
    """A capsule from `start` to `end`."""
    axis = end - start
    length = float(np.linalg.norm(axis))
    N = axis / length if length > 0 else np.array([0.0, 0.0, 1.0])
    helper = np.eye(3)[int(np.argmin(np.abs(N)))]
    T1 = np.cross(N, helper) / np.linalg.norm(np.cross(N, helper))
    T2 = np.cross(N, T1)
    around = np.linspace(0, 2 * np.pi, SIDES, endpoint=False)
    circle = np.cos(around)[:, None] * T1 + np.sin(around)[:, None] * T2
    up = np.linspace(-np.pi / 2, 0, RINGS + 1)
    angles = np.concatenate([up, -up[::-1]])
    origins = [start] * len(up) + [end] * len(up)
    vertices = [
        origin + radius * (np.cos(angle) * circle + np.sin(angle) * N)
        for angle, origin in zip(angles, origins)
    ]
    return Mesh(np.concatenate(vertices), _grid(len(angles)))


def cone(height: float, slope: float) -> Mesh:
    """A friction cone from its apex at the origin along z: radius = slope times height [m]."""
    around = np.linspace(0, 2 * np.pi, 2 * SIDES, endpoint=False)
    rim = np.stack([slope * np.cos(around), slope * np.sin(around), np.ones_like(around)], axis=1)
    following = np.roll(np.arange(2 * SIDES), -1) + 1
    faces = np.stack([np.zeros(2 * SIDES, int), np.arange(2 * SIDES) + 1, following], axis=1)
    return Mesh(np.concatenate([np.zeros((1, 3)), height * rim]), faces.astype(np.int32))


def _attached(system: TreeSystem) -> list[tuple[str, Array]]:
    """What hangs on each body: name of the body, position in its frame."""
    joints = [(body.parent, body.position) for body in system.bodies if body.parent is not None]
    return joints + [(contact.body, contact.position) for contact in system.contacts]


def _grid(rings: int) -> NDArray[np.int32]:
    """Triangles between neighbouring rings of vertices."""
    j = np.arange(SIDES)
    k = (j + 1) % SIDES
    faces = []
    for ring in range(rings - 1):
        a, b = ring * SIDES, (ring + 1) * SIDES
        faces += [np.stack([a + j, a + k, b + j], 1), np.stack([a + k, b + k, b + j], 1)]
    return np.concatenate(faces).astype(np.int32)
