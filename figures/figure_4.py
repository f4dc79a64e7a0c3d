"""Figure 4: what the offset delta of the normal free velocity does to the relaxed normal law.

In the normal direction, a = A_NN, the relaxed contact lies where a curve and a line meet:

    lambda_N sigma_N = rho,     sigma_N = a lambda_N + b_N + delta

With B = b_N + delta and S = sqrt(B^2 + 4 a rho)

    lambda_N = (S - B) / (2 a),          sigma_N = (S + B) / 2
    d lambda_N / d b_N = -1 / (a + rho / lambda_N^2),     d sigma_N / d b_N = (1 + B / S) / 2

so delta moves the intersection towards lower impulse and higher velocity, and the sensitivity as
a function of the unshifted b_N to the left. The forward law never sees delta.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from cito.dynamics import Exact, FullCone
from cito.dynamics.contact import relax_batch, sensitivity_batch
from cito.dynamics.types import Array
from cito.figures import runs, style

INVERSE_MASS = 1.0  # a = A_NN [1/kg]
RHO = 0.1  # [J]
OFFSETS = (0.0, 0.5, 1.0, 2.0)  # delta [m/s]
B_N = -1.0  # of panel (a) [m/s]
LAW_COLOR = "#9A9A9A"
NORMAL = (1,)  # rows of the contact: the normal alone
SWEEP = (-3.0, 2.0)  # b_N of panels (b) and (c) [m/s]


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    return {
        "figure": 4,
        "inverse_mass": INVERSE_MASS,
        "rho": RHO,
        "offsets": OFFSETS,
        "b_N": B_N,
        "sweep": SWEEP,
        "points": 26 if quick else 251,
    }


def compute(path: Path, quick: bool) -> None:
    """Relaxed points and sensitivities for every delta.

    Arrays: crossings (offsets, 2), the points (lambda_N, sigma_N) of panel (a); b_N (points,);
    d_lambda, d_sigma (offsets, points) and their exact counterparts exact_d_lambda, exact_d_sigma
    (points,).
    """
    made = settings(quick)
    a, rho = INVERSE_MASS, RHO
    # points on both sides of b_N = 0, never on it: there the exact sensitivity is two-valued
    b_N = SWEEP[0] + (SWEEP[1] - SWEEP[0]) * (np.arange(made["points"]) + 0.5) / made["points"]
    points = [relax_batch(*_normals(a, [B_N]), FullCone(rho, delta), NORMAL) for delta in OFFSETS]
    d_lambda = np.array([_d_lambda(a, b_N, FullCone(rho, delta)) for delta in OFFSETS])
    exact = _d_lambda(a, b_N, Exact())
    arrays = {
        "crossings": np.array([[p.impulse[0, 0], p.velocity[0, 0]] for p in points]),
        "b_N": b_N,
        "d_lambda": d_lambda,
        "d_sigma": 1 + a * d_lambda,
        "exact_d_lambda": exact,
        "exact_d_sigma": 1 + a * exact,
    }
    runs.save(path, arrays, {}, made)


def _normals(a: float, b_N: ArrayLike) -> tuple[Array, Array, float]:
    """A (points, 1, 1), b (points, 1) and mu of contacts that are a normal row alone."""
    b = np.reshape(np.asarray(b_N, dtype=float), (-1, 1))
    return np.full((len(b), 1, 1), a), b, 0.0


def _d_lambda(a: float, b_N: Array, gradient: Exact | FullCone) -> Array:
    """d lambda_N / d b_N, (points,)."""
    return sensitivity_batch(*_normals(a, b_N), gradient, NORMAL).db[:, 0, 0]


class NormalLaw(NamedTuple):
    """The closed form of the relaxed normal law: lambda_N, sigma_N and their d / d b_N."""

    impulse: Array
    velocity: Array
    d_impulse: Array
    d_velocity: Array


def closed_form(b_N: Array, delta: float, a: float, rho: float) -> NormalLaw:
    """The intersection of lambda_N sigma_N = rho and sigma_N = a lambda_N + b_N + delta.

    Args:
        b_N: free normal velocities, (...) [m/s].
        delta: their offset [m/s].
        a: A_NN [1/kg].
        rho: relaxation [J].
    """
    B = b_N + delta
    S = np.sqrt(B**2 + 4 * a * rho)
    impulse = 2 * rho / (S + B)  # (S - B) / (2 a) without its cancellation for B >> 0
    return NormalLaw(impulse, (S + B) / 2, -1 / (a + rho / impulse**2), (1 + B / S) / 2)


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    run = runs.load(path)
    colors = style.blues(len(run.settings["offsets"]))
    with style.sheet(10.4, 5.4) as figure:
        panels: dict[str, Axes] = figure.subplot_mosaic(
            [["a", "b"], ["a", "c"]], width_ratios=(1, 1.15)
        )
        _draw_crossings(panels["a"], run, colors)
        _draw_sensitivity(panels["b"], run, "d_sigma", colors)
        _draw_sensitivity(panels["c"], run, "d_lambda", colors)
        panels["b"].set_ylabel(r"$\partial\sigma_N / \partial b_N$ [-]")
        panels["c"].set_ylabel(r"$\partial\lambda_N / \partial b_N$ [kg]")
        panels["c"].set_xlabel(r"unshifted free normal velocity $b_N$ [m/s]")
        panels["b"].sharex(panels["c"])
        panels["b"].annotate(
            "(a)", (run.settings["b_N"], 1.0), (0, 3), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", color="#606060",
        )  # fmt: skip
        panels["b"].tick_params(labelbottom=False)
        for letter, axes in panels.items():
            style.panel_letter(axes, letter)
        panels["a"].set_title(
            rf"$\sigma_N = a\,\lambda_N + b_N + \delta$,  $b_N$ = {run.settings['b_N']:g} m/s"
        )
        figure.legend(handles=_legend(run, colors), loc="outside lower center", ncols=6)
        return style.write(figure, out)


def _draw_crossings(axes: Axes, run: runs.Run, colors: list[str]) -> None:
    made = run.settings
    top = 2.4
    impulse = np.linspace(made["rho"] / top, 1.4, 400)
    axes.plot(impulse, made["rho"] / impulse, color=LAW_COLOR, linewidth=2.6)
    line = np.array([0.0, 1.4])
    for delta, color, point in zip(made["offsets"], colors, run.arrays["crossings"]):
        axes.plot(line, made["inverse_mass"] * line + made["b_N"] + delta, color=color)
        axes.plot(*point, marker="o", color=color, markersize=8, markeredgecolor="black", zorder=4)
    axes.set(xlim=(0, 1.4), ylim=(0, top))
    axes.set_xlabel(r"$\lambda_N$ [N s]")
    axes.set_ylabel(r"$\sigma_N$ [m/s]")
    axes.grid(True)


def _draw_sensitivity(axes: Axes, run: runs.Run, name: str, colors: list[str]) -> None:
    b_N, exact = run.arrays["b_N"], run.arrays[f"exact_{name}"]
    for part in (b_N < 0, b_N > 0):
        axes.plot(b_N[part], exact[part], color=style.EXACT.color, linewidth=style.EXACT.width)
    for color, curve in zip(colors, run.arrays[name]):
        axes.plot(b_N, curve, color=color, linewidth=2)
    axes.axvline(run.settings["b_N"], color="#909090", linestyle=":", linewidth=1)
    axes.set_xlim(*run.settings["sweep"])
    axes.grid(True)


def _legend(run: runs.Run, colors: list[str]) -> list[Line2D]:
    made = run.settings
    law = f"$\\lambda_N \\sigma_N = \\rho$ = {made['rho']:g} J"
    offsets = [
        Line2D([], [], color=color, linewidth=2, label=f"$\\delta$ = {delta:g} m/s")
        for delta, color in zip(made["offsets"], colors)
    ]
    return [
        Line2D([], [], color=LAW_COLOR, linewidth=2.6, label=law),
        Line2D([], [], color=style.EXACT.color, linewidth=style.EXACT.width, label="exact"),
        *offsets,
    ]


SCRIPT = runs.Script("figure_4", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
