"""Newton's method on the central path, over the contact problems of a training run.

A trot is learned; of the steps that are differentiated some are kept, with A = J M^-1 J' at the
start of the step and b = sigma - A lambda of its hard solution. Each is then solved for the relaxed
law twice: as the package does, and from the hard solution as it is, by full Newton steps,

    F(lambda) = lhat o shat - rho e,   lhat = (mu lambda_N, lambda_T),
    shat = (sigma_N / mu + |sigma_T|, sigma_T),   sigma = A lambda + b,
    (Arw(shat) W + Arw(lhat) P A) step = -F,   W = dlhat/dlambda,   P = dshat/dsigma

which may end at a root outside of the cones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cito.dynamics import _native
from cito.dynamics.contact import relax_batch
from cito.dynamics.contact_results import HardBatch, RelaxedStatus
from cito.dynamics.gradients import FullCone
from cito.dynamics.types import Array
from cito.problems.locomotion import LocomotionEnvironment, locomotion_task
from cito.solvers.learning.bptt import BPTT, BPTTSettings

LIMIT = 40  # iterations of the raw start
TOLERANCE = 1e-8  # of F, relative to rho
STILL = 1e-8  # below which slip has no direction [m/s]


class Problems(NamedTuple):
    """m contact problems: A (m, n, n), b (m, n), mu (m, nc), and their hard solutions: impulse,
    velocity (m, n), modes (m, nc)."""

    A: Array
    b: Array
    mu: Array
    impulse: Array
    velocity: Array
    modes: NDArray[np.int32]


class Counts(NamedTuple):
    """Of each problem, (m,): iterations (LIMIT + 1 where there was no convergence), and whether
    the root is outside of a cone."""

    iterations: NDArray[np.int64]
    infeasible: NDArray[np.bool_]


def problems(steps: int, share: float, seed: int = 0, rho: float = 0.05) -> Problems:
    """Of a training of so many control steps; `share` of its windows' steps are kept."""
    environment = LocomotionEnvironment(locomotion_task("trot"), 16, seed)
    learner = BPTT(environment, steps, BPTTSettings(gradient=FullCone(rho)), seed)
    random, kept = np.random.default_rng(seed), []
    transposed = environment.steps.transposed

    def watched(step: Any, plant: Any, g: Array, gradient: Any) -> Any:
        if random.random() < share:
            for substep in step.substeps:
                m = substep.motions
                kept.append(
                    (m.states[:, 0], m.impulses[:, 0], m.velocities[:, 0], m.modes[:, 0])
                    + (plant.friction.copy(),)
                )
        return transposed(step, plant, g, gradient)

    environment.steps.transposed = watched  # type: ignore[method-assign]
    while not learner.finished:
        learner.update()
    x, impulse, velocity, modes, mu = (np.concatenate(part) for part in zip(*kept))
    system = environment.task.robot.native
    A = np.stack([delassus(system, row) for row in x])
    b = velocity - (A @ impulse[..., None])[..., 0]
    return Problems(A, b, mu, impulse, velocity, modes)


def delassus(system: Any, x: Array) -> Array:
    """J M^-1 J' at a state, (n, n) [1/kg]."""
    M, _, _, J, _ = _native.system_terms(system, None, x[: system.nq], x[system.nq :])
    A: Array = J @ np.linalg.solve(M, J.T)
    return (A + A.T) / 2


def ours(p: Problems, rho: float) -> Counts:
    """As gradients are taken: a start within the cones, steps that stay there."""
    m = len(p.b)
    zero = np.zeros(m)
    hard = HardBatch(p.impulse, p.velocity, p.modes, zero.astype(np.int32), zero, zero.astype(int))
    found = relax_batch(p.A, p.b, p.mu, FullCone(rho), hard=hard)
    status = tuple(RelaxedStatus)
    done = np.array([status[k] is RelaxedStatus.SOLVED for k in found.status])
    iterations = np.where(done, found.iterations, LIMIT + 1)
    return Counts(iterations, outside(found.impulse, found.velocity, p.mu) & done)


def raw(p: Problems, rho: float) -> Counts:
    """Full steps from the hard solutions as they are."""
    found = [raw_one(A, b, mu, start, rho) for A, b, mu, start in zip(p.A, p.b, p.mu, p.impulse)]
    iterations, roots = (np.array(part) for part in zip(*found))
    sigma = (p.A @ roots[..., None])[..., 0] + p.b
    done = iterations <= LIMIT
    return Counts(iterations, outside(roots, sigma, p.mu) & done)


def raw_one(A: Array, b: Array, mu: Array, start: Array, rho: float) -> tuple[int, Array]:
    """Iterations and the root of one problem."""
    impulse = start.copy()
    for k in range(LIMIT + 1):
        F, D = residual(A, b, mu, impulse, rho)
        if not np.isfinite(F).all():
            break
        if abs(F).max() < TOLERANCE * rho:
            return k, impulse
        try:
            impulse = impulse - np.linalg.solve(D, F)
        except np.linalg.LinAlgError:
            break
    return LIMIT + 1, start


def residual(A: Array, b: Array, mu: Array, impulse: Array, rho: float) -> tuple[Array, Array]:
    """F (n,) and its Jacobian (n, n); rows of a contact are (T1, T2, N), of F those of (T1, T2,
    scalar)."""
    n = len(b)
    sigma, F = A @ impulse + b, np.empty(n)
    by_impulse, by_velocity = np.zeros((n, n)), np.zeros((n, n))
    for c in range(n // 3):
        r = slice(3 * c, 3 * c + 3)
        lam, s, m = impulse[r], sigma[r], mu[c]
        slip = np.sqrt(s[:2] @ s[:2] + STILL**2)
        l0, l1, s0, s1 = m * lam[2], lam[:2], s[2] / m + slip, s[:2]
        F[r] = np.append(l0 * s1 + s0 * l1, l0 * s0 + l1 @ s1 - rho)
        W, P = np.diag([1.0, 1.0, m]), np.eye(3)
        P[2] = np.append(s1 / slip, 1 / m)
        by_impulse[r, r] = _arrow(s0, s1) @ W
        by_velocity[r, r] = _arrow(l0, l1) @ P
    return F, by_impulse + by_velocity @ A


def _arrow(a0: float, a1: Array) -> Array:
    """a o . as a matrix, for vectors ordered (1, 0)."""
    return np.block([[a0 * np.eye(2), a1[:, None]], [a1[None, :], np.array([[a0]])]])


def outside(impulse: Array, sigma: Array, mu: Array) -> NDArray[np.bool_]:
    """Whether an impulse or a corrected velocity is outside of its cone, (m,)."""
    l, s = (part.reshape(len(part), -1, 3) for part in (impulse, sigma))
    lost = mu * l[..., 2] < np.linalg.norm(l[..., :2], axis=-1)
    found: NDArray[np.bool_] = (lost | (s[..., 2] < 0)).any(axis=1)
    return found
