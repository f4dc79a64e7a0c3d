"""Broken robot files: mutants of good ones must load and step, or be refused with one sentence.

Each mutant is read in another process, so that a crash of a reader is seen and counted. A mutant
passes where `load_robot` raises ValueError or FileNotFoundError with the name of the file in it, or
returns a robot whose step is finite; nothing may be written to the standard streams.
"""

from __future__ import annotations

import copy
import os
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from cito.benchmarks.robot_files import model_files
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.robot import load_robot

COUNT, QUICK_COUNT = 1000, 100
SEED = 0
TIMEOUT = 60.0  # of one mutant [s]
NUMBERS = ("nan", "inf", "-inf", "0", "-1", "-0.0", "1e300", "1e-300", "1e308", "1e999", "0x10")
TEXTS = ("", " ", "go2", "0 0 0", "1 2 3 4 5 6 7 8", "true", "é", "../../x", "a" * 300)
TAGS = ("body", "joint", "geom", "link", "inertial", "origin", "default", "include", "unheard-of")


def rows(quick: bool, count: int | None = None, seed: int = SEED) -> Iterator[dict[str, Any]]:
    """One row for each file that was mutated: how many loaded, were refused, and what failed."""
    count = (QUICK_COUNT if quick else COUNT) if count is None else count
    files = model_files()
    shares = np.array_split(np.arange(count), min(len(files), count))
    with tempfile.TemporaryDirectory() as folder, closing(Reader()) as reader:
        for (name, source), share in zip(files.items(), shares):
            text, told = source.read_bytes(), []
            for k in (seed + share).tolist():
                path = Path(folder) / f"mutant_{k}{source.suffix}"
                path.write_bytes(mutant(text, np.random.default_rng(k)))
                outcome = reader.outcome(path)
                path.unlink()
                passed = outcome in ("loaded", "refused")
                told.append(outcome if passed else f"seed {k}: {outcome}")
            yield {
                "file": name,
                "mutants": len(told),
                "loaded": told.count("loaded"),
                "refused": told.count("refused"),
                "failures": [text for text in told if text not in ("loaded", "refused")],
            }


def run(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    return list(rows(quick))


def total(quick: bool) -> int:
    """Number of rows."""
    return len(model_files())


def summarize(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums over all files."""
    keys = ("mutants", "loaded", "refused")
    return {key: sum(row[key] for row in rows) for key in keys} | {
        "failures": sum(len(row["failures"]) for row in rows)
    }


def tables(rows: list[dict[str, Any]]) -> list[tuple[tuple[str, ...], list[list[Any]]]]:
    """A line for each file, one for the sum, and what failed."""
    headers = ("file", "mutants", "loaded", "refused", "failures")
    lines = [[*(row[h] for h in headers[:4]), len(row["failures"])] for row in rows]
    total = summarize(rows)
    lines.append(["all", *(total[h] for h in headers[1:])])
    failures = [[row["file"], text] for row in rows for text in row["failures"]]
    return [(headers, lines), *([(("file", "failure"), failures)] if failures else [])]


def mutant(text: bytes, rng: np.random.Generator) -> bytes:
    """A broken version of a file: its elements, its numbers or its bytes changed."""
    if rng.random() < 0.1:
        return _broken_bytes(text, rng)
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return _broken_bytes(text, rng)
    for _ in range(int(rng.integers(1, 4))):
        _change(list(root.iter()), rng)
    return ElementTree.tostring(root)


def attempt(path: Path) -> str:
    """ "loaded", "refused", or what is wrong with the outcome."""
    try:
        robot = load_robot(path)
        dynamics = ContactDynamics(robot, 0.01)
        x = np.append(robot.stance, np.zeros(robot.native.nv))
        if not np.isfinite(dynamics.step(x, np.zeros(dynamics.nu)).state).all():
            return "the step of what was loaded is not finite"
    except (ValueError, FileNotFoundError) as error:
        if path.name not in str(error):
            return f"the file is not named: {error}"
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "loaded"


def _change(elements: list[ElementTree.Element], rng: np.random.Generator) -> None:
    element = elements[rng.integers(len(elements))]
    keys, children = list(element.attrib), list(element)
    kind = rng.random()
    if kind < 0.5 and keys:
        key = keys[rng.integers(len(keys))]
        element.set(key, _value(element.attrib[key], rng))
    elif kind < 0.6 and keys:
        del element.attrib[keys[rng.integers(len(keys))]]
    elif kind < 0.75 and children:
        element.remove(children[rng.integers(len(children))])
    elif kind < 0.85 and children:
        element.append(copy.deepcopy(children[rng.integers(len(children))]))
    elif kind < 0.93:
        element.tag = elements[rng.integers(len(elements))].tag
    else:
        element.tag = TAGS[rng.integers(len(TAGS))]


def _value(text: str, rng: np.random.Generator) -> str:
    """One number of a list changed, or all of the text."""
    words = text.split()
    if words and rng.random() < 0.6:
        words[rng.integers(len(words))] = NUMBERS[rng.integers(len(NUMBERS))]
        return " ".join(words)
    options = NUMBERS + TEXTS
    return options[rng.integers(len(options))]


def _broken_bytes(text: bytes, rng: np.random.Generator) -> bytes:
    cut = int(rng.integers(len(text) + 1))
    kind = rng.integers(4)
    if kind == 0:
        return text[:cut]
    if kind == 1:
        return bytes(rng.integers(0, 256, 200, dtype=np.uint8))
    flipped = bytearray(text)
    for at in rng.integers(0, max(len(text), 1), 3):
        flipped[at : at + 1] = bytes([int(rng.integers(256))])
    return bytes(flipped) if kind == 2 else text[:cut] + text[: len(text) - cut]


class Reader:
    """A process that reads robot files, and another one where the first has died."""

    def __init__(self) -> None:
        self._pool = self._start()

    def outcome(self, path: Path) -> str:
        """ "loaded", "refused", or what is wrong."""
        try:
            return self._pool.submit(_quietly, str(path)).result(TIMEOUT)
        except BrokenProcessPool:
            told = "the process died"
        except TimeoutError:
            told = f"it took longer than {TIMEOUT:g} s"
        self.close()
        self._pool = self._start()
        return told

    def close(self) -> None:
        """Let the process end, without waiting for what it may be stuck in."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    @staticmethod
    def _start() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def _quietly(path: str) -> str:
    """`attempt` in a folder of its own; anything written to the standard streams is a failure."""
    with tempfile.TemporaryFile() as noise, tempfile.TemporaryDirectory() as folder:
        kept = os.dup(1), os.dup(2)
        for stream in (1, 2):
            os.dup2(noise.fileno(), stream)
        os.chdir(folder)
        try:
            told = attempt(Path(path))
        finally:
            os.chdir("/")
            for stream, copy_ in zip((1, 2), kept):
                os.dup2(copy_, stream)
                os.close(copy_)
        noise.seek(0)
        written = noise.read().decode(errors="replace").strip()
        with suppress(OSError):
            if left := os.listdir(folder):
                return f"files were left behind: {', '.join(left)}"
    return f"wrote: {written:.200}" if written else told
