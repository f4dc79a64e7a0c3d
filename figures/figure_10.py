"""Figure 10: back-propagation through time beside proximal policy optimization, on the trot.

The same environments, costs and evaluation for both; one training for each number of robots:

    (a)  training cost over control steps of all robots
    (b)  the same over seconds on this machine
    (c)  cost of rollouts over commands and frictions, mild starts, over the number of robots
    (d)  root mean square error of the velocity in these rollouts

Costs of PPO's training include its exploration. A quick figure stops PPO long before it has
learned: its curves show a beginning, no verdict. The table is beside it, as .csv.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from cito.benchmarks.learning import Training, outcome
from cito.figures import runs, style
from cito.figures.sweeps import Table, swept

BPTT = {"envs": (1, 4, 16, 64), "steps": 100_000}
PPO = {"envs": (64, 128, 256, 512, 1024), "steps": 20_000_000}
QUICK_BPTT = {"envs": (4, 16), "steps": 30_000}
QUICK_PPO = {"envs": (64, 256), "steps": 120_000}
LOOKS = {"bptt": style.FULL_CONE, "ppo": style.ADAPTIVE}
LABELS = {"bptt": "BPTT, full-cone", "ppo": "PPO"}


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    own = {"bptt": QUICK_BPTT, "ppo": QUICK_PPO} if quick else {"bptt": BPTT, "ppo": PPO}
    return {"figure": 10, "task": "trot", "seed": 0, "seconds": 3.0 if quick else 10.0, **own}


def experiments(made: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Training]]:
    """What each training is called, and the training."""
    for algorithm in LOOKS:
        for envs in made[algorithm]["envs"]:
            named = {"task": made["task"], "algorithm": algorithm, "envs": envs}
            config = {**named, "steps": made[algorithm]["steps"], "seed": made["seed"]}
            yield named, Training(config | {"threads": 1}, made["seconds"])


def compute(path: Path, quick: bool) -> None:
    """Run what has not been run yet, and save one column for each number of an outcome."""
    made = settings(quick)
    swept(path, "figure 10", outcome, list(experiments(made)), made)


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    table = Table.load(path)
    with style.sheet(9.0, 5.6) as figure:
        panels = figure.subplots(2, 2).ravel()
        for axes, x in zip(panels[:2], ("curve_steps", "curve_seconds")):
            _curves(axes, table, x)
        for axes, y in zip(panels[2:], ("cost", "velocity_rmse")):
            _over_envs(axes, table, y)
        panels[0].set_xlabel("control steps of all robots")
        panels[1].set_xlabel("seconds")
        panels[2].set_ylabel("cost of rollouts")
        panels[3].set_ylabel("velocity RMSE [m/s]")
        for axes, letter in zip(panels, "abcd"):
            style.panel_letter(axes, letter)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
        return style.write(figure, out)


def _curves(axes: Axes, table: Table, x: str) -> None:
    """One curve a training, the paler the fewer robots."""
    for algorithm, look in LOOKS.items():
        own = table.where(algorithm=algorithm)
        count = len(own.numbers("envs"))
        for i, (envs, at, cost) in enumerate(
            zip(own.numbers("envs"), own.numbers(x), own.numbers("curve_cost"))
        ):
            axes.plot(
                at, cost, color=look.color, alpha=(i + 1) / count, linewidth=1.3,
                label=f"{LABELS[algorithm]}, {envs:.0f} robots",
            )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylabel("training cost")


def _over_envs(axes: Axes, table: Table, y: str) -> None:
    """What evaluation found, over the number of robots."""
    for algorithm, look in LOOKS.items():
        own = table.where(algorithm=algorithm)
        axes.plot(own.numbers("envs"), own.numbers(y), color=look.color, marker=look.marker)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("robots")


SCRIPT = runs.Script("figure_10", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
