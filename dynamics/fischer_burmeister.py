"""Another forward law: planar contact by a non-smooth Newton method, with an implicit adjoint.

The contact law of a step as a linear complementarity problem, 0 <= y _|_ w >= 0, with

    y = (lambda_N, b+, b-, s),    lambda_T = b+ - b-,     s bounds the slip speed
    w = (sigma_N, s + sigma_T, s - sigma_T, mu lambda_N - b+ - b-),      sigma = A lambda + b

is the root of the Fischer-Burmeister function of each pair,

    phi(y, w) = y + w - sqrt(y^2 + w^2 + 2 t) = 0    <=>    y, w > 0,  y w = t   (t -> 0)

found by a damped Newton method with t falling to zero: such solvers take large time steps, as they
have no stiff contact to resolve. The derivative is that of the root, by the implicit function
theorem; with t > 0 it is smooth, along the central path of the polyhedral law. In the plane this
law is Coulomb's, so that the rollouts equal those of `ContactDynamics`.

Source of the formulation: A. Fischer, A special Newton-type optimization method, Optimization 24
(1992), as used for contact by Macklin et al., Non-smooth Newton methods for deformable multi-body
dynamics, ACM Transactions on Graphics 38 (2019).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.base import Dynamics, Linearization, Rollout, Transition
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Gradient
from cito.dynamics.linear import LinearSystem
from cito.dynamics.types import Array, as_array, as_limits, positive

SEPARATING, SLIDING, CLAMPING = 0, 1, 2
STAGES = 18  # of t, each a tenth of the one before, from the problem's own size to rounding
NEWTON_STEPS = 6  # for each t at most
CLOSE = 0.1  # of t: how well a stage is solved, in units of sqrt(t)
DIFFERENTIABLE = 1e-12  # least t of a derivative, relative to |b|^2: picks a side at a kink
OPEN = 1e-7  # of |b|: velocities below it are none, for the modes


class ComplementarityProblem(NamedTuple):
    """w = H y + F b with lambda = E y; impulses are scaled by `size` [1/kg] to be velocities."""

    H: Array
    F: Array
    E: Array
    size: float


def complementarity_problem(
    A: Array, friction: Array, dims: tuple[int, ...]
) -> ComplementarityProblem:
    """The linear complementarity problem of planar contacts.

    Args:
        A: (n, n) [1/kg].
        friction: mu (nc,) [-].
        dims: (nc,), rows of each contact: 1 (N) or 2 (T, N).
    """
    n, size = len(A), float(np.mean(np.diag(A)))
    ny = sum(4 if d == 2 else 1 for d in dims)
    E, F, G = np.zeros((n, ny)), np.zeros((ny, n)), np.zeros((ny, ny))
    i, row = 0, 0
    for mu, d in zip(friction, dims):
        N = row + d - 1
        E[N, i] = F[i, N] = 1
        if d == 2:
            E[row, i + 1 : i + 3] = 1, -1
            F[i + 1 : i + 3, row] = 1, -1
            G[i + 1 : i + 3, i + 3] = 1
            G[i + 3, i : i + 3] = mu, -1, -1
        i, row = i + (4 if d == 2 else 1), row + d
    return ComplementarityProblem(F @ (A / size) @ E + G, F, E / size, size)


def solve(problem: ComplementarityProblem, b: Array) -> tuple[Array, Array]:
    """y (m, ny) and its residual |min(y, w)| (m,) [m/s] for free velocities b (m, n)."""
    d = b @ problem.F.T
    scale = np.maximum(np.abs(b).max(axis=1, initial=0.0), 1e-9)[:, None]
    y = np.tile(scale, (1, len(problem.H)))
    for share in 10.0 ** -np.arange(1.0, STAGES + 1):
        t = share * scale**2
        for _ in range(NEWTON_STEPS):
            phi, J, _ = _function(problem, y, d, t)
            if (np.abs(phi).max(axis=1) <= CLOSE * np.sqrt(t[:, 0])).all():
                break
            y = _damped(problem, y, d, t, phi, _direction(J, phi))
    residual = np.abs(np.minimum(y, y @ problem.H.T + d)).max(axis=1)
    return y, residual


def sensitivity(problem: ComplementarityProblem, y: Array, b: Array, smoothing: float) -> Array:
    """d lambda / d b (m, n, n) at roots y, on the central path at t = smoothing [m^2/s^2]."""
    d = b @ problem.F.T
    scale = np.maximum(np.abs(b).max(axis=1, initial=0.0), 1e-9)[:, None]
    t = np.maximum(smoothing, DIFFERENTIABLE * scale**2)
    if smoothing > 0:
        for _ in range(4 * NEWTON_STEPS):
            phi, J, _ = _function(problem, y, d, t)
            y = _damped(problem, y, d, t, phi, _direction(J, phi))
    # (phi_y + phi_w H) dy = -phi_w F db
    _, J, by_w = _function(problem, y, d, t)
    return np.asarray(problem.E @ _direction(J, by_w[:, :, None] * problem.F))


def _function(
    problem: ComplementarityProblem, y: Array, d: Array, t: Array
) -> tuple[Array, Array, Array]:
    """phi (m, ny), its whole derivative by y (m, ny, ny), and phi_w (m, ny)."""
    w = y @ problem.H.T + d
    root = np.sqrt(y**2 + w**2 + 2 * t)
    by_y, by_w = 1 - y / root, 1 - w / root
    J = by_y[:, :, None] * np.eye(y.shape[1]) + by_w[:, :, None] * problem.H
    return y + w - root, J, by_w


def _direction(J: Array, right: Array) -> Array:
    """-J^-1 right, by least squares with a little damping where J is singular."""
    wide = right.ndim == J.ndim
    r = right if wide else right[:, :, None]
    size = np.square(J).sum(axis=(1, 2))[:, None, None]
    normal = J.transpose(0, 2, 1) @ J + 1e-14 * size * np.eye(J.shape[2])
    x = -np.linalg.solve(normal, J.transpose(0, 2, 1) @ r)
    return np.asarray(x if wide else x[:, :, 0])


def _damped(
    problem: ComplementarityProblem, y: Array, d: Array, t: Array, phi: Array, step: Array
) -> Array:
    """y + alpha step with the largest alpha of 1, 1/2, ... that lowers |phi|, for each row."""
    alpha, before = np.ones((len(y), 1)), np.square(phi).sum(axis=1, keepdims=True)
    for _ in range(30):
        w = (y + alpha * step) @ problem.H.T + d
        at = y + alpha * step
        after = np.square(at + w - np.sqrt(at**2 + w**2 + 2 * t)).sum(axis=1, keepdims=True)
        worse = after > (1 - 1e-4 * alpha) * before
        if not worse.any():
            break
        alpha = np.where(worse, alpha / 2, alpha)
    return np.asarray(y + alpha * step)


class FischerBurmeisterDynamics(Dynamics):
    """Steps of a planar linear system by the non-smooth Newton law, for comparison.

    Args:
        hard: the same system under the library's own law, without restitution.
        smoothing: t of the derivative [m^2/s^2]; 0: that of the hard law.

    Raises:
        ValueError: another kind of system, contacts in space, or restitution.
    """

    def __init__(self, hard: ContactDynamics, smoothing: float = 0.0) -> None:
        system = getattr(hard, "system", None)
        if not isinstance(hard, ContactDynamics) or not isinstance(system, LinearSystem):
            raise ValueError(
                "`hard` must be ContactDynamics of a LinearSystem, "
                f"got {type(hard if system is None else system).__name__}"
            )
        if 3 in system.contact_dims or hard.restitution.any():
            raise ValueError("`hard` must be planar and without restitution")
        self.smoothing = positive("smoothing", smoothing, allow_zero=True)
        self.nx, self.ndx, self.nu, self.n, self.nc = hard.nx, hard.ndx, hard.nu, hard.n, hard.nc
        self.time_step, self.manifold, self.hard = hard.time_step, hard.manifold, hard
        scale = 1.0 if hard.theta is None else float(np.exp(hard.theta[0]))
        self._bias = scale * system.bias
        self._inverse = np.linalg.inv(scale * system.mass_matrix)
        J = system.contact_jacobian
        self._push = self._inverse @ J.T
        self._dims, self._system = system.contact_dims, system
        self._normals = np.cumsum(self._dims) - 1
        self._lcp = complementarity_problem(J @ self._push, hard.friction, self._dims)

    def rollout(
        self,
        start: Array,
        controls: Array,
        *,
        states: Array | None = None,
        feedforward: Array | None = None,
        feedback: Array | None = None,
        alphas: Array | None = None,
        lower: Array | None = None,
        upper: Array | None = None,
        gaps: Array | None = None,
        impulses: Array | None = None,
    ) -> Rollout:
        """See `Dynamics.rollout`; without gaps, and the solve always starts cold."""
        if gaps is not None:
            raise ValueError("`gaps` must be None: this law has no multiple shooting")
        U = as_array("controls", controls, (None, self.nu))
        a = np.ones(1) if alphas is None else as_array("alphas", alphas, (None,))
        low, high = as_limits("lower", lower, self.nu), as_limits("upper", upper, self.nu)
        x = np.tile(as_array("start", start, (self.nx,)), (len(a), 1))
        columns: list[tuple[Array, ...]] = []
        for k, nominal in enumerate(U):
            u = np.tile(nominal, (len(a), 1))
            if feedforward is not None:
                u = u + a[:, None] * feedforward[k]
            if feedback is not None and states is not None:
                u = u + (x - states[k]) @ feedback[k].T
            u = np.clip(u, -np.inf if low is None else low, np.inf if high is None else high)
            following, *contact = self._step(x, u)
            columns.append((x, u, *contact))
            x = following
        X, applied, impulse, sigma, residual = (np.stack(c, axis=1) for c in zip(*columns))
        found = Rollout(
            np.concatenate([X, x[:, None]], axis=1),
            applied,
            impulse,
            sigma,
            self._modes(impulse, sigma),
            residual.max(axis=1),
        )
        return found if alphas is not None else Rollout(*(field[0] for field in found))

    def linearize(self, rollout: Rollout) -> Linearization:
        """See `Dynamics.linearize`."""
        return _ImplicitLinearization(self, rollout)

    def difference(self, x0: Array, x1: Array) -> Array:
        """See `Dynamics.difference`."""
        return np.asarray(x1 - x0)

    def integrate(self, x: Array, dx: Array) -> Array:
        """See `Dynamics.integrate`."""
        return np.asarray(x + dx)

    def free_velocity(self, x: Array, u: Array) -> tuple[Array, Array]:
        """v_free (..., nv) [m/s] and b (..., n) [m/s] of the contact problem."""
        s, h, nv = self._system, self.time_step, self.nx // 2
        assert s.stiffness is not None and s.damping is not None  # zero by default
        q, v = x[..., :nv], x[..., nv:]
        force = u @ s.actuation.T - q @ s.stiffness.T - v @ s.damping.T - self._bias
        v_free = v + h * force @ self._inverse
        b = v_free @ s.contact_jacobian.T
        b[..., self._normals] += (q @ s.gap_jacobian.T + s.gap_offset) / h
        return v_free, b

    def _step(self, x: Array, u: Array) -> tuple[Array, Array, Array, Array]:
        """x+, lambda, sigma and the residual of the law, for rows of x, u."""
        nv = self.nx // 2
        v_free, b = self.free_velocity(x, u)
        y, residual = solve(self._lcp, b)
        impulse = y @ self._lcp.E.T
        v_next = v_free + impulse @ self._push.T
        sigma = b + impulse @ self._push.T @ self._system.contact_jacobian.T
        following = np.hstack([x[:, :nv] + self.time_step * v_next, v_next])
        return following, impulse, sigma, residual

    def _modes(self, impulse: Array, sigma: Array) -> NDArray[np.int32]:
        """(..., nc) from impulses and velocities (..., n)."""
        scale = OPEN * max(float(np.abs(sigma).max(initial=0.0)), 1.0)
        modes = np.where(
            impulse[..., self._normals] * self._lcp.size > scale, CLAMPING, SEPARATING
        ).astype(np.int32)
        for i, (N, d) in enumerate(zip(self._normals, self._dims)):
            if d == 2:
                slips = (modes[..., i] == CLAMPING) & (np.abs(sigma[..., N - 1]) > scale)
                modes[..., i] = np.where(slips, SLIDING, modes[..., i])
        return modes


class _ImplicitLinearization(Linearization):
    """f = frozen + (h I, I)' M^-1 J' (d lambda/d b) d sigma, whatever gradient is asked for."""

    def __init__(self, dynamics: FischerBurmeisterDynamics, rollout: Rollout) -> None:
        self._dynamics, self._rollout = dynamics, rollout

    @property
    def free_velocity(self) -> Array:
        """See `Linearization.free_velocity`."""
        x, u = self._rollout.states[:-1], self._rollout.controls
        return self._dynamics.free_velocity(x, u)[1]

    def with_gradient(self, gradient: Gradient) -> Transition:
        """The derivative of the root of this law: `gradient` is not asked."""
        dyn = self._dynamics
        nv, nu, h = dyn.nx // 2, dyn.nu, dyn.time_step
        b = self.free_velocity
        y, _ = solve(dyn._lcp, b)
        K = sensitivity(dyn._lcp, y, b, dyn.smoothing)
        # The free motion is affine in (x, u): its columns are differences.
        z = np.eye(dyn.nx + nu)
        zero = dyn.free_velocity(np.zeros((1, dyn.nx)), np.zeros((1, nu)))
        v_z, b_z = (
            (at - origin).T
            for at, origin in zip(dyn.free_velocity(z[:, : dyn.nx], z[:, dyn.nx :]), zero)
        )
        v_next = v_z + dyn._push @ K @ b_z  # (N, nv, nx + nu)
        q_next = h * v_next
        q_next[:, :, :nv] += np.eye(nv)
        f = np.concatenate([q_next, v_next], axis=1)
        return Transition(
            np.ascontiguousarray(f[:, :, : dyn.nx]), np.ascontiguousarray(f[:, :, dyn.nx :])
        )
