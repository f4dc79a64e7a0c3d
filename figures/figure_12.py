"""Figure 12: a quadruped reaches base poses; the objective of its controller under each gradient.

A Go2 in closed loop for 10 s (400 updates, N = 20, h = 25 ms, task `base-pose-c3`): at every update
four DDP iterations (twenty at the first), hard rollouts throughout, one contact gradient. A run's
number is the mean over its updates of the plan's objective; drawn are the runs of each target and
their mean and standard deviation over directions or offsets.

    (a)  translation by 0.2 .. 1.6 m in eight directions
    (b)  yaw by 0.17 .. 3.1 rad, offsets within 0.1 m
    (c)  pitch by 0.4 .. 1.2 rad, offsets within 0.3 m

Hollow: something else than a foot touched the ground. `cito.MPC` chooses the gradient called
adaptive where none is given. The table is beside the picture, as .csv.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from cito.benchmarks.closed_loop import METHODS, RHO, Experiment, outcome
from cito.dynamics.types import Array
from cito.figures import runs, style
from cito.figures.sweeps import Table, swept

TASK = "base-pose-c3"
DISTANCES = (0.2, 0.4, 0.75, 1.2, 1.6)  # [m]
YAWS, YAW_OFFSET = (0.17, 0.8, 1.6, 3.1), 0.1  # [rad], [m]
PITCHES, PITCH_OFFSET = (0.4, 0.8, 1.2), 0.3  # [rad], [m]
DIRECTIONS, OFFSETS = 8, 10
TICKS, ITERATIONS, SEED = 400, 4, 0
QUICK = {
    "distances": (0.4, 0.75),
    "yaws": (1.6,),
    "pitches": (0.4,),
    "directions": 2,
    "offsets": 2,
    "ticks": 100,
}
GROUPS = {"translation": "translation [m]", "yaw": "yaw [rad]", "pitch": "pitch [rad]"}


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    full = {
        "distances": DISTANCES,
        "yaws": YAWS,
        "pitches": PITCHES,
        "directions": DIRECTIONS,
        "offsets": OFFSETS,
        "ticks": TICKS,
    }
    shared = {"figure": 12, "task": TASK, "methods": list(METHODS), "rho": RHO, "seed": SEED}
    limits = {"yaw_offset": YAW_OFFSET, "pitch_offset": PITCH_OFFSET, "iterations": ITERATIONS}
    return {**shared, **limits, **(QUICK if quick else full)}


def targets(made: dict[str, Any]) -> Iterator[tuple[str, float, dict[str, Any]]]:
    """Group, amount and task parameters of each target."""
    for distance in made["distances"]:
        for k in range(made["directions"]):
            angle = 2 * np.pi * k / made["directions"]
            at = np.round(distance * np.array([np.cos(angle), np.sin(angle), 0.0]), 6)
            yield "translation", distance, {"target": at.tolist()}
    for group, amounts, radius in (
        ("yaw", made["yaws"], made["yaw_offset"]),
        ("pitch", made["pitches"], made["pitch_offset"]),
    ):
        offsets = planar_offsets(made["offsets"], radius, made["seed"])
        for amount in amounts:
            for at in offsets:
                yield group, amount, {"target": at.tolist(), group: amount}


def planar_offsets(count: int, radius: float, seed: int) -> Array:
    """Places on the ground within a disc, uniformly drawn, (count, 3) [m]."""
    rng = np.random.default_rng(seed)
    angle, share = rng.uniform(0, 2 * np.pi, count), np.sqrt(rng.uniform(0, 1, count))
    planar = radius * share * np.array([np.cos(angle), np.sin(angle), np.zeros(count)])
    places: Array = np.round(planar.T, 6)
    return places


def experiments(made: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Experiment]]:
    """What each run is called, and the run; the methods in turn, so that a part is a fair part."""
    for group, amount, parameters in targets(made):
        for method in made["methods"]:
            named = {"group": group, "amount": amount, "method": method, **_flat(parameters)}
            yield (
                named,
                Experiment(made["task"], parameters, method, made["ticks"], made["iterations"]),
            )


def _flat(parameters: dict[str, Any]) -> dict[str, float]:
    x, y, _ = parameters["target"]
    return {"target_x": x, "target_y": y}


def compute(path: Path, quick: bool) -> None:
    """Run what has not been run yet, and save one column for each number of an outcome."""
    made = settings(quick)
    swept(path, "figure 12", outcome, list(experiments(made)), made)


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    table = Table.load(path)
    with style.sheet(11.0, 4.4) as figure:
        panels = figure.subplots(1, 3, width_ratios=(1.5, 1.2, 1.0))
        for axes, letter, (group, label) in zip(panels, "abc", GROUPS.items()):
            _draw_group(axes, table.where(group=group))
            axes.set_xlabel(label)
            style.panel_letter(axes, letter)
        made = table.settings
        panels[0].set_ylabel(f"mean objective over {made['ticks']} updates")
        handles = [
            Line2D(
                [], [], color=style.LOOKS[m].color, marker=style.LOOKS[m].marker, markersize=5,
                label=style.LOOKS[m].label, linestyle="",
            )
            for m in made["methods"]
        ]  # fmt: skip
        fallen = Line2D(
            [], [], linestyle="", marker="o", color="#606060", markerfacecolor="none",
            markersize=5, label="touched the ground with more than feet",
        )  # fmt: skip
        figure.legend(handles=[*handles, fallen], loc="outside lower center", ncols=5)
        return style.write(figure, out)


def _draw_group(axes: Axes, table: Table) -> None:
    """The runs of each amount side by side, with mean and spread of each method."""
    amounts, methods = table.values("amount"), table.settings["methods"]
    width = 0.8 / len(methods)
    for i, amount in enumerate(amounts):
        for j, method in enumerate(methods):
            runs_ = table.where(amount=amount, method=method)
            costs, fell = runs_.numbers("objective_mean"), np.isfinite(runs_.numbers("fell"))
            look, x = style.LOOKS[method], i + (j - (len(methods) - 1) / 2) * width
            spread = 0.56 * width * (np.arange(len(costs)) / max(len(costs) - 1, 1) - 0.5)
            for hollow in (False, True):
                axes.plot(
                    (x + spread)[fell == hollow], costs[fell == hollow], linestyle="",
                    marker=look.marker, markersize=3.2, color=look.color, alpha=0.55,
                    markerfacecolor="none" if hollow else look.color,
                )  # fmt: skip
            axes.errorbar(
                x, costs.mean(), costs.std(), color=look.color, marker="_", markersize=11,
                capsize=2.5, linewidth=1.4, markeredgewidth=2,
            )  # fmt: skip
    axes.set_yscale("log")
    every = table.numbers("objective_mean")  # a spread may reach below zero, which has no place
    if every.size:
        axes.set_ylim(0.7 * every.min(), 1.5 * every.max())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(range(len(amounts)), [f"{amount:g}" for amount in amounts])
    axes.grid(True, axis="y", which="both")


SCRIPT = runs.Script("figure_12", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
