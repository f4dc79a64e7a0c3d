"""Figure rl-gradients: a soft actor-critic with the simulator's derivatives and without.

A panel for each task: the return of the policy without its noise over the samples seen so far,
median over seeds, shaded between the worst and the best of them. Dotted: what the plain learner
returned in the end, median over seeds; the marks below say where each method had reached it in the
median, as `cito bench rl-gradients` counts it. The table is beside it, as .csv.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from cito.benchmarks import rl_gradients
from cito.benchmarks.rl_gradients import BASELINE, Run, Size, baseline_return, samples_to
from cito.figures import runs, style
from cito.figures.sweeps import Table, swept

LOOKS = {
    "sac": style.Look("soft actor-critic", "#000000", "s", (0, (5, 2))),
    "policy": style.Look("with policy enhancement", "#1F7FC4", "o"),
    "sample": style.Look("with sample enhancement", "#D55E00", "^", (0, (4, 1, 1, 1))),
}
COLUMNS = 3


def size_of(quick: bool) -> Size:
    """What is run."""
    return rl_gradients.QUICK if quick else rl_gradients.FULL


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    size = size_of(quick)
    return {
        "figure": "rl-gradients",
        "tasks": size.tasks,
        "seeds": size.seeds,
        "config": dict(size.config),
    }


def experiments(size: Size) -> Iterator[tuple[dict[str, Any], Run]]:
    """What each run is called, and the run."""
    for task in size.tasks:
        for config in size.configs(task):
            yield {name: config[name] for name in ("task", "method", "seed")}, Run(config)


def compute(path: Path, quick: bool) -> None:
    """Run what has not been run yet, and save one column for each number of an outcome."""
    rows = list(experiments(size_of(quick)))
    swept(path, "figure rl-gradients", rl_gradients.outcome, rows, settings(quick))


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    table = Table.load(path)
    tasks = table.values("task")
    height = -(-len(tasks) // COLUMNS)
    with style.sheet(10.0, 0.5 + 2.6 * height) as figure:
        panels = figure.subplots(height, COLUMNS, squeeze=False)
        for axes, task in zip(panels.flat, tasks):
            _curves(axes, table.where(task=task))
            axes.set_title(task, fontsize=9)
        for axes in panels.flat[len(tasks) :]:
            axes.remove()
        for axes in panels.flat[max(len(tasks) - COLUMNS, 0) : len(tasks)]:
            axes.set_xlabel("samples")
        for axes in panels[:, 0]:
            axes.set_ylabel("return of an episode")
        figure.legend(
            *panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4,
            title=f"{table.settings['seeds']} seeds, one setting for all",
        )  # fmt: skip
        return style.write(figure, out)


def _curves(axes: Axes, table: Table) -> None:
    """One task."""
    level = baseline_return(list(table.where(method=BASELINE).numbers("final_return")))
    for method in table.values("method"):
        own, look = table.where(method=method), LOOKS[method]
        steps, returns = own.numbers("steps"), own.numbers("returns")
        axes.plot(
            steps[0], np.median(returns, axis=0), color=look.color, linestyle=look.line,
            label=look.label,
        )  # fmt: skip
        axes.fill_between(
            steps[0], returns.min(axis=0), returns.max(axis=0), color=look.color, alpha=0.13,
            linewidth=0,
        )  # fmt: skip
        samples = np.median([samples_to(level, s, r) for s, r in zip(steps, returns)])
        if np.isfinite(samples):
            axes.plot(
                samples, 0.03, look.marker, color=look.color, markersize=6, clip_on=False,
                transform=axes.get_xaxis_transform(),
            )  # fmt: skip
    end = "soft actor-critic in the end"
    axes.axhline(level, color="#808080", linestyle=":", linewidth=1.1, label=end, zorder=1)
    axes.set_xlim(0, table.numbers("steps").max())
    axes.grid(True, axis="y")


SCRIPT = runs.Script("rl-gradients", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
