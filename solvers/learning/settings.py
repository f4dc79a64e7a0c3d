"""Settings of learners changed by name, from Python, from a run's file or from a command line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

Settings = TypeVar("Settings")
HIDDEN = ("gradient",)  # it has arguments of its own


def changed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """The settings, a dataclass, with some of its numbers, truth values or lists of them changed.

    Raises:
        ValueError: there is no setting of a name, or it is of another kind.
    """
    known = {f.name: getattr(settings, f.name) for f in fields(settings)}  # type: ignore[arg-type]
    known = {name: value for name, value in known.items() if name not in HIDDEN}
    new = {}
    for name, value in changes.items():
        if name not in known:
            raise ValueError(f"`settings` must be named {', '.join(known)}, got {name!r}")
        new[name] = _alike(name, known[name], value)
    return replace(settings, **new)  # type: ignore[type-var]


def _alike(name: str, was: Any, value: Any) -> Any:
    """The value as one of the kind that there was."""
    if isinstance(was, tuple):
        fits = isinstance(value, (list, tuple)) and len(value) > 0
        wanted = "a list such as " + json.dumps(was)
        if fits:
            return tuple(_alike(name, was[0], one) for one in value)
    elif isinstance(was, bool):
        fits, wanted = isinstance(value, bool), "true or false"
    else:
        kinds = (int,) if isinstance(was, int) else (int, float)
        fits = isinstance(value, kinds) and not isinstance(value, bool)
        wanted = "a whole number" if isinstance(was, int) else "a number"
    if not fits:
        raise ValueError(f"`{name}` must be {wanted}, got {value!r}")
    return type(was)(value)


def assignments(given: Sequence[str]) -> dict[str, Any]:
    """Values by name from texts NAME=VALUE, the values as JSON has them.

    Raises:
        ValueError: a text is no such thing.
    """
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        try:
            if not equals:
                raise ValueError
            found[name.strip()] = json.loads(value)
        except ValueError:
            raise ValueError(
                f"--set must be NAME=VALUE, the value a number, true, false or a list such as "
                f"[256, 128], got {text!r}"
            ) from None
    return found
