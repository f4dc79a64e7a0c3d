"""The contact laws in plain numpy: oracles of the native contact kernels.

Each law is a function law(lambda, sigma, mu) of n residuals that is analytic near its root; points
come from Newton's method and sensitivities from the implicit function theorem, both with Jacobians
by complex steps:

    (L_lambda + L_sigma A) d lambda = -L_sigma d b - L_mu d mu
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Law = Callable[[Any, Any, Any], Any]
SEPARATING, SLIDING, CLAMPING = 0, 1, 2


def blocks(dims: Sequence[int]) -> list[slice]:
    """Rows of each contact."""
    ends = np.cumsum(dims)
    return [slice(e - d, e) for d, e in zip(dims, ends)]


def hard_by_modes(dims: Sequence[int], A: Array, b: Array, mu: Array) -> list[Array]:
    """Every solution of a small planar problem (dims 1 or 2): each combination of modes is a linear
    system, kept if its inequalities hold."""
    rows = blocks(dims)
    kinds = [("open", "stick", "left", "right") if d == 2 else ("open", "stick") for d in dims]
    found = []
    for modes in product(*kinds):
        # E lambda + F sigma = 0 in the rows of each contact
        E, F = np.zeros_like(A), np.zeros_like(A)
        for r, mode, m in zip(rows, modes, mu):
            T, N = r.start, r.stop - 1
            if mode == "open":
                E[r, r] = np.eye(r.stop - T)
            elif mode == "stick":
                F[r, r] = np.eye(r.stop - T)
            else:
                E[T, T], E[T, N], F[N, N] = 1, m if mode == "right" else -m, 1
        try:
            l = np.linalg.solve(E + F @ A, -F @ b)
        except np.linalg.LinAlgError:
            continue
        s = A @ l + b
        if all(_holds(mode, l[r], s[r], m) for r, mode, m in zip(rows, modes, mu)):
            found.append(l)
    return found


def _holds(mode: str, l: Array, s: Array, mu: float) -> bool:
    if l[-1] < -1e-12 or s[-1] < -1e-12:
        return False
    if len(l) == 1:
        return True
    if mode == "stick":
        return bool(abs(l[0]) <= mu * l[-1] + 1e-12)
    return mode == "open" or bool(s[0] * (1 if mode == "right" else -1) >= -1e-12)


def full_cone_law(dims: Sequence[int], rho: Array, eps: Array) -> Law:
    """r_T = mu^2 lambda_N sigma_T + s_N lambda_T,  r_N = lambda_T . sigma_T + lambda_N s_N - rho,
    s_N = sigma_N + mu sqrt(||sigma_T||^2 + eps^2); without friction lambda_T and the scalar row."""

    def law(l: Any, s: Any, mu: Any) -> Any:
        out = np.zeros(len(l), dtype=np.result_type(l, s, mu))
        for i, r in enumerate(blocks(dims)):
            T, N, m = slice(r.start, r.stop - 1), r.stop - 1, mu[i]
            if dims[i] == 1 or m == 0:
                out[T], out[N] = l[T], l[N] * s[N] - rho[i]
                continue
            s_N = s[N] + m * np.sqrt((s[T] ** 2).sum() + eps[i] ** 2)
            out[T] = m**2 * l[N] * s[T] + s_N * l[T]
            out[N] = (l[T] * s[T]).sum() + l[N] * s_N - rho[i]
        return out

    return law


def signorini_law(
    dims: Sequence[int], rho: Array, modes: Sequence[int], slip: Sequence[Array]
) -> Law:
    """lambda_N sigma_N = rho; clamped sigma_T = 0, sliding lambda_T = -mu lambda_N t, else
    lambda_T = 0. slip: t of each contact."""

    def law(l: Any, s: Any, mu: Any) -> Any:
        out = np.zeros(len(l), dtype=np.result_type(l, s, mu))
        for i, r in enumerate(blocks(dims)):
            T, N = slice(r.start, r.stop - 1), r.stop - 1
            out[N] = l[N] * s[N] - rho[i]
            if modes[i] == CLAMPING:
                out[T] = s[T]
            else:
                out[T] = l[T] + (mu[i] * l[N] * slip[i] if modes[i] == SLIDING else 0)
        return out

    return law


def exact_law(dims: Sequence[int], modes: Sequence[int]) -> Law:
    """The hard law with its modes held."""

    def law(l: Any, s: Any, mu: Any) -> Any:
        out = np.zeros(len(l), dtype=np.result_type(l, s, mu))
        for i, r in enumerate(blocks(dims)):
            T, N = slice(r.start, r.stop - 1), r.stop - 1
            if modes[i] == SEPARATING:
                out[r] = l[r]
            elif modes[i] == CLAMPING:
                out[r] = s[r]
            else:
                out[N] = s[N]
                out[T] = l[T] + mu[i] * l[N] * s[T] / np.sqrt((s[T] ** 2).sum())
        return out

    return law


def jacobians(law: Law, l: Array, s: Array, mu: Array) -> tuple[Array, Array, Array]:
    """L_lambda, L_sigma, L_mu by complex steps."""
    h = 1e-30

    def columns(shifted: Callable[[Array], Any], n: int) -> Array:
        steps = 1j * h * np.eye(n)
        return np.stack([shifted(e).imag / h for e in steps], axis=-1) if n else np.zeros((0, 0))

    return (
        columns(lambda e: law(l + e, s + 0j, mu + 0j), len(l)),
        columns(lambda e: law(l + 0j, s + e, mu + 0j), len(s)),
        columns(lambda e: law(l + 0j, s + 0j, mu + e), len(mu)),
    )


def point(
    law: Law, dims: Sequence[int], A: Array, b: Array, mu: Array, l: Array, s: Array
) -> tuple[Array, Array]:
    """Root (lambda, sigma = A lambda + b) by Newton's method from a start with lambda_N > 0 and
    sigma_N > 0, steps halved while they leave that."""
    N = np.cumsum(dims) - 1
    for _ in range(200):
        gap = A @ l + b - s
        L_l, L_s, _ = jacobians(law, l, s, mu)
        dl = np.linalg.solve(L_l + L_s @ A, -law(l, s, mu) - L_s @ gap)
        ds = A @ dl + gap
        step = 1.0
        while step > 1e-10 and min((l + step * dl)[N].min(), (s + step * ds)[N].min()) <= 0:
            step *= 0.5
        l, s = l + step * dl, s + step * ds
        if step == 1 and np.abs(dl).max() <= 1e-14 * np.abs(l).max():
            break
    return l, s


def sensitivity(law: Law, A: Array, mu: Array, l: Array, s: Array) -> tuple[Array, Array]:
    """d lambda / d b and d lambda / d mu; of least norm where they are not unique."""
    L_l, L_s, L_mu = jacobians(law, l, s, mu)
    H = L_l + L_s @ A
    D: Array = np.linalg.lstsq(H, -np.concatenate([L_s, L_mu], axis=1), rcond=1e-11)[0]
    return D[:, : len(l)], D[:, len(l) :]


def pushed(
    dims: Sequence[int], A: Array, rho: Array, impulse: Array, velocity: Array
) -> tuple[Array, Array]:
    """A hard solution moved inside the cones: lambda_N += sqrt(rho / A_NN), sigma_N likewise."""
    N = np.cumsum(dims) - 1
    l, s, a = impulse.copy(), velocity.copy(), A[N, N]
    l[N] = np.maximum(l[N], 0) + np.sqrt(rho / a)
    s[N] = np.maximum(s[N], 0) + np.sqrt(rho * a)
    return l, s


def slip_directions(dims: Sequence[int], impulse: Array, velocity: Array) -> list[Array]:
    """t of each contact: against friction, else along the slip, else zero."""
    return list(_directions(dims, impulse, velocity))


def _directions(dims: Sequence[int], impulse: Array, velocity: Array) -> Iterator[Array]:
    for r in blocks(dims):
        l, s = impulse[r][:-1], velocity[r][:-1]
        for x in (-l, s):
            if np.linalg.norm(x) > 0:
                yield x / np.linalg.norm(x)
                break
        else:
            yield 0 * l
