"""Figure adjoint: memory and time of the gradient of a motion over its number of steps.

An arm of seven joints, gradients with respect to all its controls, each method in a process of its
own: the rows of `cito bench adjoint`, drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from cito.figures import runs, style
from cito.figures.style import Look

LOOKS = {
    "cito": Look("cito, every state kept", "#1F7FC4", "o", "-", 2.2),
    "cito, checkpoints": Look("cito, checkpoints", "#56B4E9", "o", "-", 2.2),
    "cito, contact": Look("cito, with contact (full-cone)", "#1F7FC4", "s", (0, (2, 2))),
    "torch": Look("PyTorch, full tape", "#D55E00", "^"),
    "jax": Look("JAX, compiled scan", "#E69F00", "v"),
    "casadi, whole graph": Look("CasADi, whole graph", "#009E73", "D", (0, (5, 2))),
    "casadi": Look("CasADi, step by step", "#009E73", "D"),
    "casadi, compiled": Look("CasADi, compiled for this arm", "#7F7F7F", "P", (0, (4, 1, 1, 1))),
}
PANELS = (
    ("peak_bytes", 1e-6, "peak memory [MB]"),
    ("seconds_per_step", 1e6, r"processor time per step [$\mu$s]"),
)


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    from cito.benchmarks import adjoint

    steps = adjoint.QUICK_STEPS if quick else adjoint.STEPS
    return {"figure": "adjoint", "steps": steps, "methods": list(LOOKS)}


def compute(path: Path, quick: bool) -> None:
    """The rows of the benchmark.

    Arrays, for each method that could be run: steps, peak_bytes, seconds_per_step (lengths,).
    """
    from cito.benchmarks import adjoint

    found = adjoint.run(quick)
    arrays = {}
    for name in LOOKS:
        rows = [row for row in found if row["name"] == name and "peak_bytes" in row]
        for key in ("steps", "peak_bytes", "seconds_per_step") if rows else ():
            arrays[f"{name}/{key}"] = np.array([row[key] for row in rows])
    runs.save(path, arrays, adjoint.summarize(found), settings(quick))


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    run = runs.load(path)
    with style.sheet(7.4, 4.2) as figure:
        panels = figure.subplots(1, len(PANELS))
        for axes, (key, unit, label) in zip(panels, PANELS):
            _draw_panel(axes, run, key, unit)
            axes.set_ylabel(label)
        handles, labels = panels[1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        return style.write(figure, out)


def _draw_panel(axes: Axes, run: runs.Run, key: str, unit: float) -> None:
    for name, look in LOOKS.items():
        if f"{name}/steps" in run.arrays:
            axes.plot(
                run.arrays[f"{name}/steps"], unit * run.arrays[f"{name}/{key}"], label=look.label,
                color=look.color, linestyle=look.line, linewidth=look.width,
                marker=look.marker, markersize=4,
            )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="steps")


SCRIPT = runs.Script("adjoint", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
