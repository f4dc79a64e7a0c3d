"""Results: what is told of a solution, and how it is read back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import numpy as np

from cito.solvers.solution import Solution, Status
from cito.solvers.solution_file import read_solution as load

__all__ = ["compress_modes", "json_text", "load", "summary", "uninterrupted"]


def summary(solution: Solution) -> dict[str, Any]:
    """What there is to say of a solution but its trajectory.

    `bound`, `gap` and `nodes` are there for the mixed-integer reference only.
    """
    row: dict[str, Any] = {
        "task": solution.task,
        "parameters": dict(solution.parameters),
        "solver": solution.solver,
        "gradient": solution.gradient or None,
        "status": solution.status.name.lower(),
        "message": solution.status.value,
        "converged": solution.converged,
        "cost": solution.cost,
        "iterations": solution.iterations,
        "solve_time": solution.solve_time,
        "horizon": len(solution.controls),
        "time_step": solution.time_step,
        "modes": solution.mode_strings(),
        "contact_residual": solution.contact_residual,
    }
    if solution.solver == "miqp":
        row |= {"bound": solution.bound, "gap": solution.gap, "nodes": solution.nodes}
    return row


def uninterrupted(solution: Solution) -> Solution:
    """The same solution; where Ctrl-C ended its solver, the interrupt goes on to the caller.

    Raises:
        KeyboardInterrupt: the solver was interrupted.
    """
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return solution


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON as the standard has it: a number that is not finite becomes null."""
    return json.dumps(_plain(value), allow_nan=False, indent=indent)


def compress_modes(modes: str) -> str:
    """Run lengths of a string of mode letters: "ssslllc" -> "3s 3l 1c"."""
    return " ".join(f"{len(list(run))}{letter}" for letter, run in groupby(modes))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | bool) else str(value)
