"""Meshes of triangles (2-D) and tetrahedra (3-D), linear or quadratic, and their refinement.

On a simplex with corners X_0 .. X_d let l_a(X) be the barycentric coordinates and g_a their
constant gradients, the rows of [X_1 - X_0, ...]^-1 and minus their sum. A map x has the gradient

    linear        F = sum_a x_a g_a'
    quadratic     F = sum_a x_a (4 l_a - 1) g_a' + sum_{a<b} x_ab 4 (l_a g_b + l_b g_a)'

with x_ab at the middles of the edges. Energies sum over points of quadrature: one in the middle of
a linear element, d+1 in a quadratic one, which is exact for what is quadratic in F. Linear elements
bend too stiffly (a bar with four of them across by a tenth), quadratic ones hardly.
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


# Barycentric coordinates of the points of a quadratic element: one large, d small ones.
INNER = {2: (2 / 3, 1 / 6), 3: ((5 + 3 * 5**0.5) / 20, (5 - 5**0.5) / 20)}


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh of triangles or tetrahedra.

    Args:
        vertices: X, (n, d) with d = 2 or 3, reference positions [m]; of a quadratic mesh with the
            middles of edges.
        elements: numbers of each element's vertices: its d+1 corners, positively oriented, and
            in a quadratic mesh the middles of its edges 01, 02, (03,) 12, (13, 23).

    Raises:
        ValueError: wrong shapes, numbers of vertices that do not exist, an element without volume
            or inside out, a vertex that no element has, an edge's vertex not in its middle.
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
        for k, (a, b) in enumerate(self._pairs if self.order == 2 else ()):
            middle = X[self.elements[:, [a, b]]].mean(axis=1)
            if np.abs(X[self.elements[:, d + 1 + k]] - middle).max() > 1e-9 * self.size:
                raise ValueError("`vertices` on edges must be in the middle of straight ones")

    @property
    def dimension(self) -> int:
        """d: 2 or 3."""
        return int(self.vertices.shape[1])

    @property
    def order(self) -> int:
        """1 linear, 2 quadratic."""
        return 1 if self.elements.shape[1] == self.dimension + 1 else 2

    @property
    def corners(self) -> Indices:
        """(ne, d+1)."""
        return self.elements[:, : self.dimension + 1]

    @cached_property
    def size(self) -> float:
        """Diagonal of the reference shape's bounding box [m]."""
        return float(np.linalg.norm(np.ptp(self.vertices, axis=0)))

    @cached_property
    def volumes(self) -> Array:
        """Volume [m^3] (area [m^2] in 2-D) of each element, (ne,)."""
        volumes: Array = np.linalg.det(self._edges) / factorial(self.dimension)
        return volumes

    @cached_property
    def points(self) -> Array:
        """Material points of the quadrature, where actuation is asked for, (m, d) [m].

        Those of one element follow each other.
        """
        X = np.einsum("qa,eai->eqi", self._barycentric, self.vertices[self.corners])
        return np.ascontiguousarray(X.reshape(-1, self.dimension))

    @cached_property
    def weights(self) -> Array:
        """Volume that each point stands for, (m,)."""
        q = len(self._barycentric)
        return np.repeat(self.volumes / q, q)

    @cached_property
    def point_elements(self) -> Indices:
        """The element of each point, (m,)."""
        elements: Indices = np.repeat(np.arange(len(self.elements)), len(self._barycentric))
        return elements

    @cached_property
    def gradients(self) -> Array:
        """Gradients at each point of the functions that belong to its element's vertices, in the
        order of `elements`, (m, k, d) [1/m]."""
        rows = np.linalg.inv(self._edges)
        g = np.concatenate([-rows.sum(axis=1, keepdims=True), rows], axis=1)[:, None]
        l = self._barycentric[None, :, :, None]
        if self.order == 2:
            edges = [
                l[:, :, [a]] * g[:, :, [b]] + l[:, :, [b]] * g[:, :, [a]] for a, b in self._pairs
            ]
            g = np.concatenate([(4 * l - 1) * g, *(4 * edge for edge in edges)], axis=2)
        gradients: Array = g.reshape(len(self.points), -1, self.dimension)
        return gradients

    @cached_property
    def gradient_operator(self) -> sp.csr_matrix:
        """G (d m, n): row j m + p of G x_i is F_ij at point p, where x_i (n,) are positions."""
        m, d = self.points.shape
        vertices = self.elements[self.point_elements]
        rows = np.arange(d * m).reshape(d, m, 1).repeat(vertices.shape[1], axis=2)
        columns = np.broadcast_to(vertices, rows.shape)
        values = np.moveaxis(self.gradients, 2, 0)
        entries = (values.ravel(), (rows.ravel(), columns.ravel()))
        return sp.csr_matrix(entries, shape=(d * m, len(self.vertices)))

    def refined(self) -> Mesh:
        """Each element cut at the middles of its edges: 4 triangles, or 8 tetrahedra, of one.

        The first n vertices stay those of this mesh.
        """
        d, pairs = self.dimension, self._pairs
        quadratic = self if self.order == 2 else self.quadratic()
        vertices = quadratic.vertices
        corner = dict(enumerate(quadratic.corners.T))
        middle = dict(zip(pairs, quadratic.elements[:, d + 1 :].T))
        children = [
            [corner[a], *(middle[min(a, b), max(a, b)] for b in range(d + 1) if b != a)]
            for a in range(d + 1)
        ]
        cells = np.stack([np.stack(child, axis=1) for child in children], axis=1)
        inner = _inner_triangle(middle) if d == 2 else _octahedra(middle, vertices)
        elements = np.concatenate([cells, inner], axis=1).reshape(-1, d + 1)
        fine = Mesh(vertices, oriented(vertices, elements))
        return fine.quadratic() if self.order == 2 else fine

    def quadratic(self) -> Mesh:
        """The same elements with vertices in the middles of their edges, after the corners."""
        if self.order == 2:
            return self
        edges = np.sort(np.stack([self.elements[:, p] for p in self._pairs], axis=1), axis=2)
        unique, where = np.unique(edges.reshape(-1, 2), axis=0, return_inverse=True)
        vertices = np.concatenate([self.vertices, self.vertices[unique].mean(axis=1)])
        middles = len(self.vertices) + where.reshape(-1, len(self._pairs))
        return Mesh(vertices, np.concatenate([self.elements, middles], axis=1))

    @cached_property
    def edges(self) -> Indices:
        """Ends of the edges, (k, 2), in the order in which `quadratic` appends their middles."""
        ends = np.sort(np.stack([self.corners[:, p] for p in self._pairs], axis=1), axis=2)
        edges: Indices = np.unique(ends.reshape(-1, 2), axis=0)
        return edges

    @cached_property
    def neighbours(self) -> Indices:
        """Pairs of vertices that are next to each other on an edge, its middle included, (k, 2)."""
        if self.order == 1:
            return self.edges
        d = self.dimension
        halves = [
            self.elements[:, [corner, d + 1 + k]]
            for k, pair in enumerate(self._pairs)
            for corner in pair
        ]
        neighbours: Indices = np.unique(np.sort(np.concatenate(halves), axis=1), axis=0)
        return neighbours

    @cached_property
    def boundary(self) -> Indices:
        """Edges (2-D) or triangles (3-D) that one element only has, (k, d), outside to the right
        of an edge, and where a triangle's normal points."""
        d = self.dimension
        faces = []
        for a in range(d + 1):
            kept = [b for b in range(d + 1) if b != a]
            faces.append(self.corners[:, kept if a % 2 == 0 else _swapped(kept)])
        stacked = np.concatenate(faces)
        _, first, count = np.unique(
            np.sort(stacked, axis=1), axis=0, return_index=True, return_counts=True
        )
        boundary: Indices = stacked[np.sort(first[count == 1])]
        return boundary

    @cached_property
    def _edges(self) -> Array:
        """[X_1 - X_0, ..., X_d - X_0] of each element, (ne, d, d), as columns."""
        X = self.vertices[self.corners]
        return np.ascontiguousarray(np.swapaxes(X[:, 1:] - X[:, :1], 1, 2))

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(self.dimension + 1), 2))

    @cached_property
    def _barycentric(self) -> Array:
        """Barycentric coordinates of the points of an element, (q, d+1)."""
        d = self.dimension
        if self.order == 1:
            return np.full((1, d + 1), 1 / (d + 1))
        large, small = INNER[d]
        coordinates: Array = small + (large - small) * np.eye(d + 1)
        return coordinates


def oriented(vertices: ArrayLike, elements: Indices) -> Indices:
    """`elements` with two vertices swapped where an element was inside out."""
    X = np.asarray(vertices)[elements]
    inside_out = np.linalg.det(X[:, 1:] - X[:, :1]) < 0
    turned = elements.copy()
    turned[inside_out, :2] = elements[inside_out, 1::-1]
    return turned


def _checked_elements(value: object, n: int, d: int) -> Indices:
    given = np.asarray(value)
    counts = (d + 1, (d + 1) * (d + 2) // 2)
    if given.ndim != 2 or given.shape[1] not in counts or given.dtype.kind not in "iu":
        raise ValueError(
            f"`elements` must be whole numbers of shape (ne, {counts[0]}) or (ne, {counts[1]}), "
            f"got {given.dtype} {given.shape}"
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
