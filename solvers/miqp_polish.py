"""The optimum with all contact modes held, to rounding.

DAQP finds which inequalities are active; with these as equalities the optimum solves

    [H  A'] [z]   [-f]
    [A  0 ] [y] = [ b]

and one step of iterative refinement takes the last digits.
"""

from __future__ import annotations

import daqp
import numpy as np

from cito.dynamics.types import Array
from cito.solvers.miqp_model import Binaries, CondensedProgram

INFINITE = 1e30  # what DAQP takes for infinity


def polish(program: CondensedProgram, binaries: Binaries) -> Array | None:
    """Minimizer z (nz,) of the program with `binaries` held; None where there is none."""
    A, lower, upper = _constraints(program, binaries)
    H, f, _ = program.objective
    held = lower == upper
    flags = np.where(held, 5, 0).astype(np.int32)
    z, _, flag, info = daqp.solve(H, f, A, upper, lower, flags, primal_tol=1e-10)
    if flag < 1:
        return None
    multipliers = np.asarray(info["lam"])
    active = held | (np.abs(multipliers) > 0)
    b = np.where(multipliers < 0, lower, np.where(held, lower, upper))[active]
    refined = _solve_equalities(H, f, A[active], b)
    inside = (A @ refined <= upper + 1e-9) & (A @ refined >= lower - 1e-9)
    return refined if inside.all() else np.asarray(z)


def _constraints(program: CondensedProgram, binaries: Binaries) -> tuple[Array, Array, Array]:
    """lower <= A z <= upper of the modes: limits, b >= 0, sigma_N >= 0, and what c demands."""
    nz, ne = len(program.objective.gradient), len(program.edges)
    on = binaries.astype(bool)
    by_knot = on.reshape(-1, max(ne, 1))
    contacts = 1 + max((edge.contact for edge in program.edges), default=-1)
    touches = np.zeros((len(by_knot), contacts), dtype=bool)
    for i, edge in enumerate(program.edges):
        touches[:, edge.contact] |= by_knot[:, i]
    # Edges (mu, 1) and (-mu, 1) follow each other: every other slip row is sigma_T itself.
    sigma_T, plus, minus = program.slip.matrix[::2], *on[program.slip_binary].reshape(-1, 2).T
    at_rest = -program.slip.offset[::2]
    pieces = [
        (np.eye(program.controls, nz), program.lower, program.upper),
        (np.eye(nz)[program.controls :], np.zeros(len(on)), np.where(on, INFINITE, 0.0)),
        (
            program.normal.matrix,
            -program.normal.offset,
            np.where(touches.ravel(), -program.normal.offset, INFINITE),
        ),
        (sigma_T, np.where(minus, at_rest, -INFINITE), np.where(plus, at_rest, INFINITE)),
    ]
    A, lower, upper = (np.concatenate(part) for part in zip(*pieces))
    return A, np.maximum(lower, -INFINITE), np.minimum(upper, INFINITE)


def _solve_equalities(H: Array, f: Array, A: Array, b: Array) -> Array:
    """Minimizer of 1/2 z'Hz + f'z on A z = b; rows of A may repeat each other."""
    n = len(f)
    if not len(A):
        return np.asarray(np.linalg.solve(H, -f))
    # An orthonormal basis of the rows replaces them: repeated rows drop out.
    scale = np.linalg.norm(A, axis=1)
    U, sigma, V = np.linalg.svd(A / scale[:, None], full_matrices=False)
    rank = int((sigma > 1e-10 * sigma[0]).sum())
    rows = V[:rank]
    right = (U.T @ (b / scale))[:rank] / sigma[:rank]
    K = np.block([[H, rows.T], [rows, np.zeros((rank, rank))]])
    rhs = np.append(-f, right)
    solution = np.linalg.solve(K, rhs)
    solution += np.linalg.solve(K, rhs - K @ solution)
    return np.asarray(solution[:n])
