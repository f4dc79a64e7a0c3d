"""A run on one sheet: base pose, contact modes, forces on the feet, torques and timing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from cito.dynamics.conversions import rotation_matrix
from cito.dynamics.types import Array
from cito.realtime.joints import Joints
from cito.realtime.run_file import Run
from cito.solvers.solution_file import checked_target
from cito.visualization.motion import Motion, motion_of_run

MODES = ("separating", "sliding", "clamping")
MODE_COLORS = ("#F0F0F0", "#B4B4B4", "#5E5E5E")
SETTINGS = {"font.size": 8, "axes.grid": True, "grid.alpha": 0.3, "legend.fontsize": 7}
FORMATS = (".png", ".pdf", ".svg")


def plot_run(run: Run, path: str | os.PathLike[str]) -> Path:
    """Draw `run` into a .png, .pdf or .svg file at `path`.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: another ending, or a run without a tick.
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise ValueError(f"`path` must end in {', '.join(FORMATS)}, got {path.name!r}")
    target = checked_target(path)
    with matplotlib.rc_context(SETTINGS):
        figure = run_figure(run)
        temporary = target.with_name(f".{target.stem[:40]}.{os.getpid()}{path.suffix}")
        try:
            figure.savefig(temporary, dpi=130)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    return path


def run_figure(run: Run) -> Figure:
    """All panels below each other, over time."""
    motion, robot = motion_of_run(run), run.robot()
    figure = Figure(figsize=(8.27, 11.69), layout="constrained")
    FigureCanvasAgg(figure)
    heights = [1.2, 1.2, 0.25 * len(robot.feet), 1.3, 1.3, 1.0, 1.0]
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    figure.suptitle(f"{motion.name}: {run.about['robot']}{'' if run.complete else ', cut off'}")
    floating = Joints.of(robot).floating
    _base(axes[0], axes[1], motion, floating)
    _modes(axes[2], motion, robot.feet)
    _forces(axes[3], motion, robot.feet)
    _torques(axes[4], run)
    _states(axes[5], run)
    _timing(axes[6], run)
    for axis in axes:
        _mark_damping(axis, run)
    axes[-1].set_xlabel("time [s]")
    axes[-1].set_xlim(motion.times[0], max(motion.times[-1], motion.times[0] + 1e-3))
    return figure


def euler_angles(quaternions: Array) -> Array:
    """Roll, pitch and yaw (K, 3) [rad] of quaternions x y z w (K, 4): R = Rz Ry Rx."""
    R = rotation_matrix(quaternions)
    roll = np.arctan2(R[:, 2, 1], R[:, 2, 2])
    pitch = np.arcsin(np.clip(-R[:, 2, 0], -1, 1))
    yaw = np.arctan2(R[:, 1, 0], R[:, 0, 0])
    return np.unwrap(np.stack([roll, pitch, yaw], axis=1), axis=0)


def _base(above: Any, below: Any, motion: Motion, floating: bool) -> None:
    """Position and orientation of the base; the first coordinates where it is no free body."""
    if not floating:
        above.plot(motion.times, motion.states[:, :3], label=motion.system.names[:3])
        above.set_ylabel("q")
        below.set_visible(False)
        return
    above.plot(motion.times, motion.states[:, :3], label=["x", "y", "z"])
    above.set_ylabel("base [m]")
    below.plot(motion.times, euler_angles(motion.states[:, 3:7]), label=["roll", "pitch", "yaw"])
    below.set_ylabel("base [rad]")
    for axis in (above, below):
        axis.legend(loc="upper left", ncols=3)


def _modes(axis: Any, motion: Motion, feet: tuple[str, ...]) -> None:
    """One strip a foot."""
    edges = np.append(
        motion.times, 2 * motion.times[-1] - motion.times[max(-2, -len(motion.times))]
    )
    axis.pcolormesh(
        edges,
        np.arange(len(feet) + 1) - 0.5,
        motion.modes[:, : len(feet)].T,
        cmap=ListedColormap(MODE_COLORS),
        vmin=-0.5,
        vmax=2.5,
        rasterized=True,
    )
    axis.set_yticks(range(len(feet)), feet)
    axis.invert_yaxis()
    axis.grid(False)
    for name, color in zip(MODES, MODE_COLORS):
        axis.plot([], [], "s", color=color, label=name)
    axis.legend(loc="upper left", ncols=3)


def _forces(axis: Any, motion: Motion, feet: tuple[str, ...]) -> None:
    for i, foot in enumerate(feet):
        (line,) = axis.plot(motion.times, motion.forces[:, i, 2], label=foot)
        tangential = np.linalg.norm(motion.forces[:, i, :2], axis=-1)
        axis.plot(motion.times, tangential, color=line.get_color(), linewidth=0.6, alpha=0.6)
    axis.set_ylabel("forces [N]\n(thin: along\nthe ground)")
    axis.legend(loc="upper left", ncols=4)


def _torques(axis: Any, run: Run) -> None:
    axis.plot(run.times, run.torques, linewidth=0.6)
    axis.set_ylabel("torques\n[N m]")


def _states(axis: Any, run: Run) -> None:
    """Ages of what was acted upon."""
    axis.plot(run.times, 1e3 * run.ticks["state_age"], label="state")
    axis.plot(run.times, 1e3 * run.ticks["plan_age"], label="plan")
    axis.set_ylabel("age [ms]")
    axis.legend(loc="upper left", ncols=2)


def _timing(axis: Any, run: Run) -> None:
    """Periods and solves on a logarithmic scale, missed deadlines as crosses."""
    if len(run.times) > 1:
        axis.plot(run.times[1:], 1e3 * np.diff(run.times), linewidth=0.6, label="period")
    axis.plot(run.solves["time"], 1e3 * run.solves["cpu"], ".", markersize=3, label="solve, CPU")
    axis.plot(run.solves["time"], 1e3 * run.solves["wall"], ".", markersize=2, label="solve, wall")
    missed = run.ticks["missed"] > 0
    axis.plot(run.times[missed], 1e3 * run.ticks["busy"][missed], "x", label="missed deadline")
    axis.set_yscale("log")
    axis.set_ylabel("time [ms]")
    axis.legend(loc="upper left", ncols=4)


def _mark_damping(axis: Any, run: Run) -> None:
    """A red background where the safety layer damped the robot."""
    damping = np.concatenate([[False], run.ticks["damping"], [False]])
    changes = np.flatnonzero(np.diff(damping.astype(int)))
    for start, stop in zip(changes[::2], changes[1::2]):
        axis.axvspan(run.times[start], run.times[stop - 1], color="red", alpha=0.12, linewidth=0)
