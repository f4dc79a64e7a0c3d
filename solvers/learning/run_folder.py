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
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from cito.dynamics.files import replacing
from cito.dynamics.types import Array

SCHEMA = 1
LARGEST_SEED = 2**63 - 1  # of PyTorch
CONFIG, METRICS, CHECKPOINT, SUMMARY = (
    "config.json",
    "metrics.csv",
    "checkpoint.npz",
    "summary.json",
)
Asked = TypeVar("Asked")


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

    def asked(self, kind: type[Asked], algorithms: Sequence[str]) -> Asked:
        """What `create` was told, as the dataclass that it was.

        Raises:
            FileNotFoundError: the folder holds no run.
            ValueError: it holds a run of another algorithm, or the file is damaged.
        """
        config, file = self.config(), self.path / CONFIG
        run = _algorithm(config)
        if run is not None and run not in algorithms:
            raise ValueError(
                f"{self.path} holds a run of {run}, wanted is one of {' or '.join(algorithms)}"
            )
        own = fields(kind)  # type: ignore[arg-type]
        bare = [f.name for f in own if f.default is MISSING and f.default_factory is MISSING]
        for name in bare:
            if name not in config:
                raise ValueError(f"{file} is damaged: `{name}` is missing")
        try:
            return kind(**config)
        except (TypeError, ValueError) as error:  # of names and kinds, and of values
            raise ValueError(f"{file} is damaged: {error}") from error

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
            with file.open("rb") as stream:
                archive = np.load(stream, allow_pickle=False)
                if not isinstance(archive, np.lib.npyio.NpzFile):
                    raise ValueError("it is one array, not an archive of them")
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
        """All whole rows.

        Raises:
            ValueError: the file is damaged.
        """
        return self._rows(self._lines())

    def cut(self, updates: int, columns: Sequence[str] = ()) -> None:
        """Drop the rows of updates after so many.

        Raises:
            ValueError: the file is damaged: it has fewer, or lacks one of the columns.
        """
        file = self.path / METRICS
        if not updates:
            file.unlink(missing_ok=True)
            return
        lines = self._lines()[: updates + 1]
        rows = self._rows(lines)
        if len(rows) < updates:
            raise ValueError(
                f"{file} is damaged: it has {len(rows)} whole rows, {CHECKPOINT} is of {updates}"
            )
        for name in columns:
            if name not in rows[0]:
                raise ValueError(f"{file} is damaged: the column {name} is missing")
        self._write_text(METRICS, "".join(lines))

    def _lines(self) -> list[str]:
        """Of the metrics; none where there is no file."""
        file = self.path / METRICS
        if not file.is_file():
            return []
        try:
            return file.read_text().splitlines(keepends=True)
        except UnicodeDecodeError as error:
            raise ValueError(f"{file} is damaged: it is no text") from error

    def _rows(self, lines: Sequence[str]) -> list[dict[str, float]]:
        try:
            rows = list(csv.reader(line for line in lines if line.endswith("\n")))
            return [
                {name: float(value) for name, value in zip(rows[0], row)}
                for row in rows[1:]
                if len(row) == len(rows[0])
            ]
        except (csv.Error, ValueError) as error:
            raise ValueError(f"{self.path / METRICS} is damaged: {error}") from error

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write what came of the run."""
        self._write_text(SUMMARY, json.dumps(dict(summary), indent=2) + "\n")

    def _write_text(self, name: str, text: str) -> None:
        with replacing(self.path / name) as temporary:
            temporary.write_text(text)


def _algorithm(config: Mapping[str, Any]) -> str | None:
    """Of the run, as the command line calls it; of SAC's, only the method is saved."""
    if "algorithm" in config:
        return str(config["algorithm"])
    if "method" not in config:
        return None
    return "sac" if config["method"] == "sac" else f"sac-{config['method']}"


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
