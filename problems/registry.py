"""The registry of tasks: a task is a function with keyword parameters that returns a Problem."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cito.problems.problem import Problem

TaskFunction = Callable[..., Problem]


@dataclass(frozen=True)
class Task:
    """A registered task: its name, one sentence, and the function that builds the problem."""

    name: str
    summary: str
    build: TaskFunction

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameter names with their defaults."""
        return {p.name: p.default for p in inspect.signature(self.build).parameters.values()}


_TASKS: dict[str, Task] = {}


def task(name: str, summary: str) -> Callable[[TaskFunction], TaskFunction]:
    """Register the decorated function as the task `name`."""

    def register(build: TaskFunction) -> TaskFunction:
        if name in _TASKS:
            raise ValueError(f"`name`: a task called {name!r} is already registered")
        _TASKS[name] = Task(name, summary, build)
        return build

    return register


def tasks() -> dict[str, Task]:
    """All registered tasks by name."""
    import cito.problems  # noqa: F401  (its import registers the tasks that ship with cito)

    return dict(_TASKS)


def get_task(name: str) -> Task:
    """The task called `name`.

    Raises:
        ValueError: there is none; names the closest ones.
    """
    known = tasks()
    if not isinstance(name, str):
        raise ValueError(f"`task` must be the name of a task, got {name!r:.80}")
    if name not in known:
        close = difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(known)}"
        raise ValueError(f"`task` must be a registered task, got {name!r}: {hint}")
    return known[name]


def make(name: str, **parameters: Any) -> Problem:
    """The problem of the task `name` with some of its parameters changed.

    Raises:
        ValueError: unknown task or parameter, or a value that the task refuses.
    """
    chosen = get_task(name)
    for key in parameters:
        if key not in chosen.parameters:
            known = ", ".join(chosen.parameters)
            close = difflib.get_close_matches(key, chosen.parameters, n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise ValueError(f"`{key}` is no parameter of task {name!r}{hint}: it has {known}")
    return chosen.build(**parameters)
