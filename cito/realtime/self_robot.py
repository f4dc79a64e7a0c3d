"""Our own simulator as a robot: in process, deterministic, with the hard contact law.

The simulation catches up with the loop's clock whenever it is read or written: with a lockstep
clock a run is a function of its seed, with the machine's clock it is a simulation in real time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.conversions import rotation_matrix
from cito.dynamics.manifold import on_manifold
from cito.dynamics.robot import Robot
from cito.dynamics.tree import TreeSystem
from cito.dynamics.types import Array, as_vector
from cito.realtime.disturbance import Noise, Pull
from cito.realtime.joints import Joints
from cito.realtime.robot_interface import Command, RobotFault, RobotState


class SelfRobot:
    """A robot simulated by `ContactDynamics`.

    Args:
        model: the robot.
        time_step: of the simulation [s].
        friction: coefficient of every contact, or one for each [-]; by default as in the robot's
            file, 0.8 where it states none.
        noise: on what is read; seed: of the noise.
        pull: on the base; only where the base is free.
        threads: of the contact dynamics.

    Raises:
        ValueError: a number out of its range, or a pull on a base that is fixed.
    """

    def __init__(
        self,
        model: Robot,
        time_step: float = 2e-3,
        friction: ArrayLike | None = None,
        noise: Noise | None = None,
        seed: int = 0,
        pull: Pull | None = None,
        threads: int = 1,
    ) -> None:
        self.model = model
        self._joints = Joints.of(model)
        if pull is not None and not self._joints.floating:
            raise ValueError("`pull` acts on a base that is free, this robot has none")
        self._pull = pull
        system = model.system if pull is None else with_forces_on_base(model.system)
        if friction is None:
            friction = 0.8 if model.friction is None else model.friction
        self.dynamics = ContactDynamics(system, time_step, friction, threads=threads)
        self._noise = (noise or Noise()).tangent(self._joints, model.native.nv)
        self._seed = seed
        self.reset(0.0)

    def reset(self, now: float, x: Array | None = None) -> None:
        """Go to x (nx,), by default the stance at rest; the simulation waits for a command."""
        rest = np.append(self.model.stance, np.zeros(self.model.native.nv))
        self.state = rest if x is None else as_vector("x", x, self.dynamics.nx)
        self._random = np.random.default_rng(self._seed)
        self._command: Command | None = None
        self._origin, self._steps = now, 0
        self._forces = np.zeros((len(self.model.feet), 3))

    def read(self, now: float) -> RobotState:
        """The state at the simulation's last step, with noise."""
        self._catch_up(now)
        nq, x = self.model.native.nq, self.state
        if self._noise.any():
            dx = self._noise * self._random.standard_normal(len(self._noise))
            x = on_manifold(
                self.model.native, ("x", x, len(x)), ("dx", dx, len(dx)), integrate=True
            )
        time = now if self._command is None else self._time
        return RobotState(time, x[:nq], x[nq:], self._forces)

    def write(self, now: float, command: Command) -> None:
        """Command the motors from now on; the first command starts the simulation."""
        if self._command is None:
            self._origin = now
        self._catch_up(now)
        self._command = command

    def close(self) -> None:
        """Nothing to let go of."""

    @property
    def _time(self) -> float:
        return self._origin + self._steps * self.dynamics.time_step

    def _catch_up(self, now: float) -> None:
        """Simulate all steps that end by now, up to rounding."""
        h = self.dynamics.time_step
        while self._command is not None and self._time + h <= now + 1e-9:
            step = self.dynamics.step(self.state, self._control(self._command))
            if not np.isfinite(step.state).all():
                raise RobotFault("the simulation diverged")
            self.state = step.state
            self._forces = step.impulse[: self._forces.size].reshape(-1, 3) / h
            self._steps += 1

    def _control(self, command: Command) -> Array:
        """The motors' law, saturated, and the pull in the base's frame."""
        nq = self.model.native.nq
        q, v = self._joints.drives(self.state[:nq], self.state[nq:])
        limit = self.model.torque_limits
        torque: Array = np.clip(command.at(q, v), -limit, limit)
        if self._pull is None:
            return torque
        force = self._pull.at(self._steps * self.dynamics.time_step)
        return np.append(torque, rotation_matrix(self.state[3:7]).T @ force)


def with_forces_on_base(system: TreeSystem) -> TreeSystem:
    """The system with three more controls: a force on the base, in the base's frame [N]."""
    assert system.actuation is not None
    force = np.eye(len(system.actuation), 3)
    return replace(system, actuation=np.hstack([system.actuation, force]))
