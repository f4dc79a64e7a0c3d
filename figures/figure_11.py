"""Figure 11: Newton's method on the relaxed contact laws of a training run.

The Go2 learns to trot by back-propagation through time; contact problems of the steps that are
differentiated are solved for the full-cone law by the package's Newton method, and by full Newton
steps from the hard solution as it is.

    (a)  share of the problems solved in at most k iterations
    (b)  share whose root lies outside of a friction cone, over the relaxation rho
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cito.benchmarks.newton_training import ours, problems, raw, within
from cito.figures import runs, style

METHODS = {"package": ours, "raw": raw}
LABELS = {"package": "start inside the cones", "raw": "start at the hard solution"}
LOOKS = {"package": style.FULL_CONE, "raw": style.EXACT}
RHOS = (0.01, 0.05, 0.1, 0.5)  # [J]
SHOWN = 20  # iterations
FULL = {"steps": 100_000, "share": 0.1}
QUICK = {"steps": 8_000, "share": 0.04}


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    return {"figure": 11, "rhos": RHOS, "rho": 0.05, "seed": 0, **(QUICK if quick else FULL)}


def compute(path: Path, quick: bool) -> None:
    """Train, and solve what was kept."""
    made = settings(quick)
    found = problems(made["steps"], made["share"], made["seed"], made["rho"])
    shares = np.zeros((len(METHODS), len(RHOS), SHOWN + 1))
    outside, unsolved = np.zeros((2, len(METHODS), len(RHOS)))
    for i, solve in enumerate(METHODS.values()):
        for j, rho in enumerate(made["rhos"]):
            counts = solve(found, rho)
            shares[i, j] = within(counts, SHOWN)
            outside[i, j] = counts.infeasible.mean()
            unsolved[i, j] = 1 - within(counts, 40)[-1]
    arrays = {"shares": shares, "outside": outside, "unsolved": unsolved}
    runs.save(path, arrays, {"problems": len(found.b)}, made)


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    run = runs.load(path)
    j = run.settings["rhos"].index(run.settings["rho"])
    with style.sheet(7.6, 3.2) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(1.4, 1.0))
        width = 0.36
        for i, name in enumerate(METHODS):
            look = LOOKS[name]
            left.plot(
                range(SHOWN + 1), 100 * run.arrays["shares"][i, j], color=look.color,
                marker=look.marker, markersize=3.5, label=LABELS[name],
            )  # fmt: skip
            x = np.arange(len(run.settings["rhos"])) + (i - 0.5) * width
            height = 100 * run.arrays["outside"][i]
            right.bar(x, height, width, color=look.color, label=LABELS[name])
            for at, value in zip(x, height):
                right.annotate(f"{value:.2g}", (at, value), ha="center", va="bottom", fontsize=7)
        left.axvline(8, color="#999999", linewidth=0.8, linestyle=":")
        left.set_xlabel("Newton iterations")
        count = run.facts["problems"]
        left.set_ylabel(f"solved [%] of {count} problems")
        left.set_xticks(range(0, SHOWN + 1, 4))
        left.legend(loc="lower right", title=f"rho = {run.settings['rho']:g} J")
        rhos = run.settings["rhos"]
        right.set_xticks(range(len(rhos)), [f"{rho:g}" for rho in rhos])
        right.set_xlabel("rho [J]")
        right.set_ylabel("roots outside of the cones [%]")
        for axes, letter in ((left, "a"), (right, "b")):
            style.panel_letter(axes, letter)
        return style.write(figure, out)


SCRIPT = runs.Script("figure_11", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
