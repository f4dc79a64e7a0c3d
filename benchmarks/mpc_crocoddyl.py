"""A trot planned by Crocoddyl's BoxFDDP for the reaching task, in a Python of its own."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cito.benchmarks import crocoddyl_trot_worker
from cito.benchmarks.peer_crocoddyl import HOW_TO_PROVIDE as HOW_TO_PROVIDE
from cito.benchmarks.peer_crocoddyl import find_python as find_python
from cito.benchmarks.peer_crocoddyl import last_words, robot_tables
from cito.dynamics.robot import Robot
from cito.dynamics.types import Array
from cito.plan import Plan
from cito.problems.legged import robot_of
from cito.problems.problem import Problem
from cito.problems.robot_costs import BasePose, BaseVelocity, JointVelocity, Posture, Torque
from cito.visualization.kinematics import body_poses, contact_points

STANDING, SWING = 4, 10  # knots before the first swing, of a swing
CYCLES = 4  # swings of each foot, where there is time for as many
LIFT = 0.06  # height of a swing [m]
PAIRS = ((0, 3), (1, 2))  # of FL, FR, RL, RR that swing together
TIMEOUT = 600.0  # [s]


class Gait(NamedTuple):
    """Where each foot's centre shall be (N, feet, 3) [m], and whether it stands (N, feet)."""

    places: Array
    contact: Array


class Trotted(NamedTuple):
    """A plan and how it was made; iteration: processor time [s]."""

    plan: Plan
    iterations: int
    iteration: float
    converged: bool
    version: str


def trot(python: str, problem: Problem, horizon: int) -> Trotted:
    """The whole motion as one plan.

    Raises:
        OSError: Crocoddyl does not run in that Python; says what it complained of.
    """
    robot = robot_of(problem)
    with tempfile.TemporaryDirectory() as folder:
        work, made = f"{folder}/work.npz", f"{folder}/plan.npz"
        np.savez(work, **robot_tables(robot.system), **posed(problem, robot, horizon))
        script = str(Path(crocoddyl_trot_worker.__file__).resolve())
        worker = subprocess.run(
            [python, script, work, made], capture_output=True, text=True, timeout=TIMEOUT
        )
        if worker.returncode != 0:
            raise OSError(last_words(python, worker.returncode, worker.stderr))
        with np.load(made, allow_pickle=False) as file:
            found = dict(file)
    N, dynamics = len(found["controls"]), problem.dynamics
    plan = Plan(
        dynamics,
        0.0,
        found["states"],
        found["controls"],
        found["gains"],
        np.zeros((N, dynamics.n)),
        np.zeros((N, dynamics.nc), np.int32),
        float(found["cost"]),
        problem.control_lower,
        problem.control_upper,
    )
    iterations = int(found["iterations"])
    seconds = float(found["seconds"]) / max(iterations, 1)
    return Trotted(plan, iterations, seconds, bool(found["converged"]), str(found["version"]))


def posed(problem: Problem, robot: Robot, horizon: int) -> dict[str, Any]:
    """Start, goal, weights and gait as plain arrays, the weights read off the task's costs."""
    found: dict[tuple[type, bool], Any] = {
        (type(term), getattr(term, "knots", "") == "terminal"): term for term in problem.costs
    }
    pose, final = found[BasePose, False], found[BasePose, True]
    velocity, posture = found[BaseVelocity, False], found[Posture, False]
    speed, torque = found[JointVelocity, False], found[Torque, False]
    goal = problem.start.copy()
    goal[:7] = np.append(pose.position, pose.orientation)
    joints = np.ones(len(robot.joints))

    def weights(of: Any) -> Array:
        parts = (
            np.broadcast_to(of.position_weight, 3),
            np.broadcast_to(of.orientation_weight, 3),
            posture.weight * joints,
            np.broadcast_to(velocity.linear_weight, 3),
            np.broadcast_to(velocity.angular_weight, 3),
            speed.weight * joints,
        )
        return np.concatenate(parts)

    way = goal[:3] - problem.start[:3]
    gait = trot_gait(foot_centres(robot, problem.start), way, horizon)
    return {
        "start": problem.start,
        "goal": goal,
        "state_weights": weights(pose),
        "terminal_weights": weights(final),
        "torque_weight": np.array(float(torque.weight)),
        "torque_limits": robot.torque_limits,
        "friction": np.array(float(problem.parameters["friction"])),
        "time_step": np.array(problem.dynamics.time_step),
        "foot_places": gait.places,
        "foot_contact": gait.contact,
    }


def foot_centres(robot: Robot, x: Array) -> Array:
    """Centres of the feet in the world, (feet, 3) [m]."""
    poses = body_poses(robot.system, x[None, : robot.native.nq])
    return np.asarray(contact_points(robot.system, poses)[0, : len(robot.feet)])


def trot_gait(feet: Array, way: Array, horizon: int) -> Gait:
    """Diagonal pairs swing in turn until every foot has gone the whole way, then all stand.

    Args:
        feet: where they are, (4, 3) [m].
        way: of each, (3,) [m]; along the ground.
        horizon: number of knots N.
    """
    cycles = max(min(CYCLES, (horizon - 2 * STANDING) // (2 * SWING)), 1)
    places, contact = np.tile(feet, (horizon, 1, 1)), np.ones((horizon, len(feet)), dtype=bool)
    share = np.append(way[:2], 0.0) / cycles
    for cycle in range(cycles):
        for half, pair in enumerate(PAIRS):
            first = STANDING + (2 * cycle + half) * SWING
            for k in range(first, min(first + SWING, horizon)):
                s = (k - first + 1) / SWING
                # smooth at both ends: no speed at lift-off and touchdown
                along, up = s * s * (3 - 2 * s), 16 * (s * (1 - s)) ** 2
                for foot in pair:
                    places[k, foot] = feet[foot] + (cycle + along) * share + [0, 0, LIFT * up]
                    contact[k, foot] = False
            for foot in pair:
                places[min(first + SWING, horizon) :, foot] = feet[foot] + (cycle + 1) * share
    return Gait(places, contact)
