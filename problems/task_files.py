"""Tasks in files of the user's own: `path/to/file.py:name`, or `path/to/file.py` with one task.

The file is run like a module; what it decorates with `@cito.task` is registered.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path

from cito.problems.registry import get_task, tasks

_LOADED: dict[Path, tuple[str, ...]] = {}


def task_name(text: str) -> str:
    """The name of the task that `text` means, registered by its file where it names one.

    Args:
        text: the name of a registered task, `path/to/file.py:name` or `path/to/file.py`.

    Raises:
        ValueError: no such task or file, a file that raises, or one whose task is ambiguous.
    """
    path, is_file, name = text.rpartition(".py")
    if not is_file or name[:1] not in ("", ":"):
        return get_task(text).name
    path, name = path + is_file, name[1:]
    registered = load_tasks(path)
    if not registered:
        raise ValueError(f"`{path}` registers no task: decorate a function with `@cito.task`")
    there = f"{path} has {', '.join(registered)}"
    if not name and len(registered) > 1:
        raise ValueError(f"`task` must be {path}:NAME, got no name: {there}")
    if name and name not in registered:
        raise ValueError(f"`task` must be a task of its file, got {name!r}: {there}")
    return name or registered[0]


def load_tasks(path: str) -> tuple[str, ...]:
    """Run the file at `path` (once in a process) and tell the tasks that it registers.

    Raises:
        ValueError: there is no such file, or it raises; says what and where.
    """
    file = Path(path).expanduser().resolve()
    if file in _LOADED:
        return _LOADED[file]
    if not file.is_file():
        raise ValueError(f"`task` must be in a file that is there, got {path}")
    module_name = f"cito_tasks_{len(_LOADED)}_{file.stem}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None and spec.loader is not None  # of a .py file there is always one
    module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
    before = tasks()
    sys.path.insert(0, str(file.parent))  # it may import its neighbours
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[module_name]
        raise ValueError(f"`{path}` cannot be run: {_told(error, file)}") from error
    finally:
        sys.path.remove(str(file.parent))
    _LOADED[file] = tuple(name for name in tasks() if name not in before)
    return _LOADED[file]


def _told(error: BaseException, file: Path) -> str:
    """What was raised, and by which line of `file`."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    where = f"line {lines[-1]}: " if lines else ""
    message = " ".join(str(error).split())
    return f"{where}{type(error).__name__}: {message}" if message else where + type(error).__name__
