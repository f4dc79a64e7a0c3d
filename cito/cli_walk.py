"""`cito walk`: a learned policy in the real-time loop, behind the safety layer."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from cito.cli_output import print_json, print_pairs
from cito.learning.policy_controller import PolicyController, walk
from cito.problems.locomotion import LocomotionTask
from cito.realtime.clock import LockstepClock
from cito.realtime.disturbance import Pull
from cito.realtime.mujoco_robot import MujocoRobot
from cito.realtime.run_log import RunLog
from cito.realtime.self_robot import SelfRobot
from cito.solvers.learning.training import load_policy

ROBOTS = ("self", "mujoco")


def run_walk(arguments: argparse.Namespace) -> int:
    """Walk, tell; status 1 where the safety layer gave up."""
    config, policy = load_policy(arguments.folder)
    task = config.locomotion()
    controller = PolicyController(task, policy, arguments.velocity)
    pull = Pull(np.array(arguments.pull[:3]), *arguments.pull[3:])
    log = RunLog() if arguments.out is None else RunLog(arguments.out)
    plant, options = _plant(arguments, task, pull)
    try:
        summary, found = walk(controller, plant, arguments.duration, log, **options)
    finally:
        plant.close()
    row = {"task": task.name, "robot": arguments.robot, **found, **summary.as_dict()}
    if arguments.json:
        print_json(row)
    else:
        print_pairs(_told(row))
    return 1 if summary.stopped else 0


def _plant(
    arguments: argparse.Namespace, task: LocomotionTask, pull: Pull
) -> tuple[SelfRobot | MujocoRobot, dict[str, Any]]:
    """The simulator, and how the loop runs with it.

    Raises:
        ValueError: there is no such robot.
    """
    pulled = pull if pull.force.any() else None
    lockstep = {"inline": True, "clock": LockstepClock()}
    if arguments.robot == "self":
        plant = SelfRobot(task.robot, friction=arguments.friction, pull=pulled)
        return plant, lockstep
    if arguments.robot == "mujoco":
        mujoco = MujocoRobot(
            task.robot, lockstep=arguments.lockstep, friction=arguments.friction, pull=pulled
        )
        return mujoco, lockstep if arguments.lockstep else {}
    raise ValueError(f"--robot must be {' or '.join(ROBOTS)}, got {arguments.robot!r}")


def _told(row: dict[str, Any]) -> list[tuple[str, object]]:
    """The lines that a person reads."""
    return [
        ("task", f"{row['task']} on {row['robot']}"),
        ("velocity", f"{row['velocity_rmse']:.3f} m/s off, root mean square"),
        ("yaw rate", f"{row['yaw_rate_rmse']:.3f} rad/s off"),
        ("distance", f"{row['distance']:.2f} m"),
        ("fell", "yes" if row["fell"] else "no"),
        ("decision", f"{1e3 * row['solve_p50']:.2f} ms, 99 %: {1e3 * row['solve_p99']:.2f} ms"),
        ("missed deadlines", row["missed_deadlines"]),
        ("safety layer", f"acted {row['safety_events']} times"),
    ]
