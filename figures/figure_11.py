"""Figure 11: Newton's method on the relaxed contact laws of a training run.

The Go2 learns to trot by back-propagation through time; contact problems of the steps that are
differentiated are solved for the full-cone law by the package's Newton method, and by full Newton
steps from the hard solution as it is.

    (a)  share of the problems solved in at most k iterations
    (b)  share whose root lies outside of a friction cone, over the relaxation rho
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cito.benchmarks.newton_training import LIMIT, Problems, ours, problems, raw
from cito.benchmarks.sweep import sweep
from cito.figures import runs, style

METHODS = {"package": ours, "raw": raw}
LABELS = {"package": "start inside the cones", "raw": "start at the hard solution"}
LOOKS = {"package": style.FULL_CONE, "raw": style.EXACT}
RHOS = (0.01, 0.05, 0.1, 0.5)  # [J]
SHOWN = 20  # iterations
PART = 500  # problems of one part of the work
FULL = {"steps": 100_000, "share": 0.1}
QUICK = {"steps": 8_000, "share": 0.04}


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    return {"figure": 11, "rhos": RHOS, "rho": 0.05, "seed": 0, **(QUICK if quick else FULL)}


def compute(path: Path, quick: bool) -> None:
    """Train, and solve what was kept; problems and parts of the counts are kept beside `path`
    until all is done, so that it can be gone on with."""
    made = settings(quick)
    parts = path.with_suffix(".parts")
    file = parts / f"problems-{made['steps']}-{made['share']}-{made['seed']}-{made['rho']}.npz"
    if not file.exists():
        found = problems(made["steps"], made["share"], made["seed"], made["rho"])
        with runs.replacing(file) as temporary:
            np.savez(temporary, allow_pickle=False, **found._asdict())
    with np.load(file, allow_pickle=False) as archive:
        m = len(archive["b"])
    asked = [
        {"file": str(file), "method": name, "rho": rho, "first": k, "last": min(k + PART, m)}
        for name in METHODS
        for rho in made["rhos"]
        for k in range(0, m, PART)
    ]
    counts = sweep(counted, asked, parts)
    shape = (len(METHODS), len(made["rhos"]), -1, LIMIT + 2)
    solved = np.array([c["solved"] for c in counts], float).reshape(shape).sum(axis=2)
    outside = np.array([c["outside"] for c in counts], float).reshape(shape[:3]).sum(axis=2)
    within = np.cumsum(solved, axis=-1) / m
    arrays = {"shares": within[..., : SHOWN + 1], "outside": outside / m}
    runs.save(path, arrays | {"unsolved": 1 - within[..., LIMIT]}, {"problems": m}, made)
    shutil.rmtree(parts)


def counted(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """Solve some problems of a file by a method.

    Returns:
        solved (LIMIT + 2,): how many took so many iterations, the last of them without
        convergence; outside: how many roots are outside of a cone.
    """
    with np.load(experiment["file"], allow_pickle=False) as archive:
        rows = slice(experiment["first"], experiment["last"])
        found = Problems(*(archive[name][rows] for name in Problems._fields))
    counts = METHODS[experiment["method"]](found, experiment["rho"])
    solved = np.bincount(counts.iterations, minlength=LIMIT + 2)
    return {"solved": solved.tolist(), "outside": int(counts.infeasible.sum())}


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
