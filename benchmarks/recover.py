"""A humanoid, pushed in eight directions: which gradients find the steps by which it recovers.

    push      0.3 m/s of the whole body, standing; the base shall give way and come to rest
    recovers  nothing but feet came near the ground, and the base is upright and slow in the end
    steps     a foot left the ground with all of its contacts and came down elsewhere

The controller's model is the plant: what differs between two rows is the gradient alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from cito import api
from cito.dynamics.conversions import rotation_matrix
from cito.dynamics.gradients import Exact, FullCone, Gradient, Signorini
from cito.dynamics.robot import Robot
from cito.dynamics.robot_stance import body_poses
from cito.dynamics.types import Array
from cito.hold import hold_of
from cito.mpc import MPC
from cito.plan import Hold
from cito.problems.legged import robot_of
from cito.problems.problem import Problem

SPEED = 0.3  # of the push [m/s]
DURATION, QUICK_DURATION = 3.0, 0.5  # [s]
DIRECTIONS = 8
ITERATIONS, FIRST_ITERATIONS = 4, 40
ELSEWHERE = 0.03  # how far away a foot must come down for a step [m]
LOW, TILTED, SLOW = 0.7, 0.5, 0.3  # share of the height, angle [rad] and speed [m/s] of no fall
METHODS: dict[str, Gradient | None] = {
    "exact": Exact(),
    "signorini": Signorini(0.3),
    "full-cone": FullCone(0.3),
    "adaptive": None,
}
WIDTHS = (12, 12, 10, 8, 12, 12)


class Outcome(NamedTuple):
    """Of one push: whether it recovers, how often a foot stepped, way of the base [m].

    objective: median of the plans' costs; single plans of a robot that stumbles cost anything.
    """

    recovers: bool
    steps: int
    objective: float
    way: float


def rows(quick: bool = False) -> Iterator[dict[str, Any]]:
    """One row a gradient and direction."""
    hold: Hold | None = None
    for name in list(METHODS)[2:3] if quick else METHODS:
        for k in range(0, DIRECTIONS, DIRECTIONS if quick else 1):
            angle = 2 * np.pi * k / DIRECTIONS
            push = (SPEED * np.cos(angle), SPEED * np.sin(angle), 0.0)
            problem = api.make("recover", push=push)
            hold = hold or hold_of(problem, robot_of(problem))
            done = recovery(problem, METHODS[name], hold, QUICK_DURATION if quick else DURATION)
            direction = round(360 * k / DIRECTIONS)
            yield {"gradient": name, "direction": direction, **done._asdict()}


def run(quick: bool = False) -> list[dict[str, Any]]:
    """All rows."""
    return list(rows(quick))


def total(quick: bool = False) -> int:
    """How many rows there are."""
    return 1 if quick else len(METHODS) * DIRECTIONS


def summarize(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of each gradient in how many directions it recovers, and recovers by steps."""
    found = {}
    for name in dict.fromkeys(row["gradient"] for row in rows):
        own = [row for row in rows if row["gradient"] == name]
        recovers = [row for row in own if row["recovers"]]
        found[name] = {
            "directions": len(own),
            "recovers": len(recovers),
            "by_steps": sum(row["steps"] > 0 for row in recovers),
        }
    return found


def tables(rows: Sequence[dict[str, Any]]) -> list[tuple[list[str], list[list[object]]]]:
    """What a person reads."""
    headers = ["gradient", "direction", "recovers", "steps", "objective", "way of base"]
    cells: list[list[object]] = [
        [
            row["gradient"],
            f"{row['direction']} deg",
            "yes" if row["recovers"] else "no",
            row["steps"],
            f"{row['objective']:.3g}",
            f"{100 * row['way']:.1f} cm",
        ]
        for row in rows
    ]
    return [(headers, cells)]


def recovery(
    problem: Problem, gradient: Gradient | None, hold: Hold, duration: float = DURATION
) -> Outcome:
    """Control the pushed robot for `duration` [s]; it ends at once where the robot falls."""
    robot, dynamics = robot_of(problem), problem.dynamics
    controller = MPC(
        problem, ITERATIONS, first_iterations=FIRST_ITERATIONS, gradient=gradient, hold=hold
    )
    x, costs, walk = problem.start, [], Steps(robot, problem.start)
    for k in range(round(duration / dynamics.time_step)):
        t = k * dynamics.time_step
        try:
            plan = controller.update(t, x)
        except ArithmeticError:
            return Outcome(False, walk.count, float("inf"), float("nan"))
        step = dynamics.step(x, plan.control(t, x))  # type: ignore[attr-defined]
        costs.append(plan.cost)
        if not np.isfinite(step.state).all() or _falls(step.state, problem.start):
            return Outcome(False, walk.count, float(np.median(costs)), float("nan"))
        x = step.state
        walk.see(x, step.modes)
    nq = robot.native.nq
    slow = bool(np.linalg.norm(x[nq : nq + 3]) < SLOW)
    way = float(np.linalg.norm(x[:2] - problem.start[:2]))
    return Outcome(slow, walk.count, float(np.median(costs)), way)


class Steps:
    """Counts the steps of a robot's feet, each of which may have several contacts."""

    def __init__(self, robot: Robot, x: Array) -> None:
        self._robot = robot
        self._bodies = [contact.body for contact in robot.contacts[: len(robot.feet)]]
        self._left: dict[str, Array] = {}  # where feet that are in the air were last
        self._places = self._at(x)
        self.count = 0

    def see(self, x: Array, modes: Array) -> None:
        """The state after a step, and the modes of its contacts."""
        places = self._at(x)
        for body, place in places.items():
            own = [i for i, name in enumerate(self._bodies) if name == body]
            if not modes[own].any():
                self._left.setdefault(body, self._places[body])
            elif body in self._left:
                way = place[:2] - self._left.pop(body)[:2]
                self.count += bool(np.linalg.norm(way) > ELSEWHERE)
        self._places = places

    def _at(self, x: Array) -> dict[str, Array]:
        poses = body_poses(self._robot.system.bodies, x[: self._robot.native.nq])
        return {body: poses[body].position for body in self._bodies}


def _falls(x: Array, start: Array) -> bool:
    upright = rotation_matrix(x[3:7])[2, 2]
    return bool(x[2] < LOW * start[2] or upright < np.cos(TILTED))
