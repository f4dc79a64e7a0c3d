"""The log of a run: one file that grows while the run lasts, a plain .npz once it has ended.

    about.json                 what runs, once at the beginning
    ticks.00000000.npy ...     one row a control tick, in chunks
    solves.00000000.npy ...    one row a solve
    events.00000001.json ...   what went wrong and what was done about it
    summary.json               once at the end

The file is a zip archive without compression: members are only ever appended, each is complete as
soon as it is written, and the archive's table of contents comes last. A run that is killed lacks
that table and what was logged after the last chunk; `cito.load_run` finds the members without it.
Rows are collected by the loop and written by a thread. Nothing is pickled.
"""

from __future__ import annotations

import io
import json
import os
import queue
import threading
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.types import positive
from cito.realtime.scheduling import step_back
from cito.solvers.solution_file import checked_target, to_json

FORMAT, SCHEMA = "cito run", 1
STREAMS = ("ticks", "solves")
ROWS = 1000  # of a chunk at most


class RunLog:
    """Collects what happens in a run.

    Args:
        path: of the file; an existing one is replaced. None: keep everything in memory.
        interval: between two chunks [s]: what a killed run loses at most.

    Raises:
        FileNotFoundError: the folder of `path` does not exist.
        ValueError: something is at `path` that is no regular file.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, interval: float = 0.25) -> None:
        self.path = None if path is None else Path(path)
        self._interval = positive("interval", interval)
        self.members: dict[str, bytes] = {}  # of a log in memory
        self._rows: dict[str, NDArray[Any]] = {}  # filled by the loop, one chunk at a time
        self._filled = dict.fromkeys(STREAMS, 0)
        self._events: list[dict[str, Any]] = []
        self._chunks = 0
        self._written = time.monotonic()
        self._queue: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()
        self._archive: zipfile.ZipFile | None = None
        self._file: io.FileIO | None = None
        self.failure: OSError | None = None
        if self.path is not None:
            self._file = checked_target(self.path).open("wb", buffering=0)
            self._archive = zipfile.ZipFile(self._file, "w")
        self._thread = threading.Thread(target=self._work, name="cito log", daemon=True)

    def begin(self, about: Mapping[str, Any], types: Mapping[str, np.dtype[Any]]) -> None:
        """Say what the run is, and what the rows of each stream hold.

        The writing thread starts here: as a child of the loop's thread it is a real-time thread
        too, so that nobody keeps it from giving back the interpreter.
        """
        text = to_json("about", {"format": FORMAT, "schema": SCHEMA, **about})
        self._thread.start()
        self._queue.put(("about.json", text))
        for name in STREAMS:  # without rows: a run that ends at once can be read as well
            self._rows[name] = np.zeros(ROWS, types[name])
            self._queue.put((_chunk(name, 0), self._rows[name][:0].copy()))

    def add(self, stream: str, row: tuple[Any, ...]) -> None:
        """Append a row to "ticks" or "solves"."""
        if self._filled[stream] == ROWS:
            self._hand_over()
        self._rows[stream][self._filled[stream]] = row
        self._filled[stream] += 1

    def event(self, time: float, kind: str, message: str, **details: Any) -> None:
        """Append an event."""
        entry = {"time": time, "kind": kind, "message": message, **details}
        self._events.append(to_json("event", entry))

    def breathe(self) -> None:
        """Hand what has been collected to the writing thread, once in an interval."""
        if time.monotonic() - self._written >= self._interval:
            self._hand_over()

    def close(self, summary: Mapping[str, Any]) -> None:
        """Write what is left, the summary, and the table of contents."""
        self._hand_over()
        self._queue.put(("summary.json", to_json("summary", summary)))
        self._queue.put(None)
        self._thread.join()

    def _hand_over(self) -> None:
        self._written = time.monotonic()
        self._chunks += 1
        for name, rows in self._rows.items():
            if self._filled[name]:
                taken = rows[: self._filled[name]].copy()
                self._queue.put((_chunk(name, self._chunks), taken))
                self._filled[name] = 0
        if self._events:
            self._queue.put((f"events.{self._chunks:08d}.json", self._events))
            self._events = []

    def _work(self) -> None:
        step_back()
        while (member := self._queue.get()) is not None:
            name, content = member
            to_bytes = _array_bytes if name.endswith(".npy") else _text_bytes
            self._append(name, to_bytes(content))
        if self._archive is not None and self._file is not None:
            try:
                self._archive.close()
            except OSError as error:
                self.failure = self.failure or error
            self._file.close()

    def _append(self, name: str, data: bytes) -> None:
        """Write one member; a full disk ends the log, not the run."""
        if self._archive is None or self._file is None:
            self.members[name] = data
        elif self.failure is None:
            try:
                self._archive.writestr(name, data)
            except OSError as error:
                self.failure = error


def _chunk(stream: str, number: int) -> str:
    return f"{stream}.{number:08d}.npy"


def _array_bytes(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _text_bytes(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False).encode()
