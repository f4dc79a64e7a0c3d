"""Reference shapes: bars, slabs, and a curved patch with a mouth, skull and jaw, like half a face.

All are boxes of cells, bent or with cells left out. A cell is cut into 2 triangles or 6 tetrahedra
along one diagonal, the same way everywhere, so that neighbours fit.
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cito.dynamics.soft.mesh import Indices, Mesh, oriented
from cito.dynamics.types import Array, as_array, whole_number

FREE, SKULL, JAW = -1, 0, 1
MAX_CELLS = 4096  # along one axis


class Bones(NamedTuple):
    """Which vertices are held by which bone: vertices (k,) sorted, bone (k,) 0 (world), 1, ..."""

    vertices: Indices
    bone: Indices


def block(lengths: ArrayLike, cells: ArrayLike) -> Mesh:
    """A box from the origin: a bar or a slab.

    Args:
        lengths: (2,) or (3,) [m].
        cells: how many along each axis, (2,) or (3,).
    """
    counts = np.atleast_1d(np.asarray(cells))
    size = as_array("lengths", lengths, (None,))
    if len(size) not in (2, 3) or counts.shape != size.shape or (size <= 0).any():
        raise ValueError(
            f"`lengths` must be 2 or 3 numbers > 0, with as many `cells`, got {lengths!r:.60} and "
            f"{cells!r:.60}"
        )
    shape = tuple(whole_number("cells", c, 1, MAX_CELLS) for c in counts)
    grid, elements = _grid(shape)
    return Mesh(grid * (size / np.array(shape)), oriented(grid, elements))


def held_end(mesh: Mesh, axis: int = 0) -> Bones:
    """The vertices with the smallest coordinate along `axis`, held by the world."""
    along = mesh.vertices[:, axis]
    held = np.flatnonzero(along <= along.min() + 1e-9 * mesh.size)
    return Bones(held, np.zeros_like(held))


def face_patch(cells: tuple[int, int, int] = (8, 9, 1)) -> tuple[Mesh, Bones]:
    """A curved patch of skin [m] with a slit for a mouth, held by a skull and a jaw.

    x to the side, y up, z to the front. Held by the skull: the rim at both sides, and what lies on
    bone above the mouth; by the jaw: what lies on bone below it. Lips and cheeks are free. About
    0.15 m wide and high, 0.012 m thick.

    Args:
        cells: to the side, up (odd, the mouth is in the middle row), through the thickness.
    """
    across, up, deep = (whole_number("cells", c, 1, MAX_CELLS) for c in cells)
    if across < 6 or across % 2 or up < 5 or up % 2 == 0:
        raise ValueError(
            f"`cells` must be even and >= 6 to the side, odd and >= 5 up, got {tuple(cells)}"
        )
    grid, elements = _grid((across, up, deep))
    grid = grid / np.array([across, up, deep])
    used = np.unique(elements := elements[~_in_mouth(grid[elements].mean(axis=1), across, up)])
    number = np.full(len(grid), -1)
    number[used] = np.arange(len(used))
    grid, elements = grid[used], number[elements]
    vertices = _bent(grid)
    mesh = Mesh(vertices, oriented(vertices, elements))
    label = face_labels(grid)
    held = np.flatnonzero(label != FREE)
    return mesh, Bones(held, label[held])


def face_labels(grid: Array) -> Indices:
    """FREE, SKULL or JAW of points of the flat patch, (n, 3) in [0, 1]^3 -> (n,)."""
    side, up, depth = 2 * np.abs(grid[:, 0] - 0.5), grid[:, 1], grid[:, 2]
    label = np.full(len(grid), FREE)
    inside = depth < 1e-9
    label[(side > 1 - 1e-9) & (up > 0.5) | inside & (up > 0.75) & (side < 0.8)] = SKULL
    label[inside & (up < 0.3) & (side < 0.6)] = JAW
    return label


def refined_bones(coarse: Mesh, bones: Bones) -> Bones:
    """The bones of `coarse.quadratic()` or, where that is what `coarse` is, of `coarse.refined()`.

    A new vertex, in the middle of an edge, is held where both ends are, by one bone.
    """
    label = np.full(len(coarse.vertices), FREE)
    label[bones.vertices] = bones.bone
    mesh = coarse
    if coarse.order == 2:  # the edges that get new middles are those between its vertices
        mesh = _linear(coarse).refined()
    ends = label[mesh.edges]
    labels = np.concatenate([label, np.where(ends[:, 0] == ends[:, 1], ends[:, 0], FREE)])
    held = np.flatnonzero(labels != FREE)
    return Bones(held, labels[held])


def _linear(mesh: Mesh) -> Mesh:
    """The corners of a quadratic mesh, which are its first vertices."""
    corners = mesh.corners
    return Mesh(mesh.vertices[: corners.max() + 1], corners)


def _in_mouth(centers: Array, across: int, up: int) -> NDArray[np.bool_]:
    """Whether cells belong to the slit: the middle row, the inner half of the width."""
    in_row = np.abs(centers[:, 1] - 0.5) < 0.5 / up
    return in_row & (np.abs(centers[:, 0] - 0.5) < 0.25 + 1e-9)


def _bent(grid: Array) -> Array:
    """The flat patch [0, 1]^3 onto half an oval, thickness along the normal of the cylinder."""
    angle = 1.1 * (2 * grid[:, 0] - 1)
    up = 2 * grid[:, 1] - 1
    radius = (0.075 + 0.012 * grid[:, 2]) * (1 - 0.12 * up**2)
    return np.stack([radius * np.sin(angle), 0.075 * up, radius * np.cos(angle)], axis=1)


def _grid(shape: tuple[int, ...]) -> tuple[Array, Indices]:
    """Corners of the cells (n, d), in cells, and the simplices that cut them (not oriented)."""
    d = len(shape)
    axes = np.meshgrid(*(np.arange(s + 1) for s in shape), indexing="ij")
    corners = np.stack([a.ravel() for a in axes], axis=1)
    strides = np.array([int(np.prod(np.array(shape[i + 1 :]) + 1)) for i in range(d)])
    first = corners[(corners < np.array(shape)).all(axis=1)] @ strides
    # Along each order of the axes a path leads from a cell's first corner to its last one.
    paths = [[0, *np.cumsum(strides[list(order)])] for order in permutations(range(d))]
    elements = first[:, None, None] + np.array(paths)
    return corners.astype(np.float64), elements.reshape(-1, d + 1)
