"""The production form of a transition, link by link, by finite differences.

    f = frozen + d(q+, v+)/dv+ M^-1 J' (d lambda*/d b) (d sigma/d(x, u)),   frozen: lambda held

`ContactDynamics.transition` holds explicit terms at the hard impulse and takes the sensitivity of
the relaxed law at its own point: no single map has this derivative where A turns with q. So each
link is differenced by itself, from the terms of the system and the contact problem at frozen A.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cito.dynamics import _native
from cito.dynamics.check import finite_difference, joint_move, relative_error
from cito.dynamics.contact_dynamics import ContactDynamics, Step
from cito.dynamics.gradients import Exact, Gradient
from cito.dynamics.step_terms import step_terms
from cito.dynamics.types import Array

STEP = 1e-5  # of states and controls
STEP_B = 1e-6  # of the free contact velocity [m/s]


class FrozenStep(NamedTuple):
    """A step by its system's terms, with the derivatives of the links that no gradient enters.

    tangent: d x+ / d(x, u) with the impulse held, (ndx, ndx + nu).
    sigma: d sigma / d(x, u) with the impulse held, (n, ndx + nu).
    response: d x+ / d lambda through v+, (ndx, n).
    A, b: of the contact problem, (n, n), (n,).
    """

    hard: Step
    tangent: Array
    sigma: Array
    response: Array
    A: Array
    b: Array


def frozen_step(dynamics: ContactDynamics, x: Array, u: Array) -> FrozenStep:
    """The links of one step that hold for every gradient."""
    nq, h = dynamics.nx - dynamics.ndx // 2, dynamics.time_step
    hard = dynamics.step(x, u)
    v_next = hard.state[nq:]
    move, links, differences = joint_move(dynamics), *_links(dynamics, hard.impulse, v_next)
    by_z = finite_difference(
        links,
        np.concatenate([x, u]),
        step=STEP,
        integrate=move,
        difference=differences,
        tangent=dynamics.ndx + dynamics.nu,
    )

    def pushed(velocities: Array) -> Array:
        return dynamics.integrate(
            np.tile(x, (len(velocities), 1)), np.hstack([h * velocities, velocities - x[nq:]])
        )

    by_velocity = finite_difference(pushed, v_next, step=STEP, difference=dynamics.difference)
    terms = step_terms(dynamics, x)
    to_velocity = np.linalg.solve(terms.inertia(v_next, h), terms.J.T)
    A = terms.J @ to_velocity
    return FrozenStep(
        hard,
        by_z[: dynamics.ndx],
        by_z[dynamics.ndx :],
        by_velocity @ to_velocity,
        np.ascontiguousarray((A + A.T) / 2),
        hard.velocity - A @ hard.impulse,
    )


def check_production(
    dynamics: ContactDynamics, x: Array, u: Array, gradient: Gradient, frozen: FrozenStep
) -> tuple[float, float]:
    """Error of `transition` as of `relative_error`, and size of the contact's part."""
    seen = dynamics.linearize(dynamics.rollout(x, u[None])).seen_contacts(gradient)[0]
    contact = frozen.response @ _impulse_change(dynamics, gradient, frozen, seen)
    expected = frozen.tangent + contact
    error = relative_error(np.hstack(dynamics.transition(x, u, gradient)), expected)
    return error, float(np.abs(contact).max(initial=0.0))


def _links(
    dynamics: ContactDynamics, impulse: Array, guess: Array
) -> tuple[Callable[[Array], Array], Callable[[Array, Array], Array]]:
    """(x, u) -> (x+, sigma) with the impulse held, from the system's terms alone; differences."""
    nx, nq, h = dynamics.nx, dynamics.nx - dynamics.ndx // 2, dynamics.time_step
    last = np.cumsum(dynamics.system.contact_dims, dtype=int) - 1

    def velocities(point: Array) -> Array:
        terms, u = step_terms(dynamics, point[:nx]), point[nx:]
        force = h * terms.B @ u + terms.J.T @ impulse
        v_next = terms.next_velocity(point[nq:nx], force, guess, h)
        sigma = terms.J @ v_next
        sigma[last] += terms.phi / h
        return np.append(v_next, sigma)

    def links(points: Array) -> Array:
        v_next, sigma = np.split(np.array([velocities(p) for p in points]), [nx - nq], axis=1)
        dx = np.hstack([h * v_next, v_next - points[:, nq:nx]])
        return np.hstack([dynamics.integrate(points[:, :nx], dx), sigma])

    def differences(center: Array, values: Array) -> Array:
        dx = dynamics.difference(center[:, :nx], values[:, :nx])
        return np.hstack([dx, values[:, nx:] - center[:, nx:]])

    return links, differences


def _impulse_change(
    dynamics: ContactDynamics, gradient: Gradient, frozen: FrozenStep, seen: NDArray[np.bool_]
) -> Array:
    """(d lambda*/d b) (d sigma/d(x, u)), (n, ndx + nu), A held: differences along its columns.

    The relaxed law is that of the contacts that are seen.
    """
    hard, all_dims = frozen.hard, np.array(dynamics.system.contact_dims, np.int32)
    seen = seen | isinstance(gradient, Exact)
    dims, rows = all_dims[seen], np.repeat(seen, all_dims)
    size = np.maximum(np.linalg.norm(frozen.sigma, axis=0), 1e-12)

    def impulses(steps: Array) -> Array:
        m = len(steps)
        b = np.ascontiguousarray((frozen.b + steps @ (frozen.sigma / size).T)[:, rows])
        A = np.tile(frozen.A[np.ix_(rows, rows)], (m, 1, 1))
        problem = dims, A, b, np.tile(dynamics.friction[seen], (m, 1))
        found = np.zeros((m, len(rows)))
        if isinstance(gradient, Exact):
            found[:, rows] = _native.hard_solve(*problem, None)[0]
            return found
        impulse, velocity = (
            np.tile(hard.impulse[rows], (m, 1)),
            np.tile(hard.velocity[rows], (m, 1)),
        )
        start = impulse, velocity, np.tile(hard.modes[seen], (m, 1))
        found[:, rows] = _native.relaxed_solve(*problem, *start, gradient.native(), None)[0]
        return found

    change = finite_difference(impulses, np.zeros(frozen.sigma.shape[1]), step=STEP_B)
    return np.asarray(change * size)
