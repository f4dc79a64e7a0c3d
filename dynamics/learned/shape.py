"""The size of a model's networks, and the units in which they count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cito.dynamics.learned.motions import Motions
from cito.dynamics.types import Array, as_array, positive, whole_number

PRECISIONS = ("float64", "float32")
LEAST_SPREAD = 1e-9  # below it a quantity does not vary in the samples


@dataclass(frozen=True)
class Shape:
    """What networks a model has.

    Args:
        periodic: of each coordinate, whether q and q + 2 pi are the same place.
        width, depth: of the hidden layers, and how many there are.
        floor: smallest diagonal entry of a Cholesky factor, in the model's own units, > 0.
        shift: added to what the network says of the diagonal before the softplus.
        dtype: "float64" or "float32".
    """

    periodic: tuple[bool, ...]
    width: int = 64
    depth: int = 2
    floor: float = 0.1
    shift: float = 2.0
    dtype: str = "float64"

    def __post_init__(self) -> None:
        object.__setattr__(self, "periodic", tuple(bool(p) for p in self.periodic))
        if not self.periodic:
            raise ValueError("`periodic` must have an entry for each coordinate, got none")
        whole_number("width", self.width, 1)
        whole_number("depth", self.depth, 1)
        positive("floor", self.floor)
        as_array("shift", self.shift, ())
        if self.dtype not in PRECISIONS:
            raise ValueError(f"`dtype` must be one of {', '.join(PRECISIONS)}, got {self.dtype!r}")

    @property
    def n(self) -> int:
        """Degrees of freedom."""
        return len(self.periodic)

    @property
    def features(self) -> int:
        """Entries of z(q)."""
        return self.n + sum(self.periodic)


@dataclass(frozen=True, eq=False)
class Scales:
    """Spread of each quantity in the samples, all (n,) and > 0; see `Motions` for the letters."""

    q: Array
    v: Array
    a: Array
    tau: Array
    p: Array
    pdot: Array

    @classmethod
    def of(cls, motions: Motions) -> Scales:
        """Standard deviations; where a force never acts, the largest of the others stands for it.

        Without momenta those of a mass tau/a stand for them.
        """
        q, v, a, tau = (_spread(getattr(motions, name)) for name in ("q", "v", "a", "tau"))
        if (tau < LEAST_SPREAD).all():
            raise ValueError("`motions` must have forces that vary: all of `tau` is constant")
        tau = np.where(tau < LEAST_SPREAD, tau.max(), tau)
        for name, spread in (("v", v), ("a", a)):
            if (spread < LEAST_SPREAD).any():
                i = int(np.argmin(spread))
                raise ValueError(f"`motions` must move: `{name}` of coordinate {i} is constant")
        q = np.where(q < LEAST_SPREAD, 1.0, q)
        p, pdot = tau / a * v, tau
        if motions.p is not None and motions.pdot is not None:
            p, pdot = (np.maximum(_spread(x), LEAST_SPREAD) for x in (motions.p, motions.pdot))
        return cls(q, v, a, tau, p, pdot)


def _spread(values: Array) -> Array:
    spread: Array = values.std(axis=0)
    return spread
