"""The gradient of a long motion: memory and time of the transposed steps beside autodiff.

An arm of seven damped joints swings without contact (`adjoint_arm`), where gradients of long
motions can be compared; beside them our own curve with contact. Each row is one method over one
number of steps, measured in a fresh process on one thread (`adjoint_methods`):

    seconds_per_step   of the processor, forward pass and gradient
    peak_bytes         of the resident set, beyond what it was before
    gradient_error     largest difference to `cito`'s gradient, relative to its largest entry
    time_ratio, memory_ratio   to `cito` over as many steps

PyTorch's and JAX's arm are the same code, vectorized over the links; CasADi's is an expression of
scalar operations with every constant of this arm folded in, which CasADi interprets, or which is
compiled as C for this arm and machine (not counted: seconds of compiling).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from cito.benchmarks.adjoint_methods import AUTODIFF, METHODS, compiler
from cito.dynamics.types import Array

Row = dict[str, Any]
STEPS, QUICK_STEPS = (100, 500, 1500, 5000), (500,)
ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
WIDTHS = (20, 6, 12, 11, 9, 9, 9)
# What the longest motion must show: the tape's memory and the best autodiff's time over ours, and
# the largest error of any autodiff.
BARS = {"memory_ratio": 100.0, "time_ratio": 10.0, "gradient_error": 1e-6}


def run(quick: bool) -> list[Row]:
    """All rows; 500 steps if `quick`."""
    return list(rows(quick))


def total(quick: bool) -> int:
    """How many rows there will be."""
    return len(METHODS) * len(QUICK_STEPS if quick else STEPS)


def rows(quick: bool) -> Iterator[Row]:
    """The rows one by one."""
    if not sys.platform.startswith("linux"):
        raise OSError("the benchmark adjoint reads its memory from /proc: it runs on Linux only")
    for steps in QUICK_STEPS if quick else STEPS:
        ours: tuple[Row, Array] | None = None
        for name in METHODS:
            missing = _missing(name)
            if missing:
                yield {"name": name, "steps": steps, "note": f"skipped: {missing}"}
                continue
            row, gradient = measure(name, steps)
            ours = ours or (row, gradient)
            yield _compared(row, gradient, *ours)


def measure(name: str, steps: int) -> tuple[Row, Array]:
    """A method in a process of its own: its row and its gradient."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/gradient.npy"
        command = [sys.executable, "-m", "cito.benchmarks.adjoint_methods", name, str(steps), file]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **ONE_THREAD}
        )
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise RuntimeError(f"{name} failed over {steps} steps: {reason}")
        return {"name": name, "steps": steps, **json.loads(done.stdout)}, np.load(file)


def summarize(rows: list[Row]) -> Row:
    """The longest motion against the bars: ratios of the tape and of the best autodiff.

    C compiled for one arm is no autodiff that follows a change of it, and has a ratio of its own.
    """
    measured = [row for row in rows if "peak_bytes" in row]
    longest = max((row["steps"] for row in measured), default=0)
    peers = {row["name"]: row for row in measured if row["steps"] == longest}
    autodiff = {name: peers[name] for name in AUTODIFF if name in peers}
    if not autodiff:
        return {"steps": longest}
    best = min(autodiff, key=lambda name: autodiff[name]["time_ratio"])
    found = {
        "memory_ratio": peers["torch"]["memory_ratio"] if "torch" in peers else None,
        "time_ratio": autodiff[best]["time_ratio"],
        "gradient_error": max(row["gradient_error"] for row in autodiff.values()),
    }
    compiled = peers.get("casadi, compiled", {}).get("time_ratio")
    return {
        "steps": longest,
        "best_autodiff": best,
        **found,
        "compiled_time_ratio": compiled,
        "bars": BARS,
    }


def tables(rows: list[Row]) -> list[tuple[list[str], list[list[Any]]]]:
    """The rows as a person reads them."""
    headers = ["method", "steps", "us per step", "peak MB", "error", "time", "memory"]
    cells = []
    for row in rows:
        if "note" in row:
            cells.append([row["name"], row["steps"], row["note"], "", "", "", ""])
            continue
        error, ratios = row["gradient_error"], (row["time_ratio"], row["memory_ratio"])
        cells.append(
            [
                row["name"],
                row["steps"],
                f"{1e6 * row['seconds_per_step']:.1f}",
                f"{row['peak_bytes'] / 1e6:.2f}",
                "" if error is None else f"{error:.0e}",
                *(f"{ratio:.3g}x" for ratio in ratios),
            ]
        )
    return [(headers, cells)]


def _missing(name: str) -> str | None:
    """What a method needs that is not here."""
    if name in ("torch", "jax") and find_spec(name) is None:
        return f"{name} is not installed"
    if name == "casadi, compiled" and compiler() is None:
        return "there is no C compiler"
    return None


def _compared(row: Row, gradient: Array, ours: Row, wanted: Array) -> Row:
    error = float(np.abs(gradient - wanted).max() / np.abs(wanted).max())
    return {
        **row,
        "gradient_error": None if row["name"] == "cito, contact" else error,
        "time_ratio": row["seconds_per_step"] / ours["seconds_per_step"],
        "memory_ratio": row["peak_bytes"] / ours["peak_bytes"],
    }


def main() -> None:
    """Print the rows as one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="500 steps")
    found = run(parser.parse_args().quick)
    print(json.dumps({"rows": found, "summary": summarize(found)}, indent=1))


if __name__ == "__main__":
    main()
