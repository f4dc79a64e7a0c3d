"""States whose step is in a wanted contact mode, and controls.

    stance   every contact clamps          slide   every contact slides
    swing    every contact separates       mixed   at least two of these at once
    limit    a joint is at its limit, the contacts are in any of these modes

Impulses and contact velocities that fit the mode are chosen first, then the state's velocity that
leads to them: what is met is not left to chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cito.dynamics import _native
from cito.dynamics.check import MODE_LETTERS, is_braced, modes_hold
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.step_terms import StepTerms, step_terms
from cito.dynamics.types import Array, IntArray

MODES: dict[str, Callable[[set[str]], bool]] = {
    "stance": lambda met: met == {"c"},
    "swing": lambda met: met == {"s"},
    "slide": lambda met: met == {"l"},
    "mixed": lambda met: len(met) > 1,
    "limit": lambda met: met == {"c"},
}
LETTERS = {"stance": "c", "swing": "s", "slide": "l"}
SPEED = 0.5  # of contacts that slide or separate [m/s]
PUSH = 0.2  # of contacts that carry: the speed that their impulse takes away [m/s]
POSTURE = 0.2  # noise of joint angles [rad or m]
NOISE = 0.05  # of velocities, and of their change by the controls
SOLVED = 1e-9  # residual of a step
FAST = 50.0  # velocities beyond it are of no use [rad/s or m/s]
REACH = np.pi  # joint limits farther away are not tried [rad or m]
DIRECTIONS = 10  # of slip that are tried: a planar robot has one
TRIES = 20  # draws for each state that is wanted


class State(NamedTuple):
    """A state and controls, the modes of their step, and whether contacts brace each other."""

    x: Array
    u: Array
    pattern: str
    braced: bool


def states_in_mode(
    dynamics: ContactDynamics,
    start: Array,
    mode: str,
    feet: Sequence[int],
    count: int,
    rng: np.random.Generator,
) -> Iterator[State]:
    """States, controls and contact patterns in a mode of `feet`, away from where it ends."""
    nv, phi = dynamics.ndx // 2, step_terms(dynamics, start).phi
    limits = [i for i, d in enumerate(dynamics.system.contact_dims) if d == 1 and phi[i] < REACH]
    for _ in range(TRIES * count if limits or mode != "limit" else 0):
        held = [int(rng.choice(limits))] if mode == "limit" else []
        x, u = _draw(dynamics, start, mode, [*feet, *held], rng)
        if np.abs(x[-nv:]).max() > FAST:
            continue
        step = dynamics.step(x, u)
        pattern = "".join(MODE_LETTERS[m] for m in step.modes)
        met = {pattern[i] for i in held or feet}
        if step.residual > SOLVED or (mode in MODES and not MODES[mode](met)):
            continue
        braced = is_braced(dynamics, x, pattern)
        if not braced and not modes_hold(dynamics, x, u):
            continue
        yield State(x, u, pattern, braced)
        count -= 1
        if count == 0:
            return


def _draw(
    dynamics: ContactDynamics,
    start: Array,
    mode: str,
    chosen: Sequence[int],
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """A state beside `start` and controls whose step has impulses and velocities of the mode.

    v+ has the contact velocities that are wanted, J v+ = sigma - e_N phi/h; the velocity before the
    step is what the balance of momentum leaves for it.
    """
    nv, nq, h = dynamics.ndx // 2, dynamics.nx - dynamics.ndx // 2, dynamics.time_step
    noisy = dynamics.integrate(start, POSTURE * _first(rng.standard_normal(nv)))
    x = _touching(dynamics, noisy, chosen)
    terms = step_terms(dynamics, x)
    u, v_next = _controls(terms, NOISE / h, rng), NOISE * rng.standard_normal(nv)
    impulse = np.zeros(dynamics.n)
    if chosen:
        rows, normals = _rows(dynamics, chosen)
        J, gap = terms.J[rows], np.zeros(len(rows))
        gap[normals] = terms.phi[list(chosen)] / h
        sigma, impulse[rows] = _of_mode(dynamics, mode, terms.inertia(v_next, h), J, chosen, rng)
        v_next += np.linalg.lstsq(J, sigma - gap - J @ v_next, rcond=1e-9)[0]
    late = terms.late_forces(v_next, h)
    for _ in range(6):  # c depends on v
        c = terms.c - terms.damping * x[nq:]
        force = h * (terms.B @ u - c - late) + terms.J.T @ impulse
        x[nq:] = v_next - np.linalg.solve(terms.M, force)
        terms = step_terms(dynamics, x)
    return x, u


def _controls(terms: StepTerms, acceleration: float, rng: np.random.Generator) -> Array:
    """Controls that hold springs and drives where they are, and noise of this acceleration."""
    B = terms.B
    size = np.maximum(np.linalg.norm(B, axis=0), 1e-12)
    noise = acceleration * np.diag(B.T @ terms.M @ B) / size**3 * rng.standard_normal(B.shape[1])
    return np.asarray(np.linalg.lstsq(B, terms.spring, rcond=1e-9)[0] + noise)


def _of_mode(
    dynamics: ContactDynamics,
    mode: str,
    M: Array,
    J: Array,
    chosen: Sequence[int],
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Velocities sigma that J can have, and impulses lambda, which fit the contact law.

    The impulses stop a fall of all contacts that carry, with half the friction or, where they
    slide, with none; friction is then set against the slip.
    """
    dims = np.array(dynamics.system.contact_dims, np.int32)[list(chosen)]
    friction, ends = dynamics.friction[list(chosen)], np.cumsum(dims)
    letters = _letters(dynamics, mode, chosen, rng)
    sigma = _velocities(J, letters, dims, rng)
    fall = np.zeros(len(sigma))
    fall[ends - 1] = np.where(letters == "s", SPEED, -PUSH)
    A = J @ np.linalg.solve(M, J.T)
    mu = np.where(letters == "c", friction / 2, 0.0)
    impulse = _native.hard_solve(dims, ((A + A.T) / 2)[None], fall[None], mu[None], None)[0][0]
    carried = impulse[ends - 1].mean()
    for letter, mu_i, d, end in zip(letters, friction, dims, ends):
        tangent = slice(end - d, end - 1)
        if letter != "s":
            impulse[end - 1] = max(impulse[end - 1], 0.2 * carried)
        if letter == "l":
            slide = sigma[tangent] / max(float(np.linalg.norm(sigma[tangent])), 1e-12)
            impulse[tangent] = -mu_i * impulse[end - 1] * slide
    return sigma, impulse * 10 ** rng.uniform(-1.5, 0)


def _velocities(
    J: Array, letters: NDArray[np.str_], dims: IntArray, rng: np.random.Generator
) -> Array:
    """Velocities that J can have, nearest to the wanted ones; all slip in one direction, fast."""
    slides = np.repeat(letters == "l", dims)
    for _ in range(DIRECTIONS):
        angle = rng.uniform(0, 2 * np.pi)
        slip = SPEED * np.array([np.cos(angle), np.sin(angle), 0.0])
        wanted = {"s": np.array([0, 0, SPEED]), "l": slip, "c": np.zeros(3)}
        sigma = np.concatenate([wanted[letter][3 - d :] for letter, d in zip(letters, dims)])
        sigma = J @ np.linalg.lstsq(J, sigma, rcond=1e-9)[0]
        speeds = np.linalg.norm(sigma[slides].reshape(-1, 3), axis=1)
        if speeds.min(initial=SPEED) > SPEED / 2:
            break
    return np.asarray(sigma)


def _letters(
    dynamics: ContactDynamics, mode: str, chosen: Sequence[int], rng: np.random.Generator
) -> NDArray[np.str_]:
    """The wanted mode of each contact; contacts of one body do the same, joints are at limits."""
    contacts = getattr(dynamics.system, "contacts", ())
    drawn: dict[object, str] = {}
    letters = []
    for i in chosen:
        body = contacts[i].body if i < len(contacts) else i
        letter = LETTERS.get(mode) or drawn.setdefault(body, str(rng.choice(list("slc"))))
        letters.append("c" if dynamics.system.contact_dims[i] == 1 else letter)
    return np.array(letters)


def _touching(dynamics: ContactDynamics, x: Array, chosen: Sequence[int]) -> Array:
    """The state nearby where these contacts touch, else x: Newton's method on phi(q) = 0."""
    at, (rows, normals) = x, _rows(dynamics, chosen)
    for _ in range(30 if chosen else 0):
        terms = step_terms(dynamics, at)
        gaps = terms.phi[list(chosen)]
        if np.abs(gaps).max() < 1e-9:
            return at
        dq = np.linalg.lstsq(terms.J[rows[normals]], -gaps, rcond=1e-9)[0]
        at = dynamics.integrate(at, _first(dq * min(1.0, 0.2 / max(np.abs(dq).max(), 1e-12))))
    return x


def _rows(dynamics: ContactDynamics, chosen: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Rows of these contacts, and which of them are normals."""
    dims = np.array(dynamics.system.contact_dims, int)
    first = np.cumsum(dims) - dims
    rows = [np.arange(first[i], first[i] + dims[i]) for i in chosen]
    normals = np.cumsum(dims[list(chosen)]) - 1
    return np.concatenate([np.zeros(0), *rows]).astype(np.int32), normals.astype(np.int32)


def _first(dq: Array) -> Array:
    """A change of q alone, in the tangent space of x."""
    return np.append(dq, np.zeros_like(dq))
