"""What a solver sees of the world: a horizon-first rollout and its linearization."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cito.dynamics import _native
from cito.dynamics.gradients import Gradient
from cito.dynamics.margins import Margins
from cito.dynamics.types import Array


class Rollout(NamedTuple):
    """Trajectories of the hard law, with any leading batch axes `...` (e.g. one per step size).

    states (..., N+1, nx), controls (..., N, nu), impulses (..., N, n) in contact frames [N s],
    velocities (..., N, n) contact velocities sigma [m/s],
    modes (..., N, nc): 0 separating, 1 sliding, 2 clamping,
    residual (...): largest scaled residual of the contact law over the knots.
    """

    states: Array
    controls: Array
    impulses: Array
    velocities: Array
    modes: NDArray[np.int32]
    residual: Array


class Transition(NamedTuple):
    """x_{k+1} is about step(x_k, u_k) (+) f_x dx + f_u du.  f_x (N, ndx, ndx), f_u (N, ndx, nu)."""

    f_x: Array
    f_u: Array


class Linearization(ABC):
    """The derivative of a rollout at frozen contact impulses; the gradient's part is added late."""

    @abstractmethod
    def with_gradient(self, gradient: Gradient) -> Transition:
        """The transition Jacobians under `gradient`; costs a small contact solve a knot."""

    @property
    @abstractmethod
    def free_velocity(self) -> Array:
        """b of each knot's contact problem, gap term included, (N, n) [m/s]."""

    def integration(self, gradient: Gradient) -> _native.Linearization | None:
        """Where dq+ = D_q dq + h D_v dv+ holds in f_x, f_u of `gradient`, the native record of the
        D_q, D_v that Riccati recursions then spare themselves half of the work with; else None."""
        return None

    def margins(self) -> Margins | None:
        """How far the knots are from leaving their contact modes; None without contact."""
        return None


class Dynamics(ABC):
    """Discrete-time dynamics x_{k+1} = step(x_k, u_k) on a manifold.

    x = (q, v) with nx coordinates and ndx tangent coordinates; u has nu. n contact rows,
    nc contacts (both 0 without contact). `manifold` is the space of x and u that quadratic costs
    are formed on.
    """

    nx: int
    ndx: int
    nu: int
    n: int
    nc: int
    time_step: float
    manifold: _native.System

    @abstractmethod
    def rollout(
        self,
        start: Array,
        controls: Array,
        *,
        states: Array | None = None,
        feedforward: Array | None = None,
        feedback: Array | None = None,
        alphas: Array | None = None,
        lower: Array | None = None,
        upper: Array | None = None,
        gaps: Array | None = None,
        impulses: Array | None = None,
    ) -> Rollout:
        """Roll out u = clip(U + alpha k + K (x (-) X)), every step size at once.

        Args:
            start: (nx,).
            controls: U, (N, nu).
            states: X, (N+1, nx); needed with `feedback` or `gaps`.
            feedforward, feedback: k (N, nu), K (N, nu, ndx).
            alphas: (n_alpha,); without it the result has no batch axis.
            lower, upper: control limits (nu,).
            gaps: d (N, ndx) = step(X_k, U_k) (-) X_{k+1} of multiple shooting; the rollout then
                keeps (1 - alpha) of each gap open.
            impulses: (N, n) nominal impulses, where the contact solver starts.
        """

    @abstractmethod
    def linearize(self, rollout: Rollout) -> Linearization:
        """Differentiate each step of `rollout` (no batch axis) at frozen impulses."""

    @abstractmethod
    def difference(self, x0: Array, x1: Array) -> Array:
        """x1 (-) x0 in the tangent space at x0; shapes (..., nx) -> (..., ndx)."""

    @abstractmethod
    def integrate(self, x: Array, dx: Array) -> Array:
        """x (+) dx; shapes (..., nx), (..., ndx) -> (..., nx)."""
