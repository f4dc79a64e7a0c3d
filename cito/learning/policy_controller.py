"""A learned policy as a controller of the real-time loop.

    controller = PolicyController(task, policy, command=(0.5, 0.0, 0.2))
    summary = walk(controller, SelfRobot(task.robot), duration=10.0)

At every control step of the task the policy sees the state and decides on joint targets; the
motors follow them by the task's stiffness and damping at their own rate, as they did where it
learned. The safety layer stands between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.types import Array, as_vector
from cito.problems.locomotion import LocomotionTask
from cito.problems.locomotion.features import features
from cito.problems.locomotion.observation import Observer
from cito.realtime.loop import run
from cito.realtime.robot_interface import RobotInterface
from cito.realtime.run_file import Run, run_of
from cito.realtime.run_log import RunLog
from cito.realtime.run_summary import RunSummary
from cito.solvers.learning.evaluation import SETTLE, Act

PATIENCE = 5  # control steps that a plan may be followed, should new ones be late
TOO_SOON = 0.5  # of a control step: a second call within it is of the same step


@dataclass(frozen=True, eq=False)
class TargetPlan:
    """Joint targets to be followed by the motors: x_ref (nx,), stiffness, damping (nu,)."""

    start_time: float
    end_time: float
    reference: Array
    stiffness: Array
    damping: Array
    cost: float = float("nan")

    def control(self, t: float, x: Array) -> Array:
        """No torque but that of the motors' law."""
        return np.zeros(len(self.stiffness))

    def state(self, t: float) -> Array:
        """The targets, at rest."""
        return self.reference


class PolicyController:
    """Plans of one control step from a policy.

    Args:
        task: that the policy learned.
        act: actions (B, nj) of observations (B, n).
        command: v_x, v_y [m/s] and yaw rate [rad/s]; may be set while it runs.
        phase: of the gait at time 0 [cycles].
    """

    def __init__(
        self,
        task: LocomotionTask,
        act: Act,
        command: ArrayLike = (0.0, 0.0, 0.0),
        phase: float = 0.0,
    ) -> None:
        self.task, self.command = task, as_vector("command", command, 3)
        self._act, self._observer, self._phase = act, Observer(task), float(phase)
        self._action = np.zeros(len(task.nominal))
        self._frames: Array | None = None
        self._last = -np.inf
        nu = len(task.nominal)
        self._gains = np.full(nu, task.kp), np.full(nu, task.kd)

    def update(self, t: float, x: Array) -> TargetPlan:
        """Decide from the state x (nx,) measured at time t [s]."""
        task = self.task
        phase = self._phase + (t / task.gait.period if task.gait else 0.0)
        frame = self._observer(features(x), self._action, self.command, np.asarray(phase % 1.0))
        if self._frames is None:  # it has seen the same all along
            self._frames = np.repeat(frame[None], task.history, axis=0)
        elif t - self._last > TOO_SOON * task.control_step:
            self._frames = np.concatenate([frame[None], self._frames[:-1]])
        else:
            self._frames[0] = frame
        self._last = t
        self._action = np.clip(self._act(self._frames.reshape(1, -1))[0], -1.0, 1.0)
        reference = x.copy()
        reference[7 : 7 + len(self._action)] = task.nominal + task.action_scale * self._action
        reference[7 + len(self._action) :] = 0.0
        return TargetPlan(t, t + PATIENCE * task.control_step, reference, *self._gains)


def walk(
    controller: PolicyController,
    robot: RobotInterface,
    duration: float,
    log: RunLog | None = None,
    **options: Any,
) -> tuple[RunSummary, dict[str, float]]:
    """Walk with a policy under its command, from the pose that it moves about.

    Args:
        controller: of the policy.
        robot: not closed here.
        duration: [s].
        log: see `loop.run`.
        options: of `loop.run`.

    Returns:
        The summary of the run, and `errors` of it.
    """
    task, log = controller.task, RunLog() if log is None else log
    options.setdefault("start", standing(task))
    rate = 1 / task.control_step
    summary = run(controller, robot, duration, solver_rate=rate, log=log, **options)
    return summary, errors(run_of(log), controller.command)


def standing(task: LocomotionTask) -> Array:
    """At rest in the nominal pose, the feet on the ground, (nx,)."""
    from cito.problems.locomotion.episodes import draw_states
    from cito.problems.locomotion.legs import Legs
    from cito.problems.locomotion.task import Reset

    still, random = Reset(True, 0.0, 0.0, 0.0, 0.0), np.random.default_rng(0)
    state: Array = draw_states(task, Legs(task.robot), np.zeros((1, 3)), still, random)[0]
    return state


def errors(logged: Run, command: Array) -> dict[str, float]:
    """Root mean squares from one second on: velocity_rmse in the plane [m/s], yaw_rate_rmse
    [rad/s]; distance: from where it began, in the plane [m]."""
    nj = (logged.states.shape[1] - 13) // 2
    late = logged.states[logged.times >= SETTLE]
    if not len(late):
        raise ValueError(f"`duration` must be more than {SETTLE:g} s, there is nothing to count")
    error = late[:, [7 + nj, 8 + nj, 12 + nj]] - command
    first, last = logged.states[0, :2], logged.states[-1, :2]
    return {
        "velocity_rmse": float(np.sqrt((error[:, :2] ** 2).sum(axis=1).mean())),
        "yaw_rate_rmse": float(np.sqrt((error[:, 2] ** 2).mean())),
        "distance": float(np.linalg.norm(last - first)),
    }
