"""`cito mpc`: a task, solved again and again while a robot moves."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from cito import api
from cito.cli_output import output_folder, print_json, print_pairs
from cito.cli_solve import GRADIENT_NUMBERS, task_parameters
from cito.dynamics.gradients import Gradient
from cito.dynamics.robot import Robot
from cito.dynamics.types import positive
from cito.hold import hold_of
from cito.mpc import MPC
from cito.problems.legged import robot_of
from cito.problems.problem import Problem
from cito.problems.task_files import task_name
from cito.realtime.clock import LockstepClock
from cito.realtime.controller import Controller
from cito.realtime.disturbance import Pull
from cito.realtime.loop import run
from cito.realtime.mujoco_robot import MujocoRobot
from cito.realtime.remote_controller import RemoteController
from cito.realtime.run_file import run_of
from cito.realtime.run_log import RunLog
from cito.realtime.self_robot import SelfRobot
from cito.realtime.tracking import followed
from cito.solvers.adaptive import Adaptive
from cito.visualization.motion import motion_of_run

ROBOTS = ("self", "mujoco")
SOLVE_TIME = 0.01  # what a plan takes, about [s]
BUDGET = 0.6  # share of the delay after which no further iteration is begun
PULLS = ("pull", "pull_time")  # settings of the simulator, unknown to the controller


def mpc(arguments: argparse.Namespace) -> int:
    """Pose, control, tell."""
    task = task_name(arguments.task)
    own, pull = split_pull(arguments.set)
    problem = api.make(task, **task_parameters(task, own))
    if not isinstance(getattr(problem.dynamics, "system", None), Robot):
        raise ValueError(
            f"task {task!r} is not about a robot, and `cito mpc` drives one; "
            f"`cito solve {task}` solves it, cito.MPC in Python again and again"
        )
    robot = robot_of(problem)
    solver_rate = 1 / problem.dynamics.time_step
    if arguments.rate is not None:
        solver_rate = positive("--rate", arguments.rate)
    positive("--control-rate", arguments.control_rate)
    positive("--duration", arguments.duration)
    controller = MPC(
        problem,
        arguments.iterations,
        gradient=chosen_gradient(arguments),
        hold=hold_of(problem, robot),
        delay=chosen_delay(arguments, solver_rate),
        budget=chosen_budget(arguments, solver_rate),
    )
    out = None if arguments.out is None else output_folder("--out", arguments.out)
    log = RunLog() if out is None else RunLog(out / f"{problem.name}.run")
    with ExitStack() as stack:
        plant, options = plant_of(arguments, robot, problem, pull)
        stack.callback(plant.close)
        planner: Controller = controller
        if not in_lockstep(arguments):
            planner = RemoteController(controller, priority=priorities(arguments.priority).solver)
            stack.callback(planner.close)
        summary = run(
            planner,
            plant,
            arguments.duration,
            max(arguments.control_rate, solver_rate),
            solver_rate=solver_rate,
            start=problem.start,
            log=log,
            about={"task": problem.name, "parameters": dict(problem.parameters)},
            **options,
        )
    logged = run_of(log)
    row = {"task": problem.name, "robot": arguments.robot, **summary.as_dict()}
    row |= followed(problem, logged, summary.final_state)
    row |= {"mode_switches": motion_of_run(logged).mode_switches}
    if arguments.json:
        print_json(row)
    else:
        print_pairs(told(row))
    return 1 if summary.stopped else 0


def split_pull(assignments: Sequence[str]) -> tuple[list[str], Pull]:
    """Settings of the task, and the pull that the others describe.

    Raises:
        ValueError: a pull that is no three numbers, or a time that is no two.
    """
    own, numbers = [], {"pull": [0.0, 0.0, 0.0], "pull_time": [0.0, 0.0]}
    for assignment in assignments:
        name, _, text = (part.strip() for part in assignment.partition("="))
        if name not in PULLS:
            own.append(assignment)
            continue
        try:
            numbers[name] = [float(item) for item in text.split(",")]
        except ValueError:
            wanted = "numbers separated by commas"
            raise ValueError(f"--set {name} must be {wanted}, got {text!r}") from None
    for name, length in (("pull", 3), ("pull_time", 2)):
        if len(numbers[name]) != length:
            raise ValueError(f"--set {name} must be {length} numbers, got {numbers[name]}")
    return own, Pull(np.array(numbers["pull"]), *numbers["pull_time"])


def chosen_gradient(arguments: argparse.Namespace) -> Gradient | None:
    """The gradient that the options name; None: the controller chooses, `adaptive`."""
    given = {n: getattr(arguments, n) for n in GRADIENT_NUMBERS if hasattr(arguments, n)}
    numbers = {name: value for name, value in given.items() if value is not None}
    if arguments.gradient in (None, Adaptive.name) and not numbers:
        return None
    gradient = api.gradient_named(arguments.gradient or "full-cone", **numbers)
    if not isinstance(gradient, Gradient):
        if arguments.gradient == Adaptive.name:
            raise ValueError("--gradient adaptive takes no numbers: it chooses them")
        raise ValueError(f"--gradient {arguments.gradient} is not for a controller")
    return gradient


def chosen_delay(arguments: argparse.Namespace, solver_rate: float) -> float:
    """From measurement to the moment at which a plan applies [s]: of a robot on a clock of its own
    about the time of a solve, at most 0.8 of the time between two."""
    if arguments.delay is not None:
        return float(arguments.delay)
    return 0.0 if in_lockstep(arguments) else min(SOLVE_TIME, 0.8 / solver_rate)


def chosen_budget(arguments: argparse.Namespace, solver_rate: float) -> float:
    """Time after which an update begins no further iteration, so that its plan is there when it
    applies [s]; none in lockstep, where time stands still."""
    delay = chosen_delay(arguments, solver_rate)
    return np.inf if in_lockstep(arguments) or delay == 0 else BUDGET * delay


class Priorities(NamedTuple):
    """Of SCHED_FIFO: the robot before the loop before the solver; None: as the scheduler likes."""

    robot: int | None
    loop: int | None
    solver: int | None


def priorities(wanted: bool) -> Priorities:
    """What is asked for; the operating system may refuse, and the log tells."""
    return Priorities(30, 20, 19) if wanted else Priorities(None, None, None)


def in_lockstep(arguments: argparse.Namespace) -> bool:
    """Whether the robot's time stands still while the controller thinks."""
    return arguments.robot == "self" or bool(arguments.lockstep)


def plant_of(
    arguments: argparse.Namespace, robot: Robot, problem: Problem, pull: Pull
) -> tuple[SelfRobot | MujocoRobot, dict[str, Any]]:
    """The simulator that the options name, and how the loop runs with it.

    Raises:
        ValueError: there is no such robot.
    """
    friction = float(np.max(getattr(problem.dynamics, "friction", 0.8)))
    pulled = pull if pull.force.any() else None
    lockstep: dict[str, Any] = {"inline": True, "clock": LockstepClock()}
    if arguments.robot == "self":
        return SelfRobot(robot, friction=friction, pull=pulled), lockstep
    if arguments.robot == "mujoco":
        first, second, _ = priorities(arguments.priority)
        still = bool(arguments.lockstep)
        mujoco = MujocoRobot(
            robot, lockstep=still, friction=friction, pull=pulled, priority=None if still else first
        )
        return mujoco, lockstep if still else {"priority": second}
    raise ValueError(f"--robot must be {' or '.join(ROBOTS)}, got {arguments.robot!r}")


def told(row: Mapping[str, Any]) -> list[tuple[str, object]]:
    """The lines that a person reads."""
    return [
        ("task", f"{row['task']} on {row['robot']}"),
        ("objective", f"{row['objective_mean']:.4g} +- {row['objective_std']:.2g}"),
        ("position error", f"{100 * row['position_error']:.2f} cm"),
        ("orientation error", f"{np.degrees(row['orientation_error']):.2f} degrees"),
        ("way behind", f"{100 * row['tracking_error']:.2f} cm on average"),
        ("speed", f"{row['velocity_error']:.3f} m/s off on average"),
        ("contact changes", row["mode_switches"]),
        ("other contacts", f"{row['other_contacts']} ticks"),
        ("fell", "yes" if row["fell"] else "no"),
        ("solve", f"{1e3 * row['solve_p50']:.2f} ms, 99 %: {1e3 * row['solve_p99']:.2f} ms"),
        ("period", f"99 %: {1e3 * row['period_p99']:.2f} ms"),
        ("missed deadlines", missed(row)),
        ("safety layer", f"acted {row['safety_events']} times"),
        *([("stopped", row["stopped"])] if row["stopped"] else []),
        *([("log", row["log"])] if row["log"] else []),
    ]


def missed(row: Mapping[str, Any]) -> str:
    """The deadlines that were missed, and what was taken from the loop meanwhile."""
    text = f"{row['missed_deadlines']} of {row['ticks']}"
    if not row["missed_deadlines"]:
        return text
    return (
        f"{text}, {row['unexplained_deadlines']} while nothing was taken from the loop "
        f"({row['stolen_time']:.2f} s stolen, {row['involuntary_switches']} switches; load "
        f"{row['load']:.1f})"
    )
