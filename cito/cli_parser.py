"""What the parsers of all commands share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import NoReturn

TASK = "a name that `cito list` tells, or path/to/file.py:name for a task of your own"


class Misuse(ValueError):
    """A command line that cannot be understood."""


class Parser(argparse.ArgumentParser):
    """An argument parser that complains in one sentence."""

    def error(self, message: str) -> NoReturn:
        raise Misuse(f"{message} (see {self.prog} --help)")


Commands = argparse._SubParsersAction  # the type has no public name


def add_json(command: argparse.ArgumentParser) -> None:
    """The option that every command has."""
    command.add_argument("--json", action="store_true", help="print one JSON object, nothing else")


def names(known: Iterable[str]) -> str:
    """Names as a sentence lists them: "a, b or c"."""
    *most, last = known
    return f"{', '.join(most)} or {last}"


def described(title: str, summaries: Mapping[str, str]) -> str:
    """Names and what they stand for, below each other."""
    width = max(map(len, summaries))
    lines = [f"  {name:{width}}  {summary}" for name, summary in summaries.items()]
    return "\n".join([f"{title}:", *lines])
