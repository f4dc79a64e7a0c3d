"""The contact gradients, as pure data. The rollout's hard law is the same under all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cito.dynamics import _native
from cito.dynamics.types import positive, whole_number

MAX_SAMPLES = 10**6
MAX_SEED = 2**63 - 1


@dataclass(frozen=True)
class Exact:
    """Derivative of the hard law with every contact's mode held."""

    name: ClassVar[str] = "exact"

    def native(self) -> _native.Gradient:
        """The same data as the native core takes it."""
        return _native.Gradient(kind=0)


@dataclass(frozen=True)
class Signorini:
    """lambda_N sigma_N = rho in the normal direction; stick or slide is held.

    Args:
        rho: relaxation [J] (or the factor r of rho_i = r v_ref^2 / A_NN,i if `relative`).
        delta: normal free-velocity offset [m/s].
        relative: scale rho to each contact's effective mass.
        v_ref: typical speed [m/s], used if `relative`.
    """

    rho: float = 0.1
    delta: float = 0.0
    relative: bool = False
    v_ref: float = 1.0
    name: ClassVar[str] = "signorini"

    def __post_init__(self) -> None:
        _check_relaxation(self)

    def native(self) -> _native.Gradient:
        """The same data as the native core takes it."""
        return _native.Gradient(
            kind=1, rho=self.rho, delta=self.delta, relative=self.relative, v_ref=self.v_ref
        )


@dataclass(frozen=True)
class FullCone:
    """The central path of the whole friction cone: lift-off, touch-down, stick and slide.

    Args:
        rho, delta, relative, v_ref: as of `Signorini`.
        eps: the law sees sqrt(||sigma_T||^2 + eps^2) in place of the slip speed, which has a kink
            at rest [m/s]; None: small against what rho allows, 0.1 rho / (mu lambda_N) with
            lambda_N of the hard solution, pushed inside its cone.
    """

    rho: float = 0.1
    delta: float = 0.0
    relative: bool = False
    v_ref: float = 1.0
    eps: float | None = None
    name: ClassVar[str] = "full-cone"

    def __post_init__(self) -> None:
        _check_relaxation(self)
        if self.eps is not None:
            positive("eps", self.eps)

    def native(self) -> _native.Gradient:
        """The same data as the native core takes it."""
        return _native.Gradient(
            kind=2,
            rho=self.rho,
            delta=self.delta,
            relative=self.relative,
            v_ref=self.v_ref,
            eps=0.0 if self.eps is None else self.eps,
        )


@dataclass(frozen=True)
class Randomized:
    """Randomized smoothing of the hard contact solve over the free velocity b.

    Args:
        std: standard deviation of the Gaussian on b [m/s].
        samples: number of samples at each knot, 1 to 10^6, fixed by `seed` and the knot.
        order: 0 (values only) or 1 (mean of exact sensitivities).
        seed: of the samples, 0 to 2^63 - 1.
    """

    std: float = 0.3
    samples: int = 64
    order: int = 1
    seed: int = 0
    name: ClassVar[str] = "randomized"

    def __post_init__(self) -> None:
        positive("std", self.std)
        _read_samples(self)
        if self.order not in (0, 1):
            raise ValueError(f"`order` must be 0 or 1, got {self.order!r}")
        object.__setattr__(self, "order", int(self.order))

    def native(self) -> _native.Gradient:
        """The same data as the native core takes it."""
        return _native.Gradient(
            kind=3 + self.order, samples=self.samples, std=self.std, seed=self.seed
        )


@dataclass(frozen=True)
class Bundled:
    """Mean of exact transition Jacobians over antithetic offsets of loaded contact points.

    Where a contact impulse exceeds `threshold`, (q, v) is perturbed so that this contact point
    moves by about `offset`, the hard step is solved again and its exact Jacobians are averaged.

    Args:
        offset: standard deviation of the displacement of the contact point [m].
        samples: even number of samples at each triggered knot, 2 to 10^6, fixed by `seed` and the
            knot.
        threshold: impulse above which a contact triggers [N s]; None: 1.2 m g h / nc, with the
            weight read off the system's bias force at rest.
        seed: of the samples, 0 to 2^63 - 1.
    """

    offset: float = 0.01
    samples: int = 16
    threshold: float | None = None
    seed: int = 0
    name: ClassVar[str] = "bundled"

    def __post_init__(self) -> None:
        positive("offset", self.offset)
        _read_samples(self)
        if self.samples % 2:
            raise ValueError(f"`samples` must be even (antithetic pairs), got {self.samples}")
        if self.threshold is not None:
            positive("threshold", self.threshold, allow_zero=True)

    def native(self) -> _native.Gradient:
        """The same data as the native core takes it (threshold -1: the default rule)."""
        threshold = -1.0 if self.threshold is None else self.threshold
        return _native.Gradient(
            kind=5, samples=self.samples, std=self.offset, threshold=threshold, seed=self.seed
        )


Gradient = Exact | Signorini | FullCone | Randomized | Bundled
GRADIENTS: dict[str, type[Gradient]] = {
    kind.name: kind for kind in (Exact, Signorini, FullCone, Randomized, Bundled)
}


def _check_relaxation(gradient: Signorini | FullCone) -> None:
    positive("rho", gradient.rho)
    positive("delta", gradient.delta, allow_zero=True)
    positive("v_ref", gradient.v_ref)
    if not isinstance(gradient.relative, bool | np.bool_):
        raise ValueError(f"`relative` must be True or False, got {gradient.relative!r:.80}")
    object.__setattr__(gradient, "relative", bool(gradient.relative))


def _read_samples(gradient: Randomized | Bundled) -> None:
    """Whole numbers become int: 64.0 is 64."""
    for name, least, most in (("samples", 1, MAX_SAMPLES), ("seed", 0, MAX_SEED)):
        value = whole_number(name, getattr(gradient, name), least, most)
        object.__setattr__(gradient, name, value)
