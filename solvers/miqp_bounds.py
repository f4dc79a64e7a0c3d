"""Big-M constants that cut nothing off: what a row can reach at a cost of at most U.

Every trajectory that costs no more than U lies in the ellipsoid

    { z : J(z) <= U } = { z : 1/2 (z - z*)' H (z - z*) <= U - J(z*) },      z* = -H^-1 f

and the largest value of a row a'z + a_0 there is known in closed form:

    a'z* + a_0 + sqrt(2 (U - J(z*)) a' H^-1 a)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import daqp
import numpy as np
from scipy.linalg import cho_factor, cho_solve

from cito.dynamics.types import Array

if TYPE_CHECKING:
    from cito.solvers.miqp_model import Affine, CondensedProgram

# The constants are enlarged by this much [-], so that rounding never makes them too small.
MARGIN = 1e-6
INFINITE = 1e30  # what DAQP takes for infinity


class Bounds(NamedTuple):
    """Largest values: impulse [N s] and opening [m/s] of each edge, slip [m/s] of each slip row."""

    impulse: Array
    opening: Array
    slip: Array


def big_m(program: CondensedProgram, cost: float) -> Bounds:
    """Bounds on trajectories that cost at most `cost`, the cost of a known rollout."""
    H, f, constant = program.objective
    factor = cho_factor(H)
    center = -cho_solve(factor, f)
    lowest = float(0.5 * f @ center + constant)
    radius = np.sqrt(max(2 * (cost - lowest), 0.0)) * (1 + MARGIN)

    def largest(rows: Affine) -> Array:
        a = rows.matrix
        spread = np.sqrt(np.maximum(np.einsum("ij,ji->i", a, cho_solve(factor, a.T)), 0))
        reach = rows(center) + radius * spread
        return np.asarray(np.maximum(reach, 0) * (1 + MARGIN) + MARGIN)

    edges = np.eye(len(f))[program.controls :]
    return Bounds(
        impulse=largest(program.opening._replace(matrix=edges, offset=np.zeros(len(edges)))),
        opening=largest(program.opening),
        slip=largest(program.slip),
    )


def relaxed_cost(program: CondensedProgram) -> float:
    """The optimum if contacts could push at a distance and along any friction; 0 where unknown."""
    H, f, constant = program.objective
    edges, touching = len(f) - program.controls, program.normal
    lower = np.concatenate([program.lower, np.zeros(edges), -touching.offset])
    upper = np.append(program.upper, np.full(edges + len(touching.offset), INFINITE))
    limits = np.minimum(upper, INFINITE), np.maximum(lower, -INFINITE)
    _, value, flag, _ = daqp.solve(H, f, touching.matrix, *limits)
    return max(float(value) + constant, 0.0) if flag > 0 else 0.0
