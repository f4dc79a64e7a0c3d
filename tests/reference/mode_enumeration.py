"""The optimum by brute force: one convex program, states and all, for every sequence of modes."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np

from cito.problems import ControlCost, Problem, StateCost
from cito.problems.costs import active_knots


def enumerate_modes(problem: Problem) -> float:
    """The lowest cost over all mode sequences; use few steps and contacts."""
    system, friction = problem.dynamics.system, problem.dynamics.friction
    menus = [
        ("apart", "touch") if dim == 1 else ("apart", "left", "right", "stick")
        for dim in system.contact_dims
    ]
    knots = list(itertools.product(*menus))
    return min(
        _cost(problem, system, friction, sequence)
        for sequence in itertools.product(knots, repeat=problem.horizon)
    )


def _cost(problem, system, friction, sequence) -> float:
    N, h, nv = problem.horizon, problem.dynamics.time_step, len(system.mass_matrix)
    q, v = cp.Variable((N + 1, nv)), cp.Variable((N + 1, nv))
    u, impulse = cp.Variable((N, problem.dynamics.nu)), cp.Variable((N, sum(system.contact_dims)))
    constraints = [q[0] == problem.start[:nv], v[0] == problem.start[nv:]]
    if problem.control_lower is not None:
        constraints.append(u >= np.tile(problem.control_lower, (N, 1)))
    if problem.control_upper is not None:
        constraints.append(u <= np.tile(problem.control_upper, (N, 1)))
    for k, modes in enumerate(sequence):
        force = (
            system.actuation @ u[k] - system.stiffness @ q[k] - system.damping @ v[k] - system.bias
        )
        momentum = system.mass_matrix @ (v[k + 1] - v[k])
        constraints += [
            momentum == h * force + system.contact_jacobian.T @ impulse[k],
            q[k + 1] == q[k] + h * v[k + 1],
        ]
        gap = system.gap_jacobian @ q[k] + system.gap_offset
        sigma = system.contact_jacobian @ v[k + 1]
        row = 0
        for i, (dim, mode) in enumerate(zip(system.contact_dims, modes)):
            normal = row + dim - 1
            opening, push = sigma[normal] + gap[i] / h, impulse[k, normal]
            if mode == "apart":
                constraints += [impulse[k, row : normal + 1] == 0, opening >= 0]
            else:
                constraints += [push >= 0, opening == 0]
                if dim == 2:
                    constraints += _friction(mode, friction[i], push, impulse[k, row], sigma[row])
            row += dim
    program = cp.Problem(cp.Minimize(_objective(problem, cp.hstack([q, v]), u)), constraints)
    program.solve(solver=cp.CLARABEL)
    return float(program.value) if program.status in ("optimal", "optimal_inaccurate") else np.inf


def _friction(mode, mu, push, rub, slip):
    return {
        "stick": [cp.abs(rub) <= mu * push, slip == 0],
        "left": [rub == mu * push, slip <= 0],
        "right": [rub == -mu * push, slip >= 0],
    }[mode]


def _objective(problem, x, u):
    total = 0
    for term in problem.costs:
        if isinstance(term, StateCost):
            active = active_knots(term.knots, problem.horizon)
            error = x - np.broadcast_to(term.reference, x.shape)
            total += 0.5 * cp.sum(cp.multiply(np.outer(active, term.weight), cp.square(error)))
        elif isinstance(term, ControlCost):
            error = u - np.broadcast_to(term.reference, u.shape)
            weight = np.tile(term.weight, (problem.horizon, 1))
            total += 0.5 * cp.sum(cp.multiply(weight, cp.square(error)))
    return total
