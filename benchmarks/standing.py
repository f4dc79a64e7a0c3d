"""What peers are compared on: a robot that stands, in many states near its stance.

All candidate contacts touch (at one depth of 0 to 0.1 mm, so that a simulator with soft
contact sees them too), joints and velocities differ a little, the torques hold the robot up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cito.dynamics import _native
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.tree import TreeSystem
from cito.dynamics.types import Array


class Standing(NamedTuple):
    """States (K, nx) and controls (K, nu) of a tree."""

    tree: TreeSystem
    dynamics: ContactDynamics
    states: Array
    controls: Array

    @property
    def active_contacts(self) -> float:
        """Contacts with an impulse in cito's step, mean over the states."""
        modes = self.dynamics.step(self.states, self.controls).modes
        return float((modes != 0).sum(axis=1).mean())


def standing(
    tree: TreeSystem,
    stance: Array,
    time_step: float,
    count: int,
    *,
    friction: Array | float = 0.8,
    pose: float = 0.1,
    velocity: float = 0.05,
    torque: float = 1.0,
    seed: int = 0,
) -> Standing:
    """`count` states near a stance, and torques that about hold it.

    Args:
        tree: with its contacts.
        stance: configuration, (nq,).
        time_step: [s].
        count: number of states.
        friction: of every contact, or one for each, (nc,).
        pose, velocity, torque: standard deviations of joints and attitude [rad], of velocities
            [rad/s, m/s], of torques [N m].
        seed: of the states.
    """
    dynamics, rng = ContactDynamics(tree, time_step, friction), np.random.default_rng(seed)
    native, nv = tree.native, tree.native.nv
    nq = native.nq
    moved = rng.standard_normal((count, 2 * nv)) * np.repeat([pose, velocity], nv)
    x = dynamics.integrate(np.append(stance, np.zeros(nv)), moved)
    for state in x:
        state[:nq] = _on_the_ground(dynamics, state, np.full(native.nc, rng.uniform(0, 1e-4)))
    M, c, B, J, _ = _native.system_terms(native, None, stance, np.zeros(nv))
    holding = np.linalg.lstsq(np.hstack([B, J.T]), c, rcond=None)[0][: native.nu]
    u = holding + torque * rng.standard_normal((count, native.nu))
    return Standing(tree, dynamics, x, u)


def _on_the_ground(dynamics: ContactDynamics, x: Array, depth: Array) -> Array:
    """The configuration nearest to that of x whose contacts are `depth` (nc,) below the ground."""
    native = dynamics.manifold
    nq, nv = native.nq, native.nv
    state = np.append(x[:nq], np.zeros(nv))
    for _ in range(20):
        *_, J, phi = _native.system_terms(native, None, state[:nq], state[nq:])
        move = np.linalg.lstsq(J[2::3], -depth - phi, rcond=1e-6)[0]
        state = dynamics.integrate(state, np.append(move, np.zeros(nv)))
        if np.abs(phi + depth).max() < 1e-12:
            break
    return np.asarray(state[:nq])
