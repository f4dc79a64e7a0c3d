"""Trajectories with contact by the augmented Lagrangian method: impulses are controls.

    w = (u, lambda, s)    of a system that knows no contact,  M (v+ - v) = h (B u - c) + J' lambda

    lambda_N >= 0,   sigma_N >= 0,   lambda_N sigma_N <= 0
    mu lambda_N -+ lambda_T >= 0,   s -+ sigma_T >= 0,   lambda_T sigma_T + mu lambda_N s <= 0

so that the contact law is a set of constraints (`solve_constrained`), met only at the end: impulses
act at a distance first, which is how this method finds contacts. What its controls do under the
hard law is what is returned. Kept for comparison; planar linear systems only.

Source of the formulation: Posa, Cantu, Tedrake, A direct method for trajectory optimization of
rigid bodies through contact, International Journal of Robotics Research 33 (2014).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Exact
from cito.dynamics.linear import LinearSystem
from cito.problems.constraints import Constraint
from cito.problems.costs import ControlCost
from cito.problems.objective import Objective
from cito.problems.problem import Problem, as_problem
from cito.solvers.augmented_lagrangian import AugmentedLagrangian, solve_constrained
from cito.solvers.solution import Solution, Status
from cito.solvers.transcription import check_problem, step_function, terms_function

# The objective first decides, and the law is enforced little by little.
LAW = AugmentedLagrangian(tolerance=1e-4, penalty=0.01)
EFFORT = 1e-6  # weight of impulses and slip bounds, which cost nothing by themselves


def solve_augmented_contact(
    problem: Problem, settings: AugmentedLagrangian | None = None
) -> Solution:
    """Solve a planar linear problem with its contact law as constraints.

    Args:
        problem: of planar `ContactDynamics` of a `LinearSystem`, with quadratic costs.
        settings: of the outer loop, `LAW` by default; tolerance in N s and m/s.

    Returns:
        The hard rollout of the controls found, `solver="augmented-lagrangian"`; status INFEASIBLE
        where the law was not met.

    Raises:
        ValueError: a problem that cannot be written down this way.
    """
    began, settings = time.perf_counter(), settings or LAW
    problem = as_problem(problem)
    dynamics = check_problem(problem)
    if not isinstance(dynamics.system, LinearSystem):
        raise ValueError("`problem.dynamics` must be of a LinearSystem, got a SymbolicSystem")
    free = _without_contact(problem, dynamics)
    found = solve_constrained(free, _contact_law(dynamics), Exact(), outer=settings)
    rollout = dynamics.rollout(
        problem.start,
        np.ascontiguousarray(found.solution.controls[:, : dynamics.nu]),
        lower=problem.control_lower,
        upper=problem.control_upper,
    )
    cost = float(Objective(problem).value(rollout.states, rollout.controls))
    met = found.violation <= settings.tolerance
    return Solution.of_rollout(
        problem,
        rollout,
        cost,
        solver="augmented-lagrangian",
        gradient="",
        status=Status.CONVERGED if met else Status.INFEASIBLE,
        iterations=found.solution.iterations,
        solve_time=time.perf_counter() - began,
        history=({"violation": found.violation, "outer_iterations": found.outer_iterations},),
    )


def _without_contact(problem: Problem, dynamics: ContactDynamics) -> Problem:
    """The problem over w = (u, lambda, s), started at the hard rollout of its initial controls."""
    system, n, nu, h = dynamics.system, dynamics.n, dynamics.nu, dynamics.time_step
    assert isinstance(system, LinearSystem) and problem.initial_controls is not None
    rubs = _tangents(dynamics)
    scale = 1.0 if dynamics.theta is None else float(np.exp(dynamics.theta[0]))
    actuation = [system.actuation, system.contact_jacobian.T / h]
    nv = len(system.mass_matrix)
    free = replace(
        system,
        mass_matrix=scale * system.mass_matrix,
        bias=scale * system.bias,
        actuation=np.hstack([*actuation, np.zeros((nv, len(rubs)))]),
        contact_jacobian=np.zeros((0, nv)),
        contact_dims=(),
        gap_jacobian=np.zeros((0, nv)),
        gap_offset=np.zeros(0),
    )
    extra = n + len(rubs)
    lower = np.concatenate([_limit(problem.control_lower, -np.inf, nu), np.full(extra, -np.inf)])
    lower[nu + np.cumsum(system.contact_dims) - 1] = 0.0  # lambda_N
    lower[nu + n :] = 0.0
    upper = np.concatenate([_limit(problem.control_upper, np.inf, nu), np.full(extra, np.inf)])
    hard = dynamics.rollout(problem.start, problem.initial_controls)
    slip = np.abs(hard.velocities[:, rubs])
    return Problem(
        name=problem.name,
        dynamics=ContactDynamics(free, h),
        start=problem.start,
        horizon=problem.horizon,
        costs=(*(_widened(term, extra) for term in problem.costs), _effort(nu, extra)),
        control_lower=lower,
        control_upper=upper,
        initial_controls=np.hstack([hard.controls, hard.impulses, slip]),
    )


def _contact_law(dynamics: ContactDynamics) -> list[Constraint]:
    """The constraints of the header over x and w."""
    n, nu, rubs = dynamics.n, dynamics.nu, _tangents(dynamics)
    normals = [int(i) for i in np.cumsum(dynamics.system.contact_dims) - 1]
    x, w = ca.SX.sym("x", dynamics.nx), ca.SX.sym("w", nu + n + len(rubs))
    u, impulse, s = w[:nu], w[nu : nu + n], w[nu + n :]
    sigma = _contact_velocity(dynamics, x, u, impulse)
    sides, products = [-sigma[i] for i in normals], [impulse[i] * sigma[i] for i in normals]
    mu = [float(m) for m, d in zip(dynamics.friction, dynamics.system.contact_dims) if d == 2]
    for j, (T, m) in enumerate(zip(rubs, mu)):
        limit = m * impulse[T + 1]
        sides += [impulse[T] - limit, -impulse[T] - limit, sigma[T] - s[j], -sigma[T] - s[j]]
        products.append(impulse[T] * sigma[T] + limit * s[j])
    options: dict[str, Any] = {"knots": "running"}
    return [
        Constraint.from_casadi(x, w, ca.vertcat(*sides), name="sides", **options),
        Constraint.from_casadi(x, w, ca.vertcat(*products), name="products", **options),
    ]


def _contact_velocity(dynamics: ContactDynamics, x: Any, u: Any, impulse: Any) -> Any:
    """sigma (n,) of the step from x under u and the impulse."""
    nv, h = dynamics.nx // 2, dynamics.time_step
    M, c, B, J, _ = terms_function(dynamics)(x[:nv], x[nv:])
    v_next = x[nv:] + ca.solve(M, h * (B @ u - c) + J.T @ impulse)
    following = ca.vertcat(x[:nv] + h * v_next, v_next)
    return step_function(dynamics)(x, u, following, impulse)[1]


def _tangents(dynamics: ContactDynamics) -> list[int]:
    """Tangent rows of the contacts that have one."""
    dims = np.array(dynamics.system.contact_dims, int)
    return [int(end) - 2 for end, d in zip(np.cumsum(dims), dims) if d == 2]


def _widened(term: Any, extra: int) -> Any:
    """The same cost where there are more controls."""
    if not isinstance(term, ControlCost):
        return term
    assert term.reference is not None  # its constructor sees to that
    reference = np.asarray(term.reference)
    zeros = np.zeros((*reference.shape[:-1], extra))
    return ControlCost(np.append(term.weight, np.zeros(extra)), np.append(reference, zeros, -1))


def _effort(nu: int, extra: int) -> ControlCost:
    return ControlCost(np.append(np.zeros(nu), np.full(extra, EFFORT)))


def _limit(limit: Any, none: float, nu: int) -> Any:
    return np.full(nu, none) if limit is None else limit
