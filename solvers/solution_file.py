"""Solutions on disk: one .npz of plain arrays, and one JSON text that says what they are.

    states, controls, impulses, modes    the arrays, as they are
    about                                JSON: schema, task, parameters, cost, status, history, ...

Nothing is pickled and nothing is executed on reading. JSON has no NaN and no infinity; they are
written as {"float": "nan"}, {"float": "inf"}, {"float": "-inf"}.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cito.solvers.solution import Solution, Status

SCHEMA = 1  # raised whenever an older cito could misread the file
FORMAT = "cito solution"
ARRAYS = {"states": np.float64, "controls": np.float64, "impulses": np.float64, "modes": np.int32}
SCALARS = (
    "task",
    "solver",
    "gradient",
    "cost",
    "iterations",
    "solve_time",
    "contact_residual",
    "time_step",
    "parameters",
    "history",
    "bound",
    "gap",
    "nodes",
)


def write_solution(solution: Solution, path: str | os.PathLike[str]) -> Path:
    """Write `solution` to `path`, whole or not at all.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: `parameters` or `history` hold what JSON cannot say.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"`path`: there is no folder {path.parent}")
    about = {"format": FORMAT, "schema": SCHEMA, "status": solution.status.name}
    about |= {name: to_json(name, getattr(solution, name)) for name in SCALARS}
    arrays = {name: np.asarray(getattr(solution, name), kind) for name, kind in ARRAYS.items()}
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            np.savez_compressed(
                file,
                allow_pickle=False,
                about=np.array(json.dumps(about, allow_nan=False)),
                **arrays,
            )
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def read_solution(path: str | os.PathLike[str]) -> Solution:
    """The solution that `write_solution` put at `path`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, is no solution, or is of a newer cito.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    about, arrays = _read_archive(path)
    if about.get("schema", 0) > SCHEMA:
        raise ValueError(
            f"{path} was written by a newer cito (schema {about['schema']}; this one reads up to "
            f"{SCHEMA}): upgrade cito to read it"
        )
    try:
        fields = {name: from_json(about[name]) for name in SCALARS}
        solution = Solution(
            status=Status[about["status"]],
            **(fields | {"history": tuple(fields["history"])}),
            **{name: arrays[name].astype(kind) for name, kind in ARRAYS.items()},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error.args[0]!r} is missing or wrong") from error
    _check_shapes(path, solution)
    return solution


def _read_archive(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON text and the arrays of an archive that is a solution at all."""
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            cut = file.read(2) == b"PK"
        raise ValueError(f"{path} is {'cut short' if cut else 'not a cito solution (no .npz)'}")
    try:
        with np.load(path, allow_pickle=False) as archive:
            about = json.loads(str(archive["about"][()])) if "about" in archive else None
            arrays = {name: archive[name] for name in ARRAYS if name in archive}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ValueError(f"{path} is not a cito solution: it does not say that it is one")
    return about, arrays


def _check_shapes(path: Path, solution: Solution) -> None:
    """All arrays must tell of the same number of steps."""
    N = len(solution.controls)
    arrays = [getattr(solution, name) for name in ARRAYS]
    lengths = (len(solution.states) - 1, len(solution.impulses), len(solution.modes))
    if any(a.ndim != 2 for a in arrays) or any(length != N for length in lengths):
        shapes = ", ".join(f"{name} {a.shape}" for name, a in zip(ARRAYS, arrays))
        raise ValueError(f"{path} is damaged: its arrays do not fit together ({shapes})")


def to_json(name: str, value: Any) -> Any:
    """`value` in the types of JSON; arrays and tuples become lists.

    Raises:
        ValueError: a value of another type; `name` says where it sits.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return to_json(name, value.tolist())
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": str(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(f"{name}.{key}", item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(f"{name}[{i}]", item) for i, item in enumerate(value)]
    raise ValueError(f"`{name}` cannot be saved: {type(value).__name__} is no number, text or list")


def from_json(value: Any) -> Any:
    """The inverse of `to_json`, up to tuples and arrays, which come back as lists."""
    if isinstance(value, dict):
        if value.keys() == {"float"}:
            return float(value["float"])
        return {key: from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_json(item) for item in value]
    return value
