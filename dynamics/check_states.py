"""States whose step is in a wanted contact mode, and controls.

    stance   every contact clamps          slide   every contact slides
    swing    every contact separates       mixed   at least two of these at once

Impulses and contact velocities that fit the mode are chosen first, then the state's velocity that
leads to them: what is met is not left to chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from cito.dynamics import _native
from cito.dynamics.check import MODE_LETTERS, modes_hold
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.types import Array, IntArray

MODES: dict[str, Callable[[set[str]], bool]] = {
    "stance": lambda met: met == {"c"},
    "swing": lambda met: met == {"s"},
    "slide": lambda met: met == {"l"},
    "mixed": lambda met: len(met) > 1,
}
LETTERS = {"stance": "c", "swing": "s", "slide": "l"}
SPEED = 0.5  # of contacts that slide or separate [m/s]
PUSH = 0.2  # of contacts that carry: the speed that their impulse takes away [m/s]
POSTURE = 0.2  # noise of joint angles [rad or m]
NOISE = 0.05  # of velocities, and of their change by the controls
SOLVED = 1e-9  # residual of a step
NEAR = 0.05  # contacts this far above the lowest one belong to a mode [m]
TRIES = 20  # draws for each state that is wanted


class State(NamedTuple):
    """A state and controls, the modes of their step, and whether contacts brace each other."""

    x: Array
    u: Array
    pattern: str
    braced: bool


def states_in_mode(
    dynamics: ContactDynamics, start: Array, mode: str, count: int, rng: np.random.Generator
) -> Iterator[State]:
    """States, controls and contact patterns in a mode, away from where it ends.

    The mode is that of the contacts which touch at `start`, or nearly.
    """
    *_, phi = _terms(dynamics, start)
    near = phi <= phi.min(initial=np.inf) + NEAR
    low = np.flatnonzero(near).astype(np.int32)
    for _ in range(TRIES * count):
        x, u = _draw(dynamics, start, mode, low, rng)
        step = dynamics.step(x, u)
        pattern = "".join(MODE_LETTERS[m] for m in step.modes)
        met = {pattern[i] for i in low}
        if step.residual > SOLVED or (mode in MODES and not MODES[mode](met)):
            continue
        braced = _is_braced(dynamics, x, pattern)
        if not braced and not modes_hold(dynamics, x, u):
            continue
        yield State(x, u, pattern, braced)
        count -= 1
        if count == 0:
            return


def _draw(
    dynamics: ContactDynamics, start: Array, mode: str, low: IntArray, rng: np.random.Generator
) -> tuple[Array, Array]:
    """A state beside `start` and controls whose step has impulses and velocities of the mode.

    With lambda and sigma of a mode, v solves
        J v = sigma - e_N phi/h - A lambda - h J M^-1 (B u - c)
    """
    nv, nq, h = dynamics.ndx // 2, dynamics.nx - dynamics.ndx // 2, dynamics.time_step
    noisy = dynamics.integrate(start, POSTURE * _first(rng.standard_normal(nv)))
    x = _touching(dynamics, noisy, low)
    x[nq:] = NOISE * rng.standard_normal(nv)
    M, _, B, J, phi = _terms(dynamics, x)
    u = NOISE / h * np.diag(B.T @ M @ B) * rng.standard_normal(dynamics.nu)
    if not dynamics.nc:
        return x, u
    J = J[_rows(low)]
    gap = np.zeros(len(J))
    gap[2::3] = phi[low] / h
    sigma, impulse = _of_mode(dynamics, mode, M, J, low, rng)
    for _ in range(4):  # c depends on v
        _, c, *_ = _terms(dynamics, x)
        v_free = x[nq:] + np.linalg.solve(M, h * (B @ u - c) + J.T @ impulse)
        x[nq:] += np.linalg.lstsq(J, sigma - gap - J @ v_free, rcond=1e-9)[0]
    return x, u


def _of_mode(
    dynamics: ContactDynamics,
    mode: str,
    M: Array,
    J: Array,
    low: IntArray,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Velocities sigma that J can have, and impulses lambda, which fit the contact law.

    The impulses stop a fall of all contacts that carry, with half the friction or, where they
    slide, with none; friction is then set against the slip. Contacts of one body do the same.
    """
    friction = dynamics.friction[low]
    contacts = getattr(dynamics.system, "contacts", range(dynamics.nc))
    bodies = [getattr(contacts[i], "body", i) for i in low]
    drawn = {body: LETTERS.get(mode) or str(rng.choice(list("slc"))) for body in bodies}
    letters = np.array([drawn[body] for body in bodies])
    angle = rng.uniform(0, 2 * np.pi)
    slip = SPEED * np.array([np.cos(angle), np.sin(angle), 0.0])
    wanted = {"s": np.array([0, 0, SPEED]), "l": slip, "c": np.zeros(3)}
    sigma = np.concatenate([wanted[letter] for letter in letters])
    sigma = J @ np.linalg.lstsq(J, sigma, rcond=1e-9)[0]
    fall = np.concatenate([[0, 0, SPEED if letter == "s" else -PUSH] for letter in letters])
    A = J @ np.linalg.solve(M, J.T)
    mu = np.where(letters == "c", friction / 2, 0.0)
    dims = np.full(len(low), 3, np.int32)
    impulse = _native.hard_solve(dims, ((A + A.T) / 2)[None], fall[None], mu[None], None)[0][0]
    carried = impulse[2::3].mean()
    for i, letter in enumerate(letters):
        rows = slice(3 * i, 3 * i + 2)
        if letter != "s":
            impulse[3 * i + 2] = max(impulse[3 * i + 2], 0.2 * carried)
        if letter == "l":
            slide = sigma[rows] / max(float(np.linalg.norm(sigma[rows])), 1e-12)
            impulse[rows] = -friction[i] * impulse[3 * i + 2] * slide
    return sigma, impulse * 10 ** rng.uniform(-1.5, 0)


def _is_braced(dynamics: ContactDynamics, x: Array, pattern: str) -> bool:
    """Whether the contacts that carry have more rows than rank; rows that cannot move are none."""
    *_, J, _ = _terms(dynamics, x)
    carries = np.array([letter != "s" for letter in pattern], bool)
    rows = J[np.repeat(carries, dynamics.system.contact_dims)]
    rows = rows[np.linalg.norm(rows, axis=1) > 1e-9]
    return len(rows) > 0 and int(np.linalg.matrix_rank(rows, tol=1e-6)) < len(rows)


def _touching(dynamics: ContactDynamics, x: Array, low: IntArray) -> Array:
    """The state nearby where these contacts touch, else x: Newton's method on phi(q) = 0."""
    at = x
    for _ in range(20 if len(low) else 0):
        *_, J, phi = _terms(dynamics, at)
        if np.abs(phi[low]).max() < 1e-9:
            return at
        dq = np.linalg.lstsq(J[_rows(low)[2::3]], -phi[low], rcond=1e-9)[0]
        at = dynamics.integrate(at, _first(dq * min(1.0, 0.2 / max(np.abs(dq).max(), 1e-12))))
    return x


def _rows(contacts: IntArray) -> IntArray:
    """Rows T1, T2, N of these contacts."""
    return np.add.outer(3 * contacts, np.arange(3)).ravel().astype(np.int32)


def _first(dq: Array) -> Array:
    """A change of q alone, in the tangent space of x."""
    return np.append(dq, np.zeros_like(dq))


def _terms(dynamics: ContactDynamics, x: Array) -> tuple[Array, Array, Array, Array, Array]:
    nq = dynamics.nx - dynamics.ndx // 2
    terms = _native.system_terms(dynamics.manifold, dynamics.theta, x[:nq].copy(), x[nq:].copy())
    M, c, B, J, phi = terms
    return M, c, B, J, phi
