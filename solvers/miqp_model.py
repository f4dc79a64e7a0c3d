"""The optimal-control problem of a planar linear system as a mixed-integer quadratic program.

The law of a step, with h B u etc. as in dynamics/linear.py,

    v+ = v + M^-1 (h (B u - K q - D v - c_0) + J' lambda),      q+ = q + h v+
    sigma = J v+ + e_N (G q + phi_0)/h

is linear but for its contacts. Their friction cones have two edges in the plane; the impulse is a
sum of edges, lambda = E b with b >= 0, and edge j pushes only while its binary c_j is one:

    edge (mu, 1):   c = 0:  b = 0        c = 1:  sigma_N = 0  and  sigma_T <= 0
    edge (-mu, 1):  c = 0:  b = 0        c = 1:  sigma_N = 0  and  sigma_T >= 0

No edge is separation, one is sliding, both are clamping. States are eliminated: what remains are
z = (u_0 .. u_{N-1}, b_0 .. b_{N-1}) and c, and everything else is affine in z.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from cito.dynamics.base import Rollout
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.linear import LinearSystem
from cito.dynamics.types import Array
from cito.problems.costs import ControlCost, StateCost, active_knots
from cito.problems.problem import Problem
from cito.solvers.miqp_bounds import Bounds

Binaries = NDArray[np.int8]


class Affine(NamedTuple):
    """Rows that are affine in z: matrix (r, nz), offset (r,)."""

    matrix: Array
    offset: Array

    def __call__(self, z: Any) -> Any:
        """The rows at z, an array or a cvxpy variable."""
        return self.matrix @ z + self.offset


class Quadratic(NamedTuple):
    """1/2 z' H z + f' z + constant:  H (nz, nz), f (nz,)."""

    hessian: Array
    gradient: Array
    constant: float

    def __call__(self, z: Array) -> float:
        """The value at z (nz,)."""
        return float(0.5 * z @ self.hessian @ z + self.gradient @ z + self.constant)


class Edge(NamedTuple):
    """An edge of a friction cone: impulse (n,) per unit of b, its contact, the sign of friction.

    sign is +1 or -1, and 0 where the contact has no friction.
    """

    impulse: Array
    contact: int
    sign: int


@dataclass(frozen=True, eq=False)
class CondensedProgram:
    """The program without its states. Rows come knot by knot; edges within a knot in order.

    Args:
        objective: J(z).
        normal: sigma_N of every contact, N nc rows, >= 0 [m/s].
        edges: the cone edges of one knot; N ne of the entries of z are their b, N ne binaries.
        opening: sigma_N of every edge's contact, N ne rows; 0 where its binary is one [m/s].
        slip: sign sigma_T of edges with friction; <= 0 where its binary is one [m/s].
        slip_binary: which binary each row of `slip` belongs to.
        controls: how many entries of z are controls, N nu; they come first.
        lower, upper: limits of the controls, (N nu,), may be infinite.
    """

    objective: Quadratic
    normal: Affine
    edges: tuple[Edge, ...]
    opening: Affine
    slip: Affine
    slip_binary: NDArray[np.intp]
    controls: int
    lower: Array
    upper: Array

    @property
    def binaries(self) -> int:
        """How many binaries there are, one for each edge and knot."""
        return len(self.opening.offset)

    def binaries_of(self, rollout: Rollout) -> Binaries:
        """The binaries of a hard rollout's contact modes, (N ne,)."""
        columns = []
        for edge in self.edges:
            mode = rollout.modes[:, edge.contact]
            # A sliding contact rests on the edge that its impulse lies on.
            tangent = int(np.flatnonzero(edge.impulse)[0])
            on_edge = (edge.sign == 0) | (edge.sign * rollout.impulses[:, tangent] > 0)
            columns.append((mode == 2) | ((mode == 1) & on_edge))
        if not columns:
            return np.zeros(0, dtype=np.int8)
        return np.array(columns, dtype=np.int8).T.ravel()

    def products(self) -> tuple[Array, Array]:
        """Factors, rows over (z, 1), of products <= 0 that the statement only implies.

        -b at a knot times sigma_N of the knot before: what pushes came from above the ground. The
        relaxation of a step cannot see it, and it sharpens the bounds greatly.
        """
        later = np.arange(len(self.edges), self.binaries)
        impulse = np.eye(len(self.objective.gradient) + 1)[self.controls + later]
        before = later - len(self.edges)
        opening = np.column_stack([self.opening.matrix, self.opening.offset])[before]
        return -impulse, opening


def condense(problem: Problem) -> CondensedProgram:
    """Eliminate the states of `problem`.

    Raises:
        ValueError: its dynamics are no planar linear system, it has costs that are not quadratic,
            or the costs leave an impulse or a control undetermined.
    """
    system, dynamics = _planar_system(problem)
    edges = _cone_edges(system.contact_dims, dynamics.friction)
    N, nu, ne = problem.horizon, dynamics.nu, len(edges)
    states = _states(problem, system, dynamics, edges)
    objective = _objective(problem, states, N * (nu + ne))

    nv, h = len(system.mass_matrix), dynamics.time_step
    last = np.cumsum(system.contact_dims, dtype=int) - 1
    J_N, J_T = system.contact_jacobian[last], system.contact_jacobian[last - 1]
    matrix, offset = states.matrix.reshape(N + 1, 2 * nv, -1), states.offset.reshape(N + 1, -1)
    q, v_next = matrix[:-1, :nv], matrix[1:, nv:]
    q0, v0_next = offset[:-1, :nv], offset[1:, nv:]
    # sigma_N = J_N v+ + (G q + phi_0)/h,   sigma_T = J_T v+
    S_N = J_N @ v_next + system.gap_jacobian @ q / h
    s_N = v0_next @ J_N.T + (q0 @ system.gap_jacobian.T + system.gap_offset) / h
    contact = [edge.contact for edge in edges]
    sign = np.array([edge.sign for edge in edges])
    S_T = sign[:, None] * (J_T[contact] @ v_next)
    s_T = sign * (v0_next @ J_T[contact].T)
    rubs = np.flatnonzero(np.tile(sign, N))
    columns = matrix.shape[-1]
    return CondensedProgram(
        objective=objective,
        normal=Affine(S_N.reshape(-1, columns), s_N.ravel()),
        edges=edges,
        opening=Affine(S_N[:, contact].reshape(-1, columns), s_N[:, contact].ravel()),
        slip=Affine(S_T.reshape(-1, columns)[rubs], s_T.ravel()[rubs]),
        slip_binary=rubs,
        controls=N * nu,
        lower=np.tile(_limits(problem.control_lower, -np.inf, nu), N),
        upper=np.tile(_limits(problem.control_upper, np.inf, nu), N),
    )


class Statement(NamedTuple):
    """The program as cvxpy sees it, and its variables."""

    problem: cp.Problem
    z: cp.Variable
    c: cp.Variable | None


def state(program: CondensedProgram, bounds: Bounds) -> Statement:
    """State the program in cvxpy; `bounds` are how large each row can get (its big M)."""
    H, f, constant = program.objective
    z = cp.Variable(len(f))
    J = 0.5 * cp.quad_form(z, cp.psd_wrap(H)) + f @ z + constant
    u, b = z[: program.controls], z[program.controls :]
    limited = np.isfinite(program.lower), np.isfinite(program.upper)
    constraints = []
    if limited[0].any():
        constraints.append(u[limited[0]] >= program.lower[limited[0]])
    if limited[1].any():
        constraints.append(u[limited[1]] <= program.upper[limited[1]])
    c = None
    if program.binaries:
        c = cp.Variable(program.binaries, boolean=True)
        constraints += [
            b >= 0,
            program.normal(z) >= 0,
            b <= cp.multiply(bounds.impulse, c),
            program.opening(z) <= cp.multiply(bounds.opening, 1 - c),
        ]
        if len(program.slip_binary):
            rubbing = c[program.slip_binary]
            constraints.append(program.slip(z) <= cp.multiply(bounds.slip, 1 - rubbing))
    return Statement(cp.Problem(cp.Minimize(J), constraints), z, c)


def _planar_system(problem: Problem) -> tuple[LinearSystem, ContactDynamics]:
    dynamics = problem.dynamics
    system = dynamics.system if isinstance(dynamics, ContactDynamics) else None
    if not isinstance(dynamics, ContactDynamics) or not isinstance(system, LinearSystem):
        kind = type(dynamics if system is None else system).__name__
        raise ValueError(f"`problem.dynamics` must step a LinearSystem, got {kind}")
    if 3 in system.contact_dims:
        raise ValueError(
            "`problem.dynamics` must have planar contacts (1 or 2 rows each), got contact_dims "
            f"{system.contact_dims}"
        )
    if dynamics.restitution.any():
        raise ValueError("`problem.dynamics` must be without restitution")
    return system, dynamics


def _cone_edges(dims: tuple[int, ...], friction: Array) -> tuple[Edge, ...]:
    edges, row = [], 0
    for contact, (dim, mu) in enumerate(zip(dims, friction)):
        rubs = dim == 2 and mu > 0
        for sign in (1, -1) if rubs else (0,):
            impulse = np.zeros(sum(dims))
            impulse[row + dim - 1] = 1.0
            if rubs:
                impulse[row] = sign * mu
            edges.append(Edge(impulse, contact, sign))
        row += dim
    return tuple(edges)


def _states(
    problem: Problem, system: LinearSystem, dynamics: ContactDynamics, edges: tuple[Edge, ...]
) -> Affine:
    """All states x_0 .. x_N as rows that are affine in z."""
    h, N, nu, ne = dynamics.time_step, problem.horizon, dynamics.nu, len(edges)
    scale = 1.0 if dynamics.theta is None else float(np.exp(dynamics.theta[0]))
    K, D = system.stiffness, system.damping
    assert K is not None and D is not None
    nv = len(K)
    M_inv = np.linalg.inv(scale * system.mass_matrix)
    E = np.array([edge.impulse for edge in edges]).reshape(ne, sum(system.contact_dims)).T
    # v+ = V_q q + V_v v + V_u u + V_b b + w,   q+ = q + h v+
    V_q, V_v = -h * M_inv @ K, np.eye(nv) - h * M_inv @ D
    V_u, V_b = h * M_inv @ system.actuation, M_inv @ system.contact_jacobian.T @ E
    w = -h * M_inv @ (scale * system.bias)
    A = np.block([[np.eye(nv) + h * V_q, h * V_v], [V_q, V_v]])
    B = np.block([[h * V_u, h * V_b], [V_u, V_b]])
    matrix = np.zeros((N + 1, 2 * nv, N * (nu + ne)))
    offset = np.zeros((N + 1, 2 * nv))
    offset[0] = problem.start
    for k in range(N):
        matrix[k + 1], offset[k + 1] = A @ matrix[k], A @ offset[k] + np.append(h * w, w)
        matrix[k + 1][:, k * nu : (k + 1) * nu] += B[:, :nu]
        at = N * nu + k * ne
        matrix[k + 1][:, at : at + ne] += B[:, nu:]
    return Affine(matrix.reshape(-1, N * (nu + ne)), offset.ravel())


def _objective(problem: Problem, states: Affine, nz: int) -> Quadratic:
    """The costs as a function of z; strictly convex, or an impulse could be anything."""
    N, nx, nu = problem.horizon, problem.dynamics.nx, problem.dynamics.nu
    H, f, constant = np.zeros((nz, nz)), np.zeros(nz), 0.0
    for term in problem.costs:
        if isinstance(term, StateCost):
            W = (active_knots(term.knots, N)[:, None] * term.weight).ravel()
            X = states.matrix
            error = states.offset - np.broadcast_to(term.reference, (N + 1, nx)).ravel()
        elif isinstance(term, ControlCost):
            W = np.tile(term.weight, N)
            X = np.eye(N * nu, nz)
            assert term.reference is not None
            error = -np.broadcast_to(term.reference, (N, nu)).ravel()
        else:
            raise ValueError(
                f"`problem.costs` must be StateCost and ControlCost, got {type(term).__name__}"
            )
        # 1/2 |X z + error|_W^2
        H += X.T @ (W[:, None] * X)
        f += X.T @ (W * error)
        constant += float(0.5 * error @ (W * error))
    H = 0.5 * (H + H.T)
    scale = np.sqrt(np.maximum(np.diag(H), 1e-300))
    if np.linalg.eigvalsh(H / np.outer(scale, scale))[0] < 1e-13:
        raise ValueError(
            "`problem.costs` must determine every control and contact impulse: give all controls "
            "and all velocities a positive weight, also at the last knot, and have no contacts "
            "whose impulses can balance each other"
        )
    return Quadratic(H, f, constant)


def _limits(limits: Array | None, default: float, nu: int) -> Array:
    return np.full(nu, default) if limits is None else limits
