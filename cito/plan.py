"""A plan: what to do from a given time on, as controls, gains and the states they belong to.

    u(t, x) = clip( u_k + K_k (x (-) x_ref(s)) ),    k = floor((t - t_0) / h)

with x_ref on the geodesic from x_k to x_{k+1} and s the time at which x was measured.

A plan is made on the solver's time grid and read at any time. `shifted` lays it on a grid that
starts elsewhere; what lies beyond its end is filled by a `Hold`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cito.dynamics.base import Dynamics
from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, as_array, as_vector
from cito.problems.problem import Problem
from cito.problems.robot_size import RobotSize

# Of a robot of the Go2's size that holds on [N m/rad], [N m s/rad].
JOINT_STIFFNESS, JOINT_DAMPING = 30.0, 1.0


@dataclass(frozen=True, eq=False)
class Hold:
    """What a plan falls back on beyond its end: u = control + gains (x (-) state).

    Args:
        state: x_hold, (nx,).
        control: u_hold, (nu,).
        gains: K_hold, (nu, ndx).
    """

    state: Array
    control: Array
    gains: Array


@dataclass(frozen=True, eq=False)
class Plan:
    """Controls and gains along a nominal trajectory.

    Args:
        dynamics: on whose manifold the states lie.
        start_time: t_0 at which knot 0 applies [s].
        states: x_k, (N+1, nx).
        controls: u_k, (N, nu), held over [t_0 + k h, t_0 + (k+1) h).
        feedback: K_k, (N, nu, ndx).
        impulses: (N, n) [N s].
        modes: (N, nc).
        cost: of the trajectory.
        lower, upper: control limits, (nu,) or None.
    """

    dynamics: Dynamics
    start_time: float
    states: Array
    controls: Array
    feedback: Array
    impulses: Array
    modes: NDArray[np.int32]
    cost: float
    lower: Array | None = None
    upper: Array | None = None

    @property
    def end_time(self) -> float:
        """Time of the last state [s]."""
        return self.start_time + len(self.controls) * self.dynamics.time_step

    def state(self, t: float) -> Array:
        """x_ref at time t, (nx,): between the knots on the manifold, the ends held outside."""
        k, part = self._knot(t)
        x: Array = self.states[k]
        if part == 0.0:
            return x
        step = self.dynamics.difference(x, self.states[k + 1])
        return self.dynamics.integrate(x, part * step)

    def gains(self, t: float) -> Array:
        """K at time t, (nu, ndx)."""
        K: Array = self.feedback[min(self._knot(t)[0], len(self.feedback) - 1)]
        return K

    def control(self, t: float, x: ArrayLike | None = None, measured: float | None = None) -> Array:
        """u at time t, (nu,); with feedback on the state x (nx,) where one is given.

        measured: when it was, t by default [s]. A state of 2 ms ago is compared to where the plan
        was 2 ms ago: a joint that swings by 10 rad/s would seem to be 0.02 rad behind otherwise.
        """
        u: Array = self.controls[min(self._knot(t)[0], len(self.controls) - 1)]
        if x is not None:
            reference = self.state(t if measured is None else measured)
            found = as_vector("x", x, self.dynamics.nx)
            u = u + self.gains(t) @ self.dynamics.difference(reference, found)
        if self.lower is None and self.upper is None:
            return u
        limited: Array = np.clip(u, self.lower, self.upper)
        return limited

    def shifted(self, t: float, hold: Hold | None = None) -> tuple[Array, Array, Array, Array]:
        """The plan on a grid that starts at time t, for a warm start.

        Args:
            t: time of the new knot 0, not before the plan's start [s].
            hold: what to do beyond the end; None: repeat the last control and gains.

        Returns:
            states (N+1, nx), controls (N, nu), feedback (N, nu, ndx), impulses (N, n).
        """
        if hold is not None and not isinstance(hold, Hold):
            raise ValueError(f"`hold` must be a Hold or None, got {hold!r:.80}")
        t, N, h = float(as_array("t", t, ())), len(self.controls), self.dynamics.time_step
        s = (t - self.start_time) / h + np.arange(N + 1)
        s = np.where(np.abs(s - np.round(s)) < 1e-6, np.round(s), s)
        if s[0] < 0:
            raise ValueError(
                f"`t` must not be before the plan's start {self.start_time:g}, got {t:g}"
            )
        k = np.minimum(np.floor(s), N).astype(int)
        part = np.where(k < N, s - k, 0.0)
        states = self.states[k]  # a copy
        if part.any():
            steps = self.dynamics.difference(states, self.states[np.minimum(k + 1, N)])
            states = self.dynamics.integrate(states, part[:, None] * steps)
        # A new step overlaps two old ones: the mean over it. To take the first of both alone would
        # put the plan off by a part of a step at every update.
        first, second = np.minimum(k[:-1], N - 1), np.minimum(k[:-1] + 1, N - 1)

        def mean(rows: Array) -> Array:
            share = part[:-1].reshape(-1, *(1,) * (rows.ndim - 1))
            blend: Array = (1 - share) * rows[first] + share * rows[second]
            return blend

        controls, feedback, impulses = map(mean, (self.controls, self.feedback, self.impulses))
        beyond = s[:-1] >= N
        if hold is not None and beyond.any():
            states[:-1][beyond], states[-1] = hold.state, hold.state
            controls[beyond], feedback[beyond] = hold.control, hold.gains
        return states, controls, feedback, impulses

    def _knot(self, t: float) -> tuple[int, float]:
        """Knot at or before time t and the part of the step that has passed, within the plan."""
        s = (float(as_array("t", t, ())) - self.start_time) / self.dynamics.time_step
        s = min(max(s, 0.0), float(len(self.controls)))
        k = int(np.floor(s + 1e-9))
        return k, max(s - k, 0.0) if k < len(self.controls) else 0.0


def joint_hold(problem: Problem, robot: Robot) -> Hold:
    """The start's torques and joint stiffness: what a robot does beyond the end of a plan."""
    B, size = robot.system.actuation, RobotSize.of(robot)
    assert B is not None and problem.initial_controls is not None
    stiffness, damping = JOINT_STIFFNESS * size.torque, JOINT_DAMPING * size.torque * size.time
    gains = -np.hstack([stiffness * B.T, damping * B.T])
    return Hold(problem.start, problem.initial_controls[-1], gains)
