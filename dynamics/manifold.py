"""Integration and difference of states on the manifold of a system, row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics import _native
from cito.dynamics.types import Array, batch_axes


def on_manifold(
    manifold: _native.System,
    left: tuple[str, ArrayLike, int],
    right: tuple[str, ArrayLike, int],
    integrate: bool,
) -> Array:
    """x (+) dx or x1 (-) x0 over broadcast rows; arguments come as (name, value, length)."""
    (name, a, _), (other, b, _) = left, right
    arrays = [np.asarray(value, dtype=np.float64) for value in (a, b)]
    for array, (label, _, length) in zip(arrays, (left, right)):
        if array.ndim < 1 or array.shape[-1] != length:
            raise ValueError(f"`{label}` must have shape (..., {length}), got {array.shape}")
    batch = batch_axes(name, arrays[0].shape[:-1], other, arrays[1].shape[:-1])
    rows = int(np.prod(batch))
    first, second = (
        np.ascontiguousarray(np.broadcast_to(array, (*batch, length))).reshape(rows, length)
        for array, (_, _, length) in zip(arrays, (left, right))
    )
    out: Array = _native.on_manifold(manifold, first, second, integrate)
    return out.reshape(*batch, out.shape[-1])
