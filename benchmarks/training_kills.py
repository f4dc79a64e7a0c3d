"""Training that is killed at random moments and goes on, against one that nobody kills.

A process trains; at a random moment after its first update, or while it still starts, it is sent
SIGKILL, and the next process goes on from what is on disk. When the kills are used up the last one
may end. Metrics (but for seconds) and the last checkpoint have to be those of the run that was left
alone, bit by bit.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from cito.solvers.learning.run_folder import METRICS, RunFolder

Row = dict[str, Any]
KILLS, QUICK_KILLS = 20, 2  # of each algorithm
UPDATES = 20  # for each kill, so that the run does not end before them
ENVS = 2
HORIZON = {"bptt": 16, "ppo": 32}  # control steps of a robot in an update
AT_START = 0.2  # share of kills that come while the process starts
WAIT = 1.0  # longest time from a row of the metrics to a kill [s]
START = 60.0  # longest time that a process may take to its first update [s]


def run(quick: bool) -> list[Row]:
    """One row for each algorithm."""
    return [measure(name, QUICK_KILLS if quick else KILLS) for name in HORIZON]


def measure(algorithm: str, kills: int, seed: int = 0) -> Row:
    """Kill a training so many times; what came of it."""
    updates = UPDATES * max(kills, 3)
    asked = ["trot", "--algorithm", algorithm, "--envs", str(ENVS)]
    asked += ["--steps", str(updates * ENVS * HORIZON[algorithm]), "--json"]
    random = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        whole, out = Path(folder) / "whole", Path(folder) / "killed"
        _train(asked, whole).wait()
        done, lost = 0, 0
        for _ in range(kills):
            process = _train(asked, out)
            killed = _kill(process, out, random)
            done += killed
            checkpoint, rows = RunFolder(out).checkpoint(), RunFolder(out).metrics()
            lost += len(rows) - (int(checkpoint.counters["updates"]) if checkpoint else 0)
            if not killed:
                break
        resumed = _train(asked, out).wait() == 0
        return {
            "algorithm": algorithm,
            "kills": done,
            "updates": updates,
            "updates_lost": lost,
            "resumed": resumed,
            "equal": resumed and equal(whole, out),
        }


def equal(one: Path, other: Path) -> bool:
    """Whether metrics but for seconds, and checkpoints but for seconds, are equal bit by bit."""
    tables = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in RunFolder(folder).metrics()]
        for folder in (one, other)
    ]
    a, b = RunFolder(one).checkpoint(), RunFolder(other).checkpoint()
    if a is None or b is None or tables[0] != tables[1] or a.arrays.keys() != b.arrays.keys():
        return False
    counters = [{k: v for k, v in c.counters.items() if k != "seconds"} for c in (a, b)]
    same = (np.array_equal(a.arrays[k], b.arrays[k]) for k in a.arrays)
    return counters[0] == counters[1] and all(same)


def _train(asked: list[str], out: Path) -> subprocess.Popen[bytes]:
    """A process that trains, or goes on where there is a run."""
    resume = ["--resume"] if (out / "config.json").exists() else []
    command = [sys.executable, "-m", "cito", "train", *asked, "--out", str(out), *resume]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _kill(process: subprocess.Popen[bytes], out: Path, random: np.random.Generator) -> bool:
    """Kill at a random moment; False where the process had ended by itself."""
    if random.random() < AT_START:
        time.sleep(random.uniform(0, WAIT))
    else:
        before, deadline = _size(out), time.monotonic() + START
        while _size(out) == before and process.poll() is None and time.monotonic() < deadline:
            time.sleep(1e-3)
        time.sleep(random.uniform(0, WAIT))
    alive = process.poll() is None
    process.kill()
    process.wait()
    return alive


def _size(out: Path) -> int:
    """Of the table of metrics."""
    file = out / METRICS
    return file.stat().st_size if file.exists() else 0
