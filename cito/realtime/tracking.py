"""How well a robot followed what a task wanted of its base, from the log of the run."""

from __future__ import annotations

import numpy as np

from cito.dynamics import _native
from cito.dynamics.conversions import rotation_matrix
from cito.dynamics.robot import Robot
from cito.dynamics.types import Array
from cito.problems.base_motion import BasePoses, base_poses
from cito.problems.moving_base import MovingBase
from cito.problems.problem import Problem
from cito.problems.robot_costs import BasePose
from cito.realtime.run_file import Run

TOUCHING = 1e-4  # distance from the ground below which a contact is one [m]
SAMPLES = 200  # states of a run at which the reference is looked at, about


def followed(problem: Problem, run: Run, final: Array | None) -> dict[str, float]:
    """What a run made of a task's reference, NaN where the task has none.

    position_error [m], orientation_error [rad]: of the `final` state (nx,); tracking_error [m]:
    mean distance to the reference over the run; velocity_error [m/s]: mean difference of the
    base's velocity, averaged over half a second, to the reference's; other_contacts: ticks in
    which something else than a foot was on the ground.
    """
    nothing = float("nan")
    keys = ("position_error", "orientation_error", "tracking_error", "velocity_error")
    row = dict.fromkeys(keys, nothing) | {"other_contacts": other_contacts(problem, run)}
    times, states = run.ticks["time"], run.ticks["state"]
    if final is None or not len(times) or reference(problem, times[:1]) is None:
        return row
    last = reference(problem, times[-1:])
    assert last is not None
    row["position_error"] = float(np.linalg.norm(final[:3] - last.position[0]))
    row["orientation_error"] = _angle(last.orientation[0], final[3:7])
    k = np.unique(np.linspace(0, len(times) - 1, SAMPLES).astype(int))
    wanted = reference(problem, times[k])
    assert wanted is not None
    way = states[k, :3] - wanted.position
    row["tracking_error"] = float(np.linalg.norm(way, axis=1).mean())
    half = np.searchsorted(times[k], times[k] + 0.5)
    pairs = [(i, j) for i, j in enumerate(half) if j < len(k)]
    if pairs:
        i, j = np.array(pairs).T
        drift = (way[j] - way[i]) / (times[k][j] - times[k][i])[:, None]
        row["velocity_error"] = float(np.linalg.norm(drift, axis=1).mean())
    return row


def reference(problem: Problem, times: Array) -> BasePoses | None:
    """Where the base shall be at these times (m,); None where nothing says so."""
    costs = problem.costs_at
    if isinstance(costs, MovingBase):
        return base_poses(costs.robot, costs.command, times)
    poses = [term for term in problem.costs if isinstance(term, BasePose) and term.body is None]
    if not poses:
        return None
    m, still = len(times), np.zeros((len(times), 3))
    rows = (np.atleast_2d(poses[-1].position)[-1:], np.atleast_2d(poses[-1].orientation)[-1:])
    position, orientation = (np.repeat(row, m, axis=0) for row in rows)
    return BasePoses(position, orientation, still, still, still[:, 0], still[:, 0])


def other_contacts(problem: Problem, run: Run) -> int:
    """Ticks in which a candidate contact that is no foot touches the ground."""
    robot = getattr(problem.dynamics, "system", None)
    if not isinstance(robot, Robot) or len(robot.contacts) == len(robot.feet):
        return 0
    native, others = robot.native, slice(len(robot.feet), len(robot.contacts))
    still, count = np.zeros(native.nv), 0
    for x in run.ticks["state"]:
        phi = _native.system_terms(native, None, x[: native.nq].copy(), still)[-1]
        count += bool((phi[others] <= TOUCHING).any())
    return count


def _angle(reference: Array, quaternion: Array) -> float:
    """Between two orientations, quaternions x y z w [rad]."""
    R = rotation_matrix(reference).T @ rotation_matrix(quaternion)
    return float(np.arccos(np.clip((np.trace(R) - 1) / 2, -1.0, 1.0)))
