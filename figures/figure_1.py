"""Figure 1: three planar tasks, each solved by DDP under several contact gradients.

A point mass (1 kg, mu = 0.8, h = 0.05 s) over flat ground, every solve from zero control. All
rollouts hold the hard law, K_mu contains lambda perpendicular to sigma + Gamma(sigma) in K_mu*;
only the sensitivity d lambda / d b of the backward pass differs:

    exact        the mode of every step held
    Signorini    lambda_N sigma_N = rho in the normal direction, stick or slide held
    full-cone    the central path of the whole friction cone, one rho [J] throughout
    adaptive     the default of the solver, which chooses among kernels

Drawn for each task: where the mass goes, with the mixed-integer optimum dashed; the normal impulse
and the contact mode of every step; the cost reached over the optimum's. The optimal modes of
friction braking are not unique (a step that neither slips nor presses has several names): there,
compare costs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from cito.dynamics import Exact, FullCone, Gradient, Signorini
from cito.figures import runs, style
from cito.figures.style import Look
from cito.problems import make as make_problem
from cito.solvers import Adaptive, Solution, Status, solve_ddp

TASKS = ("lift-off", "traverse", "friction-braking")
HORIZON, QUICK_HORIZON = 30, 12
PROOF_LIMIT = 600.0  # of one mixed-integer reference [s]
RHO_SIGNORINI, RHO_FULL_CONE = 0.1, (0.03, 0.1, 1.0)  # [J]


class Method(NamedTuple):
    """A row of the figure: how the task is solved (None: the mixed-integer reference)."""

    key: str
    look: Look
    gradient: Gradient | Adaptive | None


def methods() -> list[Method]:
    """The rows from top to bottom."""
    widths = (1.4, 1.8, 2.2)
    cones = [
        Method(
            f"full-cone-{rho:g}",
            Look(f"full-cone, $\\rho$ = {rho:g} J", color, marker, "-", width),
            FullCone(rho),
        )
        for rho, color, marker, width in zip(RHO_FULL_CONE, style.blues(3), "ohp", widths)
    ]
    signorini = style.SIGNORINI._replace(label=f"Signorini, $\\rho$ = {RHO_SIGNORINI:g} J")
    return [
        Method("exact", style.EXACT, Exact()),
        Method("signorini", signorini, Signorini(RHO_SIGNORINI)),
        *cones,
        Method("adaptive", style.ADAPTIVE, Adaptive()),
        Method("optimum", style.OPTIMUM, None),
    ]


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    return {
        "figure": 1,
        "tasks": list(TASKS),
        "methods": [[m.key, repr(m.gradient)] for m in methods()],
        "horizon": QUICK_HORIZON if quick else HORIZON,
    }


def compute(path: Path, quick: bool) -> None:
    """Solve every task with every method; save states, impulses, modes and costs."""
    made = settings(quick)
    arrays: dict[str, NDArray[Any]] = {}
    facts: dict[str, Any] = {}
    for task in TASKS:
        problem = make_problem(task, horizon=made["horizon"])
        for method in methods():
            if method.gradient is None:
                from cito.solvers.miqp import reference  # pulls in cvxpy

                solution = reference(problem, time_limit=PROOF_LIMIT)
            else:
                solution = solve_ddp(problem, method.gradient)
            name = f"{task}/{method.key}"
            for field in ("states", "impulses", "modes"):
                arrays[f"{name}/{field}"] = getattr(solution, field)
            facts[name] = _facts(solution)
    runs.save(path, arrays, facts, made)


def _facts(solution: Solution) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "cost": solution.cost,
        "status": solution.status.name,
        "iterations": solution.iterations,
        "time_step": solution.time_step,
        "contact_residual": solution.contact_residual,
    }
    if solution.bound is not None:
        facts |= {"bound": solution.bound, "gap": solution.gap}
    return facts


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    run = runs.load(path)
    with style.sheet(12.6, 8.4) as figure:
        grid = figure.subplots(
            len(TASKS), 4, squeeze=False, gridspec_kw={"width_ratios": (2.3, 2.3, 2.5, 2.3)}
        )
        for row, task in zip(grid, TASKS):
            _draw_path(row[0], run, task)
            _draw_impulses(row[1], run, task)
            _draw_modes(row[2], run, task)
            _draw_costs(row[3], run, task)
        grid[0, 2].set_title("contact mode of each step", loc="left")
        _legend(figure, stuck=_stuck_label())
        return style.write(figure, out)


def draw_small(path: Path, out: Path) -> Path:
    """Modes and costs alone, for a page that shows them in passing."""
    run = runs.load(path)
    with style.sheet(8.6, 5.6) as figure:
        grid = figure.subplots(len(TASKS), 2, squeeze=False, gridspec_kw={"width_ratios": (1.5, 1)})
        for row, task in zip(grid, TASKS):
            _draw_modes(row[0], run, task)
            _draw_costs(row[1], run, task)
            row[0].set_title(f"{task.replace('-', ' ')}: contact modes", loc="left")
        _legend(figure, stuck=_stuck_label(), lines=False)
        return style.write(figure, out, dpi=110)


def _draw_path(axes: Axes, run: runs.Run, task: str) -> None:
    """The coordinate that shall move over time; for braking the path in the plane."""
    for method in methods():
        name, look = f"{task}/{method.key}", method.look
        p_x, p_z = run.arrays[f"{name}/states"][:, :2].T
        t = run.facts[name]["time_step"] * np.arange(len(p_x))
        horizontal, vertical = {"lift-off": (t, p_z), "traverse": (t, p_x)}.get(task, (p_x, p_z))
        axes.plot(horizontal, vertical, color=look.color, linestyle=look.line, linewidth=look.width)
    axes.set_xlabel("position $p_x$ [m]" if task == "friction-braking" else "time [s]")
    axes.set_ylabel("position $p_x$ [m]" if task == "traverse" else "height $p_z$ [m]")
    if task == "friction-braking":
        start = run.arrays[f"{task}/optimum/states"][0]
        axes.annotate("start and target", start[:2], (4, 8), textcoords="offset points", fontsize=8)
        axes.set_ylim(top=0.222)
    axes.set_title(task.replace("-", " "), loc="left", fontweight="bold")
    axes.grid(True)


def _draw_impulses(axes: Axes, run: runs.Run, task: str) -> None:
    for method in methods():
        look, impulses = method.look, run.arrays[f"{task}/{method.key}/impulses"]
        axes.step(
            np.arange(len(impulses) + 1), np.append(impulses[:, 1], impulses[-1, 1]), where="post",
            color=look.color, linestyle=look.line, linewidth=look.width,
        )  # fmt: skip
    axes.set_xlabel("step")
    axes.set_ylabel("normal impulse $\\lambda_N$ [N s]")
    axes.grid(True)


def _draw_modes(axes: Axes, run: runs.Run, task: str) -> None:
    """One strip for each method, one cell for each step."""
    rows = methods()
    modes = np.stack([run.arrays[f"{task}/{m.key}/modes"][:, 0] for m in rows])
    steps = np.arange(modes.shape[1] + 1)
    edges = np.arange(len(rows))
    for row, strip in zip(edges, modes):
        axes.pcolormesh(
            steps, [row - 0.36, row + 0.36], strip[None], cmap=ListedColormap(style.MODE_SHADES),
            vmin=-0.5, vmax=2.5, edgecolor="white", linewidth=0.4,
        )  # fmt: skip
    _method_rows(axes, label=True)
    axes.set_xlim(0, modes.shape[1])
    axes.set_xlabel("step")
    axes.spines["left"].set_visible(False)


def _draw_costs(axes: Axes, run: runs.Run, task: str) -> None:
    """cost / optimum on a logarithmic axis; a cross where the gradient never left the start."""
    best = run.facts[f"{task}/optimum"]["cost"]
    for row, method in enumerate(methods()):
        facts, look = run.facts[f"{task}/{method.key}"], method.look
        ratio = facts["cost"] / best
        stuck = facts["status"] == Status.NO_GRADIENT.name
        axes.hlines(row, 1, ratio, color=look.color, linewidth=2.5, alpha=0.35)
        axes.plot(ratio, row, marker="X" if stuck else look.marker, color=look.color, markersize=7)
        text = f"{ratio:.4f}" if ratio < 2 else f"{ratio:.2f}"
        if "gap" in facts:
            proven = facts["status"] == Status.OPTIMAL.name
            text += ", proven" if proven else f", bound {facts['bound'] / best:.4f}"
        axes.annotate(
            text, (ratio, row), (8, 0), textcoords="offset points", va="center", fontsize=8
        )
    axes.axvline(1, color=style.OPTIMUM.color, linewidth=1, zorder=0)
    axes.set_xscale("log")
    axes.set_xlim(0.93, 22)
    ticks = [1, 2, 5, 10]
    axes.set_xticks(ticks, [str(t) for t in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("cost / optimum [-]")
    axes.grid(True, axis="x")
    _method_rows(axes, label=False)


def _method_rows(axes: Axes, label: bool) -> None:
    """Methods from top to bottom on the vertical axis, each in its colour."""
    rows = methods()
    axes.set_yticks(range(len(rows)), [m.look.label if label else "" for m in rows])
    axes.tick_params(axis="y", length=0)
    for text, method in zip(axes.get_yticklabels(), rows):
        text.set_color(method.look.color)
        text.set_fontweight("bold")
    axes.set_ylim(len(rows) - 0.4, -0.6)


def _stuck_label() -> Line2D:
    return Line2D(
        [], [], color="#404040", marker="X", linestyle="", label="stopped at the initial guess"
    )


def _legend(figure: Figure, stuck: Line2D, lines: bool = True) -> None:
    handles: list[Any] = []
    if lines:
        handles = [
            Line2D([], [], color=m.look.color, linestyle=m.look.line, linewidth=m.look.width,
                   label=m.look.label)
            for m in methods()
        ]  # fmt: skip
    handles += [*style.mode_patches(style.MODE_SHADES), stuck]
    figure.legend(handles=handles, loc="outside lower center", ncols=6 if lines else 4)


SCRIPT = runs.Script("figure_1", settings, compute, draw, draw_small)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
