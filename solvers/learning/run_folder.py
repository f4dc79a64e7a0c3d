"""The folder of a training run: what was asked, what came of it, and where to go on.

    config.json      the configuration, and the versions of what ran it
    metrics.csv      one row for each update; all columns but `seconds` are the same in every run
    checkpoint.npz   arrays and one JSON text; written to another name, then renamed
    summary.json     what `train` returned, once it has ended

Nothing is pickled. A checkpoint is whole whenever the process dies; rows of the metrics that are
later than it are dropped by who goes on.
"""

from __future__ import annotations

import csv
import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cito.dynamics.files import replacing
from cito.dynamics.types import Array

SCHEMA = 1
CONFIG, METRICS, CHECKPOINT, SUMMARY = (
    "config.json",
    "metrics.csv",
    "checkpoint.npz",
    "summary.json",
)


class Checkpoint(NamedTuple):
    """arrays by name, and the numbers that JSON can say."""

    arrays: dict[str, Array]
    counters: dict[str, Any]


class RunFolder:
    """A training run on disk.

    Args:
        path: of the folder; `create` makes it, `open` reads what is there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def create(self, config: Mapping[str, Any]) -> None:
        """Begin a run.

        Raises:
            ValueError: the folder holds a run already.
        """
        if (self.path / CONFIG).exists():
            raise ValueError(
                f"`out` must be a new folder, {self.path} holds a run: go on with --resume"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        about = {"schema": SCHEMA, "config": dict(config), "versions": versions()}
        self._write_text(CONFIG, json.dumps(about, indent=2) + "\n")

    def config(self) -> dict[str, Any]:
        """What `create` was told.

        Raises:
            FileNotFoundError: the folder holds no run.
            ValueError: the file is damaged or of a newer cito.
        """
        file = self.path / CONFIG
        if not file.is_file():
            raise FileNotFoundError(f"there is no training run in {self.path} (no {CONFIG})")
        try:
            about = json.loads(file.read_text())
            config, schema = dict(about["config"]), int(about["schema"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{file} is damaged: {error}") from error
        if schema > SCHEMA:
            raise ValueError(f"{file} was written by a newer cito: upgrade cito to read it")
        return config

    def save(self, arrays: Mapping[str, Array], counters: Mapping[str, Any]) -> None:
        """Replace the checkpoint, whole or not at all."""
        text = np.array(json.dumps(dict(counters), allow_nan=False))
        with replacing(self.path / CHECKPOINT) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, counters=text, **dict(arrays))

    def checkpoint(self) -> Checkpoint | None:
        """The last checkpoint, where there is one.

        Raises:
            ValueError: the file is damaged.
        """
        file = self.path / CHECKPOINT
        if not file.is_file():
            return None
        try:
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive if name != "counters"}
                counters = json.loads(str(archive["counters"][()]))
        except Exception as error:  # the readers of archives raise many kinds, all for one reason
            raise ValueError(f"{file} is damaged: {error}") from error
        return Checkpoint(arrays, counters)

    def append(self, row: Mapping[str, float]) -> None:
        """One more row of the metrics."""
        file = self.path / METRICS
        new = not file.exists()
        with file.open("a", newline="") as stream:
            writer = csv.writer(stream)
            if new:
                writer.writerow(row)
            writer.writerow([repr(value) for value in row.values()])

    def metrics(self) -> list[dict[str, float]]:
        """All whole rows."""
        file = self.path / METRICS
        if not file.is_file():
            return []
        lines = file.read_text().splitlines(keepends=True)
        rows = list(csv.reader(line for line in lines if line.endswith("\n")))
        return [
            {name: float(value) for name, value in zip(rows[0], row)}
            for row in rows[1:]
            if len(row) == len(rows[0])
        ]

    def cut(self, updates: int) -> None:
        """Drop the rows of updates after so many."""
        file = self.path / METRICS
        if not updates:
            file.unlink(missing_ok=True)
        elif file.is_file():
            lines = file.read_text().splitlines(keepends=True)
            self._write_text(METRICS, "".join(lines[: updates + 1]))

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write what came of the run."""
        self._write_text(SUMMARY, json.dumps(dict(summary), indent=2) + "\n")

    def _write_text(self, name: str, text: str) -> None:
        with replacing(self.path / name) as temporary:
            temporary.write_text(text)


def versions() -> dict[str, str]:
    """Of cito, Python and numpy, and the machine."""

    def of(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "unknown"

    return {
        "cito": of("cito"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
    }
