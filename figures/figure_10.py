"""Figure 10: what the trainings of figure 9 ended with, over the number of robots.

    (a)  root mean square error of the velocity in rollouts over commands and frictions, mild starts
    (b)  the same of the yaw rate
    (c)  mean cost of the rollouts; beside a mark, the share that fell, where it is not zero
    (d)  seconds of the training on this machine; dashed: 2 and 20 minutes

The saved run is that of figure 9, which is made where it is not there.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from cito.figures import figure_9, style
from cito.figures.figure_9 import LABELS, LOOKS
from cito.figures.sweeps import Table

PANELS = {
    "velocity_rmse": "velocity RMSE [m/s]",
    "yaw_rate_rmse": "yaw-rate RMSE [rad/s]",
    "cost": "cost of rollouts",
    "wall_time": "training [s]",
}
MINUTES = (2, 20)  # dashed
settings, compute = figure_9.settings, figure_9.compute


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    table = Table.load(path)
    with style.sheet(8.4, 5.4) as figure:
        panels = figure.subplots(2, 2).ravel()
        for axes, (column, label), letter in zip(panels, PANELS.items(), "abcd"):
            _over_envs(axes, table, column)
            axes.set_ylabel(label)
            style.panel_letter(axes, letter)
        _tell_falls(panels[2], table)
        panels[3].set_yscale("log")
        for minutes in MINUTES:
            panels[3].axhline(60 * minutes, color="#999999", linestyle="--", linewidth=0.8)
        handles, labels = panels[0].get_legend_handles_labels()
        steps = {name: table.settings[name]["steps"] for name in LOOKS}
        told = {name: f"{n:,}".replace(",", " ") for name, n in steps.items()}
        title = "; ".join(f"{LABELS[name]}: {n} steps" for name, n in told.items())
        figure.legend(handles, labels, loc="outside lower center", ncols=2, title=title)
        return style.write(figure, out)


def _over_envs(axes: Axes, table: Table, column: str) -> None:
    """One number of each training."""
    for algorithm, look in LOOKS.items():
        own = table.where(algorithm=algorithm)
        axes.plot(
            own.numbers("envs"), own.numbers(column), color=look.color, marker=look.marker,
            label=LABELS[algorithm],
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_xlabel("robots")
    if column != "wall_time":
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.set_ylim(0, 1.1 * axes.get_ylim()[1])


def _tell_falls(axes: Axes, table: Table) -> None:
    """The share of rollouts that fell, beside its mark."""
    rows = zip(table.numbers("envs"), table.numbers("cost"), table.numbers("fall_rate"))
    for envs, cost, falls in rows:
        if falls > 0:
            axes.annotate(
                f"{100 * falls:.2g} %", (envs, cost), (4, 3), textcoords="offset points", fontsize=7
            )


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    run = figure_9.make(out, quick, fresh)[1]
    return [draw(run, run.with_stem(run.stem.replace("9", "10")).with_suffix(".png")), run]
