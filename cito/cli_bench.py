"""`cito bench` and `cito figure`: rows of numbers, and pictures."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from contextlib import nullcontext
from importlib import import_module
from typing import Any

from cito import figures
from cito.api import known_name
from cito.benchmarks import BENCHMARKS
from cito.cli_output import console, output_folder, print_json, print_table

Rows = list[dict[str, Any]]


def bench(arguments: argparse.Namespace) -> int:
    """Run a benchmark and print its rows; after Ctrl-C those that there are."""
    known_name("benchmark", arguments.name, BENCHMARKS)
    if arguments.seeds and arguments.name != "random":
        raise ValueError(f"--seeds is for the benchmark random, not for {arguments.name}")
    folder = output_folder("--out", arguments.out)
    module = import_module(BENCHMARKS[arguments.name])
    # Row by row where the benchmark can, so that nothing is lost when it is interrupted.
    produce = getattr(module, "rows", module.run)
    rows: Rows = []
    files: list[str] = []
    status = 0
    try:
        _collect(produce(arguments.quick), rows, arguments.name, arguments.json)
        if arguments.name == "planar":
            files = [str(f) for f in figures.make("1", folder, arguments.quick, fresh=True)]
    except KeyboardInterrupt:
        status = 130
    if arguments.json:
        print_json({"rows": rows, "files": files})
    else:
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
        with _status(f"figure {name} ...", arguments.json):
            files += [str(file) for file in figures.make(name, folder, arguments.quick)]
    if arguments.json:
        print_json({"files": files})
    else:
        print("\n".join(files))
    return 0


def print_rows(module: Any, rows: Rows) -> None:
    """Rows as the benchmark wants them shown, or as they are."""
    if not rows:
        return
    if hasattr(module, "table"):
        print_table(list(module.COLUMNS.values()), module.table(rows))
        return
    headers = list(dict.fromkeys(key for row in rows for key in row))
    print_table(headers, ([row.get(key) for key in headers] for row in rows))


def _collect(source: Iterable[dict[str, Any]], rows: Rows, name: str, quiet: bool) -> None:
    with _status(f"{name} ...", quiet) as status:
        for row in source:
            rows.append(row)
            if status is not None:
                last = ", ".join(str(value) for value in list(row.values())[:3])
                status.update(f"{name}: {len(rows)} rows, last {last}")


def _status(text: str, quiet: bool) -> Any:
    """A line with a spinner on standard error, where a person may be looking."""
    err = console(stderr=True)
    return err.status(text) if err.is_terminal and not quiet else nullcontext()
