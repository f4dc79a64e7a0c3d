"""One contact problem (A, b, mu): its hard solution, its relaxations, their sensitivities.

    sigma = A lambda + b
    K_mu  contains  lambda  perpendicular to  sigma + Gamma_mu(sigma)  in  K_mu*

lambda [N s] are contact impulses, sigma [m/s] contact velocities, A = J M^-1 J' [1/kg] the
Delassus matrix, b [m/s] the free velocity with the gap term, Gamma_mu(sigma) = (0, mu ||sigma_T||).
Rows of a contact are (T1, T2, N), (T, N) or, without friction, (N). This is Signorini's law,
Coulomb's law and the maximum dissipation principle, solved as they stand; `relax` and `sensitivity`
belong to the backward pass and never change what `solve` returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics import _native
from cito.dynamics.contact_results import (
    HardBatch,
    HardSolution,
    HardStatus,
    RelaxedBatch,
    RelaxedSolution,
    RelaxedStatus,
    SensitivityBatch,
)
from cito.dynamics.gradients import Gradient
from cito.dynamics.types import MAX_THREADS, Array, IntArray, as_array, as_modes, whole_number

SEPARATING, SLIDING, CLAMPING = 0, 1, 2
MAX_KNOT = 2**53  # whole numbers of doubles up to here

_HARD = tuple(HardStatus)  # in the order of the native enumeration
_RELAXED = tuple(RelaxedStatus)


@dataclass(frozen=True, eq=False)
class ContactProblem:
    """A contact problem, checked.

    Args:
        A: Delassus matrix, (n, n), symmetric positive semidefinite [1/kg].
        b: free contact velocity, (n,) [m/s].
        mu: friction coefficients >= 0, (nc,) or one for all; ignored where dim = 1.
        dims: rows of each contact, (nc,), each 1 (N), 2 (T, N) or 3 (T1, T2, N). By default all
            contacts have n / nc rows, with nc the length of `mu` (3 rows each if `mu` is a number).

    Raises:
        ValueError: wrong shape, NaN, A not symmetric or indefinite, negative friction.
    """

    A: Array
    b: Array
    mu: Array
    dims: IntArray | None = None

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        b = as_array("b", self.b, (None,))
        A = as_array("A", self.A, (len(b), len(b)))
        dims = _layout(len(b), self.mu, self.dims)
        set_(self, "A", _checked_matrices(A[None])[0])
        set_(self, "b", b)
        set_(self, "mu", _friction(self.mu, (len(dims),)))
        set_(self, "dims", dims)

    @property
    def rows(self) -> list[slice]:
        """Rows of each contact in `b`; the normal is the last of each."""
        assert self.dims is not None
        ends = np.cumsum(self.dims)
        return [slice(int(e - d), int(e)) for d, e in zip(self.dims, ends)]

    def solve(self, warm: ArrayLike | None = None) -> HardSolution:
        """The hard solution. A function of the problem alone unless `warm` (n) is given.

        `warm` is the impulse where the iteration starts, e.g. that of the same contacts one time
        step ago; where the law has several solutions, the one nearest to it is preferred.
        """
        start = None if warm is None else as_array("warm", warm, self.b.shape)[None]
        assert self.dims is not None
        out = _native.hard_solve(self.dims, self.A[None], self.b[None], self.mu[None], start)
        impulse, velocity, modes, status, residual, sweeps = (x[0] for x in out)
        return HardSolution(impulse, velocity, modes, _HARD[status], float(residual), int(sweeps))

    def relax(
        self,
        gradient: Gradient,
        start: HardSolution | None = None,
        smoothing: ArrayLike | None = None,
    ) -> RelaxedSolution:
        """Impulse and velocity of the law that `gradient` differentiates.

        Args:
            gradient: `FullCone` or `Signorini`; the other gradients belong to the hard law, whose
                solution is returned as it is.
            start: hard solution where Newton's method starts and which fixes the modes and slip
                directions that `Signorini` holds; solved here by default.
            smoothing: (nc,) [m/s] eps of ||sigma_T|| -> sqrt(||sigma_T||^2 + eps^2); by default
                0.1 rho / (mu lambda_N) at the start. Derivatives hold it constant.
        """
        hard = self.solve() if start is None else start
        eps = None if smoothing is None else as_array("smoothing", smoothing, self.mu.shape)[None]
        arguments = (*self._native(hard), gradient.native(), eps)
        out = _native.relaxed_solve(*arguments)
        impulse, velocity, status, residual, iterations, continuations, fallbacks = (
            x[0] for x in out
        )
        return RelaxedSolution(
            impulse,
            velocity,
            _RELAXED[status],
            float(residual),
            int(iterations),
            int(continuations),
            int(fallbacks),
        )

    def sensitivity(
        self, gradient: Gradient, knot: int = 0, start: HardSolution | None = None
    ) -> Array:
        """d lambda / d b of `gradient`'s law, (n, n).

        Args:
            gradient: `Bundled` counts as `Exact` here (it averages over whole steps).
            knot: which samples a `Randomized` gradient draws.
            start: hard solution; solved here by default.
        """
        return self.derivatives(gradient, knot, start).db

    def derivatives(
        self, gradient: Gradient, knot: int = 0, start: HardSolution | None = None
    ) -> SensitivityBatch:
        """Like `sensitivity`, with d lambda / d mu and what the relaxed solve reported."""
        hard = self.solve() if start is None else start
        knots = np.array([whole_number("knot", knot, 0, MAX_KNOT)], dtype=np.uint64)
        arguments = (*self._native(hard), gradient.native(), knots)
        out = _native.contact_sensitivity(*arguments)
        return SensitivityBatch(*(x[0] for x in out))

    def _native(self, hard: HardSolution) -> tuple[Any, ...]:
        solution = _checked_solution("start", hard, self.b.shape, self.mu.shape)
        return self.dims, *(x[None] for x in (self.A, self.b, self.mu, *solution))


def solve_batch(
    A: ArrayLike,
    b: ArrayLike,
    mu: ArrayLike,
    dims: ArrayLike | None = None,
    *,
    warm: ArrayLike | None = None,
    threads: int = 1,
) -> HardBatch:
    """Hard solutions of m problems of one layout.

    Args:
        A, b, mu: (m, n, n), (m, n), (m, nc) as of `ContactProblem`.
        dims: (nc,), rows of each contact; default as of `ContactProblem`.
        warm: (m, n), impulses where the iterations start.
        threads: how many run at once, without the interpreter's lock.
    """
    problem = _batch(A, b, mu, dims)
    start = None if warm is None else as_array("warm", warm, problem[2].shape)
    threads = whole_number("threads", threads, 1, MAX_THREADS)
    return HardBatch(*_native.hard_solve(*problem, start, threads))


def relax_batch(
    A: ArrayLike,
    b: ArrayLike,
    mu: ArrayLike,
    gradient: Gradient,
    dims: ArrayLike | None = None,
    *,
    hard: HardBatch | None = None,
    smoothing: ArrayLike | None = None,
    threads: int = 1,
) -> RelaxedBatch:
    """`ContactProblem.relax` for m problems of one layout; `hard` is solved here by default."""
    problem = _batch(A, b, mu, dims)
    threads = whole_number("threads", threads, 1, MAX_THREADS)
    start = _hard(problem, hard, threads)
    eps = None if smoothing is None else as_array("smoothing", smoothing, problem[3].shape)
    out = _native.relaxed_solve(*problem, *start, gradient.native(), eps, threads)
    return RelaxedBatch(*out)


def sensitivity_batch(
    A: ArrayLike,
    b: ArrayLike,
    mu: ArrayLike,
    gradient: Gradient,
    dims: ArrayLike | None = None,
    *,
    hard: HardBatch | None = None,
    knots: ArrayLike | None = None,
    threads: int = 1,
) -> SensitivityBatch:
    """`ContactProblem.derivatives` for m problems of one layout.

    Args:
        hard: their hard solutions; solved here by default.
        knots: (m,) whole numbers from 0 to 2^53 that select the samples of `Randomized`; by default
            0, 1, ...
    """
    problem = _batch(A, b, mu, dims)
    threads = whole_number("threads", threads, 1, MAX_THREADS)
    start = _hard(problem, hard, threads)
    m = len(problem[1])
    chosen = np.arange(m) if knots is None else as_array("knots", knots, (m,))
    unfit = (chosen < 0) | (chosen > MAX_KNOT) | (chosen != np.floor(chosen))
    if unfit.any():
        raise ValueError(
            f"`knots` must be whole numbers from 0 to {MAX_KNOT}, got {chosen[unfit][0]:g}"
        )
    out = _native.contact_sensitivity(
        *problem, *start, gradient.native(), chosen.astype(np.uint64), threads
    )
    return SensitivityBatch(*out)


def _batch(
    A: ArrayLike, b: ArrayLike, mu: ArrayLike, dims: ArrayLike | None
) -> tuple[IntArray, Array, Array, Array]:
    b = as_array("b", b, (None, None))
    m, n = b.shape
    A = _checked_matrices(as_array("A", A, (m, n, n)))
    layout = _layout(n, mu if np.ndim(mu) == 0 else np.asarray(mu)[0], dims)
    return layout, A, b, _friction(mu, (m, len(layout)))


def _hard(
    problem: tuple[IntArray, Array, Array, Array], hard: HardBatch | None, threads: int
) -> tuple[Array, Array, IntArray]:
    if hard is None:
        hard = HardBatch(*_native.hard_solve(*problem, None, threads))
    return _checked_solution("hard", hard, problem[2].shape, problem[3].shape)


def _checked_solution(
    name: str, hard: HardSolution | HardBatch, rows: tuple[int, ...], contacts: tuple[int, ...]
) -> tuple[Array, Array, IntArray]:
    return (
        as_array(f"{name}.impulse", hard.impulse, rows),
        as_array(f"{name}.velocity", hard.velocity, rows),
        as_modes(f"{name}.modes", hard.modes, contacts),
    )


def _layout(n: int, mu: ArrayLike, dims: ArrayLike | None) -> IntArray:
    """Rows of each contact, checked against n."""
    if dims is None:
        nc = n // 3 if np.ndim(mu) == 0 else len(np.asarray(mu))
        per = n // nc if nc else 0
        if nc * per != n or (n and per not in (1, 2, 3)):
            raise ValueError(f"`dims` is needed: {n} rows do not divide among {nc} contacts")
        return np.full(nc, per, dtype=np.int32)
    layout = as_array("dims", dims, (None,))
    if not np.isin(layout, (1, 2, 3)).all() or layout.sum() != n:
        raise ValueError(
            f"`dims` must hold 1, 2 or 3 for each contact and add up to {n} rows, got {dims}"
        )
    return layout.astype(np.int32)


def _friction(mu: ArrayLike, shape: tuple[int, ...]) -> Array:
    values = as_array("mu", np.full(shape, mu) if np.ndim(mu) == 0 else mu, shape)
    if (values < 0).any():
        raise ValueError(f"`mu` must be >= 0, got {values.min():g}")
    return values


def _checked_matrices(A: Array) -> Array:
    """A (m, n, n), symmetric to rounding and positive semidefinite to rounding."""
    if A.size == 0:
        return A
    size = np.abs(A).max(axis=(1, 2))
    asymmetry = np.abs(A - A.transpose(0, 2, 1)).max(axis=(1, 2))
    if (asymmetry > 1e-8 * size).any():
        raise ValueError(f"`A` must be symmetric, got |A - A'| up to {asymmetry.max():.3g}")
    symmetric: Array = 0.5 * (A + A.transpose(0, 2, 1))
    least = np.linalg.eigvalsh(symmetric)[:, 0]
    if (least < -1e-8 * size).any():
        raise ValueError(
            f"`A` must be positive semidefinite, got an eigenvalue of {least.min():.3g}"
        )
    return np.ascontiguousarray(symmetric)


__all__ = [
    "CLAMPING",
    "SEPARATING",
    "SLIDING",
    "ContactProblem",
    "HardBatch",
    "HardSolution",
    "HardStatus",
    "RelaxedBatch",
    "RelaxedSolution",
    "RelaxedStatus",
    "SensitivityBatch",
    "solve_batch",
    "relax_batch",
    "sensitivity_batch",
]
