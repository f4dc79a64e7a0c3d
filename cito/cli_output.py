"""What the commands share: tables, progress, JSON, and the folder that results go to."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cito.results import json_text

PIPE_WIDTH = 120  # of tables that no terminal sees
MISSING = "-"
MAX_SAMPLES, MAX_SEED = 10**6, 2**63 - 1


def console(*, stderr: bool = False) -> Console:
    """Where human output goes; as wide as the terminal."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(
        file=stream, width=None if stream.isatty() else PIPE_WIDTH, highlight=False, soft_wrap=False
    )


def print_json(value: object) -> None:
    """One JSON object on standard output."""
    print(json_text(value), flush=True)


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table with numbers to the right; rows whose first cells are equal form a group."""
    texts = [[cell_text(cell) for cell in row] for row in rows]
    groups = [list(group) for _, group in groupby(texts, key=lambda row: row[0])]
    grouped = len(groups) < len(texts)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, header in enumerate(headers):
        numeric = all(_is_number(row[i]) or row[i] == MISSING for row in texts)
        table.add_column(header, justify="right" if numeric else "left", overflow="fold")
    for group in groups:
        for k, (first, *others) in enumerate(group):
            table.add_row(*map(Text, ("" if k else first, *others)))
        if grouped:
            table.add_section()
    console().print(table)


def print_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Names and values below each other."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(Text(name, style="dim"), Text(cell_text(value)))
    console().print(table)


def cell_text(value: object) -> str:
    """A value as a table shows it."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(cell_text(item) for item in value)
    return str(value)


def output_folder(option: str, text: str) -> Path:
    """The folder `text`, made if need be, before any work is done.

    Raises:
        ValueError: it cannot be made or written to; names the `option`.
    """
    if not text:
        raise ValueError(f"{option} must be a folder, got {text!r}")
    folder = Path(text)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{option} must be a folder, but {folder} is a file")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ValueError(f"{option}: cannot write to {folder}: {reason}") from error


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
