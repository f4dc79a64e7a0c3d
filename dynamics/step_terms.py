"""The terms of a step in numpy, for checks that must not go through the step itself.

    M (v+ - v) = h (B u - c(q, v) - d (v+ - v) - h k v+ - f tanh(v+ / s)) + J' lambda

c holds the forces d v and k (q - rest) of the joints, which the step takes at its end
(dynamics/native/joint_forces.inc).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cito.dynamics import _native
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.types import Array

SETTLED = 1e-9  # change of velocity [rad/s or m/s]


class StepTerms(NamedTuple):
    """M (nv, nv), c (nv,), B (nv, nu), J (n, nv), phi (nc,) at a state, and the joints' forces.

    damping, stiffness, spring, friction: d, k, k (q - rest), f, (nv,) each; slip_speed: s.
    """

    M: Array
    c: Array
    B: Array
    J: Array
    phi: Array
    damping: Array
    stiffness: Array
    spring: Array
    friction: Array
    slip_speed: float

    def late_forces(self, v_next: Array, h: float) -> Array:
        """What the joints take at v+ beyond c, but for d v: d v+ + h k v+ + f tanh(v+ / s)."""
        rubbing = self.friction * np.tanh(v_next / self.slip_speed)
        return np.asarray((self.damping + h * self.stiffness) * v_next + rubbing)

    def inertia(self, v_next: Array, h: float) -> Array:
        """d (M v+ + h late forces) / dv+, (nv, nv)."""
        slope = self.friction / self.slip_speed * (1 - np.tanh(v_next / self.slip_speed) ** 2)
        return np.asarray(self.M + np.diag(h * (self.damping + h * self.stiffness + slope)))

    def next_velocity(self, v: Array, force: Array, guess: Array, h: float) -> Array:
        """v+ under an impulse h B u + J' lambda, (nv,): Newton's method from a guess nearby."""
        rest, v_next = self.M @ v + force - h * (self.c - self.damping * v), guess
        for _ in range(30):
            off = self.M @ v_next + h * self.late_forces(v_next, h) - rest
            change = np.linalg.solve(self.inertia(v_next, h), off)
            v_next = v_next - change
            if np.abs(change).max(initial=0.0) < SETTLED:  # the next one would be its square
                break
        return v_next


def step_terms(dynamics: ContactDynamics, x: Array) -> StepTerms:
    """The terms at a state (nx,)."""
    nq = dynamics.nx - dynamics.ndx // 2
    q, v = x[:nq].copy(), x[nq:].copy()
    M, c, B, J, phi = _native.system_terms(dynamics.manifold, dynamics.theta, q, v)
    forces: tuple[Array, ...] = _native.system_joint_forces(dynamics.manifold, dynamics.theta, q)
    damping, stiffness, spring, friction = forces
    slip_speed = dynamics.manifold.slip_speed
    return StepTerms(M, c, B, J, phi, damping, stiffness, spring, friction, slip_speed)
