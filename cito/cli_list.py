"""`cito list`: what there is."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from cito import api, benchmarks, figures
from cito.cli_output import print_json, print_pairs, print_table
from cito.dynamics.gradients import GRADIENTS
from cito.problems.registry import get_task
from cito.problems.registry import tasks as registered_tasks
from cito.problems.robots import SUMMARIES
from cito.problems.task_files import task_name
from cito.solvers.adaptive import Adaptive

# Extras of the installation, and the module by which each is recognized.
OPTIONAL = {"baselines": "cma", "scip": "pyscipopt", "gurobi": "gurobipy", "cplex": "cplex"}
# Parameters have the same meaning in every task.
PARAMETERS = {
    "friction": "coefficient of friction [-]",
    "time_step": "length of a step [s]",
    "horizon": "number of steps",
    "mass": "[kg]",
    "gravity": "downwards [m/s^2]",
    "stiffness": "of the spring [N/m]",
    "damping": "of the damper [N s/m]",
    "curvature": "of the shape to take [1/m]",
    "start": "first state: positions, then velocities",
    "target": "state that costs nothing",
    "state_weight": "diagonal of the running cost of the state",
    "control_weight": "diagonal of the cost of the controls",
    "terminal_weight": "diagonal of the cost of the last state",
}


def list_all(arguments: argparse.Namespace) -> int:
    """Tasks, robots, gradients, solvers, benchmarks, figures and installed optional parts."""
    tasks = {name: task.summary for name, task in registered_tasks().items()}
    gradients = {name: first_line(kind) for name, kind in api.STRATEGIES.items()}
    gradients[Adaptive.name] += " (default)"
    gradients |= {name: first_line(kind) for name, kind in GRADIENTS.items()}
    optional = {name: find_spec(module) is not None for name, module in OPTIONAL.items()}
    if arguments.json:
        print_json(
            {
                "tasks": tasks,
                "gradients": gradients,
                "solvers": api.SOLVERS,
                "robots": SUMMARIES,
                "optional": optional,
                "benchmarks": benchmarks.SUMMARIES,
                "figures": figures.SUMMARIES,
            }
        )
        return 0
    print_table(("task", ""), tasks.items())
    print_table(("robot", ""), SUMMARIES.items())
    print_table(("gradient", ""), gradients.items())
    print_table(("solver", ""), api.SOLVERS.items())
    print_table(("benchmark", ""), benchmarks.SUMMARIES.items())
    print_table(("figure", ""), figures.SUMMARIES.items())
    hint = {
        name: "installed" if there else f"pip install '.[{name}]' in cito's folder"
        for name, there in optional.items()
    }
    print_table(("optional solver of the reference", ""), hint.items())
    return 0


def list_task(arguments: argparse.Namespace) -> int:
    """A task's parameters and their defaults."""
    task = get_task(task_name(arguments.task))
    if arguments.json:
        print_json({"task": task.name, "summary": task.summary, "parameters": task.parameters})
        return 0
    print_pairs([("task", task.name), ("", task.summary)])
    rows = [(name, default, PARAMETERS.get(name, "")) for name, default in task.parameters.items()]
    print_table(("parameter", "default", "meaning"), ((n, _text(d), m) for n, d, m in rows))
    return 0


def first_line(kind: type) -> str:
    """The sentence that opens a docstring."""
    return (kind.__doc__ or "").splitlines()[0].rstrip(".")


def _text(default: object) -> str:
    if isinstance(default, list | tuple):
        return ",".join(f"{number:g}" for number in default)
    return str(default)
