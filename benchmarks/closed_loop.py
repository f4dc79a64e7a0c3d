"""One closed loop as plain data: a task, a gradient, and what came of it.

    plan = controller.update(k h, x)        from the state of the tick
    x    = step(x, plan.control(k h, x))    the controller's own model, and a pull that it does
                                            not know of

The controller's model is the plant: what differs between two loops is the gradient alone. An
experiment can be sent to another process or machine and its outcome kept as JSON, so that sweeps
of them go over many cores (`cito.benchmarks.sweep`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from cito import api
from cito.dynamics import _native
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.conversions import rotation_matrix
from cito.dynamics.gradients import Exact, FullCone, Gradient, Signorini
from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, IntArray
from cito.mpc import MPC
from cito.plan import joint_hold
from cito.problems.legged import pose_errors, robot_of
from cito.problems.problem import Problem
from cito.problems.robots import load_robot
from cito.realtime.disturbance import Pull
from cito.realtime.self_robot import with_forces_on_base

RHO = 0.4  # of both relaxed laws, in every experiment [J]
METHODS: dict[str, Gradient | None] = {
    "exact": Exact(),
    "signorini": Signorini(RHO),
    "full-cone": FullCone(RHO),
    "adaptive": None,  # what the controller chooses by itself
}
WATCHED = ("trunk", "*_knee")  # what must not touch the ground, where the robot has it


@dataclass(frozen=True)
class Experiment:
    """What is run.

    Args:
        task: with `parameters`, makes the problem.
        method: a key of `METHODS`.
        ticks: of one time step each.
        iterations: of an update; first_iterations: of the first one.
        pull: force on the base, world frame [N]; pull_time: its start and duration [s].
        until_fall: whether the run ends where something else than a foot touches the ground.
    """

    task: str
    parameters: Mapping[str, Any]
    method: str
    ticks: int
    iterations: int = 4
    first_iterations: int = 20
    pull: Sequence[float] = (0.0, 0.0, 0.0)
    pull_time: Sequence[float] = (0.0, 0.0)
    until_fall: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The fields, JSON-able."""
        return asdict(self)


@dataclass(frozen=True)
class Outcome:
    """What came of it.

    Args:
        objective_mean, objective_std: of the plans' costs over the ticks that were run.
        position_error [m], orientation_error [rad]: of the last state.
        mode_switches: how many times a foot touched down or lifted off.
        fell: when something else than a foot first touched the ground, or nothing finite came
            out; None where neither happened [s].
        ticks: that were run.
        cpu: processor time of an update, median [s].
        failed: updates that brought nothing finite.
    """

    objective_mean: float
    objective_std: float
    position_error: float
    orientation_error: float
    mode_switches: int
    fell: float | None
    ticks: int
    cpu: float
    failed: int

    def as_dict(self) -> dict[str, Any]:
        """The fields, JSON-able."""
        return asdict(self)


def outcome(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """`run` between plain dictionaries: what a sweep calls, maybe on another machine."""
    return run(Experiment(**experiment)).as_dict()


def run(experiment: Experiment) -> Outcome:
    """Run a closed loop to its end."""
    problem = api.make(experiment.task, **experiment.parameters)
    robot = robot_of(problem)
    controller = MPC(
        problem,
        experiment.iterations,
        first_iterations=experiment.first_iterations,
        gradient=METHODS[experiment.method],
        hold=joint_hold(problem, robot),
    )
    loop = _Loop(problem, Pull(np.array(experiment.pull), *experiment.pull_time))
    watch = Watch(robot)
    for k in range(experiment.ticks):
        if not loop.tick(controller, k) or watch.touches(loop.x):
            loop.fell = (k + 1) * problem.dynamics.time_step if loop.fell is None else loop.fell
            if experiment.until_fall or not loop.alive:
                break
    return loop.outcome()


class Watch:
    """Whether something else than a foot touches flat ground."""

    def __init__(self, robot: Robot, names: Sequence[str] = WATCHED) -> None:
        try:
            watched = load_robot(robot.source, feet=robot.feet, contacts=names)
        except ValueError:  # a robot that has no such parts
            watched = robot
        self._native, self._feet = watched.native, len(watched.feet)

    def touches(self, x: Array) -> bool:
        """Whether a watched point is below the ground in the state x (nx,)."""
        nq = self._native.nq
        phi = _native.system_terms(self._native, None, x[:nq], x[nq:])[4]
        return bool((phi[self._feet :] < 0).any())


@dataclass
class _Loop:
    """The plant, and what is kept of each tick."""

    problem: Problem
    pull: Pull
    alive: bool = True
    fell: float | None = None
    failed: int = 0
    costs: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    modes: list[IntArray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.x = self.problem.start
        model = self.problem.dynamics
        assert isinstance(model, ContactDynamics)
        self._plant = model
        if self.pull.force.any():
            system = with_forces_on_base(robot_of(self.problem).system)
            self._plant = ContactDynamics(system, model.time_step, model.friction)

    def tick(self, controller: MPC, k: int) -> bool:
        """Plan and step; False where nothing finite comes out."""
        t = k * self.problem.dynamics.time_step
        began = time.thread_time()
        try:
            plan = controller.update(t, self.x)
        except ArithmeticError:
            self.alive = False
            return False
        self.times.append(time.thread_time() - began)
        self.costs.append(plan.cost)
        assert controller.last is not None
        self.failed += controller.last.iterations == 0 and not np.isfinite(controller.last.cost)
        u = plan.control(t, self.x)
        if self.pull.force.any():
            u = np.append(u, rotation_matrix(self.x[3:7]).T @ self.pull.at(t))
        step = self._plant.step(self.x, u)
        self.alive = bool(np.isfinite(step.state).all())
        if self.alive:
            self.x = step.state
            self.modes.append(step.modes)
        return self.alive

    def outcome(self) -> Outcome:
        """The run in numbers."""
        closed = np.array(self.modes) > 0
        return Outcome(
            objective_mean=float(np.mean(self.costs)) if self.costs else float("inf"),
            objective_std=float(np.std(self.costs)) if self.costs else 0.0,
            **pose_errors(self.problem, self.x, len(self.costs) * self.problem.dynamics.time_step),
            mode_switches=int((closed[1:] != closed[:-1]).sum()),
            fell=self.fell,
            ticks=len(self.costs),
            cpu=float(np.median(self.times)) if self.times else float("nan"),
            failed=self.failed,
        )
