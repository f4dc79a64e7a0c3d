"""What contacts touch: shapes by their signed distance, on the world or on a body.

    Plane(normal, height)      half space under a plane
    Sphere, Capsule, Box       solids, in the frame of the body that carries them
    HeightField                ground under a smooth surface (dynamics/terrain.py)

A contact is a sphere of radius r about c against a shape of distance d: phi = d(c) - r, its normal
that of the shape at c. The native core evaluates them (dynamics/native/shapes.inc).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics import _native
from cito.dynamics.types import Array, as_array, freeze, positive, without_native


class Distance(NamedTuple):
    """Distances (...) and unit normals (..., 3) of points, in the frame of the carrying body."""

    value: Array
    normal: Array


class Shape(ABC):
    """Something with a signed distance; each kind builds what the native core evaluates."""

    @abstractmethod
    def _build(self) -> _native.Shape: ...

    @cached_property
    def native(self) -> _native.Shape:
        """The shape as the native core sees it."""
        return self._build()

    __getstate__ = without_native

    def distance(self, points: ArrayLike) -> Distance:
        """Signed distance [m] (negative inside) and normal at points (..., 3) [m].

        Points and normals are in the frame of the body that carries the shape, or of the world.
        """
        at = as_array("points", points)
        if at.ndim < 1 or at.shape[-1] != 3:
            raise ValueError(f"`points` must have shape (..., 3), got {at.shape}")
        value, _, normal, _ = _native.shape_distance(self.native, at.reshape(-1, 3))
        return Distance(value.reshape(at.shape[:-1]), normal.reshape(at.shape))


@dataclass(frozen=True, eq=False)
class Plane(Shape):
    """The half space normal . x <= height.

    Args:
        normal: (3,), normalized here.
        height: along the normal [m].
    """

    normal: Array | Sequence[float] = (0.0, 0.0, 1.0)
    height: float = 0.0

    def __post_init__(self) -> None:
        normal = as_array("normal", self.normal, (3,))
        if not np.linalg.norm(normal) > 0:
            raise ValueError("`normal` must not be zero")
        object.__setattr__(self, "normal", normal / np.linalg.norm(normal))
        object.__setattr__(self, "height", float(as_array("height", self.height, ())))
        freeze(self)

    def _build(self) -> _native.Shape:
        frame = contact_frame(np.asarray(self.normal))
        return _native.plane(np.ascontiguousarray(frame.T), self.height * frame[2])


@dataclass(frozen=True, eq=False)
class Sphere(Shape):
    """A ball.

    Args:
        radius: > 0 [m].
        position: of its centre in the body frame, (3,) [m].
    """

    radius: float
    position: Array | Sequence[float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive("radius", self.radius))
        object.__setattr__(self, "position", as_array("position", self.position, (3,)))
        freeze(self)

    def _build(self) -> _native.Shape:
        return _native.box(np.eye(3), np.asarray(self.position), np.zeros(3), self.radius)


@dataclass(frozen=True, eq=False)
class Capsule(Shape):
    """All points within a radius of a segment.

    Args:
        radius: > 0 [m].
        start, end: of the segment in the body frame, (3,) [m].
    """

    radius: float
    start: Array | Sequence[float]
    end: Array | Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive("radius", self.radius))
        for name in ("start", "end"):
            object.__setattr__(self, name, as_array(name, getattr(self, name), (3,)))
        freeze(self)

    def _build(self) -> _native.Shape:
        start, end = np.asarray(self.start), np.asarray(self.end)
        length = float(np.linalg.norm(end - start))
        along = (end - start) / length if length > 0 else np.array([0.0, 0.0, 1.0])
        rotation = np.ascontiguousarray(contact_frame(along).T)  # its z axis along the segment
        half = np.array([0.0, 0.0, length / 2])
        return _native.box(rotation, (start + end) / 2, half, self.radius)


@dataclass(frozen=True, eq=False)
class Box(Shape):
    """A box, its edges rounded or sharp.

    The normal of a sharp edge jumps for a point without radius: give such contacts a radius, or
    the box a rounding, where they may meet an edge.

    Args:
        size: lengths of its edges, (3,) [m].
        position, rotation: of its frame in the body frame, (3,) [m] and (3, 3).
        rounding: radius of its edges, within `size` [m].
    """

    size: Array | Sequence[float]
    position: Array | Sequence[float] = (0.0, 0.0, 0.0)
    rotation: Array = field(default_factory=lambda: np.eye(3))
    rounding: float = 0.0

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        size = as_array("size", self.size, (3,))
        if not (size > 0).all():
            raise ValueError(f"`size` must be > 0 along each axis, got {size}")
        set_(self, "size", size)
        set_(self, "position", as_array("position", self.position, (3,)))
        set_(self, "rotation", as_array("rotation", self.rotation, (3, 3)))
        if not np.allclose(self.rotation @ self.rotation.T, np.eye(3), atol=1e-9):
            raise ValueError("`rotation` must be a rotation matrix")
        set_(self, "rounding", positive("rounding", self.rounding, allow_zero=True))
        if 2 * self.rounding > size.min():
            raise ValueError(
                f"`rounding` must be at most half of the shortest edge, {size.min() / 2:g} m, "
                f"got {self.rounding:g}"
            )
        freeze(self)

    @property
    def corners(self) -> Array:
        """Centres of the spheres that round its corners (the corners if sharp), (8, 3) [m]."""
        signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1], indexing="ij")).reshape(3, 8).T
        local = signs * (np.asarray(self.size) / 2 - self.rounding)
        corners: Array = np.asarray(self.position) + local @ self.rotation.T
        return corners

    def _build(self) -> _native.Shape:
        half = np.asarray(self.size) / 2 - self.rounding
        return _native.box(self.rotation, np.asarray(self.position), half, self.rounding)


def contact_frame(normal: Array) -> Array:
    """Rows T1, T2, N (3, 3); T1: world x projected on the plane, y where N is close to x."""
    axis = np.eye(3)[0 if abs(normal[0]) < 0.9 else 1]
    tangent = axis - normal * (normal @ axis)
    tangent = tangent / np.linalg.norm(tangent)
    return np.ascontiguousarray([tangent, np.cross(normal, tangent), normal])
