"""Figure 2: the central path of one planar contact in each of its three regimes.

For sigma = A lambda + b the hard contact solves

    K_mu  contains  lambda  perpendicular to  sigma + Gamma(sigma)  in  K_mu*,
    Gamma(sigma) = (0, mu ||sigma_T||)

and the relaxed one, for rho > 0 [J], the same with the Jordan product of the two, scaled onto the
standard cone, equal to rho (1, 0). Drawn are the loci of lambda*(rho) inside K_mu and of
sigma* + Gamma(sigma*) inside K_mu* for rho in (0, 0.5]; as rho goes to 0 they end at the hard
solution: inside or at the apex of one cone, at the apex or on the boundary of the other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize

from cito.dynamics import FullCone
from cito.dynamics.contact import ContactProblem
from cito.dynamics.types import Array
from cito.figures import runs, style

FRICTION = 0.8
DELASSUS = ((1.0, 0.2), (0.2, 1.0))  # A [1/kg], rows and columns (T, N)
FREE_VELOCITIES = {  # b [m/s], (T, N)
    "separating": (0.4, 0.5),
    "clamping": (0.3, -0.9),
    "sliding": (1.5, -0.6),
}
RHO_MAX = 0.5  # [J]
COLORS = LinearSegmentedColormap.from_list("rho", style.BLUES)


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    return {
        "figure": 2,
        "friction": FRICTION,
        "delassus": DELASSUS,
        "free_velocities": FREE_VELOCITIES,
        "rho_max": RHO_MAX,
        "points": 5 if quick else 14,
    }


def compute(path: Path, quick: bool) -> None:
    """Hard solution and central path of each regime.

    Arrays, for each regime: hard_impulse (2,), hard_velocity (2,), impulse (points, 2) and
    velocity (points, 2) over rho (points,); facts: the mode of each hard solution.
    """
    made = settings(quick)
    # equal steps of sqrt(rho): at the apex of a cone lambda* grows with sqrt(rho)
    rho = RHO_MAX * np.linspace(0, 1, made["points"] + 1)[1:] ** 2
    arrays: dict[str, Any] = {"rho": rho}
    modes: dict[str, int] = {}
    for regime, b in FREE_VELOCITIES.items():
        problem = ContactProblem(np.array(DELASSUS), np.array(b), np.array([FRICTION]))
        hard = problem.solve()
        relaxed = [problem.relax(FullCone(r)) for r in rho]
        modes[regime] = int(hard.modes[0])
        arrays[f"{regime}/hard_impulse"] = hard.impulse
        arrays[f"{regime}/hard_velocity"] = hard.velocity
        arrays[f"{regime}/impulse"] = np.array([point.impulse for point in relaxed])
        arrays[f"{regime}/velocity"] = np.array([point.velocity for point in relaxed])
    runs.save(path, arrays, {"modes": modes}, made)


def corrected(velocity: Array, mu: float) -> Array:
    """sigma + Gamma(sigma) of planar contact velocities (..., 2) [m/s]."""
    return velocity + np.stack(
        [np.zeros_like(velocity[..., 0]), mu * np.abs(velocity[..., 0])], axis=-1
    )


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    run = runs.load(path)
    mu, regimes = run.settings["friction"], list(FREE_VELOCITIES)
    norm = Normalize(0, run.settings["rho_max"])
    with style.sheet(11.0, 6.2) as figure:
        grid = figure.subplots(2, len(regimes), sharex="row", sharey="row")
        for column, regime in enumerate(regimes):
            impulses = _locus(run, regime, "impulse", None)
            velocities = _locus(run, regime, "velocity", mu)
            rho = run.arrays["rho"]
            _draw_locus(grid[0, column], *impulses, rho, norm, slope=1 / mu, cone=r"$K_\mu$")
            _draw_locus(grid[1, column], *velocities, rho, norm, slope=mu, cone=r"$K_\mu^*$")
            b_T, b_N = run.settings["free_velocities"][regime]
            grid[0, column].set_title(f"{regime}\n$b$ = ({b_T:g}, {b_N:g}) m/s")
            grid[0, column].set_xlabel(r"$\lambda_T$ [N s]")
            grid[1, column].set_xlabel(r"$\sigma_T$ [m/s]")
        grid[0, 0].set_ylabel(r"$\lambda_N$ [N s]")
        grid[1, 0].set_ylabel(r"$\sigma_N + \mu\,|\sigma_T|$ [m/s]")
        ticks = (-1.0, -0.5, 0.0, 0.5, 1.0)
        grid[0, 0].set(xlim=(-1.05, 1.05), ylim=(-0.1, 1.4), xticks=ticks)
        grid[1, 0].set(xlim=(-1.26, 1.26), ylim=(-0.12, 1.68), xticks=ticks)
        figure.colorbar(
            ScalarMappable(norm, COLORS), ax=grid, label=r"$\rho$ [J]", aspect=40, pad=0.02
        )
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        return style.write(figure, out)


def _locus(run: runs.Run, regime: str, name: str, mu: float | None) -> tuple[Array, Array]:
    """The hard point (2,) and the relaxed ones (points, 2); plus Gamma where mu is given."""
    hard, relaxed = run.arrays[f"{regime}/hard_{name}"], run.arrays[f"{regime}/{name}"]
    return (hard, relaxed) if mu is None else (corrected(hard, mu), corrected(relaxed, mu))


def _draw_locus(
    axes: Axes, hard: Array, locus: Array, rho: Array, norm: Normalize, slope: float, cone: str
) -> None:
    """The cone { N >= slope |T| }, the locus on it and the hard point that it starts from."""
    reach = 4.0
    axes.fill(
        [0, reach, -reach], [0, slope * reach, slope * reach],
        facecolor="#F1F1F1", edgecolor="#9A9A9A", linewidth=1,
    )  # fmt: skip
    axes.annotate(cone, (0.05, 0.93), xycoords="axes fraction", va="top", fontsize=12)
    axes.plot(*np.vstack([hard, locus]).T, linestyle=":", color="#606060", linewidth=1, zorder=2)
    axes.scatter(
        locus[:, 0],
        locus[:, 1],
        c=rho,
        cmap=COLORS,
        norm=norm,
        s=18,
        zorder=3,
        label=r"relaxed, darker with $\rho$",
    )
    axes.plot(*hard, marker="o", color="black", markersize=8, linestyle="", zorder=4, label="hard")
    axes.set_aspect("equal")


SCRIPT = runs.Script("figure_2", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
