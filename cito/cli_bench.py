"""`cito bench` and `cito figure`: rows of numbers, and pictures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.progress import Progress

from cito import figures
from cito.api import known_name
from cito.benchmarks import BENCHMARKS
from cito.cli_output import console, output_folder, print_json, print_table

Rows = list[dict[str, Any]]


def bench(arguments: argparse.Namespace) -> int:
    """Run a benchmark and print its rows; after Ctrl-C those that there are."""
    name, quick = arguments.name, arguments.quick
    known_name("benchmark", name, BENCHMARKS)
    options: dict[str, Any] = {}
    if arguments.seeds is not None:
        if name != "random":
            raise ValueError(f"--seeds is for the benchmark random, not for {name}")
        options["seeds"] = seed_range(arguments.seeds)
    if arguments.crocoddyl_python is not None:
        if name not in ("peers", "mpc"):
            raise ValueError(f"--crocoddyl-python is for the benchmarks peers, mpc, not for {name}")
        options["crocoddyl_python"] = arguments.crocoddyl_python
    folder = output_folder("--out", arguments.out)
    module = import_module(BENCHMARKS[name])
    streamed = hasattr(module, "WIDTHS") and not arguments.json and not sys.stdout.isatty()
    rows: Rows = []
    files: list[str] = []
    status = 0
    try:
        with _progress(name, module, quick, options, arguments.json) as advance:
            for row in _rows(name, module, quick, options, folder):
                rows.append(row)
                if streamed:
                    print_line(module, row, with_headers=len(rows) == 1)
                advance()
        if name == "planar":
            files = [str(f) for f in figures.make("1", folder, quick, fresh=True)]
    except KeyboardInterrupt:
        status = 130
    if arguments.json:
        summary = {"summary": module.summarize(rows)} if hasattr(module, "summarize") else {}
        print_json({"rows": rows, "files": files, **summary})
    else:
        if not streamed:
            print_rows(module, rows)
        for file in files:
            print(file)
    return status


def figure(arguments: argparse.Namespace) -> int:
    """Draw one figure, or all."""
    names = list(figures.FIGURES) if arguments.number == "all" else [arguments.number]
    for name in names:
        known_name("figure", name, [*figures.FIGURES, "all"])
    folder = output_folder("--out", arguments.out)
    files = []
    for name in names:
        told = figures.FIGURES[name] in figures.WITH_PROGRESS  # by bars of their own
        with _status(f"figure {name} ...", arguments.json or told):
            files += [str(file) for file in figures.make(name, folder, arguments.quick)]
    if arguments.json:
        print_json({"files": files})
    else:
        print("\n".join(files))
    return 0


def print_line(module: Any, row: dict[str, Any], *, with_headers: bool) -> None:
    """One row as a line of text, at once."""
    [(headers, cells)] = module.tables([row])
    for texts in [headers, *cells] if with_headers else cells:
        line = "  ".join(f"{text!s:{width}}" for text, width in zip(texts, module.WIDTHS))
        print(line.rstrip(), flush=True)


def print_rows(module: Any, rows: Rows) -> None:
    """Rows as the benchmark wants them shown, or as they are."""
    if not rows:
        return
    if hasattr(module, "tables"):
        for headers, cells in module.tables(rows):
            print_table(headers, cells)
        return
    keys = list(dict.fromkeys(key for row in rows for key in row))
    headers = [key.replace("_", " ") for key in keys]
    print_table(headers, ([row.get(key) for key in keys] for row in rows))


def seed_range(text: str) -> range:
    """The seeds A..B-1 of a text A:B.

    Raises:
        ValueError: it is no such range, or an empty one.
    """
    first, _, last = text.partition(":")
    if not (first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise ValueError(f"--seeds must be A:B with whole numbers A < B, got {text!r}")
    return range(int(first), int(last))


def _rows(
    name: str, module: Any, quick: bool, options: dict[str, Any], folder: Path
) -> Iterable[dict[str, Any]]:
    """Row by row where the benchmark can, so that nothing is lost when it is interrupted."""
    if not hasattr(module, "rows"):
        return list(module.run(quick))
    if name in ("random", "rl-gradients"):
        options = {**options, "folder": folder}
    rows: Iterable[dict[str, Any]] = module.rows(quick, **options)
    return rows


@contextmanager
def _progress(
    name: str, module: Any, quick: bool, options: dict[str, Any], quiet: bool
) -> Iterator[Callable[[], object]]:
    """A bar on standard error where a person may be looking; gives what to call for each row."""
    err = console(stderr=True)
    if quiet or not err.is_terminal:
        yield lambda: None
        return
    total = module.total(quick, **options) if hasattr(module, "total") else None
    with Progress(console=err, transient=True) as bar:
        task = bar.add_task(name, total=total)
        yield lambda: bar.advance(task)


def _status(text: str, quiet: bool) -> Any:
    """A line with a spinner on standard error, where a person may be looking."""
    err = console(stderr=True)
    return err.status(text) if err.is_terminal and not quiet else nullcontext()
