"""Control steps of a batch of robots under position controllers, and their transpose.

A control step has several steps of the simulator; at each the motors see the state at its start:

    tau = clip( s ( kp (q_target - q) - kd dq ), +- limit ),     x+ = hard step(x, tau)

with the motor strength s of each robot. A target that comes late by some of these steps leaves the
one before in force. The transposed step takes the gradient of the contact law that it is given, and
none through torques at their limits.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Gradient
from cito.dynamics.parameters import Parameter
from cito.dynamics.rollout_adjoint import Motions, World
from cito.dynamics.types import Array
from cito.problems.locomotion.features import BASE_Q, BASE_V
from cito.problems.locomotion.task import LocomotionTask


class Plant(NamedTuple):
    """What differs between B robots: friction (B, nc), mass (B, np) logarithm of the factor on the
    base's mass, strength (B, nj) of the motors, lag (B,) steps by which targets come late."""

    friction: Array
    mass: Array
    strength: Array
    lag: Array


class Substep(NamedTuple):
    """One step of the simulator: motions of one step, torques (B, 1, nu), and which of the torques
    (B, nj) are not at their limit."""

    motions: Motions
    torques: Array
    free: Array


class ControlStep(NamedTuple):
    """substeps in order; state (B, nx) and impulse (B, n) at the end."""

    substeps: list[Substep]
    state: Array
    impulse: Array


class DrivenSteps:
    """Control steps of a task's robot.

    Args:
        task: robot, gains and time step.
        threads: that share a batch.

    `time_forward` and `time_transposed` [s] count what the simulator took.
    """

    def __init__(self, task: LocomotionTask, threads: int = 1) -> None:
        robot = task.robot
        if task.randomization.base_mass != (1.0, 1.0):
            robot = robot.with_parameters([Parameter.mass(robot.system.bodies[0].name)])
        self.task = task
        self.dynamics = ContactDynamics(robot, task.time_step, threads=threads)
        self._order = [robot.joints.index(name) for name in robot.actuated]
        self.limits = np.empty(len(robot.joints))
        self.limits[self._order] = robot.torque_limits
        self._plain = self._order == list(range(len(self._order)))
        self.time_forward = self.time_transposed = 0.0

    def __call__(
        self, x: Array, target: Array, before: Array, plant: Plant, impulse: Array
    ) -> ControlStep:
        """One control step.

        Args:
            x: (B, nx).
            target, before: of the joints now and in the step before (B, nj) [rad].
            plant: what differs between the robots.
            impulse: of the step before (B, n), where the contact solve starts.
        """
        nj, kp, kd = target.shape[-1], self.task.kp, self.task.kd
        world = World(self.dynamics, plant.friction, plant.mass)
        late = bool(plant.lag.any())
        substeps = []
        for k in range(self.task.substeps):
            now = np.where((plant.lag > k)[:, None], before, target) if late else target
            q, rate = x[:, BASE_Q : BASE_Q + nj], x[:, -nj:]
            wanted = plant.strength * (kp * (now - q) - kd * rate)
            torque = np.clip(wanted, -self.limits, self.limits)
            u = np.ascontiguousarray(torque if self._plain else torque[:, self._order])[:, None]
            start = time.perf_counter()
            motions = world.simulate(x, u, impulse)
            self.time_forward += time.perf_counter() - start
            x, impulse = motions.states[:, 1].copy(), motions.impulses[:, 0].copy()
            substeps.append(Substep(motions, u, torque == wanted))
        return ControlStep(substeps, x, impulse)

    def transposed(
        self, step: ControlStep, plant: Plant, g: Array, gradient: Gradient
    ) -> tuple[Array, Array, Array]:
        """Gradients with respect to the state at the start (B, ndx), target and the target before
        (B, nj), from g (B, ndx) with respect to the state at the end."""
        nj = step.substeps[0].free.shape[-1]
        kp, kd = self.task.kp, self.task.kd
        world = World(self.dynamics, plant.friction, plant.mass)
        now, before = np.zeros((len(g), nj)), np.zeros((len(g), nj))
        late = bool(plant.lag.any())
        for k, (motions, u, free) in reversed(list(enumerate(step.substeps))):
            g_states = np.zeros((len(g), 2, g.shape[-1]))
            g_states[:, 1] = g
            start = time.perf_counter()
            out = world.transpose(motions, u, g_states, gradient)
            self.time_transposed += time.perf_counter() - start
            g = out.start
            g_torque = out.controls[:, 0]
            if not self._plain:
                g_torque = np.empty_like(g_torque)
                g_torque[:, self._order] = out.controls[:, 0]
            pull = g_torque * plant.strength * free
            g[:, BASE_V : BASE_V + nj] -= kp * pull
            g[:, -nj:] -= kd * pull
            pull *= kp
            if late:
                comes = (plant.lag <= k)[:, None]
                now += pull * comes
                before += pull * ~comes
            else:
                now += pull
        return g, now, before
