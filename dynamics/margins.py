"""How far each contact is from leaving its mode, and how that changes with x and u.

    separating   sigma_N >= 0
    sliding      lambda_N >= 0,   slip ||sigma_T|| >= 0
    clamping     mu lambda_N -+ lambda_T >= 0 (planar: both faces of the cone),
                 mu lambda_N - ||lambda_T|| >= 0, lambda_N >= 0 (spatial)

Impulses are measured as velocities, A_NN lambda with A_NN held, so that all margins are in m/s.
Inside its margins a step is smooth, and for a linear system it is linear: the cost restricted to
one sequence of modes is what a quadratic program with these margins as inequalities minimizes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.types import Array

SEPARATING, SLIDING, CLAMPING = 0, 1, 2


class Margins(NamedTuple):
    """m(x + dx, u + du) is about value + state dx + control du, >= 0 while the modes hold.

    value (N, m) [m/s], infinite where a slot is unused; state (N, m, ndx); control (N, m, nu).
    """

    value: Array
    state: Array
    control: Array


def contact_margins(
    impulses: Array,
    velocities: Array,
    modes: NDArray[np.int32],
    compliance: Array,
    friction: Array,
    dims: tuple[int, ...],
    response: tuple[Array, Array, Array, Array],
) -> Margins:
    """The margins of the knots of a rollout, two slots for each contact.

    Args:
        impulses, velocities: lambda, sigma of the hard solution, (N, n).
        modes: (N, nc).
        compliance: A_NN, (N, nc).
        friction: mu, (nc,).
        dims: rows of each contact.
        response: d lambda/dx (N, n, ndx), d lambda/du, d sigma/dx, d sigma/du of the exact law.
    """
    N, n = impulses.shape
    ndx, nu = response[0].shape[-1], response[1].shape[-1]
    # Rows [value | d/dx | d/du] of lambda and sigma, so that a margin is a combination of rows.
    impulse = np.concatenate([impulses[..., None], response[0], response[1]], axis=-1)
    velocity = np.concatenate([velocities[..., None], response[2], response[3]], axis=-1)
    rows = np.zeros((N, len(dims), 2, 1 + ndx + nu))
    rows[..., 0] = np.inf
    first = 0
    for i, d in enumerate(dims):
        mu, scale = friction[i], compliance[:, i, None]
        lambda_N = scale * impulse[:, first + d - 1]
        tangent = slice(first, first + d - 1)
        separating, sliding, clamping = (modes[:, i] == m for m in (SEPARATING, SLIDING, CLAMPING))
        rows[separating, i, 0] = velocity[separating, first + d - 1]
        rows[sliding, i, 0] = lambda_N[sliding]
        rows[clamping, i, 0] = lambda_N[clamping]
        if d > 1:
            rows[sliding, i, 1] = _length(velocity[:, tangent])[sliding]
            lambda_T = scale[..., None] * impulse[:, tangent]
            if d == 2:
                rows[clamping, i, 0] = (mu * lambda_N - lambda_T[:, 0])[clamping]
                rows[clamping, i, 1] = (mu * lambda_N + lambda_T[:, 0])[clamping]
            else:
                rows[clamping, i, 1] = (mu * lambda_N - _length(lambda_T))[clamping]
        first += d
    rows = rows.reshape(N, 2 * len(dims), 1 + ndx + nu)
    return Margins(rows[..., 0], rows[..., 1 : 1 + ndx], rows[..., 1 + ndx :])


def _length(vectors: Array) -> Array:
    """Value and first-order change of the length of tangential vectors (N, d-1, 1 + ndx + nu)."""
    value = vectors[..., 0]
    length = np.linalg.norm(value, axis=-1)
    direction = value / np.maximum(length, 1e-300)[:, None]
    change: Array = np.einsum("kd,kdj->kj", direction, vectors)
    return change
