"""How a robot stands: at rest, in balance, and with which torques."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cito.dynamics import _native
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.robot import Robot
from cito.dynamics.robot_stance import Pose, body_poses, on_the_ground
from cito.dynamics.types import Array, as_array
from cito.problems.robot_parts import Parts

TOUCHING = 1e-3  # distance from the ground below which a contact may carry weight [m]
CONE_EDGES = 8  # of the pyramids that stand for friction cones here
STIFFNESS = 0.6  # w h of the drives that hold a robot still [-]
STEP = 1e-6  # of the differences by which a balanced configuration is found
DESCENT_STEPS = 50  # in which the base is lowered
UNDRIVEN = 0.1  # how readily coordinates without a drive change there, against 1 with one
MAX_STEPS = 50
MAX_TURN = 0.2  # largest change of a coordinate in one step there [rad or m]


def at_rest(robot: Robot, q: ArrayLike | None = None) -> Array:
    """The state (nx,) of the robot at rest in the configuration q; in its stance by default."""
    q = robot.stance if q is None else as_array("q", q, (robot.native.nq,))
    return np.concatenate([q, np.zeros(robot.native.nv)])


def balanced(dynamics: ContactDynamics, q: ArrayLike) -> Array:
    """A configuration (nq,) near q in which drives and ground forces can hold the robot.

    What touches the ground at q still does, and drives move rather than the base: Newton steps of
    least norm on what neither drives nor ground balance, and on the distances phi.

    Raises:
        ValueError: there is none near q.
    """
    nq, nv = dynamics.manifold.nq, dynamics.manifold.nv
    x = np.concatenate([as_array("q", q, (nq,)), np.zeros(nv)])
    touching = _forces(dynamics, x[:nq]).phi < TOUCHING
    mobility = np.where(_forces(dynamics, x[:nq]).B.any(axis=1), 1.0, UNDRIVEN)
    steps = STEP * np.eye(nv, 2 * nv)
    for _ in range(MAX_STEPS):
        balance = _Balance(dynamics, x[:nq], touching)
        e = balance.residual(x[None, :nq])[0]
        if np.abs(e).max(initial=0) < 1e-10:
            return x[:nq]
        up, down = (balance.residual(dynamics.integrate(x, d)[:, :nq]) for d in (steps, -steps))
        slope = (up - down).T / (2 * STEP) * mobility
        dq = -mobility * np.linalg.lstsq(slope, e, rcond=1e-6)[0]
        dq *= min(1.0, MAX_TURN / max(float(np.abs(dq).max()), MAX_TURN))
        x = dynamics.integrate(x, np.concatenate([dq, np.zeros(nv)]))
    raise ValueError("`q` must be near a configuration in which the robot can stand")


def lowered(dynamics: ContactDynamics, q: ArrayLike, drop: float) -> Array:
    """The configuration (nq,) with the base lower by `drop` [m], feet in place, base not turned."""
    nq, nv = dynamics.manifold.nq, dynamics.manifold.nv
    x = np.concatenate([as_array("q", q, (nq,)), np.zeros(nv)])
    touching = _forces(dynamics, x[:nq]).phi < TOUCHING
    for _ in range(DESCENT_STEPS):
        _, B, J, _ = _forces(dynamics, x[:nq])
        J, driven = J[np.repeat(touching, dynamics.system.contact_dims)], B.any(axis=1)
        dq = base_velocity(dynamics, x[:nq], np.array([0.0, 0.0, -drop / DESCENT_STEPS]))
        dq[driven] -= np.linalg.lstsq(J[:, driven], J @ dq, rcond=1e-9)[0]
        x = dynamics.integrate(x, np.concatenate([dq, np.zeros(nv)]))
    return on_the_ground(Parts.of("dynamics", dynamics).tree, x[:nq])


def base_velocity(dynamics: ContactDynamics, q: Array, velocity: Array) -> Array:
    """v (nv,) of a base that moves at `velocity` (3,) in the world [m/s] and does not turn.

    Only coordinates without a drive move; what they can not do, as in a plane, is left out.
    """
    nv = dynamics.manifold.nv
    x, steps = np.concatenate([q, np.zeros(nv)]), STEP * np.eye(nv, 2 * nv)
    undriven = ~_forces(dynamics, q).B.any(axis=1)

    def positions(states: Array) -> Array:
        return np.array([base_pose(dynamics, state[: len(q)]).position for state in states])

    up, down = (positions(dynamics.integrate(x, d)) for d in (steps, -steps))
    slope = (up - down)[undriven].T / (2 * STEP)
    v = np.zeros(nv)
    v[undriven] = np.linalg.lstsq(slope, velocity, rcond=1e-6)[0]
    return v


def base_pose(dynamics: ContactDynamics, q: Array) -> Pose:
    """Where the base is in the world at q (nq,)."""
    parts = Parts.of("dynamics", dynamics)
    bodies = parts.tree.bodies
    return body_poses(bodies, q)[bodies[parts.body("body", None)].name]


def holding_torques(dynamics: ContactDynamics, q: ArrayLike) -> Array:
    """Controls (nu,) that hold a robot still at q, its weight spread over all that touches ground.

        B u + J' f = c(q, 0),   f within the friction cones,   |f|^2 small

    In the sense of least squares: where nothing can hold the robot, as in the air, the controls
    are those that come closest. They may exceed the robot's limits.
    """
    from scipy.optimize import lsq_linear

    c, B, J, phi = _forces(dynamics, as_array("q", q, (dynamics.manifold.nq,)))
    pushes = J.T @ _cone_edges(dynamics, phi)  # of a unit force along each edge, (nv, edges)
    n, scale = dynamics.nu + pushes.shape[1], max(float(np.abs(c).max()), 1e-9)
    A = np.vstack([np.hstack([B, pushes]), 1e-4 * np.eye(n)])
    lower = np.where(np.arange(n) < dynamics.nu, -np.inf, 0.0)
    found = lsq_linear(A, np.concatenate([c, np.zeros(n)]) / scale, (lower, np.inf), method="bvls")
    return np.asarray(scale * found.x[: dynamics.nu])


def holding_controls(dynamics: ContactDynamics, start: ArrayLike, horizon: int) -> Array:
    """Controls (N, nu) of a motion from `start` (nx,) whose drives hold on to where they are.

        u = holding_torques - kp (q_j - q_j,0) - kd v_j,   kp = w^2 I,   kd = 2 w I

    with I the inertia that each drive feels of the robot in the air, and w as stiff as the time
    step allows. A guess for solvers that does not fall over at once.
    """
    x0 = as_array("start", start, (dynamics.nx,))
    nq, nv, w = dynamics.manifold.nq, dynamics.manifold.nv, STIFFNESS / dynamics.time_step
    rest = np.concatenate([x0[:nq], np.zeros(nv)])
    M, _, B, *_ = _native.system_terms(dynamics.manifold, dynamics.theta, x0[:nq], np.zeros(nv))
    inertia = 1 / np.diag(B.T @ np.linalg.solve(M, B))
    stiffness = inertia[:, None] * np.linalg.pinv(B)
    gains = -np.hstack([w**2 * stiffness, 2 * w * stiffness])
    rollout = dynamics.rollout(
        x0,
        np.tile(holding_torques(dynamics, x0[:nq]), (horizon, 1)),
        states=np.tile(rest, (horizon + 1, 1)),
        feedback=np.tile(gains, (horizon, 1, 1)),
    )
    return rollout.controls


def _cone_edges(dynamics: ContactDynamics, phi: Array) -> Array:
    """Edges of the friction cones of the contacts that touch, (n, edges)."""
    edges, row = [], 0
    for i, dim in enumerate(dynamics.system.contact_dims):
        mu = dynamics.friction[i]
        angles = np.arange(CONE_EDGES) * 2 * np.pi / CONE_EDGES
        directions = {1: np.zeros((1, 0)), 2: np.array([[-1.0], [1.0]])}.get(
            dim, np.stack([np.cos(angles), np.sin(angles)], axis=1)
        )
        for tangential in mu * directions if phi[i] < TOUCHING else ():
            edge = np.zeros(dynamics.n)
            edge[row : row + dim] = (*tangential, 1.0)
            edges.append(edge)
        row += dim
    return np.array(edges).reshape(-1, dynamics.n).T


class _Forces(NamedTuple):
    """At rest: c (nv,), B (nv, nu), J (n, nv), phi (nc,)."""

    c: Array
    B: Array
    J: Array
    phi: Array


def _forces(dynamics: ContactDynamics, q: Array) -> _Forces:
    native = dynamics.manifold
    return _Forces(*_native.system_terms(native, dynamics.theta, q, np.zeros(native.nv))[1:])


class _Balance:
    """c = (B, J') (u, f) at rest, and the phi = 0, of the contacts that touch, about one q.

    The residual is what remains of the first equation, relative to the weight, along the
    directions that neither drives nor ground balance at q, with the u and f of q.
    """

    def __init__(self, dynamics: ContactDynamics, q: Array, touching: NDArray[np.bool_]) -> None:
        self._dynamics, self._touching = dynamics, touching
        c, held, _ = self._terms(q)
        self._u_and_f = np.linalg.lstsq(held, c, rcond=None)[0]
        U, S, _ = np.linalg.svd(held)
        rank = int(np.sum(S > 1e-9 * S.max(initial=0)))
        self._unheld = U[:, rank:].T / max(float(np.abs(c).max()), 1e-9)

    def residual(self, q: Array) -> Array:
        """(K, nr) of configurations (K, nq)."""
        rows = []
        for c, held, phi in map(self._terms, q):
            rows.append(np.concatenate([self._unheld @ (c - held @ self._u_and_f), phi]))
        return np.array(rows)

    def _terms(self, q: Array) -> tuple[Array, Array, Array]:
        c, B, J, phi = _forces(self._dynamics, q)
        rows = np.repeat(self._touching, self._dynamics.system.contact_dims)
        return c, np.hstack([B, J[rows].T]), phi[self._touching]
