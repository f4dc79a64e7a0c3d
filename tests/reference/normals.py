"""The counter-based normal numbers of the native core in numpy: the same for the same keys."""

from __future__ import annotations

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    """The finalizer of splitmix64."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def standard_normals(seed: int, knot: int, sample: int, count: int) -> np.ndarray:
    """Box-Muller pairs of the uniform numbers that belong to (seed, knot, sample)."""
    key = mix((mix((mix(seed) + knot) & MASK) + sample) & MASK)
    pairs = range(count + count % 2)
    u = [((mix((key + (j + 1) * GOLDEN) & MASK) >> 11) + 0.5) / 2.0**53 for j in pairs]
    radius, angle = np.sqrt(-2 * np.log(u[::2])), 2 * np.pi * np.array(u[1::2])
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()[:count]
