"""Runs read back: from a file that was closed, from one that was cut off, or from memory."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.robot import Robot
from cito.dynamics.types import Array
from cito.problems.robots import load_robot
from cito.realtime.run_log import FORMAT, SCHEMA, RunLog
from cito.solvers.solution_file import from_json

LOCAL = struct.Struct("<4s5H3I2H")  # header of a member in a zip archive
SIGNATURE = b"PK\x03\x04"


@dataclass(frozen=True, eq=False)
class Run:
    """A run as it was logged.

    Args:
        about: what ran: robot, rates, settings, what the operating system granted.
        ticks: one row a control tick, with the fields of `tick_type`.
        solves: one row a solve, with the fields of `SOLVE`.
        events: what went wrong and what was done about it, in order of time.
        summary: what `run` returned; empty where the run did not end by itself.
        complete: whether the log was closed.
    """

    about: Mapping[str, Any]
    ticks: NDArray[Any]
    solves: NDArray[Any]
    events: tuple[Mapping[str, Any], ...]
    summary: Mapping[str, Any]
    complete: bool

    @property
    def times(self) -> Array:
        """Of the ticks since the run began, (K,) [s]."""
        return np.asarray(self.ticks["time"])

    @property
    def states(self) -> Array:
        """x at each tick, as the loop knew it, (K, nx)."""
        return np.asarray(self.ticks["state"])

    @property
    def torques(self) -> Array:
        """Torques by the motors' law at the state known, (K, nu) [N m]."""
        return np.asarray(self.ticks["torque"])

    @property
    def forces(self) -> Array:
        """On the feet in contact frames (T1, T2, N), (K, feet, 3) [N]; NaN where not measured."""
        return np.asarray(self.ticks["forces"])

    def robot(self) -> Robot:
        """The robot that ran, from its name or its file.

        Raises:
            FileNotFoundError: its file is not where it was.
        """
        return load_robot(self.about["robot"], self.about["feet"] or None)

    def __repr__(self) -> str:
        end = "" if self.complete else ", cut off"
        return f"<Run of {self.about.get('robot')}: {len(self.ticks)} ticks{end}>"


def load_run(path: str | os.PathLike[str]) -> Run:
    """The run logged at `path`; of one that was cut off, all that reached the disk.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no run, or is damaged, or is of a newer cito.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        complete = zipfile.is_zipfile(path)
        return _assembled(str(path), _closed(path) if complete else dict(_cut_off(path)))
    except (zipfile.BadZipFile, OSError, EOFError, KeyError, TypeError) as error:
        told = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{path} is damaged: {told}") from error


def run_of(log: RunLog) -> Run:
    """The run in a closed log, from its file or its memory."""
    return load_run(log.path) if log.path is not None else _assembled("the log", log.members)


def _closed(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _cut_off(path: Path) -> Iterator[tuple[str, bytes]]:
    """The complete members of an archive without its table of contents, by their own headers."""
    with path.open("rb") as file:
        while True:
            header = file.read(LOCAL.size)
            if len(header) < LOCAL.size or header[:4] != SIGNATURE:
                return
            *_, crc, size, _, name_length, extra_length = LOCAL.unpack(header)
            name = file.read(name_length)
            file.seek(extra_length, os.SEEK_CUR)
            data = file.read(size)
            # A member in the making has a header without size and checksum.
            if size == 0 or len(data) < size or zlib.crc32(data) != crc:
                return
            yield name.decode(), data


def _assembled(source: str, members: Mapping[str, bytes]) -> Run:
    about = _object(members, "about.json")
    if about.get("format") != FORMAT:
        raise ValueError(f"{source} is not a run of cito: it does not say that it is one")
    if not isinstance(about.get("schema"), int) or about["schema"] > SCHEMA:
        raise ValueError(f"{source} was written by a newer cito: upgrade cito to read it")
    events = [entry for name in _chunks(members, "events") for entry in json.loads(members[name])]
    return Run(
        about,
        _rows(members, "ticks"),
        _rows(members, "solves"),
        tuple(sorted(from_json(events), key=lambda entry: float(entry["time"]))),
        _object(members, "summary.json"),
        "summary.json" in members,
    )


def _object(members: Mapping[str, bytes], name: str) -> dict[str, Any]:
    value = from_json(json.loads(members[name])) if name in members else {}
    if not isinstance(value, dict):
        raise ValueError(f"{name} must hold an object")
    return value


def _chunks(members: Mapping[str, bytes], stream: str) -> list[str]:
    return sorted(name for name in members if name.startswith(f"{stream}."))


def _rows(members: Mapping[str, bytes], stream: str) -> NDArray[Any]:
    parts = [
        np.lib.format.read_array(io.BytesIO(members[name]), allow_pickle=False)
        for name in _chunks(members, stream)
    ]
    if not parts:
        raise ValueError(f"there are no {stream} in it")
    joined: NDArray[Any] = np.concatenate(parts)
    return joined
