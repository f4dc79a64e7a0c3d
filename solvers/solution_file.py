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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cito.solvers.solution import Solution, Status

SCHEMA = 1  # raised whenever an older cito could misread the file
FORMAT = "cito solution"
NOT_FINITE = [{"float": text} for text in ("nan", "inf", "-inf")]
ARRAYS = {"states": np.float64, "controls": np.float64, "impulses": np.float64, "modes": np.int32}
NUMBER, COUNT, MAYBE = (int, float), (int,), (type(None),)
# What each entry of the JSON text may be.
SCALARS: dict[str, tuple[type, ...]] = {
    "task": (str,),
    "solver": (str,),
    "gradient": (str,),
    "cost": NUMBER,
    "iterations": COUNT,
    "solve_time": NUMBER,
    "contact_residual": NUMBER,
    "time_step": NUMBER,
    "parameters": (dict,),
    "history": (list,),
    "bound": NUMBER + MAYBE,
    "gap": NUMBER + MAYBE,
    "nodes": COUNT + MAYBE,
}
NAMES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    dict: "an object",
    list: "a list",
    type(None): "null",
}


def write_solution(solution: Solution, path: str | os.PathLike[str]) -> Path:
    """Write `solution` to `path`, whole or not at all.

    Where `path` is a symbolic link, the file that it points to is replaced.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: something is there that is no regular file, or `parameters` or `history` hold
            what JSON cannot say.
    """
    path = Path(path)
    target = checked_target(path)
    about = {"format": FORMAT, "schema": SCHEMA, "status": solution.status.name}
    about |= {name: to_json(name, getattr(solution, name)) for name in SCALARS}
    arrays = {name: np.asarray(getattr(solution, name), kind) for name, kind in ARRAYS.items()}
    temporary = target.with_name(f".{target.name[:40]}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            np.savez_compressed(
                file,
                allow_pickle=False,
                about=np.array(json.dumps(about, allow_nan=False)),
                **arrays,
            )
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def checked_target(path: Path) -> Path:
    """The file that writing to `path` would make or replace, links followed.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: a folder, a device or a circle of links is there.
    """
    try:
        target = path.resolve()
        occupied = target.exists() and not target.is_file()
    except (OSError, RuntimeError) as error:  # a circle, or a name that is too long
        raise ValueError(f"`path` cannot be written: {error}") from error
    if occupied or target.is_symlink():
        raise ValueError(f"`path` must be a file, but {path} is a folder, a device or a circle")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"`path`: there is no folder {target.parent}")
    return target


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
    schema: Any = about.get("schema")
    if not _is(schema, COUNT):
        raise ValueError(f"{path} is damaged: `schema` must be a whole number, got {schema!r:.80}")
    if schema > SCHEMA:
        raise ValueError(
            f"{path} was written by a newer cito (schema {schema}; this one reads up to "
            f"{SCHEMA}): upgrade cito to read it"
        )
    try:
        fields = _checked_fields(about)
        _check_arrays(arrays)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    return Solution(
        status=Status[about["status"]],
        **(fields | {"history": tuple(fields["history"])}),
        **{name: arrays[name].astype(kind) for name, kind in ARRAYS.items()},
    )


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
    except Exception as error:  # the readers of archives raise many kinds, all for one reason
        told = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{path} is damaged: {told}") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ValueError(f"{path} is not a cito solution: it does not say that it is one")
    return about, arrays


def _checked_fields(about: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of the JSON text, each of the type that `SCALARS` tells."""
    if about.get("status") not in list(Status.__members__):
        raise ValueError(f"`status` is missing or unknown, got {about.get('status')!r:.80}")
    fields = {}
    for name, kinds in SCALARS.items():
        if name not in about:
            raise ValueError(f"`{name}` is missing")
        fields[name] = value = from_json(about[name])
        if not _is(value, kinds):
            raise ValueError(
                f"`{name}` must be {' or '.join(NAMES[kind] for kind in kinds)}, got {value!r:.80}"
            )
    if not all(isinstance(entry, dict) for entry in fields["history"]):
        raise ValueError("`history` must be a list of objects")
    return fields


def _is(value: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def _check_arrays(arrays: Mapping[str, Any]) -> None:
    """Finite numbers, modes 0 to 2, and the same number of steps in all of them."""
    for name, kind in ARRAYS.items():
        if name not in arrays:
            raise ValueError(f"`{name}` is missing")
        if arrays[name].dtype != kind or not np.isfinite(arrays[name]).all():
            raise ValueError(
                f"`{name}` must hold finite numbers of type {np.dtype(kind)}, "
                f"got {arrays[name].dtype}"
            )
    X, U, impulses, modes = (arrays[name] for name in ARRAYS)
    if (modes < 0).any() or (modes > 2).any():
        raise ValueError("`modes` must be 0, 1 or 2")
    # A contact has one, two or three rows of impulses.
    if (
        any(a.ndim != 2 for a in (X, U, impulses, modes))
        or not len(X) - 1 == len(U) == len(impulses) == len(modes)
        or not modes.shape[1] <= impulses.shape[1] <= 3 * modes.shape[1]
        or X.shape[1] == 0
    ):
        shapes = ", ".join(f"{name} {arrays[name].shape}" for name in ARRAYS)
        raise ValueError(f"its arrays do not fit together ({shapes})")


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
        if value in NOT_FINITE:
            return float(value["float"])
        return {key: from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_json(item) for item in value]
    return value
