"""Meshes of triangles (2-D) and tetrahedra (3-D) in their reference shape, and their refinement.

On a simplex with reference vertices X_0 .. X_d a map x is linear: F = sum_a x_a g_a' with the
constant gradients g_a of the barycentric coordinates, the rows of [X_1 - X_0, ...]^-1 and minus
their sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import factorial

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from cito.dynamics.types import Array, as_array, freeze

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh of triangles or tetrahedra.

    Args:
        vertices: X, (n, d) with d = 2 or 3, reference positions [m].
        elements: (m, d+1), numbers of the vertices of each element, positively oriented.

    Raises:
        ValueError: wrong shapes, numbers of vertices that do not exist, an element without volume
            or inside out, a vertex that no element has.
    """

    vertices: Array
    elements: Indices

    def __post_init__(self) -> None:
        X = as_array("vertices", self.vertices, (None, None))
        d = X.shape[1]
        if d not in (2, 3):
            raise ValueError(f"`vertices` must have shape (n, 2) or (n, 3), got {X.shape}")
        object.__setattr__(self, "vertices", X)
        object.__setattr__(self, "elements", _checked_elements(self.elements, len(X), d))
        freeze(self)
        flat = np.flatnonzero(self.volumes <= 1e-14 * self.size**d)
        if len(flat):
            raise ValueError(
                f"`elements` must have a positive volume, element {flat[0]} has "
                f"{self.volumes[flat[0]]:g}"
            )

    @property
    def dimension(self) -> int:
        """d: 2 or 3."""
        return int(self.vertices.shape[1])

    @cached_property
    def size(self) -> float:
        """Diagonal of the reference shape's bounding box [m]."""
        return float(np.linalg.norm(np.ptp(self.vertices, axis=0)))

    @cached_property
    def volumes(self) -> Array:
        """Volume [m^3] (area [m^2] in 2-D) of each element, (m,)."""
        volumes: Array = np.linalg.det(self._edges) / factorial(self.dimension)
        return volumes

    @cached_property
    def centers(self) -> Array:
        """Material points where the elements' actuation is asked for, (m, d) [m]."""
        centers: Array = self.vertices[self.elements].mean(axis=1)
        return centers

    @cached_property
    def gradients(self) -> Array:
        """g: gradients of the barycentric coordinates, (m, d+1, d) [1/m]."""
        rows = np.linalg.inv(self._edges)
        gradients: Array = np.concatenate([-rows.sum(axis=1, keepdims=True), rows], axis=1)
        return gradients

    @cached_property
    def gradient_operator(self) -> sp.csr_matrix:
        """G (d m, n): row j m + e of G x_i is F_ij of element e, where x_i (n,) are positions."""
        m, k = self.elements.shape
        d = self.dimension
        rows = np.arange(d * m).reshape(d, m, 1).repeat(k, axis=2)
        columns = np.broadcast_to(self.elements, (d, m, k))
        values = np.moveaxis(self.gradients, 2, 0)
        entries = (values.ravel(), (rows.ravel(), columns.ravel()))
        return sp.csr_matrix(entries, shape=(d * m, len(self.vertices)))

    def refined(self) -> Mesh:
        """Each element cut at the middles of its edges: 4 triangles, or 8 tetrahedra, of one.

        The first n vertices stay those of this mesh.
        """
        n, d = self.vertices.shape
        pairs = list(combinations(range(d + 1), 2))
        edges = np.sort(np.stack([self.elements[:, p] for p in pairs], axis=1), axis=2)
        unique, where = np.unique(edges.reshape(-1, 2), axis=0, return_inverse=True)
        vertices = np.concatenate([self.vertices, self.vertices[unique].mean(axis=1)])
        middle = dict(zip(pairs, n + where.reshape(-1, len(pairs)).T))
        corner = dict(enumerate(self.elements.T))
        children = [
            [corner[a], *(middle[min(a, b), max(a, b)] for b in range(d + 1) if b != a)]
            for a in range(d + 1)
        ]
        cells = np.stack([np.stack(child, axis=1) for child in children], axis=1)
        inner = _inner_triangle(middle) if d == 2 else _octahedra(middle, vertices)
        elements = np.concatenate([cells, inner], axis=1).reshape(-1, d + 1)
        return Mesh(vertices, oriented(vertices, elements))

    @cached_property
    def boundary(self) -> Indices:
        """Edges (2-D) or triangles (3-D) that one element only has, (k, d), outside to the right
        of an edge, and where a triangle's normal points."""
        d = self.dimension
        faces = []
        for a in range(d + 1):
            kept = [b for b in range(d + 1) if b != a]
            faces.append(self.elements[:, kept if a % 2 == 0 else _swapped(kept)])
        stacked = np.concatenate(faces)
        _, first, count = np.unique(
            np.sort(stacked, axis=1), axis=0, return_index=True, return_counts=True
        )
        boundary: Indices = stacked[np.sort(first[count == 1])]
        return boundary

    @cached_property
    def _edges(self) -> Array:
        """[X_1 - X_0, ..., X_d - X_0] of each element, (m, d, d), as columns."""
        X = self.vertices[self.elements]
        return np.ascontiguousarray(np.swapaxes(X[:, 1:] - X[:, :1], 1, 2))


def oriented(vertices: ArrayLike, elements: Indices) -> Indices:
    """`elements` with two vertices swapped where an element was inside out."""
    X = np.asarray(vertices)[elements]
    inside_out = np.linalg.det(X[:, 1:] - X[:, :1]) < 0
    turned = elements.copy()
    turned[inside_out, :2] = elements[inside_out, 1::-1]
    return turned


def _checked_elements(value: object, n: int, d: int) -> Indices:
    given = np.asarray(value)
    if given.ndim != 2 or given.shape[1] != d + 1 or given.dtype.kind not in "iu":
        raise ValueError(
            f"`elements` must be whole numbers of shape (m, {d + 1}), got {given.dtype} "
            f"{given.shape}"
        )
    if not len(given) or given.min() < 0 or given.max() >= n:
        raise ValueError(f"`elements` must name vertices 0 to {n - 1}, got {value!r:.60}")
    lonely = np.setdiff1d(np.arange(n), given)
    if len(lonely):
        raise ValueError(f"`vertices`: vertex {lonely[0]} belongs to no element")
    return np.ascontiguousarray(given, dtype=np.int64)


def _inner_triangle(middle: dict[tuple[int, int], Indices]) -> Indices:
    return np.stack([middle[0, 1], middle[1, 2], middle[0, 2]], axis=1)[:, None]


def _octahedra(middle: dict[tuple[int, int], Indices], vertices: Array) -> Indices:
    """The inner octahedron of each tetrahedron in four, about its shortest diagonal."""
    diagonals = [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))]
    lengths = np.stack(
        [np.linalg.norm(vertices[middle[a]] - vertices[middle[b]], axis=1) for a, b in diagonals]
    )
    choices = []
    for k, (a, b) in enumerate(diagonals):
        (c, e), (f, g) = [pair for i, pair in enumerate(diagonals) if i != k]
        ring = [c, f, e, g]  # around the diagonal; c, e and f, g are opposite
        choices.append(
            np.stack(
                [
                    np.stack([middle[a], middle[b], middle[p], middle[q]], axis=1)
                    for p, q in zip(ring, ring[1:] + ring[:1])
                ],
                axis=1,
            )
        )
    best = lengths.argmin(axis=0)
    chosen: Indices = np.stack(choices)[best, np.arange(len(best))]
    return chosen


def _swapped(order: list[int]) -> list[int]:
    return [order[1], order[0], *order[2:]]
