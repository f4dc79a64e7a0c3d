"""A motion to be shown: of a run or of a solution, in one form."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from cito.dynamics.robot import Robot
from cito.dynamics.tree import TreeSystem
from cito.dynamics.types import Array, IntArray
from cito.problems.registry import make
from cito.realtime.run_file import Run, load_run
from cito.solvers.solution import Solution
from cito.solvers.solution_file import read_solution
from cito.visualization.kinematics import (
    Poses,
    body_poses,
    contact_frames,
    contact_points,
    contact_velocities,
)

TOUCH = 1.0  # normal force above which a contact is closed [N]
SLIP = 0.05  # speed along the ground above which a closed contact slides [m/s]
SEPARATING, SLIDING, CLAMPING = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Motion:
    """What can be drawn.

    Args:
        name: for a title.
        system: bodies and contacts.
        times: (K,) [s].
        states: x, (K, nx).
        forces: on the contacts in their frames (T1, T2, N), (K, nc, 3) [N]; NaN: not known.
        friction: of each contact, (nc,) [-].
        source: the robot's file; None where it has none.
    """

    name: str
    system: TreeSystem
    times: Array
    states: Array
    forces: Array
    friction: Array
    source: Path | None = field(default=None)

    @cached_property
    def poses(self) -> Poses:
        """Placements of the bodies."""
        return body_poses(self.system, self.states[:, : self.system.native.nq])

    @cached_property
    def frames(self) -> Array:
        """Frames of the contacts in the world, rows T1, T2 and N, (K, nc, 3, 3)."""
        return contact_frames(self.system, self.poses, self._centres)

    @cached_property
    def contacts(self) -> Array:
        """Where the contacts touch, on the surface of their spheres, (K, nc, 3) [m]."""
        radii = np.array([contact.radius for contact in self.system.contacts])
        return self._centres - radii[:, None] * self.frames[:, :, 2]

    @cached_property
    def world_forces(self) -> Array:
        """Forces on the contacts in the world frame, (K, nc, 3) [N]."""
        forces: Array = np.einsum("kcab,kca->kcb", self.frames, self.forces)
        return forces

    @cached_property
    def modes(self) -> IntArray:
        """0 separating, 1 sliding, 2 clamping, from forces and speeds of the contacts, (K, nc)."""
        times = self.times + 1e-9 * np.arange(len(self.times))  # strictly increasing
        velocities = contact_velocities(self.system, self.poses, self._centres, times)
        slip = np.einsum("kcab,kcb->kca", self.frames[:, :, :2], velocities)
        closed = np.nan_to_num(self.forces[:, :, 2]) > TOUCH
        modes = np.where(np.linalg.norm(slip, axis=-1) > SLIP, SLIDING, CLAMPING)
        return np.where(closed, modes, SEPARATING).astype(np.int32)

    @property
    def mode_switches(self) -> int:
        """How many times a contact changed its mode."""
        return int(np.count_nonzero(np.diff(self.modes, axis=0)))

    @cached_property
    def _centres(self) -> Array:
        return contact_points(self.system, self.poses)

    def at(self, times: Array) -> Motion:
        """The motion at other times: that of the last instant known at each."""
        k = np.clip(np.searchsorted(self.times, times + 1e-9, side="right") - 1, 0, None)
        return Motion(
            self.name,
            self.system,
            np.asarray(times),
            self.states[k],
            self.forces[k],
            self.friction,
            self.source,
        )


def load_motion(path: str | os.PathLike[str]) -> Motion:
    """The motion in a log of a run or in a saved solution.

    Raises:
        FileNotFoundError: there is no such file, or the robot's own file is gone.
        ValueError: the file is neither, is damaged, or holds no kinematic tree.
    """
    if _is_solution(Path(path)):
        return motion_of_solution(read_solution(path))
    return motion_of_run(load_run(path), Path(path).stem)


def motion_of_run(run: Run, name: str = "run") -> Motion:
    """The motion of a run: of what its loop knew."""
    if not len(run.ticks):
        raise ValueError("there is not a single tick in this run")
    robot = run.robot()
    nc = len(robot.contacts)
    forces = np.full((len(run.ticks), nc, 3), np.nan)
    forces[:, : run.forces.shape[1]] = run.forces
    return Motion(name, robot.system, run.times, run.states, forces, _friction(robot), robot.source)


def motion_of_solution(solution: Solution) -> Motion:
    """The motion of a solution of a task whose system is a kinematic tree."""
    dynamics = make(solution.task, **solution.parameters).dynamics
    robot = getattr(dynamics, "system", None)
    system = robot.system if isinstance(robot, Robot) else robot
    if not isinstance(system, TreeSystem):
        raise ValueError(
            f"task {solution.task!r} can not be shown: its system is no kinematic tree; "
            "`cito figure` draws the planar tasks"
        )
    N, h, nc = len(solution.controls), solution.time_step, len(system.contacts)
    forces = np.full((N + 1, nc, 3), np.nan)
    # Each impulse ends at its state; those of joint limits come last and are left out.
    forces[1:] = solution.impulses[:, : 3 * nc].reshape(N, nc, 3) / h
    return Motion(
        solution.task,
        system,
        np.asarray(h * np.arange(N + 1), dtype=np.float64),
        solution.states,
        forces,
        np.asarray(getattr(dynamics, "friction", np.full(nc, 0.8)))[:nc],
        robot.source if isinstance(robot, Robot) else None,
    )


def _friction(robot: Robot) -> Array:
    nc = len(robot.contacts)
    return np.full(nc, 0.8) if robot.friction is None else robot.friction[:nc]


def _is_solution(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return "about.npy" in archive.namelist()
