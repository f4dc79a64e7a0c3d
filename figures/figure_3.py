"""Figure 3: four sensitivities of a planar contact as its free velocity b_N sweeps the modes.

    sigma = A lambda + b,   A = I [1/kg],  mu = 0.8,  b_T = 1 m/s
    d sigma / d b = A d lambda / d b + I

The hard contact clamps for b_N < -b_T / mu, slides up to b_N = 0 and separates above. Drawn are
d lambda_N, d lambda_T, d sigma_N, d sigma_T with respect to b_N under

    exact         the mode held: constant within each mode, with jumps between them
    randomized    the hard solve smoothed by Gaussian noise on b (std 0.6 m/s, 128 samples):
                  zeroth order from impulses alone, first order the mean exact sensitivity
    full-cone     -(A + W)^-1 at the point rho = 0.3 J of the central path
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from cito.dynamics import Exact, FullCone, Gradient, Randomized
from cito.dynamics.contact import sensitivity_batch, solve_batch
from cito.dynamics.types import Array
from cito.figures import runs, style
from cito.figures.style import Look

FRICTION, B_T = 0.8, 1.0
SWEEP = (-2.5, 1.5)  # b_N [m/s]
RHO = 0.3  # [J]
STD, SAMPLES = 0.6, 128  # [m/s], [-]
ROWS = (
    ("impulse", 1, r"$\partial\lambda_N / \partial b_N$ [kg]"),
    ("impulse", 0, r"$\partial\lambda_T / \partial b_N$ [kg]"),
    ("velocity", 1, r"$\partial\sigma_N / \partial b_N$ [-]"),
    ("velocity", 0, r"$\partial\sigma_T / \partial b_N$ [-]"),
)


def methods() -> dict[str, tuple[Look, Gradient]]:
    """The gradients compared, in drawing order."""
    noise = f"(std {STD:g} m/s, {SAMPLES} samples)"
    zeroth, first, cone = style.RANDOMIZED_0, style.RANDOMIZED_1, style.FULL_CONE
    return {
        "randomized-0": (
            zeroth._replace(label=f"{zeroth.label} {noise}"),
            Randomized(STD, SAMPLES, order=0),
        ),
        "randomized-1": (
            first._replace(label=f"{first.label} {noise}"),
            Randomized(STD, SAMPLES, order=1),
        ),
        "exact": (style.EXACT, Exact()),
        "full-cone": (
            cone._replace(label=f"{cone.label}, $\\rho$ = {RHO:g} J", width=2.2),
            FullCone(RHO),
        ),
    }


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    return {
        "figure": 3,
        "friction": FRICTION,
        "b_T": B_T,
        "sweep": SWEEP,
        "methods": {key: repr(gradient) for key, (_, gradient) in methods().items()},
        "points": 32 if quick else 192,
    }


def compute(path: Path, quick: bool) -> None:
    """Sensitivities over the sweep.

    Arrays: b_N (points,), modes (points,), and for each method impulse and velocity (points, 2),
    the derivatives of lambda and sigma, each (T, N), by b_N.
    """
    made = settings(quick)
    # midpoints of equal cells, whose edges meet the mode boundaries, where `exact` has two values
    step = (SWEEP[1] - SWEEP[0]) / made["points"]
    b_N = SWEEP[0] + step * (np.arange(made["points"]) + 0.5)
    A = np.tile(np.eye(2), (len(b_N), 1, 1))
    b = np.stack([np.full_like(b_N, B_T), b_N], axis=-1)
    hard = solve_batch(A, b, FRICTION, dims=(2,))
    arrays: dict[str, Any] = {"b_N": b_N, "modes": hard.modes[:, 0]}
    for key, (_, gradient) in methods().items():
        D = sensitivity_batch(A, b, FRICTION, gradient, dims=(2,), hard=hard).db
        arrays[f"{key}/impulse"] = D[:, :, 1]
        arrays[f"{key}/velocity"] = (A @ D + np.eye(2))[:, :, 1]
    runs.save(path, arrays, {}, made)


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    run = runs.load(path)
    with style.sheet(7.4, 9.0) as figure:
        panels = figure.subplots(len(ROWS), 1, sharex=True)
        for axes, (quantity, component, label) in zip(panels, ROWS):
            _shade_modes(axes, run)
            for key, (look, _) in methods().items():
                _draw_curve(axes, run, key, look, run.arrays[f"{key}/{quantity}"][:, component])
            axes.set_ylabel(label)
            axes.margins(y=0.12)
        _name_modes(panels[0], run)
        panels[-1].set_xlabel(r"free normal velocity $b_N$ [m/s]")
        panels[-1].set_xlim(*run.settings["sweep"])
        handles = [
            Line2D([], [], color=look.color, linestyle=look.line, linewidth=look.width,
                   label=look.label)
            for look, _ in methods().values()
        ]  # fmt: skip
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
        return style.write(figure, out)


def _draw_curve(axes: Axes, run: runs.Run, key: str, look: Look, y: Array) -> None:
    """A curve; the exact one is broken where the mode changes."""
    b_N, modes = run.arrays["b_N"], run.arrays["modes"]
    cuts = np.flatnonzero(np.diff(modes)) + 1 if key == "exact" else np.zeros(0, dtype=int)
    for x_part, y_part in zip(np.split(b_N, cuts), np.split(y, cuts)):
        axes.plot(x_part, y_part, color=look.color, linestyle=look.line, linewidth=look.width)


def mode_intervals(run: runs.Run) -> list[tuple[int, float, float]]:
    """(mode, from, to) of b_N [m/s], in the order of the sweep."""
    b_N, modes = run.arrays["b_N"], run.arrays["modes"]
    cuts = np.flatnonzero(np.diff(modes)) + 1
    edges = [run.settings["sweep"][0], *((b_N[cuts - 1] + b_N[cuts]) / 2), run.settings["sweep"][1]]
    first = [0, *cuts]
    return [(int(modes[i]), float(a), float(b)) for i, a, b in zip(first, edges, edges[1:])]


def _shade_modes(axes: Axes, run: runs.Run) -> None:
    for mode, low, high in mode_intervals(run):
        axes.axvspan(low, high, facecolor=style.MODE_TINTS[mode], zorder=0, linewidth=0)


def _name_modes(axes: Axes, run: runs.Run) -> None:
    for mode, low, high in mode_intervals(run):
        axes.annotate(
            style.MODE_NAMES[mode], ((low + high) / 2, 1.02), xycoords=("data", "axes fraction"),
            ha="center", va="bottom", fontweight="bold",
        )  # fmt: skip


SCRIPT = runs.Script("figure_3", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
