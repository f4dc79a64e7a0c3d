"""The terms of one step in Python: for checks and for what looks for states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cito.dynamics import _native
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.types import Array


class StepTerms(NamedTuple):
    """M (v+ - v) = h (B u - c) + J' lambda, with the joints' forces at the end of the step.

    M (nv, nv), c (nv,), B (nv, nu), J (n, nv), phi (nc,).
    """

    M: Array
    c: Array
    B: Array
    J: Array
    phi: Array


def step_terms(dynamics: ContactDynamics, x: Array, about: Array | None = None) -> StepTerms:
    """M, c, B, J, phi at x (nx,).

    Dry friction is replaced by its tangent about the velocity `about` (nv,), by default that of x;
    the terms are those of the step where `about` is v+.
    """
    h, nq = dynamics.time_step, dynamics.nx - dynamics.ndx // 2
    system, theta = dynamics.manifold, dynamics.theta
    q, v = np.ascontiguousarray(x[:nq]), np.ascontiguousarray(x[nq:])
    M, c, B, J, phi = _native.system_terms(system, theta, q, v)
    damping, stiffness, _, friction = _native.system_joint_forces(system, theta, q)
    c += h * stiffness * v
    drag = damping + h * stiffness
    if friction.any():
        w = v if about is None else about
        tanh = np.tanh(w / system.slip_speed)
        slope = friction * (1 - tanh**2) / system.slip_speed
        c += friction * tanh + slope * (v - w)
        drag += slope
    return StepTerms(M + h * np.diag(drag), c, B, J, phi)
