"""Quasi-static equilibrium: min over x of E(x, A) with the vertices at the bones given.

Projective dynamics takes turns: at fixed x the nearest rotations R (local, point by point), at
fixed R the quadratic energy's minimum, one solve with the constant K (global). That is

    x+ = x - K^-1 dE/dx(x),

a descent that never overshoots, as K exceeds the true Hessian, but a slow one where soft modes
turn. The same two steps are faster when steps remember each other: L-BFGS with K^-1 in place of
its initial matrix, `history` pairs long (0: local/global alone), and a search along the step.

What is left is told as a length: the longest step of a vertex still wanted, over the body's size.
Poses are solved side by side, each with its own history and step length.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cito.dynamics.soft.body import Energy, SoftBody, positions_out
from cito.dynamics.types import Array, as_array, positive, whole_number

ARMIJO = 1e-4
HALVINGS = 12
ROUNDING = 1e-14  # of energies, in sizes of what they are sums of


class Equilibrium(NamedTuple):
    """Poses at rest.

    positions (b, n, d) [m] (without the axis b where no argument had it);
    residual (b,): longest step still wanted over the body's size [-];
    force (b,): largest force left on a free vertex [N]; energy (b,) [J];
    iterations: local and global steps taken, of the slowest pose;
    converged (b,): whether residual <= tolerance.
    """

    positions: Array
    residual: Array
    force: Array
    energy: Array
    iterations: int
    converged: NDArray[np.bool_]


class State(NamedTuple):
    """A pose as the solvers pass it on: x (d, n, b), A and what was found there."""

    x: Array
    A: Array
    at: Energy


def solve_equilibrium(
    body: SoftBody,
    actuation: ArrayLike,
    held: ArrayLike | None = None,
    start: ArrayLike | None = None,
    *,
    tolerance: float = 1e-8,
    max_iterations: int = 1000,
    history: int = 8,
) -> Equilibrium:
    """Poses at rest under actuation.

    Args:
        body: what is deformed.
        actuation: A, (b, m, d, d) or (m, d, d), symmetric; the identity asks for the reference.
        held: where the bones hold their vertices, (b, k, d) or (k, d) [m]; as in the reference by
            default.
        start: (b, n, d) or (n, d), where the solver starts; the reference by default.
        tolerance: of the residual.
        max_iterations: local and global steps.
        history: pairs of steps remembered.

    Raises:
        ValueError: wrong shapes, NaN, actuation not symmetric.
    """
    tolerance = positive("tolerance", tolerance)
    max_iterations = whole_number("max_iterations", max_iterations, 1)
    history = whole_number("history", history, 0, 100)
    A, x = _poses(body, actuation, held, start)
    state, wanted, iterations = descend(body, x, A, tolerance, max_iterations, history)
    batched = any(
        np.ndim(v) > k for v, k in ((actuation, 3), (held, 2), (start, 2)) if v is not None
    )
    positions = positions_out(state.x)
    return Equilibrium(
        positions if batched else positions[0],
        wanted,
        np.abs(state.at.gradient[:, body.free]).max(axis=(0, 1)),
        state.at.value,
        iterations,
        wanted <= tolerance,
    )


def _poses(
    body: SoftBody, actuation: ArrayLike, held: ArrayLike | None, start: ArrayLike | None
) -> tuple[Array, Array]:
    """A (d, d, m b) and x (d, n, b) with the held vertices where the bones hold them."""
    A = body.actuation_in("actuation", actuation)
    x = body.positions_in("start", body.mesh.vertices if start is None else start)
    h = None if held is None else as_array("held", held)
    k = len(body.held)
    if h is not None and (h.ndim not in (2, 3) or h.shape[-2:] != (k, body.d)):
        raise ValueError(
            f"`held` must have shape ({k}, {body.d}) or (b, {k}, {body.d}), got {h.shape}"
        )
    if h is None:
        h = body.mesh.vertices[body.held]
    moved = h.reshape(-1, k, body.d).transpose(2, 1, 0)
    A = A.reshape(*A.shape[:2], body.m, -1)
    counts = {"actuation": A.shape[3], "held": moved.shape[2], "start": x.shape[2]}
    b = max(counts.values())
    for name, count in counts.items():
        if count not in (1, b):
            raise ValueError(f"`{name}` must have one pose or {b}, got {count}")
    x = np.repeat(x, b // x.shape[2], axis=2)
    x[:, body.held] = moved
    return np.repeat(A, b // A.shape[3], axis=3).reshape(*A.shape[:2], -1), x


def descend(
    body: SoftBody, x: Array, A: Array, tolerance: float, max_iterations: int, history: int
) -> tuple[State, Array, int]:
    """Steps until none is wanted; the last state, the steps still wanted (b,), their number."""
    free, size = body.free, body.mesh.size
    at = body.energy(x, A)
    pairs: deque[tuple[Array, Array, Array]] = deque(maxlen=history)
    for iteration in range(max_iterations + 1):
        g = at.gradient[:, free]
        p = _two_loops(body, pairs, g)
        uphill = _dot(p, g) > 0  # the history of this pose is of no use
        if uphill.any():
            p[..., uphill] = -body.step(g[..., uphill])
        wanted = np.sqrt((p**2).sum(axis=0)).max(axis=0) / size
        done = wanted <= tolerance
        if done.all() or iteration == max_iterations:
            return State(x, A, at), wanted, iteration
        x_next, at_next = _search(body, x, A, at, np.where(done, 0.0, p))
        s = (x_next - x)[:, free]
        y = at_next.gradient[:, free] - g
        sy = _dot(s, y)
        useful = sy > 1e-12 * np.sqrt(_dot(s, s) * _dot(y, y))
        pairs.append((s, y, np.where(useful, 1 / np.where(useful, sy, 1.0), 0.0)))
        x, at = x_next, at_next
    raise AssertionError


def _two_loops(body: SoftBody, pairs: deque[tuple[Array, Array, Array]], g: Array) -> Array:
    """- (L-BFGS inverse Hessian) g, with K^-1 as the initial one."""
    q, kept = g, []
    for s, y, rho in reversed(pairs):
        alpha = rho * _dot(s, q)
        q = q - alpha * y
        kept.append(alpha)
    p = body.step(q)
    for (s, y, rho), alpha in zip(pairs, reversed(kept)):
        p = p + (alpha - rho * _dot(y, p)) * s
    return -p


def _search(body: SoftBody, x: Array, A: Array, at: Energy, p: Array) -> tuple[Array, Energy]:
    """Armijo's rule, halving the step of each pose until its energy is low enough."""
    slope = _dot(at.gradient[:, body.free], p)
    noise = ROUNDING * body.noise_scale(at, A)
    alpha = np.ones(len(slope))
    for _ in range(HALVINGS):
        trial = x.copy()
        trial[:, body.free] += alpha * p
        found = body.energy(trial, A, at.R)
        high = found.value > at.value + ARMIJO * alpha * slope + noise
        if not high.any():
            break
        alpha = np.where(high, 0.5 * alpha, alpha)
    return trial, found


def _dot(a: Array, b: Array) -> Array:
    """Inner products pose by pose, (d, n, b) -> (b,)."""
    dots: Array = np.einsum("inb,inb->b", a, b)
    return dots
