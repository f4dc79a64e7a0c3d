"""Figure 6: policies that learn through contact, under each contact gradient.

Trainings of a Go2 by back-propagation through time, 16 robots, some seeds each. How it learns was
tuned for each gradient by the same small search on the trot (`cito bench gradient-tuning`):

    left     mean cost over the training: mean and spread over seeds
    middle   mean cost of rollouts over commands and the task's frictions, from mild starts;
             the median above
    right    share of rollouts that fall, over friction; shaded: frictions of the training

One row a task. A quick figure trains for half of the steps that the tasks take, with three seeds,
and walks three seconds instead of ten: it shows how training begins, not how it ends.
The table is beside it, as .csv.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from cito.benchmarks import gradient_tuning
from cito.benchmarks.learning import FRICTION_RANGE, Training, outcome
from cito.dynamics.types import Array
from cito.figures import runs, style
from cito.figures.sweeps import Table, swept
from cito.problems.locomotion import locomotion_task
from cito.solvers.learning.training import STEPS

GRADIENTS = ("exact", "signorini", "full-cone")
TASKS = ("trot", "pace", "gait-free", "gait-free-slippery")
FULL = {"tasks": TASKS, "seeds": 10, "share": 1.0, "seconds": 10.0}
QUICK = {"tasks": ("trot", "gait-free-slippery"), "seeds": 3, "share": 0.5, "seconds": 3.0}


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    made = {"figure": 6, "gradients": GRADIENTS, "tuned": gradient_tuning.TUNED}
    return made | (QUICK if quick else FULL)


def experiments(made: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Training]]:
    """What each training is called, and the training; seeds first, so that a part is fair."""
    for seed in range(made["seeds"]):
        for task in made["tasks"]:
            for gradient in made["gradients"]:
                named = {"task": task, "gradient": gradient, "seed": seed}
                config = gradient_tuning.config(task, gradient, made["tuned"][gradient])
                config |= {**named, "steps": round(made["share"] * STEPS[task]), "threads": 1}
                yield named, Training(config, made["seconds"])


def compute(path: Path, quick: bool) -> None:
    """Run what has not been run yet, and save one column for each number of an outcome."""
    made = settings(quick)
    swept(path, "figure 6", outcome, list(experiments(made)), made)


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    table = Table.load(path)
    tasks, gradients = table.values("task"), table.values("gradient")
    with style.sheet(10.0, 0.5 + 2.5 * len(tasks)) as figure:
        panels = figure.subplots(len(tasks), 3, squeeze=False, width_ratios=(1.4, 1.0, 1.2))
        for row, task in zip(panels, tasks):
            own = table.where(task=task)
            _curves(row[0], own, gradients)
            _violins(row[1], own, gradients)
            _falls(row[2], own, gradients)
            row[0].set_title(task, fontsize=9)
            low, high = locomotion_task(task).randomization.friction
            row[2].axvspan(low, high, color="#F1F1F1", zorder=0)
        for axes, letter in zip(panels[0], "abc"):
            style.panel_letter(axes, letter)
        panels[-1, 0].set_xlabel("control steps of all robots")
        panels[-1, 2].set_xlabel("friction")
        made = table.settings
        figure.legend(
            *panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3,
            title=f"{made['seeds']} seeds, {made['share']:.0%} of the steps, "
            f"{made['seconds']:g}-s rollouts, each gradient tuned alike",
        )  # fmt: skip
        return style.write(figure, out)


def _curves(axes: Axes, table: Table, gradients: list[str]) -> None:
    """Mean and spread of training costs over seeds."""
    for gradient in gradients:
        own, look = table.where(gradient=gradient), style.LOOKS[gradient]
        steps, cost = own.numbers("curve_steps")[0], own.numbers("curve_cost")
        mean, spread = cost.mean(axis=0), cost.std(axis=0)
        axes.plot(steps, mean, color=look.color, linestyle=look.line, label=look.label)
        axes.fill_between(
            steps, mean - spread, mean + spread, color=look.color, alpha=0.15, linewidth=0
        )
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_ylabel("training cost")
    axes.grid(True, axis="y", which="both")


def _violins(axes: Axes, table: Table, gradients: list[str]) -> None:
    """Costs of rollouts of all seeds, the lowest median in bold."""
    costs: list[Array] = [
        table.where(gradient=g).numbers("cost_quantiles").ravel() for g in gradients
    ]
    drawn = axes.violinplot(costs, showextrema=False, showmedians=False, widths=0.8)
    bodies: Any = drawn["bodies"]
    medians = [float(np.median(cost)) for cost in costs]
    for i, (gradient, body) in enumerate(zip(gradients, bodies)):
        body.set_facecolor(style.LOOKS[gradient].color)
        body.set_alpha(0.4)
        axes.plot(i + 1, medians[i], marker="_", color=style.LOOKS[gradient].color, markersize=12)
        axes.annotate(
            f"{medians[i]:.2f}", (i + 1, 1.0), xycoords=("data", "axes fraction"), ha="center",
            va="bottom", fontsize=8, fontweight="bold" if medians[i] == min(medians) else "normal",
        )  # fmt: skip
    axes.set_xticks(range(1, len(gradients) + 1), [style.LOOKS[g].label for g in gradients])
    axes.set_yscale("log")
    axes.set_ylabel("cost of a rollout")


def _falls(axes: Axes, table: Table, gradients: list[str]) -> None:
    """Falls over friction, mean over seeds."""
    for gradient in gradients:
        look = style.LOOKS[gradient]
        falls = table.where(gradient=gradient).numbers("falls_by_friction")
        mu = np.linspace(*FRICTION_RANGE, falls.shape[1])
        axes.plot(
            mu, 100 * falls.mean(axis=0), color=look.color, marker=look.marker, markersize=4,
            linestyle=look.line,
        )  # fmt: skip
    axes.set_ylim(-3, 103)
    axes.set_ylabel("falls [%]")


SCRIPT = runs.Script("figure_6", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
