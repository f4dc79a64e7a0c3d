"""Saved runs: the numbers of a figure, apart from its picture.

A run is one .npz file of plain arrays and one JSON string; nothing in it is pickled. The string
holds the settings that made the run, so a saved run is used again only for the same settings.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_JSON = "json"  # the member of the .npz that holds the string


class Run(NamedTuple):
    """Arrays by name, what was found besides them, and the settings that made it all."""

    arrays: dict[str, NDArray[Any]]
    facts: dict[str, Any]
    settings: dict[str, Any]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` that becomes `path` once the block has ended well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def save(
    path: Path,
    arrays: Mapping[str, NDArray[Any]],
    facts: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> None:
    """Write a run; `facts` and `settings` must be JSON-able."""
    text = json.dumps({"facts": facts, "settings": settings}, sort_keys=True)
    members: dict[str, Any] = {**arrays, _JSON: np.array(text)}
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **members)


def load(path: Path) -> Run:
    """Read a run that `save` wrote.

    Raises:
        ValueError: the file is not such a run.
    """
    with np.load(path, allow_pickle=False) as file:
        if not isinstance(file, np.lib.npyio.NpzFile) or _JSON not in file:
            raise ValueError(f"`path` must be a saved run, got {path}")
        text = json.loads(str(file[_JSON]))
        arrays = {name: file[name] for name in file if name != _JSON}
    return Run(arrays, text["facts"], text["settings"])


def holds(path: Path, settings: Mapping[str, Any]) -> bool:
    """Whether `path` is a run that these settings made."""
    try:
        return bool(load(path).settings == json.loads(json.dumps(settings)))
    except (OSError, ValueError, KeyError):
        return False


class Script(NamedTuple):
    """What a figure module consists of.

    settings(quick), compute(path, quick), draw(path, out); draw_small(path, out), where there is
    one, draws an excerpt for a page that shows the figure in passing.
    """

    name: str
    settings: Callable[[bool], dict[str, Any]]
    compute: Callable[[Path, bool], None]
    draw: Callable[[Path, Path], Path]
    draw_small: Callable[[Path, Path], Path] | None = None

    def make(self, out: Path, quick: bool, fresh: bool) -> list[Path]:
        """Compute where no run with these settings is saved, then draw."""
        stem = f"{self.name}-quick" if quick else self.name
        run = Path(out) / f"{stem}.npz"
        if fresh or not holds(run, self.settings(quick)):
            self.compute(run, quick)
        return [self.draw(run, run.with_suffix(".png")), run]

    def main(self, arguments: Sequence[str] | None = None) -> None:
        """The command line of a figure module."""
        parser = argparse.ArgumentParser(description=f"Draw {self.name} from its saved run.")
        parser.add_argument("--out", type=Path, default=Path("out"), help="folder")
        parser.add_argument("--quick", action="store_true", help="a coarser run")
        parser.add_argument("--fresh", action="store_true", help="run again")
        if self.draw_small is not None:
            parser.add_argument("--small", type=Path, help="also draw a small picture there")
        given = parser.parse_args(arguments)
        files = self.make(given.out, given.quick, given.fresh)
        if self.draw_small is not None and given.small is not None:
            files.append(self.draw_small(files[1], given.small))
        for file in files:
            print(file)
