"""Figures made of many closed loops: the sweep, its progress, and the table that it leaves.

What is done is kept beside the saved run, in a folder NAME.parts, until the sweep is complete.
"""

from __future__ import annotations

import csv
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cito.benchmarks.sweep import Outcome, sweep
from cito.dynamics.types import Array
from cito.figures import runs


class Described(Protocol):
    """An experiment that says in plain values what it is."""

    def as_dict(self) -> dict[str, Any]:
        """What the function of a sweep is called with."""


Named = tuple[dict[str, Any], Described]  # what a row is called, and the run


class Table(NamedTuple):
    """Columns of equal length by name, and the settings that made them."""

    columns: dict[str, NDArray[Any]]
    settings: dict[str, Any]

    @classmethod
    def load(cls, path: Path) -> Table:
        """The table of a saved run."""
        run = runs.load(path)
        return cls(run.arrays, run.settings)

    def where(self, **wanted: Any) -> Table:
        """The rows with these values."""
        chosen = np.ones(len(next(iter(self.columns.values()))), dtype=bool)
        for name, value in wanted.items():
            chosen &= self.columns[name] == value
        return Table({n: column[chosen] for n, column in self.columns.items()}, self.settings)

    def numbers(self, name: str) -> Array:
        """A column as numbers; NaN where there is none."""
        return np.asarray(self.columns[name], dtype=float)

    def values(self, name: str) -> list[Any]:
        """The different values of a column, in order of appearance."""
        return list(dict.fromkeys(self.columns[name].tolist()))


def swept(
    path: Path,
    title: str,
    function: Callable[[Mapping[str, Any]], Outcome],
    rows: Sequence[Named],
    settings: dict[str, Any],
) -> None:
    """Run what has not been run yet, and save the table as `path`, and beside it as .csv.

    Args:
        path: of the saved run, .npz.
        title: of the progress bar.
        function: see `sweep`.
        rows: what each row is called, and the experiment.
        settings: what the saved run depends on.
    """
    parts = path.with_suffix(".parts")
    shown = Console(stderr=True)
    layout = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*layout, console=shown, disable=not sys.stderr.isatty()) as progress:
        bar = progress.add_task(title, total=len(rows))
        outcomes = sweep(
            function, [e.as_dict() for _, e in rows], parts, advance=lambda: progress.advance(bar)
        )
    records = [{**named, **found} for (named, _), found in zip(rows, outcomes)]
    columns = {name: _column([record[name] for record in records]) for name in records[0]}
    write_csv(path.with_suffix(".csv"), records)
    runs.save(path, columns, {}, settings)
    shutil.rmtree(parts)


def write_csv(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Records with equal keys as a table of text; None is an empty cell."""
    with runs.replacing(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)


def _column(values: Sequence[Any]) -> NDArray[Any]:
    """Texts, or numbers with NaN for None."""
    if all(isinstance(value, str) for value in values):
        return np.array(values)
    return np.array([np.nan if value is None else value for value in values], dtype=float)
