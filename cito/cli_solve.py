"""`cito solve`: a task, a solver, a result."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from cito import api
from cito.cli_output import (
    MAX_SAMPLES,
    MAX_SEED,
    console,
    output_folder,
    print_json,
    print_pairs,
)
from cito.dynamics.types import whole_number
from cito.problems.problem import Problem
from cito.problems.registry import get_task
from cito.problems.task_files import task_name
from cito.results import compress_modes, summary
from cito.solvers.adaptive import Adaptive
from cito.solvers.solution import Solution, Status
from cito.solvers.solution_file import checked_target

GRADIENT_NUMBERS = ("rho", "delta", "std", "offset", "samples", "seed", "threshold", "eps")
LONGEST_NAME = 200  # of a file, in bytes; file systems allow 255
MODE_LEGEND = "steps in each mode: s separating, l sliding, c sticking (clamping)"
# Where these come out there is no trajectory worth having.
FAILURES = (
    Status.DIVERGED,
    Status.NOT_POSITIVE_DEFINITE,
    Status.INFEASIBLE,
    Status.SOLVER_FAILED,
)


def solve(arguments: argparse.Namespace) -> int:
    """Check everything, solve, save, tell."""
    task = task_name(arguments.task)
    problem = api.make(task, **task_parameters(task, arguments.set))
    options = solver_options(arguments)
    file = None if arguments.out is None else solution_file(arguments.out, problem, options)

    solution = _solve_with_progress(problem, options, quiet=arguments.json)

    row = summary(solution) | {"contacts": contact_names(problem)}
    if file is not None:
        row["file"] = str(solution.save(file))
    if arguments.json:
        print_json(row)
    else:
        print_pairs(told(row))
    return exit_status(solution)


def solution_file(folder: str, problem: Problem, options: Mapping[str, Any]) -> Path:
    """Where the solution will be saved: `folder`/TASK_METHOD.npz, made sure of before any work.

    Raises:
        ValueError: it cannot be written there.
    """
    solver = options["solver"]
    method = options.get("gradient", Adaptive()).name if solver == "ddp" else solver
    name = f"{problem.name.replace('/', '-')}_{method}.npz"
    if len(name.encode()) > LONGEST_NAME:
        raise ValueError(f"--out: the name of the task is too long for a file: {name:.60}...")
    file = output_folder("--out", folder) / name
    try:
        checked_target(file)
    except ValueError as error:
        raise ValueError(f"--out: {error}") from error
    return file


def exit_status(solution: Solution) -> int:
    """0 with a result, 1 (and the reason) without, 130 if interrupted."""
    status = solution.status
    if status is Status.INTERRUPTED:
        return 130
    if status in FAILURES:
        print(f"cito: {status.value}", file=sys.stderr)
        return 1
    return 0


def contact_names(problem: Problem) -> list[str]:
    """What the problem's system calls its contacts, or numbers."""
    dynamics = problem.dynamics
    numbers = [f"contact {i}" for i in range(dynamics.nc)]
    return list(getattr(dynamics, "contact_names", numbers))


def told(row: Mapping[str, Any]) -> list[tuple[str, object]]:
    """The lines that a person reads of a solution's `summary`."""
    gradient = f" with gradient {row['gradient']}" if row["gradient"] else ""
    pairs: list[tuple[str, object]] = [
        ("task", row["task"]),
        ("solver", row["solver"] + gradient),
        ("status", row["message"]),
        ("cost", f"{row['cost']:.9g}"),
    ]
    if "bound" in row:
        pairs += [
            ("bound", f"{row['bound']:.9g}"),
            ("gap", f"{row['gap']:.1e}"),
            ("nodes", row["nodes"]),
        ]
    pairs += [
        ("iterations", row["iterations"]),
        ("time", f"{row['solve_time']:.3g} s"),
        *((name, compress_modes(modes)) for name, modes in zip(row["contacts"], row["modes"])),
        ("contact residual", f"{row['contact_residual']:.1e}"),
    ]
    if row["modes"]:
        pairs.insert(-1, ("", MODE_LEGEND))
    if "file" in row:
        pairs.append(("saved", row["file"]))
    return pairs


def solver_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of `api.solve`.

    Raises:
        ValueError: an unknown solver or gradient, a number the gradient does not take.
    """
    numbers = {
        name: getattr(arguments, name)
        for name in GRADIENT_NUMBERS
        if getattr(arguments, name) is not None
    }
    for name, least, most in (("samples", 1, MAX_SAMPLES), ("seed", 0, MAX_SEED)):
        if name in numbers:
            whole_number(f"--{name}", numbers[name], least, most)
    options: dict[str, Any] = {
        "solver": arguments.solver,
        "max_iterations": arguments.max_iterations,
        "time_limit": arguments.time_limit,
        "monotone": arguments.monotone or None,
    }
    if arguments.gradient is not None or numbers:
        options["gradient"] = api.gradient_named(arguments.gradient or "adaptive", **numbers)
    return options


def task_parameters(task: str, assignments: Sequence[str]) -> dict[str, Any]:
    """The parameters of `task` from texts NAME=VALUE, in the types of their defaults.

    Raises:
        ValueError: no such task or parameter, no `=`, or a value of another type.
    """
    defaults = get_task(task).parameters
    parameters = {}
    for assignment in assignments:
        name, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals or not name:
            raise ValueError(f"--set must be NAME=VALUE, got {assignment!r}")
        if name not in defaults:
            close = difflib.get_close_matches(name, defaults, n=2)
            hint = (
                f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join(defaults)}"
            )
            raise ValueError(f"--set: task {task!r} has no parameter {name!r}: {hint}")
        parameters[name] = parse_value(name, text, defaults[name])
    return parameters


def parse_value(name: str, text: str, default: object) -> object:
    """`text` as a value of the type of `default`; numbers separated by commas make a list.

    Raises:
        ValueError: it is none; says what is wanted.
    """
    if isinstance(default, str):
        return text
    if isinstance(default, bool):
        return _parse(name, text, "true or false", {"true": True, "false": False}.__getitem__)
    if isinstance(default, int):
        return _parse(name, text, "a whole number", int)
    if isinstance(default, float) and "," not in text:
        return _parse(name, text, "a number", float)
    wanted = "numbers separated by commas"
    return [_parse(name, item, wanted, float) for item in text.strip("()[]").split(",")]


def _parse(name: str, text: str, wanted: str, convert: Callable[[str], Any]) -> Any:
    try:
        return convert(text.strip())
    except (KeyError, ValueError):
        raise ValueError(f"--set {name} must be {wanted}, got {text!r}") from None


def _solve_with_progress(problem: Problem, options: dict[str, Any], *, quiet: bool) -> Solution:
    """Solve, with a line on standard error that tells how far it is."""
    err = console(stderr=True)
    shown = not quiet and err.is_terminal
    line: Any = err.status(f"solving {problem.name} ...") if shown else nullcontext()
    with line as status:

        def tell(record: Mapping[str, Any]) -> None:
            told = ", ".join(
                f"{key} {record[key]:.6g}"
                for key in ("iteration", "nodes", "best" if "best" in record else "cost", "bound")
                if isinstance(record.get(key), int | float)
            )
            status.update(f"solving {problem.name}: {told}")

        if shown and options["solver"] in ("ddp", "miqp"):
            options = options | {"callback": tell}
        return api.solve(problem, **options)
