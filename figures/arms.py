"""Arms that throw and hit a ball, and how fast their torques are found.

(a), (b)   the motions found by gradient: links now and then, the way of the ball, the target
(c) .. (f) error over processor time, by gradient and by CMA-ES, from the same guess
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from cito.benchmarks.demonstrations import (
    LIMIT,
    QUICK_LIMIT,
    REACHED,
    Demonstration,
    demonstrations,
    posed,
)
from cito.benchmarks.evolution import Run
from cito.dynamics.robot_stance import body_poses
from cito.dynamics.types import Array
from cito.figures import runs, style
from cito.problems.arm import ARM_LENGTH, BALL_RADIUS, HIT_RADIUS

SHOTS = 7  # how often the arm is drawn
TITLES = {
    "arm-throw": "a throw, 7 joints",
    "arm-hit": "a hit, 2 joints",
    "friction": "friction of a sliding mass",
    "link-mass": "mass of a link",
}
SHORT = {"arm-throw": "throw", "arm-hit": "hit", "friction": "friction", "link-mass": "link mass"}
NOTE: dict[str, Any] = {"ha": "right", "va": "top", "fontsize": 7.5, "color": "#606060"}
EVOLUTION = style.Look("CMA-ES", "#D55E00", "D", (0, (4, 1, 1, 1)))
GRADIENT = style.Look("by gradient", "#1F7FC4", "o")


def settings(quick: bool) -> dict[str, Any]:
    """What the run depends on."""
    return {"limit": QUICK_LIMIT / 2 if quick else LIMIT, "version": 2}


def compute(path: Path, quick: bool) -> None:
    """Run both methods on every problem and save their histories and motions."""
    chosen, arrays, facts = settings(quick), {}, {}
    for demonstration in demonstrations():
        name = demonstration.name
        for method, run in _both(demonstration, chosen["limit"]):
            arrays[f"{name} {method}"] = np.array(run.history)
            if method == "gradient" and run.states is not None:
                arrays[f"{name} states"] = run.states
        facts[name] = demonstration.parameters
    runs.save(path, arrays, facts, chosen)


def _both(demonstration: Demonstration, limit: float) -> list[tuple[str, Run]]:
    return [
        ("gradient", demonstration.by_gradient()),
        ("evolution", demonstration.without(limit)),
    ]


def draw(path: Path, out: Path) -> Path:
    """Draw a saved run."""
    run = runs.load(path)
    with style.sheet(10.0, 6.4) as figure:
        grid = figure.add_gridspec(2, 4, height_ratios=(1.5, 1))
        for i, name in enumerate(("arm-throw", "arm-hit")):
            axes = figure.add_subplot(grid[0, 2 * i : 2 * i + 2])
            _motion(axes, name, run.arrays[f"{name} states"])
            style.panel_letter(axes, "ab"[i])
        for i, name in enumerate(TITLES):
            axes = figure.add_subplot(grid[1, i])
            _convergence(axes, name, run)
            style.panel_letter(axes, "cdef"[i])
        axes.legend(loc="upper right")
        return style.write(figure, out)


def _motion(axes: Axes, name: str, states: Array) -> None:
    """Side view in the vertical plane through the base and the target."""
    problem = posed(name)
    joints, bodies = problem.dynamics.nu, problem.dynamics.system.bodies  # type: ignore[attr-defined]
    target = np.asarray(problem.parameters["target"])
    along = target[:2] / np.linalg.norm(target[:2])
    radius = BALL_RADIUS if name == "arm-throw" else HIT_RADIUS
    tip = 0.06 if name == "arm-throw" else -ARM_LENGTH

    def side(points: Array) -> tuple[Array, Array]:
        return points[..., :2] @ along, points[..., 2]

    knots = np.linspace(0, len(states) - 1, SHOTS).astype(int)
    for shade, k in enumerate(knots):
        poses = body_poses(bodies, states[k, : problem.dynamics.manifold.nq])
        links = [poses[body.name] for body in bodies[:joints]]
        points = [link.position for link in links]
        points.append(links[-1].position + links[-1].rotation @ [0, 0, tip])
        grey = str(0.82 - 0.7 * shade / (SHOTS - 1))
        axes.plot(*side(np.array(points)), color=grey, linewidth=2.2, solid_capstyle="round")
    ball = states[:, joints : joints + 3]
    axes.plot(*side(ball), ".-", color=GRADIENT.color, markersize=3, linewidth=0.8)
    from matplotlib.patches import Circle

    for k in knots:
        x, z = side(ball[k])
        axes.add_patch(Circle((float(x), float(z)), radius, fill=False, color=GRADIENT.color))
    axes.plot(*side(target), "+", color="#D55E00", markersize=14, markeredgewidth=2)
    axes.axhline(0, color="#808080", linewidth=0.8)
    axes.text(0.99, 0.98, "links from light to dark in time", transform=axes.transAxes, **NOTE)
    axes.set(xlabel="towards the target [m]", ylabel="height [m]", title=TITLES[name])
    axes.set_aspect("equal", adjustable="datalim")


def _convergence(axes: Axes, name: str, run: runs.Run) -> None:
    for method, look in (("gradient", GRADIENT), ("evolution", EVOLUTION)):
        seconds, error = run.arrays[f"{name} {method}"].T[:2]
        axes.plot(
            seconds,
            error,
            color=look.color,
            linestyle=look.line,
            marker=look.marker if len(error) < 30 else None,
            markersize=3,
            label=look.label,
        )
    axes.axhline(REACHED, color="#808080", linewidth=0.8, linestyle=":")
    count = run.facts[name]
    unknowns = f"{count} unknowns" if count > 1 else "1 unknown"
    axes.set(xscale="log", yscale="log", xlabel="processor time [s]")
    axes.set_title(f"{SHORT[name]}, {unknowns}", fontsize=9, loc="right")
    axes.set_ylabel("error [m]" if name in ("arm-throw", "arm-hit") else "relative error")
    low, high = axes.get_xlim()
    if high < 100 * low:  # less than two powers of ten would be labelled
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


SCRIPT = runs.Script("figure_arms", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
