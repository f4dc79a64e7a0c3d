"""Step and objective of a planar contact problem as CasADi expressions."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.linear import LinearSystem
from cito.dynamics.symbolic import SymbolicSystem
from cito.problems.costs import ControlCost, StateCost, active_knots
from cito.problems.problem import Problem


def check_problem(problem: Problem) -> ContactDynamics:
    """The dynamics of a problem that can be written down here; ValueError otherwise."""
    dynamics = problem.dynamics
    kinds = LinearSystem | SymbolicSystem
    if not isinstance(dynamics, ContactDynamics) or not isinstance(dynamics.system, kinds):
        raise ValueError(
            "`problem.dynamics` must be ContactDynamics of a LinearSystem or a SymbolicSystem, "
            f"got {type(getattr(dynamics, 'system', dynamics)).__name__}"
        )
    if 3 in dynamics.system.contact_dims:
        raise ValueError("`problem` must be planar: contacts in space cannot be split by a sign")
    if dynamics.restitution.any():
        raise ValueError("`problem.dynamics` must be without restitution")
    for term in problem.costs:
        if not isinstance(term, StateCost | ControlCost):
            kind = type(term).__name__
            raise ValueError(f"`problem.costs` must be quadratic in x and u, got a {kind}")
    return dynamics


def step_function(dynamics: ContactDynamics) -> Any:
    """casadi.Function (x, u, x+, lambda) -> defects of one step (nx,), sigma (n,)."""
    nv, h = dynamics.nx // 2, dynamics.time_step
    x, y = ca.SX.sym("x", 2 * nv), ca.SX.sym("y", 2 * nv)
    u, impulse = ca.SX.sym("u", dynamics.nu), ca.SX.sym("lambda", dynamics.n)
    q, v, q_next, v_next = x[:nv], x[nv:], y[:nv], y[nv:]
    M, c, B, J, phi = terms_function(dynamics)(q, v)
    momentum = M @ (v_next - v) - h * (B @ u - c) - J.T @ impulse
    sigma = J @ v_next
    for i, row in enumerate(np.cumsum(dynamics.system.contact_dims) - 1):
        sigma[int(row)] += phi[i] / h
    defects = ca.vertcat(momentum, q_next - q - h * v_next)
    return ca.Function("step", [x, u, y, impulse], [defects, sigma])


def terms_function(dynamics: ContactDynamics) -> Any:
    """casadi.Function (q, v) -> M, c, B, J, phi of the system."""
    system, nv = dynamics.system, dynamics.nx // 2
    q, v = ca.SX.sym("q", nv), ca.SX.sym("v", nv)
    if isinstance(system, SymbolicSystem):
        theta = system.nominal + (0 if dynamics.theta is None else dynamics.theta)
        Mt, c, Bt, Jt, phi = system.terms_function(theta, q, v)
        terms = [Mt.T, c.T, Bt.T, Jt.T, phi.T]
    else:
        assert isinstance(system, LinearSystem)
        scale = 1.0 if dynamics.theta is None else float(np.exp(dynamics.theta[0]))
        assert system.stiffness is not None and system.damping is not None  # zero by default
        K, D = ca.DM(system.stiffness), ca.DM(system.damping)
        c = K @ q + D @ v + scale * system.bias
        phi = ca.DM(system.gap_jacobian) @ q + system.gap_offset
        B, J = ca.DM(system.actuation), ca.DM(system.contact_jacobian)
        terms = [ca.DM(scale * system.mass_matrix), c, B, J, phi]
    return ca.Function("terms", [q, v], terms)


def objective(problem: Problem, X: Any, U: Any) -> Any:
    """J over the columns of X (nx, N+1) and U (nu, N)."""
    total = ca.MX(0)
    for term in problem.costs:
        if isinstance(term, StateCost):
            variables, knots = X, active_knots(term.knots, problem.horizon)
        else:
            assert isinstance(term, ControlCost)
            variables, knots = U, np.ones(problem.horizon, dtype=bool)
        assert term.reference is not None  # its constructor sees to that
        error = variables - ca.DM(np.broadcast_to(term.reference, variables.shape[::-1]).T)
        total += 0.5 * ca.sum1(ca.sum2(ca.DM(np.outer(term.weight, knots)) * error**2))
    return total
