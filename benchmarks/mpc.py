"""Controllers of a quadruped on the same work: bring the base somewhere, in MuJoCo's world.

    cito, full-cone / exact     cito's model, hard contact, 20 steps of 25 ms
    MuJoCo iLQR                 MuJoCo's model and finite differences, the same steps, costs,
                                recursion, line search and controller: the approach of MuJoCo MPC
    Crocoddyl BoxFDDP           one plan for the whole motion on a prescribed trot, then followed
                                with its gains (`cito.benchmarks.mpc_crocoddyl`)

Plans apply at once, however long they took. The world is MuJoCo's for all of them (steps of
1.25 ms, elliptic cones), with torques and gains at 400 Hz. The costs are those of the task
`base-pose-c3`; `cost` is theirs over the motion that was driven, not over plans. It counts as a
success if nothing but feet touched the ground and the base ended within 15 cm and 0.15 rad of its
target (these costs trade position for posture). `iteration_ms` is processor time of one thread,
median: linearization, recursion and rollouts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cito.benchmarks.closed_loop import Watch
from cito.benchmarks.mpc_crocoddyl import HOW_TO_PROVIDE, find_python, trot
from cito.benchmarks.mujoco_dynamics import MujocoDynamics
from cito.benchmarks.peer_rows import Row
from cito.benchmarks.peer_rows import row as peer_row
from cito.dynamics.gradients import Exact, FullCone, Gradient
from cito.dynamics.types import Array
from cito.mpc import MPC
from cito.plan import Plan, joint_hold
from cito.problems.legged import pose_errors, robot_of
from cito.problems.objective import Objective
from cito.problems.problem import Problem
from cito.problems.registry import make

TASK = "base-pose-c3"
TARGETS = ((0.4, 0.0, 0.0), (0.0, -0.4, 0.0), (0.75, 0.0, 0.0))  # [m]
DURATION, QUICK_DURATION = 3.0, 2.0  # [s]
ITERATIONS = 4
RATE, WORLD_SUBSTEPS = 400.0, 2  # of torques [Hz]; of MuJoCo in between
CLOSE = (0.15, 0.15)  # [m], [rad]
PLANNING_SUBSTEPS = 2  # of MuJoCo in a step of the plan


class Driven(NamedTuple):
    """A motion: states at the knots (K+1, nx), controls there (K, nu), when it fell [s]."""

    states: Array
    controls: Array
    fell: float | None
    iteration: float  # processor time [s], median


def rows(quick: bool, crocoddyl_python: str | None = None) -> Iterator[Row]:
    """One row for each target and controller."""
    python = find_python(crocoddyl_python)
    for target in TARGETS[:1] if quick else TARGETS:
        problem = make(TASK, target=target)
        ticks = round((QUICK_DURATION if quick else DURATION) / problem.dynamics.time_step)
        for name, gradient in (("cito, full-cone", FullCone(0.4)), ("cito, exact", Exact())):
            yield _row(name, problem, ticks, _receding(problem, problem, gradient, ticks))
        mujoco = replace(problem, dynamics=planner(problem))
        note = f"{PLANNING_SUBSTEPS} steps of MuJoCo in one of the plan, forward differences"
        driven = _receding(problem, mujoco, None, ticks)
        yield _row("MuJoCo iLQR", problem, ticks, driven, note)
        yield _crocoddyl(python, problem, ticks)


def run(quick: bool) -> list[Row]:
    """All rows."""
    return list(rows(quick))


def total(quick: bool, crocoddyl_python: str | None = None) -> int:
    """How many rows there will be."""
    return 4 * (1 if quick else len(TARGETS))


def beside_peers(crocoddyl_python: str | None = None) -> Iterator[Row]:
    """One target as rows of `cito bench peers`: the time of an iteration, with cost and success."""
    what, first = "plan of a base pose, one iteration", None
    for told in rows(True, crocoddyl_python):
        ms = told["iteration_ms"]
        first = first or ms
        if ms is None:
            yield peer_row(told["name"], what, None, None, told["note"])
            continue
        reached = "reached" if told["success"] else "not reached"
        note = f"{told['target']} m {reached}, cost {told['cost']:.0f}; "
        note += told["note"] or "see cito bench mpc"
        ratio = ms / first if first else None
        shared = peer_row(told["name"], what, 1e3 * ms, ratio, note)
        yield shared | {"cost": told["cost"], "success": told["success"]}


def planner(problem: Problem) -> MujocoDynamics:
    """MuJoCo with its own contact parameters, as a planner's model of the problem's robot."""
    h, friction = problem.dynamics.time_step, float(problem.parameters["friction"])
    return MujocoDynamics(robot_of(problem), h, PLANNING_SUBSTEPS, friction)


def world(problem: Problem) -> MujocoDynamics:
    """MuJoCo with little creep, as the world that the robot is in."""
    friction, substeps = float(problem.parameters["friction"]), WORLD_SUBSTEPS
    return MujocoDynamics(
        robot_of(problem), 1 / RATE, substeps, friction, impratio=100.0, cone="elliptic"
    )


def _receding(problem: Problem, planned: Problem, gradient: Gradient | None, ticks: int) -> Driven:
    """The motion under a controller that plans at every knot."""
    controller = MPC(
        planned, ITERATIONS, gradient=gradient, hold=joint_hold(problem, robot_of(problem))
    )
    seconds: list[float] = []

    def update(t: float, x: Array) -> Plan:
        began = time.thread_time()
        plan = controller.update(t, x)
        assert controller.last is not None
        if controller.last.iterations and t > 0:
            seconds.append((time.thread_time() - began) / controller.last.iterations)
        return plan

    states, controls, fell = _drive(problem, ticks, update)
    return Driven(states, controls, fell, float(np.median(seconds)) if seconds else np.nan)


def _drive(problem: Problem, ticks: int, update: Any) -> tuple[Array, Array, float | None]:
    """The plans that `update(t, x)` returns, followed in the world from the problem's start."""
    plant, watch, h = world(problem), Watch(robot_of(problem)), problem.dynamics.time_step
    x, fell, inner = problem.start, None, round(h * RATE)
    states, controls = [x], []
    for k in range(ticks):
        plan = update(k * h, x)
        for i in range(inner):
            u = plan.control(k * h + i / RATE, x)
            controls += [u] if i == 0 else []
            x = plant.rollout(x, u[None]).states[1]
        if not np.isfinite(x).all():
            return np.array(states), np.array(controls[: len(states) - 1]), (k + 1) * h
        states.append(x)
        if fell is None and watch.touches(x):
            fell = (k + 1) * h
    return np.array(states), np.array(controls), fell


def _crocoddyl(python: str | None, problem: Problem, ticks: int) -> Row:
    name = "Crocoddyl BoxFDDP"
    if python is None:
        return _row(name, problem, ticks, None, HOW_TO_PROVIDE)
    try:
        found = trot(python, problem, ticks)
    except OSError as error:
        return _row(name, problem, ticks, None, f"skipped: {error}")
    states, controls, fell = _drive(problem, ticks, lambda t, x: found.plan)
    note = (
        f"{found.version}: one plan of {ticks} steps on a prescribed trot, {found.iterations} "
        f"iterations{'' if found.converged else ', not converged'}, then followed"
    )
    return _row(name, problem, ticks, Driven(states, controls, fell, found.iteration), note)


def _row(name: str, problem: Problem, ticks: int, driven: Driven | None, note: str = "") -> Row:
    target = ", ".join(f"{value:g}" for value in problem.parameters["target"])
    told: Row = {"target": target, "name": name, "cost": None, "success": None, "note": note}
    told |= {"position_error": None, "orientation_error": None, "fell": None, "iteration_ms": None}
    if driven is None:
        return told
    errors = pose_errors(problem, driven.states[-1])
    whole = len(driven.controls) == ticks
    N = np.tile(driven.controls[-1:], (ticks, 1))
    cost = np.inf
    if whole:
        posed = replace(problem, horizon=ticks, initial_controls=N)
        cost = float(Objective(posed).value(driven.states, driven.controls))
    near = errors["position_error"] < CLOSE[0] and errors["orientation_error"] < CLOSE[1]
    return told | {
        "cost": cost,
        "success": bool(whole and driven.fell is None and near),
        **errors,
        "fell": driven.fell,
        "iteration_ms": 1e3 * driven.iteration,
    }


def tables(rows: list[Row]) -> list[tuple[list[str], list[list[Any]]]]:
    """The rows as a person reads them."""
    headers = ["target [m]", "controller", "cost", "success", "short", "turned", "ms/iteration"]
    cells = []
    for row in rows:
        errors: list[str | None] = [None, None]
        if row["position_error"] is not None:
            turned = np.degrees(row["orientation_error"])
            errors = [f"{100 * row['position_error']:.1f} cm", f"{turned:.1f} deg"]
        cost, ms = row["cost"], row["iteration_ms"]
        cells.append(
            [
                row["target"],
                row["name"],
                None if cost is None else f"{cost:.1f}",
                row["success"],
                *errors,
                None if ms is None else f"{ms:.2f}",
            ]
        )
    notes = [[row["target"], row["name"], row["note"]] for row in rows if row["note"]]
    return [(headers, cells), (["target [m]", "controller", "note"], notes)]
