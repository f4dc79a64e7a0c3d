"""Figure robots: motions of legged robots that no schedule of contacts prescribed.

Above, snapshots of each motion from the side, moved apart along time: links, the trunk (a box of
its inertia), forces on the feet; the arrow at the left is the robot's weight. Below, when each foot
slides or sticks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import SubFigure
from matplotlib.patches import Polygon
from numpy.typing import NDArray

from cito import api
from cito.dynamics.tree import Body
from cito.dynamics.types import Array, IntArray
from cito.figures import runs, style
from cito.problems.registry import make as make_problem
from cito.visualization.motion import Motion, motion_of_solution
from cito.visualization.shapes import links

NEAR, FAR, TRUNK, FORCE = "#2B2B2B", "#A9A9A9", "#DCE6EF", "#D55E00"
SHARE = 0.35  # of the robot's height: the arrow of a foot that bears its equal share of the weight
_BELOW: dict[str, Any] = {
    "textcoords": "offset points",
    "fontsize": 7.5,
    "ha": "center",
    "color": "#505050",
    "annotation_clip": False,
}
LEAST_FORCE = 0.05  # of the weight, below it no arrow is drawn


class Scene(NamedTuple):
    """A task, its parameters, and how many snapshots show its motion."""

    title: str
    task: str
    parameters: dict[str, Any]
    shots: int


SCENES = {
    "go2-stand-up": Scene("Go2, stand-up", "stand-up", {"robot": "go2"}, 5),
    "go2-jump": Scene("Go2, jump of 0.3 m", "jump", {"robot": "go2"}, 7),
    "hopper-jump": Scene("hopper, jump of 0.3 m", "jump", {"robot": "hopper"}, 9),
    "biped-leap": Scene("biped, leap of 0.5 m", "leap", {"robot": "biped"}, 9),
}
QUICK = ("go2-stand-up", "hopper-jump")


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    scenes = {name: SCENES[name] for name in (QUICK if quick else SCENES)}
    return {
        "figure": "robots",
        "scenes": {name: [scene.task, scene.parameters] for name, scene in scenes.items()},
    }


def compute(path: Path, quick: bool) -> None:
    """Solve every scene; arrays NAME/states (N+1, nx), NAME/forces (N+1, nc, 3) [N], in contact
    frames, and NAME/modes (N, nc)."""
    chosen, facts = settings(quick), {}
    arrays: dict[str, NDArray[Any]] = {}
    for name in chosen["scenes"]:
        scene = SCENES[name]
        solution = api.solve(make_problem(scene.task, **scene.parameters))
        motion = motion_of_solution(solution)
        arrays[f"{name}/states"] = motion.states
        arrays[f"{name}/forces"] = motion.forces
        arrays[f"{name}/modes"] = solution.modes
        facts[name] = {
            "cost": solution.cost,
            "converged": bool(solution.converged),
            "time_step": solution.time_step,
        }
    runs.save(path, arrays, facts, chosen)


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    run = runs.load(path)
    names = [name for name in SCENES if name in run.settings["scenes"]]
    rows = (len(names) + 1) // 2
    heights = (1.1, 1.2)[:rows]
    with style.sheet(11.0, 2.5 * sum(heights) + 0.3) as figure:
        parts = figure.subfigures(
            rows, 2, wspace=0.03, hspace=0.02, height_ratios=heights, squeeze=False
        ).flat
        for i, (name, part) in enumerate(zip(names, parts)):
            _draw_scene(part, name, run, "abcd"[i])
        figure.legend(
            handles=style.mode_patches(style.MODE_SHADES), loc="outside lower center", ncols=3
        )
        return style.write(figure, out)


def motion_of(name: str, run: runs.Run) -> Motion:
    """The motion of a saved scene."""
    scene = SCENES[name]
    system = make_problem(scene.task, **scene.parameters).dynamics.system  # type: ignore[attr-defined]
    states, forces = run.arrays[f"{name}/states"], run.arrays[f"{name}/forces"]
    times = run.facts[name]["time_step"] * np.arange(len(states))
    friction = np.full(forces.shape[1], 0.8)
    return Motion(scene.title, system.system, times, states, forces, friction)


def _draw_scene(part: SubFigure, name: str, run: runs.Run, letter: str) -> None:
    motion = motion_of(name, run)
    feet = motion.forces.shape[1]
    above, below = part.subplots(2, 1, height_ratios=(6, 0.6 + 0.5 * feet))
    shots = np.linspace(0, len(motion.times) - 1, SCENES[name].shots).round().astype(int)
    _draw_shots(above, motion, shots)
    style.panel_letter(above, letter)
    above.set_title(SCENES[name].title)
    _draw_modes(below, motion, run.arrays[f"{name}/modes"], shots)


def _draw_shots(axes: Axes, motion: Motion, shots: IntArray) -> None:
    """Side views at the instants `shots`, each moved to the right of the one before."""
    bodies = motion.poses.positions
    reach = np.ptp(bodies[..., 0], axis=1).max()
    apart = 1.3 * max(reach, 0.4 * float(bodies[..., 2].max()))
    forces = np.nan_to_num(motion.world_forces[np.minimum(shots + 1, len(motion.times) - 1)])
    weight = motion.system.mass * motion.system.gravity
    scale = SHARE * bodies[0, :, 2].max() * forces.shape[1] / weight
    for i, k in enumerate(shots):
        shift = np.array([i * apart, 0.0])
        for outline in _outlines(motion, int(k)):
            outline.draw(axes, shift)
        _draw_forces(axes, motion, int(k), forces[i], shift, scale)
        place = shift[0] + bodies[k, :, 0].mean()
        axes.annotate(f"{motion.times[k]:.2f} s", (place, 0), (0, -11), **_BELOW)
    left = bodies[0, :, 0].min() - apart
    _arrow(axes, np.array([left, 0.0]), np.array([left, scale * weight]), "#808080")
    axes.annotate("weight", (left, 0), (0, -11), **_BELOW)
    axes.axhline(0, color="#808080", linewidth=0.8, zorder=0)
    axes.set_ylabel("height [m]")
    axes.spines["bottom"].set_visible(False)
    axes.set_xticks([])
    axes.margins(x=0.03, y=0.06)
    axes.set_ylim(bottom=-0.02)
    axes.set_aspect("equal", adjustable="box", anchor="S")


class _Outline(NamedTuple):
    """A link or, closed, a trunk: points (n, 2) in the plane [m]."""

    points: Array
    color: str
    closed: bool = False

    def draw(self, axes: Axes, shift: Array) -> None:
        points = self.points + shift
        if self.closed:
            axes.add_patch(
                Polygon(points, facecolor=self.color, edgecolor=NEAR, linewidth=1.0, zorder=2,
                        joinstyle="round")
            )  # fmt: skip
        else:
            axes.plot(
                *points.T, color=self.color, linewidth=2.6, solid_capstyle="round",
                zorder=1 if self.color == FAR else 3,
            )  # fmt: skip


def _outlines(motion: Motion, k: int) -> list[_Outline]:
    """The robot at its k-th instant, from the farthest part to the nearest."""
    R, p = motion.poses.rotations[k], motion.poses.positions[k]
    parts: list[tuple[float, _Outline]] = []
    middle = float(p[:, 1].mean())
    for link in links(motion.system):
        ends = p[link.body] + link.ends @ R[link.body].T
        depth = float(ends[:, 1].mean())
        far = depth > middle + 1e-3
        parts.append((depth, _Outline(ends[:, [0, 2]], FAR if far else NEAR)))
    trunk = int(np.argmax([body.mass for body in motion.system.bodies]))
    corners = p[trunk] + _box(motion.system.bodies[trunk]) @ R[trunk].T
    parts.append((middle, _Outline(corners[:, [0, 2]], TRUNK, closed=True)))
    return [part for _, part in sorted(parts, key=lambda part: -part[0])]


def _box(body: Body) -> Array:
    """Corners (4, 3) in the body's plane y = 0 of the box that has its mass and inertia [m]."""
    I_x, I_y, I_z = np.diag(body.inertia)
    squares = 1.5 * np.array([I_y + I_z - I_x, I_x + I_z - I_y, I_x + I_y - I_z]) / body.mass
    half = np.sqrt(np.maximum(squares, 1e-4))
    signs = np.array([[-1, 0, -1], [1, 0, -1], [1, 0, 1], [-1, 0, 1]])
    corners: Array = body.com + signs * half
    return corners


def _draw_forces(
    axes: Axes, motion: Motion, k: int, forces: Array, shift: Array, scale: float
) -> None:
    """Feet, filled where they touch, and the forces (nc, 3) on them; `scale` in m/N."""
    weight = motion.system.mass * motion.system.gravity
    for point, force in zip(motion.contacts[k][:, [0, 2]] + shift, forces[:, [0, 2]]):
        touches = np.linalg.norm(force) > LEAST_FORCE * weight
        axes.plot(
            *point, "o", markersize=3.2, color=NEAR, zorder=4, markeredgewidth=0.8,
            markerfacecolor=NEAR if touches else "white",
        )  # fmt: skip
        if touches:
            _arrow(axes, point, point + scale * force, FORCE)


def _arrow(axes: Axes, start: Array, end: Array, color: str) -> None:
    axes.annotate(
        "", tuple(end), tuple(start), zorder=5,
        arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 1.2, "mutation_scale": 7,
                    "shrinkA": 0, "shrinkB": 0},
    )  # fmt: skip
    axes.plot(*np.transpose([start, end]), alpha=0)  # limits of axes do not see annotations


def _draw_modes(axes: Axes, motion: Motion, modes: IntArray, shots: IntArray) -> None:
    """One strip for each foot over time, marks where the snapshots are."""
    names = [contact.name for contact in motion.system.contacts]
    colors = ListedColormap(style.MODE_SHADES)
    end = float(motion.times[-1])
    axes.imshow(
        modes.T, aspect="auto", cmap=colors, vmin=0, vmax=2, interpolation="nearest",
        extent=(0, end, len(names) - 0.5, -0.5),
    )  # fmt: skip
    for foot in range(1, len(names)):
        axes.axhline(foot - 0.5, color="white", linewidth=2)
    for k in shots:
        axes.axvline(motion.times[k], color=FORCE, linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(names)), [name.replace("_foot", "") for name in names])
    axes.tick_params(length=0, axis="y")
    axes.set(xlabel="time [s]", xlim=(0, end))
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


SCRIPT = runs.Script("robots", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
