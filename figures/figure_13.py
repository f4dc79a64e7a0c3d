"""Figure 13: the cost of one problem over the iterations, under each gradient and acceptance rule.

A Go2 shall bring its base 0.75 m to the right and leans there with all feet on the ground: the
state that a controller with the exact gradient is in after 1.3 s, from which every small step
costs more than it brings. From the controls of that moment the problem (task `base-pose-c3`,
N = 20, h = 25 ms) is solved by DDP with

    exact, Signorini, full-cone     one gradient throughout
    adaptive                        the default of the solver

where a step is accepted

    monotone        only if it lowers the cost
    non-monotone    the default: where no step does, the full step is followed for a while

An iteration is a linearization. Lines are the best cost so far, dots the iterates that were
accepted; a cross tells where the solver found nothing more to do.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from cito.benchmarks.closed_loop import METHODS, RHO
from cito.dynamics import ContactDynamics, Exact
from cito.figures import runs, style
from cito.mpc import MPC
from cito.plan import joint_hold
from cito.problems import make as make_problem
from cito.problems.legged import robot_of
from cito.problems.problem import Problem
from cito.solvers import Adaptive, Solution, solve_ddp
from cito.solvers.descent import DDPSettings

TASK, TARGET = "base-pose-c3", (0.0, -0.75, 0.0)  # [m]
LEANING, UPDATE = 52, 4  # ticks for which the exact gradient leans, iterations of each
ITERATIONS, QUICK_ITERATIONS = 25, 12
RULES = {"monotone": True, "non-monotone": False}


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    return {
        "figure": 13,
        "task": TASK,
        "target": TARGET,
        "leaning": [LEANING, UPDATE],
        "iterations": QUICK_ITERATIONS if quick else ITERATIONS,
        "rho": RHO,
    }


def compute(path: Path, quick: bool) -> None:
    """Solve with every gradient under both rules.

    Arrays for each rule/method: iterations (K,), costs (K,) and best (K,), the history of the
    solve; modes (N, 4) and states (N+1, nx) of what was found. `start`: the leaning state.
    """
    made = settings(quick)
    problem = leaning_problem()
    arrays: dict[str, NDArray[Any]] = {"start": problem.start}
    facts: dict[str, Any] = {}
    for rule, monotone in RULES.items():
        for method, gradient in METHODS.items():
            limits = DDPSettings(max_iterations=made["iterations"], monotone=monotone)
            solution = solve_ddp(problem, gradient or Adaptive(), limits)
            name = f"{rule}/{method}"
            arrays |= {f"{name}/{key}": value for key, value in _history(solution).items()}
            facts[name] = {
                "cost": solution.cost,
                "status": solution.status.name,
                "iterations": solution.iterations,
                "seconds": solution.solve_time,
                "lifted": _lifted(solution),
            }
    runs.save(path, arrays, facts, made)


def leaning_problem() -> Problem:
    """The problem from where the exact gradient leans, with the plan of that moment as a guess."""
    problem = make_problem(TASK, target=TARGET)
    dynamics, x = problem.dynamics, problem.start
    assert isinstance(dynamics, ContactDynamics)
    hold = joint_hold(problem, robot_of(problem))
    controller = MPC(problem, UPDATE, gradient=Exact(), hold=hold)
    for k in range(LEANING):
        t = k * dynamics.time_step
        x = dynamics.step(x, controller.update(t, x).control(t, x)).state
    plan = controller.update(LEANING * dynamics.time_step, x)
    return replace(problem, start=x, initial_controls=plan.controls)


def _history(solution: Solution) -> dict[str, NDArray[Any]]:
    records = solution.history
    return {
        "iterations": np.array([record["iteration"] for record in records]),
        "costs": np.array([record["cost"] for record in records]),
        "best": np.array([record["best"] for record in records]),
        "modes": solution.modes,
        "states": solution.states,
    }


def _lifted(solution: Solution) -> int:
    """How many feet leave the ground."""
    return int((solution.modes == 0).any(axis=0).sum())


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    run = runs.load(path)
    with style.sheet(9.6, 4.2) as figure:
        panels = figure.subplots(1, len(RULES), sharey=True)
        for axes, letter, rule in zip(panels, "ab", RULES):
            _draw_rule(axes, run, rule)
            style.panel_letter(axes, letter)
            axes.set_title(rule)
        panels[0].set_ylabel("cost")
        handles, labels = panels[-1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(METHODS))
        return style.write(figure, out)


def _draw_rule(axes: Axes, run: runs.Run, rule: str) -> None:
    last = run.settings["iterations"]
    for method in METHODS:
        look, name = style.LOOKS[method], f"{rule}/{method}"
        k, best = run.arrays[f"{name}/iterations"], run.arrays[f"{name}/best"]
        axes.step(
            np.append(k, last), np.append(best, best[-1]), where="post",
            color=look.color, linestyle=look.line, linewidth=look.width,
        )  # fmt: skip
        if k[-1] < last:
            axes.plot(k[-1], best[-1], marker="X", color=look.color, markersize=8, zorder=3)
        axes.plot(
            k, run.arrays[f"{name}/costs"], linestyle="", color=look.color, marker=look.marker,
            markersize=3.5, alpha=0.55,
        )  # fmt: skip
        axes.plot(
            [], [], color=look.color, linestyle=look.line, marker=look.marker, markersize=4,
            label=look.label,
        )  # fmt: skip
    _label_ends(axes, run, rule)
    axes.set(xlim=(-0.5, 1.16 * last), xlabel="iteration")
    axes.set_xticks(range(0, last + 1, 5))
    axes.grid(True)


def _label_ends(axes: Axes, run: runs.Run, rule: str) -> None:
    """The cost reached, once where several reach the same."""
    colors: dict[str, str] = {}
    for method in METHODS:
        text = f"{run.facts[f'{rule}/{method}']['cost']:.1f}"
        colors[text] = "#404040" if text in colors else style.LOOKS[method].color
    for text, color in colors.items():
        axes.annotate(
            text, (run.settings["iterations"], float(text)), (6, 0), textcoords="offset points",
            va="center", fontsize=8, color=color,
        )  # fmt: skip


SCRIPT = runs.Script("figure_13", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
