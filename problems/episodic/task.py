"""A task in episodes, and one of its control steps with all of its derivatives, in batches.

    x+ = step^m(x, u),   u = offset + scale a,   a in [-1, 1],   o = observe(x),   r = reward(x+, a)

m steps of the simulator make a control step. With p the gradient of a function of x+ in the tangent
space there, the transposed step returns f_x' p and f_a' p without forming a matrix;

    F <- f_x F,   G <- f_x G + f_u scale      over the m steps, from F = I, G = 0

are the Jacobians of the control step, where whole matrices are wanted. All of it is native code on
the whole batch; contact is differentiated by the task's own gradient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Exact, Gradient
from cito.dynamics.rollout_adjoint import Motions, World
from cito.dynamics.types import Array, as_vector, whole_number

Flags = NDArray[np.bool_]


class Reward(NamedTuple):
    """value (B,), and its gradients: state (B, ndx) in the tangent space of x+, action (B, nu)."""

    value: Array
    state: Array
    action: Array


class ControlStep(NamedTuple):
    """motions of the m steps, controls (B, m, nu), state (B, nx) at their end."""

    motions: Motions
    controls: Array
    state: Array


class Jacobians(NamedTuple):
    """Of control steps: state (B, ndx, ndx), action (B, ndx, nu)."""

    state: Array
    action: Array


class EpisodicTask(ABC):
    """What is to be learned.

    Args:
        name: of the task.
        dynamics: the simulator.
        scale, offset: of controls, one number or (nu,): u = offset + scale a.
        observation_size: entries of an observation.
        substeps: m, steps of the simulator in a control step.
        episode_steps: control steps in an episode that nothing ends early.
        gradient: of contacts; exact by default.
    """

    def __init__(
        self,
        name: str,
        dynamics: ContactDynamics,
        scale: ArrayLike,
        offset: ArrayLike,
        observation_size: int,
        substeps: int = 1,
        episode_steps: int = 100,
        gradient: Gradient | None = None,
    ) -> None:
        self.name, self.dynamics = name, dynamics
        self.scale = as_vector("scale", scale, dynamics.nu)
        self.offset = as_vector("offset", offset, dynamics.nu)
        self.observation_size = whole_number("observation_size", observation_size, 1)
        self.substeps = whole_number("substeps", substeps, 1)
        self.episode_steps = whole_number("episode_steps", episode_steps, 1)
        self.gradient = Exact() if gradient is None else gradient

    @abstractmethod
    def starts(self, count: int, random: np.random.Generator) -> Array:
        """First states of episodes, (count, nx)."""

    @abstractmethod
    def observe(self, x: Array) -> Array:
        """Observations (B, n) of states (B, nx)."""

    @abstractmethod
    def observation_jacobian(self, x: Array) -> Array:
        """d observe / dx in the tangent space at x, (B, n, ndx)."""

    @abstractmethod
    def reward(self, x: Array, action: Array) -> Reward:
        """Of states after the step (B, nx) and actions (B, nu), with its gradients."""

    def fallen(self, x: Array) -> Flags:
        """In which states (B, nx) an episode ends, (B,); nowhere by default."""
        return np.zeros(len(x), bool)

    def step(self, x: Array, action: Array) -> ControlStep:
        """Control steps from x (B, nx) under actions (B, nu), which are clipped to [-1, 1]."""
        u = self._controls(action)
        controls = np.ascontiguousarray(np.repeat(u[:, None], self.substeps, axis=1))
        motions = World(self.dynamics).simulate(np.ascontiguousarray(x), controls)
        return ControlStep(motions, controls, motions.states[:, -1].copy())

    def transposed(self, step: ControlStep, p: Array) -> tuple[Array, Array]:
        """f_x' p (B, ndx) and f_a' p (B, nu) of p (B, ndx) at the end of the step.

        An action at its limit counts as one within: whoever chose it may choose another.
        """
        g = np.zeros((len(p), self.substeps + 1, self.dynamics.ndx))
        g[:, -1] = p
        out = World(self.dynamics).transpose(step.motions, step.controls, g, self.gradient)
        return out.start, self.scale * out.controls.sum(axis=1)

    def jacobians(self, step: ControlStep) -> Jacobians:
        """The derivatives of x+ with respect to x and the action."""
        d, m = self.dynamics, self.substeps
        f_x, f_u = d.transition(step.motions.states[:, :m], step.controls, self.gradient)
        F, G = f_x[:, 0], f_u[:, 0]
        for k in range(1, m):
            F, G = f_x[:, k] @ F, f_x[:, k] @ G + f_u[:, k]
        return Jacobians(F, G * self.scale)

    def _controls(self, action: Array) -> Array:
        u: Array = self.offset + self.scale * np.clip(action, -1.0, 1.0)
        return u
