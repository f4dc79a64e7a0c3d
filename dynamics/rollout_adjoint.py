"""Gradients of whole motions: vector-Jacobian products of rollouts, with few states stored.

    g_x(k) = g_states(k) + f_x' g_x(k+1),     g_u(k) = f_u' g_x(k+1),     k = N-1, ..., 0

Nothing of a step is kept but its state, control and hard impulse; the transposed step forms the
rest anew. `Checkpoints` keep less: every K-th state, with the impulse from which the contact solve
there starts, so that each stretch of K steps can be simulated again, to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cito.dynamics import _native
from cito.dynamics.base import Rollout
from cito.dynamics.gradients import Gradient
from cito.dynamics.types import Array, IntArray, as_array, as_modes, batch_axes, whole_number

if TYPE_CHECKING:
    from cito.dynamics.contact_dynamics import ContactDynamics

Number = TypeVar("Number", np.float64, np.int32)
# (first, states (..., m, nx)) -> g_states (..., m, ndx) of the knots first, ..., first + m - 1
Cotangents = Callable[[int, Array], ArrayLike]


class RolloutGradient(NamedTuple):
    """Of a function of a motion's states, with respect to what the motion depends on.

    start (..., ndx) in the tangent space at the start, controls (..., N, nu), theta (..., np),
    friction (..., nc).
    """

    start: Array
    controls: Array
    theta: Array
    friction: Array


class Checkpoints(NamedTuple):
    """An open-loop motion of which every `spacing`-th state is kept.

    controls (..., N, nu), states (..., M, nx) at the knots 0, K, 2 K, ... < N, impulses
    (..., M-1, n) of the steps that led to the later ones, final (..., nx) at knot N, residual (...)
    as of `Rollout`.
    """

    spacing: int
    controls: Array
    states: Array
    impulses: Array
    final: Array
    residual: Array


class Motions(NamedTuple):
    """Open-loop motions: states (m, N+1, nx), impulses, velocities (m, N, n), modes (m, N, nc),
    residual (m)."""

    states: Array
    impulses: Array
    velocities: Array
    modes: IntArray
    residual: Array


class World(NamedTuple):
    """Dynamics, with friction (m, nc) and theta (m, np) of each motion where they are not its."""

    dynamics: ContactDynamics
    friction: Array | None = None
    theta: Array | None = None

    def simulate(self, start: Array, controls: Array, previous: Array | None = None) -> Motions:
        """From start (m, nx) under controls (m, N, nu); `previous` (m, n): the impulses before."""
        d = self.dynamics
        return Motions(
            *_native.simulate(
                d._model, start, controls, previous, self.friction, self.theta, d.threads
            )
        )

    def transpose(
        self,
        motions: Motions,
        controls: Array,
        g_states: Array,
        gradient: Gradient,
        first: int = 0,
        sums: tuple[Array, Array] | None = None,
    ) -> RolloutGradient:
        """Of motions that begin at knot `first`; theta and friction are added to `sums`."""
        d, m = self.dynamics, len(controls)
        return RolloutGradient(
            *_native.rollout_vjp(
                d._model,
                motions.states,
                controls,
                motions.impulses,
                motions.velocities,
                motions.modes,
                g_states,
                gradient.native(),
                self.friction,
                self.theta,
                first,
                *(sums or (np.zeros((m, d.n_theta)), np.zeros((m, d.nc)))),
                d.threads,
            )
        )


def checkpoints(
    dynamics: ContactDynamics, start: ArrayLike, controls: ArrayLike, spacing: int | None
) -> Checkpoints:
    """See `ContactDynamics.checkpoints`."""
    x, U = as_array("start", start), as_array("controls", controls)
    if U.ndim < 2 or U.shape[-1] != dynamics.nu or U.shape[-2] < 1:
        raise ValueError(f"`controls` must have shape (..., N, {dynamics.nu}), got {U.shape}")
    if x.ndim < 1 or x.shape[-1] != dynamics.nx:
        raise ValueError(f"`start` must have shape (..., {dynamics.nx}), got {x.shape}")
    N, batch = U.shape[-2], batch_axes("start", x.shape[:-1], "controls", U.shape[:-2])
    U = np.broadcast_to(U, (*batch, N, dynamics.nu))
    x = _rows(np.broadcast_to(x, (*batch, dynamics.nx)), 1)
    rows, world = _rows(U, 2), World(dynamics)
    K = int(np.ceil(np.sqrt(N))) if spacing is None else whole_number("spacing", spacing, 1)
    states: list[Array] = []
    impulses: list[Array] = []
    residual = np.zeros(len(x))
    for first in range(0, N, K):
        states.append(x)
        part = world.simulate(x, _stretch(rows, first, K), impulses[-1] if impulses else None)
        # copies: a view would keep the whole stretch
        x = part.states[:, -1].copy()
        impulses.append(part.impulses[:, -1].copy())
        residual = np.maximum(residual, part.residual)

    def stacked(parts: list[Array], width: int) -> Array:
        filled = np.stack(parts, 1) if parts else np.zeros((len(x), 0, width))
        return filled.reshape(*batch, len(parts), width)

    return Checkpoints(
        K,
        U,
        stacked(states, dynamics.nx),
        stacked(impulses[:-1], dynamics.n),
        x.reshape(*batch, dynamics.nx),
        residual.reshape(batch),
    )


def rollout_vjp(
    dynamics: ContactDynamics,
    motion: Rollout | Checkpoints,
    g_states: ArrayLike | Cotangents,
    gradient: Gradient,
) -> RolloutGradient:
    """See `ContactDynamics.rollout_vjp`."""
    N, batch, world = motion.controls.shape[-2], motion.controls.shape[:-2], World(dynamics)
    ndx, nu, m = dynamics.ndx, dynamics.nu, int(np.prod(batch))
    given = g_states if callable(g_states) else as_array("g_states", g_states, (*batch, N + 1, ndx))

    def cotangents(first: int, states: Array) -> Array:
        if not callable(given):
            return _rows(given[..., first : first + states.shape[1], :], 2)
        own = given(first, states.reshape(*batch, *states.shape[1:]))
        return _rows(as_array("g_states", own, (*batch, states.shape[1], ndx)), 2)

    g_controls = np.empty((m, N, nu))
    sums = np.zeros((m, dynamics.n_theta)), np.zeros((m, dynamics.nc))
    g: Array | None = None  # of the first state of the stretch before, which is the last of this
    for first, part, controls in _stretches(world, motion):
        if g is None:
            g_part = cotangents(first, part.states)
        else:
            g_part = np.concatenate([cotangents(first, part.states[:, :-1]), g[:, None]], axis=1)
        out = world.transpose(part, controls, g_part, gradient, first, sums)
        g, sums = out.start, (out.theta, out.friction)
        g_controls[:, first : first + controls.shape[1]] = out.controls
    assert g is not None
    return RolloutGradient(
        g.reshape(*batch, ndx),
        g_controls.reshape(*batch, N, nu),
        sums[0].reshape(*batch, dynamics.n_theta),
        sums[1].reshape(*batch, dynamics.nc),
    )


def _stretches(world: World, motion: Rollout | Checkpoints) -> Iterator[tuple[int, Motions, Array]]:
    """First knot, motions and controls of consecutive parts, from the last to the first."""
    if isinstance(motion, Rollout):
        yield 0, _checked(world.dynamics, motion), _rows(as_array("controls", motion.controls), 2)
        return
    K, controls = motion.spacing, _rows(motion.controls, 2)
    states, impulses = _rows(motion.states, 2), _rows(motion.impulses, 2)
    for i in reversed(range(states.shape[1])):
        U = _stretch(controls, i * K, K)
        previous = np.ascontiguousarray(impulses[:, i - 1]) if i else None
        start = as_array("motion.states", states[:, i])
        yield i * K, world.simulate(start, U, previous), U


def _checked(dynamics: ContactDynamics, motion: Rollout) -> Motions:
    """The rollout as rows, if it is one of these dynamics and finite."""
    batch, N = motion.controls.shape[:-2], motion.controls.shape[-2]
    widths = ((N + 1, dynamics.nx), (N, dynamics.n), (N, dynamics.n))
    states, impulses, velocities = (
        _rows(as_array(f"motion.{name}", getattr(motion, name), (*batch, *width)), 2)
        for name, width in zip(("states", "impulses", "velocities"), widths)
    )
    modes = _rows(as_modes("motion.modes", motion.modes, (*batch, N, dynamics.nc)), 2)
    return Motions(states, impulses, velocities, modes, np.ravel(motion.residual))


def _rows(a: NDArray[Number], axes: int) -> NDArray[Number]:
    """All axes but the last `axes` merged into one, contiguous."""
    count = int(np.prod(a.shape[: a.ndim - axes]))
    return np.ascontiguousarray(a).reshape(count, *a.shape[a.ndim - axes :])


def _stretch(rows: Array, first: int, length: int) -> Array:
    return np.ascontiguousarray(rows[:, first : first + length])
