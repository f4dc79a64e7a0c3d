"""`cito check`: what a robot's file says, and whether derivatives are right."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from cito import api
from cito.cli_output import MAX_SAMPLES, MAX_SEED, console, print_json, print_pairs, print_table
from cito.dynamics.check import check_gradients
from cito.dynamics.check_robot import RobotReport, check_modes
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.robot import Robot
from cito.dynamics.robot_stance import body_poses
from cito.dynamics.types import whole_number
from cito.problems.registry import tasks
from cito.problems.robots import load_robot, robots
from cito.problems.task_files import task_name

MODEL_SUFFIXES = (".xml", ".urdf", ".mjcf", ".xacro")
TIME_STEP = 0.01  # at which a robot's derivatives are tested [s]
FRICTION = 0.6  # where the file states none [-]
RELAXATION = 0.08  # typical speed [m/s]: rho = mass * speed^2
ROBOT_SAMPLES, TASK_SAMPLES = 2, 200


def check(arguments: argparse.Namespace) -> int:
    """A robot's file or a task, whichever the name is of."""
    whole_number("--seed", arguments.seed, 0, MAX_SEED)
    if arguments.samples is not None:
        whole_number("--samples", arguments.samples, 1, MAX_SAMPLES)
    if is_robot(arguments.model):
        return check_robot(arguments)
    if ".py" not in arguments.model:
        api.known_name("task or robot", arguments.model, [*tasks(), *robots()])
    for option, given in (
        ("--feet", arguments.feet),
        ("--contacts", arguments.contacts),
        ("--fixed-base", arguments.fixed_base),
    ):
        if given:
            raise ValueError(f"{option} is for robots, and {arguments.model!r} is none")
    return check_task(arguments)


def is_robot(model: str) -> bool:
    """Whether this is the name of a robot, or a path that looks like a robot's file."""
    path = Path(model)
    is_model = path.suffix.lower() in MODEL_SUFFIXES
    return model in robots() or is_model or (path.suffix != ".py" and path.is_file())


def check_task(arguments: argparse.Namespace) -> int:
    """Finite differences of a task's dynamics, gradient by gradient and mode by mode."""
    samples = TASK_SAMPLES if arguments.samples is None else arguments.samples
    problem = api.make(task_name(arguments.model))
    report = check_gradients(
        problem.dynamics, center=problem.start, samples=samples, seed=arguments.seed
    )
    if arguments.json:
        print_json(
            {
                "task": problem.name,
                "passed": report.passed,
                "error": report.error,
                "skipped": report.skipped,
                "rows": [row._asdict() for row in report.rows],
            }
        )
    else:
        headers = ("gradient", "modes", "samples", "error", "magnitude")
        print_table(headers, ((r.gradient, r.modes or "-", *r[2:]) for r in report.rows))
        print(f"{verdict(report.passed)}; {report.skipped} samples skipped near a mode boundary")
    return status(report.passed, report.error, bool(report.rows))


def check_robot(arguments: argparse.Namespace) -> int:
    """What was understood of a robot's file, and the derivatives of its step."""
    robot = load_robot(
        arguments.model,
        feet=names(arguments.feet),
        floating_base=False if arguments.fixed_base else None,
        contacts=names(arguments.contacts) or (),
    )
    report = derivatives(robot, arguments.samples or ROBOT_SAMPLES, arguments.seed)
    row = understood(robot) | checked(report)
    if arguments.json:
        print_json(row)
    else:
        tell(robot, row, report)
    return status(report.passed, report.error, bool(report.rows))


def derivatives(robot: Robot, states: int, seed: int) -> RobotReport:
    """Those of the robot's step near its stance, in every contact mode."""
    friction = FRICTION if robot.friction is None else robot.friction
    dynamics = ContactDynamics(robot, TIME_STEP, friction)
    rho = robot.system.mass * RELAXATION**2
    feet = range(len(robot.feet)) if robot.feet else None
    return check_modes(dynamics, robot.stance, feet=feet, rho=rho, states=states, seed=seed)


def understood(robot: Robot) -> dict[str, Any]:
    """What the file says, as plain numbers; infinite limits are None."""
    system = robot.native
    return {
        "robot": robot.name,
        "file": str(robot.source),
        "mass": robot.system.mass,
        "nq": system.nq,
        "nv": system.nv,
        "nu": system.nu,
        "floating_base": robot.system.bodies[0].joint == "free",
        "gravity": robot.system.gravity,
        "joints": joints(robot),
        "torque_limits": limits(robot.torque_limits),
        "feet": [row for row in contacts(robot) if row["name"] in robot.feet],
        "contacts": [row for row in contacts(robot) if row["name"] not in robot.feet],
        "stance": robot.stance.tolist(),
        "warnings": list(robot.warnings),
    }


def joints(robot: Robot) -> list[dict[str, Any]]:
    """Name, limits and what acts on it, of each joint with one coordinate."""
    bodies = [body for body in robot.system.bodies if body.nv == 1]
    torque = dict(zip(robot.actuated, limits(robot.torque_limits)))
    speeds = [None] * len(bodies) if robot.velocity_limits is None else robot.velocity_limits
    return [
        {
            "name": name,
            "kind": body.joint,
            "limits": limits(bounds),
            "driven": name in torque,
            "torque_limit": torque.get(name),
            "velocity_limit": None if speed is None else limits([speed])[0],
            "damping": body.damping,
            "armature": body.armature,
            "dry_friction": body.dry_friction,
            "stiffness": body.stiffness,
        }
        for name, body, bounds, speed in zip(robot.joints, bodies, robot.joint_limits, speeds)
    ]


def contacts(robot: Robot) -> list[dict[str, Any]]:
    """Name, body, radius, friction of each contact, and where it is when the robot stands."""
    poses = body_poses(robot.system.bodies, robot.stance)
    rows = []
    for i, contact in enumerate(robot.contacts):
        pose = poses[contact.body]
        rows.append(
            {
                "name": contact.name,
                "body": contact.body,
                "position": (pose.position + pose.rotation @ contact.position).tolist(),
                "radius": contact.radius,
                "friction": None if robot.friction is None else float(robot.friction[i]),
            }
        )
    return rows


def checked(report: RobotReport) -> dict[str, Any]:
    """What became of the derivatives."""
    return {
        "derivative_error": report.errors(),
        "passed": report.passed,
        "derivatives": [row._asdict() | {"error": row.error} for row in report.rows],
        "modes_not_met": list(report.missing),
        "modes_with_bracing": list(report.braced),
    }


def tell(robot: Robot, row: dict[str, Any], report: RobotReport) -> None:
    """The tables that a person reads."""
    base = "floating base" if row["floating_base"] else "base on joints of the world"
    print_pairs(
        [
            ("robot", row["robot"]),
            ("file", row["file"]),
            ("mass", f"{row['mass']:.6g} kg"),
            ("coordinates", f"nq {row['nq']}, nv {row['nv']}, {base}"),
            ("controls", f"nu {row['nu']}"),
            ("gravity", f"{row['gravity']:g} m/s^2"),
        ]
    )
    optional = ("velocity_limit", "damping", "armature", "dry_friction", "stiffness")
    keys = ["torque_limit", *(k for k in optional if any(j[k] for j in row["joints"]))]
    headers = ("joint", "lower", "upper", *(key.replace("_", " ") for key in keys))
    print_table(headers, ((j["name"], *j["limits"], *(j[k] for k in keys)) for j in row["joints"]))
    if robot.contacts:
        titles = ("contact", "", "body", "position when standing", "radius", "friction")
        print_table(titles, ((*contact_cells(c, robot),) for c in row["feet"] + row["contacts"]))
    columns = ("mode", "gradient", "whole", "production", "magnitude", "contacts")
    print_table(
        columns,
        (
            (r.mode, r.gradient, r.whole, r.production, r.magnitude, " ".join(r.patterns) or "-")
            for r in report.rows
        ),
    )
    for sentence in row["warnings"] + remarks(report):
        console().print(f"- {sentence}", markup=False)
    print(f"derivatives {verdict(report.passed)}")


def contact_cells(contact: dict[str, Any], robot: Robot) -> tuple[object, ...]:
    """A row of the table of contacts."""
    role = "foot" if contact["name"] in robot.feet else ""
    place = " ".join(f"{x:7.3f}" for x in contact["position"])
    return (contact["name"], role, contact["body"], place, contact["radius"], contact["friction"])


def remarks(report: RobotReport) -> list[str]:
    """What a reader of the derivatives should know."""
    sentences = []
    if report.missing:
        sentences.append(f"No state was found in the modes {', '.join(report.missing)}.")
    if report.braced:
        sentences.append(
            f"In {', '.join(report.braced)} contacts of one body brace each other, which leaves "
            "their impulses undetermined: there only full-cone is tested."
        )
    return sentences


def limits(values: Any) -> list[float | None]:
    """Numbers as they are, infinite ones as None."""
    return [float(value) if np.isfinite(value) else None for value in values]


def names(texts: list[str] | None) -> list[str] | None:
    """Names from options that may be repeated and hold commas."""
    if not texts:
        return None
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def verdict(passed: bool) -> str:
    """One word."""
    return "passed" if passed else "FAILED"


def status(passed: bool, error: float, any_checked: bool) -> int:
    """0, or 1 with the reason on standard error."""
    if passed:
        return 0
    reason = f"error {error:.1e}" if any_checked else "no state could be checked"
    print(f"cito: the derivatives did not pass: {reason}", file=sys.stderr)
    return 1
