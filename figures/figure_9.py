"""Figure 9: back-propagation through time beside proximal policy optimization, while they learn.

The trot, with the same environments, costs and evaluation for both; one training for each number of
robots. The policies are looked at from time to time: mean cost of rollouts over commands and
frictions from mild starts.

    (a), (b)  training cost over updates, of either algorithm
    (c)       cost of rollouts over control steps of all robots
    (d)       the same over seconds of training on this machine

The dashed line is a cost of rollouts that a policy which walks is below; the legend tells control
steps and seconds to the first look below it. Costs of PPO's training include its exploration. A
quick figure stops PPO long before it has learned: its curves show a beginning, no verdict. The
table is beside it, as .csv; figure 10 shows what the same trainings ended with.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from cito.benchmarks.learning import Training, outcome, reached
from cito.figures import runs, style
from cito.figures.sweeps import Table, swept

BPTT = {"envs": (1, 4, 16, 64), "steps": 100_000}
PPO = {"envs": (64, 128, 256, 512, 1024), "steps": 20_000_000}
QUICK_BPTT = {"envs": (1, 4, 16), "steps": 40_000}
QUICK_PPO = {"envs": (64, 256), "steps": 300_000}
LOOKS = {"bptt": style.FULL_CONE, "ppo": style.ADAPTIVE}
LABELS = {"bptt": "BPTT, full-cone", "ppo": "PPO"}
SNAPSHOTS, QUICK_SNAPSHOTS = 12, 6
TARGET = 1.5  # mean cost of rollouts


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    own = {"bptt": QUICK_BPTT, "ppo": QUICK_PPO} if quick else {"bptt": BPTT, "ppo": PPO}
    seconds, snapshots = (3.0, QUICK_SNAPSHOTS) if quick else (10.0, SNAPSHOTS)
    made = {"figure": 9, "task": "trot", "seed": 0, "seconds": seconds, "snapshots": snapshots}
    return made | own


def experiments(made: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Training]]:
    """What each training is called, and the training."""
    for algorithm in LOOKS:
        for envs in made[algorithm]["envs"]:
            named = {"task": made["task"], "algorithm": algorithm, "envs": envs}
            config = {**named, "steps": made[algorithm]["steps"], "seed": made["seed"]}
            yield named, Training(config | {"threads": 1}, made["seconds"], made["snapshots"])


def compute(path: Path, quick: bool) -> None:
    """Run what has not been run yet, and save one column for each number of an outcome."""
    made = settings(quick)
    swept(path, "figure 9", outcome, list(experiments(made)), made)


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    table = Table.load(path)
    with style.sheet(9.0, 6.4) as figure:
        panels = figure.subplots(2, 2).ravel()
        for axes, algorithm in zip(panels[:2], LOOKS):
            _training(axes, table.where(algorithm=algorithm), algorithm)
        for axes, x in zip(panels[2:], ("at_steps", "at_seconds")):
            _looks(axes, table, x)
        panels[2].set_xlabel("control steps of all robots")
        panels[3].set_xlabel("seconds of training")
        for axes, letter in zip(panels, "abcd"):
            style.panel_letter(axes, letter)
        handles, labels = panels[2].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        return style.write(figure, out)


def shades(algorithm: str, count: int) -> list[float]:
    """Opacities of an algorithm's curves, the paler the fewer robots."""
    return [(i + 1) / count for i in range(count)]


def _training(axes: Axes, own: Table, algorithm: str) -> None:
    """Training costs over updates."""
    look, envs = LOOKS[algorithm], own.numbers("envs")
    rows = zip(envs, own.numbers("updates"), own.numbers("curve_cost"))
    for (count, updates, cost), shade in zip(rows, shades(algorithm, len(envs))):
        axes.plot(
            np.linspace(1, updates, len(cost)), cost, color=look.color, alpha=shade, linewidth=1.3,
            label=f"{count:.0f}",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(f"updates of {LABELS[algorithm]}")
    axes.set_ylabel("training cost")
    axes.legend(title="robots", fontsize=7, title_fontsize=7)


def _looks(axes: Axes, table: Table, x: str) -> None:
    """Costs of rollouts of policies while they learn."""
    for algorithm, look in LOOKS.items():
        own = table.where(algorithm=algorithm)
        envs = own.numbers("envs")
        for i, shade in enumerate(shades(algorithm, len(envs))):
            at, cost = own.numbers(x)[i], own.numbers("at_cost")[i]
            axes.plot(
                at, cost, color=look.color, alpha=shade, marker=look.marker, markersize=3,
                linewidth=1.0, label=f"{LABELS[algorithm]}, {envs[i]:.0f}: {_told(own, i)}",
            )  # fmt: skip
    axes.axhline(TARGET, color="#666666", linestyle="--", linewidth=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yscale("log")
    axes.set_ylabel("cost of rollouts")


def _told(own: Table, i: int) -> str:
    """Control steps and seconds to the target, of one training."""
    cost = own.numbers("at_cost")[i]
    steps, seconds = (
        reached(cost, own.numbers(f"at_{x}")[i], TARGET) for x in ("steps", "seconds")
    )
    if np.isnan(steps):
        return f"above {TARGET:g} to the end"
    return f"{TARGET:g} after {steps:,.0f} steps, {seconds:.0f} s".replace(",", " ")


SCRIPT = runs.Script("figure_9", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
