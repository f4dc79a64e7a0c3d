"""Figure 14: what pulls a standing quadruped survives, under each gradient.

A Go2 stands (task `base-pose-c3` without an offset, N = 20, h = 25 ms, four iterations an update)
while a constant force that its controller does not know of pulls at the origin of its base from
0.25 s on for 0.5 s. It survives if for 3 s nothing but its feet touches the ground.

Survival is not monotone in the force, so that single runs mislead: at each level and for each of
eight directions several directions near it are tried, and all is told, as shares in the heat maps
and as rows of the .csv beside the picture. `resisted` is the largest level up to which, from the
lowest on, at least nine in ten survive.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from cito.benchmarks.closed_loop import METHODS, RHO, Experiment, outcome
from cito.dynamics.types import Array
from cito.figures import runs, style
from cito.figures.sweeps import Table, swept

TASK, TARGET = "base-pose-c3", (0.0, 0.0, 0.0)
LEVELS = (40.0, 80.0, 120.0, 160.0, 200.0)  # [N]
DIRECTIONS, PERTURBED, SPREAD = 8, 10, 0.2  # [rad] largest deviation from a direction
PULL_START, PULL_DURATION, DURATION = 0.25, 0.5, 3.0  # [s]
TICKS, ITERATIONS = 120, 4
QUICK = {"levels": (80.0, 160.0), "directions": 4, "perturbed": 2}
SURVIVING = 0.9  # share of survivors at a level that counts as resisted
DIRECTION_NAMES = ("forward", "fwd left", "left", "back left", "back", "back right", "right",
                   "fwd right")  # fmt: skip


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    full = {"levels": LEVELS, "directions": DIRECTIONS, "perturbed": PERTURBED}
    shared = {"figure": 14, "task": TASK, "target": TARGET, "methods": list(METHODS), "rho": RHO}
    pull = {"pull_time": (PULL_START, PULL_DURATION), "spread": SPREAD}
    limits = {"ticks": TICKS, "iterations": ITERATIONS}
    return {**shared, **pull, **limits, **(QUICK if quick else full)}


def experiments(made: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Experiment]]:
    """What each run is called, and the run."""
    deviations = np.linspace(-made["spread"], made["spread"], made["perturbed"])
    for level in made["levels"]:
        for k in range(made["directions"]):
            for deviation in deviations:
                angle = float(2 * np.pi * k / made["directions"] + deviation)
                force = np.round(level * np.array([np.cos(angle), np.sin(angle), 0.0]), 6)
                for method in made["methods"]:
                    named = {"method": method, "level": level, "direction": k, "angle": angle}
                    yield (
                        named,
                        Experiment(
                            made["task"],
                            {"target": list(made["target"])},
                            method,
                            made["ticks"],
                            made["iterations"],
                            pull=force.tolist(),
                            pull_time=list(made["pull_time"]),
                            until_fall=True,
                        ),
                    )


def compute(path: Path, quick: bool) -> None:
    """Run what has not been run yet, and save one column for each number of an outcome."""
    made = settings(quick)
    swept(path, "figure 14", outcome, list(experiments(made)), made)


def survival(table: Table, method: str) -> Array:
    """Share of the runs in which the robot did not fall, (directions, levels)."""
    made = table.settings
    share = np.zeros((made["directions"], len(made["levels"])))
    for k in range(made["directions"]):
        for i, level in enumerate(made["levels"]):
            fell = table.where(method=method, direction=k, level=level).numbers("fell")
            share[k, i] = np.mean(np.isnan(fell))
    return share


def resisted(share: Array, levels: Array) -> Array:
    """The largest level up to which nine in ten survive, 0 where the first is too much, (...,).

    Args:
        share: of survivors, (..., levels).
        levels: rising, (levels,) [N].
    """
    passed = np.cumprod(share >= SURVIVING, axis=-1).sum(axis=-1)
    found: Array = np.append(0.0, levels)[passed]
    return found


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    table = Table.load(path)
    methods = table.settings["methods"]
    with style.sheet(11.0, 4.6) as figure:
        panels = figure.subplots(1, len(methods), sharey=True)
        for axes, letter, method in zip(panels, "abcd", methods):
            image = _draw_survival(axes, table, method)
            style.panel_letter(axes, letter)
            axes.set_title(style.LOOKS[method].label, color=style.LOOKS[method].color)
            axes.set_xlabel("force [N]")
        panels[0].set_ylabel("direction of the pull")
        bar = figure.colorbar(image, ax=panels, shrink=0.8, label="share of survivors")
        bar.ax.axhline(SURVIVING, color="black", linewidth=1)
        return style.write(figure, out)


def _draw_survival(axes: Axes, table: Table, method: str) -> Any:
    """Shares as a heat map; a bar at the largest level that is resisted."""
    made, share = table.settings, survival(table, method)
    levels = np.array(made["levels"])
    image = axes.imshow(share, cmap="cividis", vmin=0, vmax=1, aspect="auto", origin="lower")
    for (k, i), value in np.ndenumerate(share):
        axes.text(
            i, k, f"{value:.1f}".removeprefix("0") if value < 1 else "1", ha="center",
            va="center", fontsize=7.5, color="black" if value > 0.5 else "white",
        )  # fmt: skip
    for k, level in enumerate(resisted(share, levels)):
        edge = float(np.searchsorted(levels, level, side="right")) - 0.5
        axes.plot([edge, edge], [k - 0.45, k + 0.45], color="#D5008F", linewidth=2.4)
    axes.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
    step = len(DIRECTION_NAMES) // made["directions"]
    axes.set_yticks(range(made["directions"]), DIRECTION_NAMES[::step])
    axes.spines[:].set_visible(False)
    return image


SCRIPT = runs.Script("figure_14", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
