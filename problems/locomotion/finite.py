"""What is no finite number is told by name, place and time."""

from __future__ import annotations

import math

import numpy as np

from cito.dynamics.types import Array


class NotFinite(ArithmeticError):
    """A number of a simulation or a training run that is NaN or infinite; says which."""


def check_finite(term: str, value: Array, step: int, axis: str = "environment") -> None:
    """Raise where `value` (n, ...) is not finite, naming the term, row and control step.

    Raises:
        NotFinite: in one sentence.
    """
    flat = value.ravel()
    if math.isfinite(np.vdot(flat, flat)):  # fast; squares that overflow are looked at again
        return
    bad = np.argwhere(~np.isfinite(value))
    if len(bad):
        where, *entry = (int(i) for i in bad[0])
        place = f", entry {entry[0] if len(entry) == 1 else tuple(entry)}," if entry else ""
        raise NotFinite(
            f"the {term} of {axis} {where}{place} is {value[tuple(bad[0])]} at control step {step}"
        )
