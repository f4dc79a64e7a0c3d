"""What the costs on the motion of robots share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.types import Array, as_array, as_vector, freeze
from cito.problems.costs import NativeCost, checked_knots, checked_weight

NUMBERS = "position orientation velocity linear angular point target reference".split()


@dataclass(frozen=True, eq=False)
class RobotCost(NativeCost):
    """What the terms here share: arrays are checked, copied and read-only."""

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if name.endswith("weight"):
                object.__setattr__(self, name, _weight(name, value))
            elif name in NUMBERS and value is not None:
                object.__setattr__(self, name, as_array(name, value))
            elif name in ("joints", "feet") and value is not None:
                object.__setattr__(self, name, _names(name, value))
        if "knots" in vars(self):
            object.__setattr__(self, "knots", checked_knots(self.knots))
        freeze(self)


def vector_pair(first: ArrayLike, second: ArrayLike, names: tuple[str, str]) -> Array:
    """Two weights of three, (6,); each may be one for all three."""
    return np.concatenate([as_vector(n, w, 3) for n, w in zip(names, (first, second))])


def side_by_side(first: Array, second: Array) -> Array:
    """References (rows, a) and (rows, b) as one (rows, a + b); one row serves for all."""
    rows = max(len(first), len(second))
    parts = [np.broadcast_to(part, (rows, part.shape[1])) for part in (first, second)]
    return np.ascontiguousarray(np.hstack(parts))


def _weight(name: str, value: ArrayLike) -> Array:
    """(n,), or () where one stands for all."""
    weight: Array = checked_weight(name, np.atleast_1d(as_array(name, value)))
    return weight if np.ndim(value) else weight.reshape(())


def _names(name: str, value: Sequence[str]) -> tuple[str, ...]:
    if isinstance(value, str) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"`{name}` must be a sequence of names, got {value!r:.80}")
    return tuple(value)
