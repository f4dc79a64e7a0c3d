"""Figure lagrangian: what learned models of dynamics know, and what they can do.

(a) torque error of five kinds of models of a two-link arm on samples that they have not seen, each
seed a point, samples without an inverse model left out; (b) how long their own motions hold; (c)
errors of the inertial, Coriolis and gravity parts, of the structured models and the network; (d)
the true cart-pole and Furuta's pendulum, swung up by control on learned models.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from cito.figures import runs, style

LOOKS = {
    "lagrangian-structured": style.Look("Lagrangian, structured", "#1F7FC4", "o"),
    "lagrangian-black-box": style.Look("Lagrangian, black box", "#85C8F2", "s"),
    "hamiltonian-structured": style.Look("Hamiltonian, structured", "#009E73", "^"),
    "hamiltonian-black-box": style.Look("Hamiltonian, black box", "#8FD3BD", "v"),
    "network": style.Look("network", "#D55E00", "D"),
}
PARTS = ("inertial", "coriolis", "gravity")
CONTROLLERS = {
    "cart-pole/mpc": style.Look("cart-pole, MPC", "#0A3A82", "o"),
    "cart-pole/energy": style.Look("cart-pole, energy", "#1F7FC4", "o", (0, (5, 2))),
    "furuta/mpc": style.Look("Furuta, MPC", "#D55E00", "s"),
    "furuta/energy": style.Look("Furuta, energy", "#E69F00", "s", (0, (5, 2))),
}
DATA = {"uniform": "uniform samples", "characters": "characters"}
SHOWN = 4.0  # of the swing-ups [s]
MEASURED = ("torque_error", "valid_time", "unsolved", *(f"{part}_error" for part in PARTS))


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    from dataclasses import asdict

    from cito.benchmarks import lagrangian

    return {
        "figure": "lagrangian",
        "size": asdict(lagrangian.QUICK if quick else lagrangian.FULL),
        "seeds": lagrangian.QUICK_SEEDS if quick else lagrangian.SEEDS,
        "data": lagrangian.datasets(quick),
    }


def compute(path: Path, quick: bool) -> None:
    """Arrays "DATA/KIND/MEASURE" (seeds,), and "TASK/METHOD/times", ".../angles" (seeds, N+1)."""
    from cito.benchmarks import lagrangian
    from cito.benchmarks.lagrangian_control import attempts

    size = lagrangian.QUICK if quick else lagrangian.FULL
    seeds = range(lagrangian.QUICK_SEEDS if quick else lagrangian.SEEDS)
    arrays: dict[str, Any] = {}
    for data in lagrangian.datasets(quick):
        for kind in LOOKS:
            rows = [lagrangian.model_row(data, kind, seed, size) for seed in seeds]
            arrays |= {f"{data}/{kind}/{k}": np.array([r[k] for r in rows]) for k in MEASURED}
    for task in lagrangian.TASKS:
        found = [list(attempts(task, seed, size)) for seed in seeds]
        for tried in zip(*found):
            name = tried[0].row["name"]
            arrays[f"{name}/times"] = tried[0].times
            arrays[f"{name}/angles"] = np.array([attempt.states[:, 1] for attempt in tried])
    runs.save(path, arrays, {}, settings(quick))


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    run = runs.load(path)
    with style.sheet(10.0, 6.4) as figure:
        axes = figure.subplots(2, 2)
        _draw_measure(axes[0, 0], run, "torque_error")
        axes[0, 0].set_yscale("log")
        axes[0, 0].set_ylabel("torque error, squared, over variance")
        _draw_measure(axes[0, 1], run, "valid_time")
        axes[0, 1].set_ylim(bottom=0)
        axes[0, 1].set_ylabel("valid prediction time [s]")
        _draw_parts(axes[1, 0], run)
        _draw_swing_ups(axes[1, 1], run)
        for one, letter in zip(axes.flat, "abcd"):
            one.grid(True, axis="y")
            style.panel_letter(one, letter)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=5)
        return style.write(figure, out)


def _draw_measure(axes: Axes, run: runs.Run, measure: str) -> None:
    """A point for each seed and a bar at the median, side by side for each set of data."""
    data = list(run.settings["data"])
    for i, name in enumerate(data):
        for j, (kind, look) in enumerate(LOOKS.items()):
            values = run.arrays[f"{name}/{kind}/{measure}"]
            x = i + 0.16 * (j - 2)
            axes.plot(
                np.full(len(values), x), values, look.marker, color=look.color, markersize=5,
                label=look.label if i == 0 else None,
            )  # fmt: skip
            axes.plot([x - 0.06, x + 0.06], [np.median(values)] * 2, color=look.color, lw=2.4)
            left_out = np.median(run.arrays[f"{name}/{kind}/unsolved"])
            if measure == "torque_error" and left_out > 0:
                axes.annotate(
                    f"{100 * left_out:.0f} % unsolved", (x, values.min()), (0, -9),
                    textcoords="offset points", ha="center", va="top", fontsize=7.5,
                )  # fmt: skip
    axes.set_xticks(range(len(data)), [DATA[name] for name in data])
    axes.set_xlim(-0.5, len(data) - 0.5)


def _draw_parts(axes: Axes, run: runs.Run) -> None:
    """Errors of the parts of the torque on uniform data."""
    for j, kind in enumerate(("lagrangian-structured", "hamiltonian-structured", "network")):
        look = LOOKS[kind]
        for i, part in enumerate(PARTS):
            values = run.arrays[f"uniform/{kind}/{part}_error"]
            x = i + 0.22 * (j - 1)
            axes.plot(np.full(len(values), x), values, look.marker, color=look.color, markersize=5)
            axes.plot([x - 0.08, x + 0.08], [np.median(values)] * 2, color=look.color, lw=2.4)
    axes.set_yscale("log")
    axes.set_xticks(range(len(PARTS)), ["inertial", "Coriolis", "gravity"])
    axes.set_ylabel("error of the part, uniform data")


def _draw_swing_ups(axes: Axes, run: runs.Run) -> None:
    """How far the poles are from the top, over time."""
    for name, look in CONTROLLERS.items():
        times = run.arrays[f"{name}/times"]
        shown = times <= SHOWN
        for k, angles in enumerate(run.arrays[f"{name}/angles"]):
            from_top = np.degrees(np.abs(angles % (2 * np.pi) - np.pi))
            axes.plot(
                times[shown], from_top[shown], color=look.color, linestyle=look.line, lw=1.1,
                alpha=0.8, label=look.label if k == 0 else None,
            )  # fmt: skip
    axes.set_xlabel("time [s]")
    axes.set_ylabel("pole from the top [degrees]")
    axes.set_yticks(range(0, 181, 45))
    axes.legend(loc="upper right")


SCRIPT = runs.Script("lagrangian", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
