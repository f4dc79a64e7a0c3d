"""Crocoddyl's contact node beside cito, in a Python of its own.

Its binary wheels are tied to one version of Pinocchio, so it need not live where cito does.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from cito.benchmarks import crocoddyl_worker
from cito.benchmarks.standing import Standing
from cito.benchmarks.timing import Lap
from cito.dynamics.tree import TreeSystem

VARIABLE = "CITO_CROCODDYL_PYTHON"
HOW_TO_PROVIDE = (
    f"skipped: say which Python has crocoddyl, with --crocoddyl-python PATH or in {VARIABLE}"
)


def find_python(given: str | None = None) -> str | None:
    """The Python to run Crocoddyl in: `given`, the environment's, or this one if it has it.

    Raises:
        FileNotFoundError: the one named is no file.
    """
    for source, path in (("--crocoddyl-python", given), (VARIABLE, os.environ.get(VARIABLE))):
        if path:
            if not Path(path).is_file():
                raise FileNotFoundError(f"{source} must name a Python, there is none at {path}")
            return path
    return sys.executable if find_spec("crocoddyl") else None


@contextmanager
def crocoddyl_node(python: str, work: Standing) -> Iterator[tuple[str, Lap]]:
    """The version of Crocoddyl in `python`, and a lap over all states of `work` there.

    Raises:
        OSError: it does not start, or has no crocoddyl; says what it complained of.
    """
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/errors", "w+") as errors:
        np.savez(f"{folder}/work.npz", **tables(work))
        script = str(Path(crocoddyl_worker.__file__).resolve())
        worker = subprocess.Popen(
            [python, script, f"{folder}/work.npz"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert worker.stdin and worker.stdout
        receive, send = worker.stdout, worker.stdin

        def answer() -> dict[str, Any]:
            line = receive.readline()
            if not line:
                errors.seek(0)
                raise OSError(last_words(python, worker.wait(), errors.read()))
            return dict(json.loads(line))

        def lap() -> float:
            with suppress(BrokenPipeError):  # it has ended: `answer` says why
                send.write("\n")
                send.flush()
            return float(answer()["seconds"])

        try:
            version = str(answer()["version"])
            lap()  # where it is to fail, let it be here
            yield version, lap
        finally:
            worker.kill()
            with suppress(BrokenPipeError):
                worker.communicate()


def last_words(python: str, status: int, errors: str) -> str:
    """Why a worker ended with this status."""
    if status < 0:
        name = signal.Signals(-status).name
        return (
            f"crocoddyl in {python} ended with {name}: its wheel is built for one version of "
            "Pinocchio, and pip installs newer ones beside it (3.2.1 needs pin<4.1)"
        )
    told = errors.strip().splitlines()
    return f"crocoddyl does not run in {python}: {told[-1] if told else 'no reason given'}"


def tables(work: Standing) -> dict[str, Any]:
    """The robot, the states and the controls as plain arrays."""
    return {
        **robot_tables(work.tree),
        "time_step": np.array(work.dynamics.time_step),
        "states": work.states,
        "controls": work.controls,
    }


def robot_tables(tree: TreeSystem) -> dict[str, Any]:
    """The bodies and contact points of a tree as plain arrays."""
    names = [body.name for body in tree.bodies]
    return {
        "joint": np.array([body.joint for body in tree.bodies]),
        "parent": np.array([names.index(b.parent) if b.parent else -1 for b in tree.bodies]),
        "position": np.array([body.position for body in tree.bodies]),
        "rotation": np.array([body.rotation for body in tree.bodies]),
        "axis": np.array([body.axis for body in tree.bodies]),
        "mass": np.array([body.mass for body in tree.bodies]),
        "com": np.array([body.com for body in tree.bodies]),
        "inertia": np.array([body.inertia for body in tree.bodies]),
        "armature": np.concatenate(
            [[0.0] * 6 if b.joint == "free" else [b.armature] for b in tree.bodies]
        ),
        "gravity": np.array(tree.gravity),
        "contact_body": np.array([names.index(point.body) for point in tree.contacts]),
        "contact_point": np.array([point.position for point in tree.contacts]),
    }
