"""Figure scaling: time of a step and of its Jacobians over the size of the robot, beside MuJoCo.

Left over degrees of freedom (trunks on four legs of 2 to 8 hinges, and four robots), right over
contact points (a Go2 standing on 1 to 16). cito differentiates in closed form, MuJoCo by forward
differences. One thread, processor time, all four taken in turn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullFormatter, ScalarFormatter

from cito.figures import runs, style

CURVES = {
    "cito_step": style.Look("cito, step", "#1F7FC4", "o"),
    "cito_jacobian": style.Look("cito, step and Jacobians", "#0A3A82", "s"),
    "mujoco_step": style.Look("MuJoCo, step", "#E69F00", "^", (0, (5, 2))),
    "mujoco_jacobian": style.Look("MuJoCo, finite differences", "#D55E00", "D", (0, (5, 2))),
}


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    from cito.benchmarks import scaling

    return {
        "figure": "scaling",
        "joints": scaling.QUICK_JOINTS if quick else scaling.JOINTS,
        "points": scaling.QUICK_POINTS if quick else scaling.POINTS,
        "time_step": scaling.TIME_STEP,
        "rho": scaling.GRADIENT.rho,
    }


def compute(path: Path, quick: bool) -> None:
    """Measure every robot; arrays named after the fields of `cito.benchmarks.scaling.Scaled`."""
    from cito.benchmarks import scaling

    sizes = list(scaling.measured(quick))
    arrays = {name: np.array(column) for name, column in zip(scaling.Scaled._fields, zip(*sizes))}
    runs.save(path, arrays, {}, settings(quick))


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    run = runs.load(path)
    with style.sheet(9.6, 4.4) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        _draw_curves(left, run, "dof", "dof")
        _draw_robots(left, run)
        _draw_curves(right, run, "contacts", "contacts")
        left.set_xlabel("degrees of freedom (4 contacts; hollow: robots and their contacts)")
        right.set_xlabel("contact points (18 degrees of freedom; above 4 redundant)")
        left.set_ylabel("microseconds")
        left.yaxis.set_major_formatter(ScalarFormatter())
        left.set_xlim(3.6, 48)
        left.set_ylim(top=2.5 * max(run.arrays[name].max() for name in CURVES))
        for axes, letter, ticks in (
            (left, "a", (5, 10, 20, 40)),
            (right, "b", run.settings["points"]),
        ):
            axes.xaxis.set_major_locator(FixedLocator(list(ticks)))
            axes.xaxis.set_major_formatter(ScalarFormatter())
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.grid(True, which="major")
            style.panel_letter(axes, letter)
        handles, labels = right.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        return style.write(figure, out)


def _draw_curves(axes: Axes, run: runs.Run, curve: str, over: str) -> None:
    """Time over size of the robots of one curve, both logarithmic."""
    chosen = run.arrays["curve"] == curve
    for name, look in CURVES.items():
        axes.loglog(
            run.arrays[over][chosen], run.arrays[name][chosen], label=look.label,
            color=look.color, marker=look.marker, markersize=4, linestyle=look.line,
        )  # fmt: skip


def _draw_robots(axes: Axes, run: runs.Run) -> None:
    """The named robots, hollow, with their names above."""
    chosen = run.arrays["curve"] == "robots"
    dof, contacts = run.arrays["dof"][chosen], run.arrays["contacts"][chosen]
    for name, look in CURVES.items():
        axes.loglog(
            dof, run.arrays[name][chosen], linestyle="", color=look.color, marker=look.marker,
            markersize=6, markerfacecolor="none",
        )  # fmt: skip
    for robot, x, y, count in zip(
        run.arrays["robot"][chosen], dof, run.arrays["mujoco_jacobian"][chosen], contacts
    ):
        axes.annotate(
            f"{robot} ({count})", (x, y), (0, 7), textcoords="offset points", ha="center",
            fontsize=8,
        )  # fmt: skip


SCRIPT = runs.Script("scaling", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
