"""Ground under a smooth surface z = f(x, y): heights, functions, slopes, stairs, rough ground."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics import _native
from cito.dynamics.shapes import Shape
from cito.dynamics.types import Array, as_array, as_vector, freeze, positive, whole_number

Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class HeightField(Shape):
    """Ground under the bicubic spline through heights on a regular grid.

    The surface is C2 on the grid, level across its edges and constant beyond them (C1).

    The distance of a point is that to the tangent plane below it, d = (z - f) N_z, and its normal
    is the surface's there. Both are exact where the surface is plane, and for points that touch.
    For a sphere that touches, the normal, and the normal velocity against the rate of the gap, are
    off by about radius x slope x curvature: keep radii well under the radius of curvature.

    Args:
        heights: (nx, ny), at least 2 each [m].
        spacing: of the grid along x and y, one number or (2,), > 0 [m].
        origin: x, y of heights[0, 0], (2,) [m].
    """

    heights: Array
    spacing: Array | Sequence[float] | float
    origin: Array | Sequence[float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        heights = as_array("heights", self.heights, (None, None))
        if min(heights.shape) < 2:
            raise ValueError(
                f"`heights` must have shape (nx, ny) of 2 or more, got {heights.shape}"
            )
        spacing = as_vector("spacing", self.spacing, 2)
        if not (spacing > 0).all():
            raise ValueError(f"`spacing` must be > 0, got {spacing}")
        set_(self, "heights", heights)
        set_(self, "spacing", spacing)
        set_(self, "origin", as_array("origin", self.origin, (2,)))
        freeze(self)

    def _build(self) -> _native.Shape:
        from scipy.ndimage import spline_filter

        # Mirrored at the edges: the slope across them is zero.
        inside = spline_filter(self.heights, order=3, mode="mirror", output=np.float64)
        coefficients = np.pad(inside, 1, mode="reflect")
        return _native.height_field(
            coefficients, np.asarray(self.origin), 1 / np.asarray(self.spacing)
        )

    def height(self, points: ArrayLike) -> Array:
        """f at points (..., 2), (...) [m]."""
        at = as_array("points", points)
        if at.ndim < 1 or at.shape[-1] != 2:
            raise ValueError(f"`points` must have shape (..., 2), got {at.shape}")
        value, normal = self.distance(np.concatenate([at, np.zeros((*at.shape[:-1], 1))], axis=-1))
        height: Array = -value / normal[..., 2]
        return height

    @classmethod
    def from_function(
        cls, function: Callable[[Array, Array], ArrayLike], x: Range, y: Range, spacing: float
    ) -> HeightField:
        """Heights `function(X, Y)` at the points of a grid over the ranges `x` and `y` [m].

        Args:
            function: of two arrays of one shape; returns one of that shape, or a number.
            x, y: (lowest, highest) [m].
            spacing: largest distance of grid points along an axis [m].
        """
        spacing = positive("spacing", spacing)
        axes = [_axis(name, bounds, spacing) for name, bounds in (("x", x), ("y", y))]
        X, Y = np.meshgrid(*axes, indexing="ij")
        heights = as_array("function", function(X, Y))
        if heights.shape not in ((), X.shape):
            raise ValueError(f"`function` must return shape {X.shape}, got {heights.shape}")
        heights = np.broadcast_to(heights, X.shape)
        origin, second = np.array([axis[:2] for axis in axes]).T
        return cls(heights, second - origin, origin)

    @classmethod
    def ramp(
        cls,
        height: float,
        length: float,
        start: float = 0.5,
        rounding: float = 0.02,
        y: Range = (-2.0, 2.0),
    ) -> HeightField:
        """Level ground that rises (or falls) by `height` over `length` along x from `start` on.

        Args:
            height, length, start: [m].
            rounding: how far from its ends the slope fades in, about [m].
            y: range along y [m].
        """
        length, w = positive("length", length), positive("rounding", rounding)

        def surface(X: Array, _: Array) -> Array:
            rise: Array = np.logaddexp(0, (X - start) / w) - np.logaddexp(
                0, (X - start - length) / w
            )
            return height * w / length * rise

        return cls.from_function(surface, (start - 20 * w, start + length + 20 * w), y, w / 2)

    @classmethod
    def stairs(
        cls,
        steps: int,
        rise: float,
        run: float,
        start: float = 0.5,
        riser: float = 0.06,
        y: Range = (-2.0, 2.0),
    ) -> HeightField:
        """Level ground with steps along x, their risers smooth and of finite width.

        On a riser the touching point of a sphere is off by a part of its radius, see `HeightField`;
        real steps with sharp edges are `Box` shapes in pairs with the world.

        Args:
            steps: how many, >= 1.
            rise: of each step; negative: downwards [m].
            run: length of each step, > riser [m].
            start: x of the middle of the first riser [m].
            riser: width of a riser [m]; the surface is steepest, 1.9 rise / riser, in its middle.
            y: range along y [m].
        """
        steps, run = whole_number("steps", steps, 1, 1000), positive("run", run)
        riser = positive("riser", riser)
        if not run > riser:
            raise ValueError(f"`run` must be larger than `riser`, {riser:g} m, got {run:g}")

        def surface(X: Array, _: Array) -> Array:
            first = (X - start) / riser + 0.5
            return sum((rise * _smooth_step(first - i * run / riser) for i in range(steps)), 0 * X)

        return cls.from_function(surface, (start - run, start + steps * run), y, riser / 12)

    @classmethod
    def waves(
        cls,
        amplitude: float,
        wavelength: float,
        x: Range = (-2.0, 6.0),
        y: Range = (-2.0, 2.0),
    ) -> HeightField:
        """Round hills and hollows between -amplitude and amplitude; level at the origin [m]."""
        k = 2 * np.pi / positive("wavelength", wavelength)

        def surface(X: Array, Y: Array) -> Array:
            return amplitude * np.sin(k * X) * np.sin(k * Y)

        return cls.from_function(surface, x, y, wavelength / 24)

    @classmethod
    def rough(
        cls,
        seed: int,
        amplitude: float,
        feature: float = 0.2,
        flat: float = 0.4,
        x: Range = (-2.0, 6.0),
        y: Range = (-2.0, 2.0),
    ) -> HeightField:
        """Random ground: heights uniform in +-amplitude on a grid, level around the origin.

        Args:
            seed: of the random numbers.
            amplitude: [m].
            feature: distance of the grid points [m].
            flat: within this distance of the origin the ground is at zero [m].
            x, y: ranges [m].
        """
        rng = np.random.default_rng(whole_number("seed", seed, 0))
        feature, flat = positive("feature", feature), positive("flat", flat, allow_zero=True)

        def surface(X: Array, Y: Array) -> Array:
            away = _smooth_step((np.hypot(X, Y) - flat - 2 * feature) / feature)
            return amplitude * away * rng.uniform(-1, 1, X.shape)

        return cls.from_function(surface, x, y, feature)


def _smooth_step(t: Array) -> Array:
    """0 for t <= 0, 1 for t >= 1, C2 between."""
    t = np.clip(t, 0, 1)
    return t**3 * (10 - 15 * t + 6 * t**2)


def _axis(name: str, bounds: Range, spacing: float) -> Array:
    low, high = as_array(name, bounds, (2,))
    if not high > low:
        raise ValueError(f"`{name}` must be (lowest, highest), got ({low:g}, {high:g})")
    return np.linspace(low, high, int(np.ceil((high - low) / spacing - 1e-9)) + 1)
