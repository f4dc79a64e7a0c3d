"""Logs of runs: whole, cut off at any byte, killed with the process, damaged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import cito
from cito.realtime.run_file import load_run, run_of
from cito.realtime.run_log import RunLog

ROOT = Path(cito.__file__).parent.parent
TYPES = {
    "ticks": np.dtype([("time", "f8"), ("state", "f8", (3,))]),
    "solves": np.dtype([("time", "f8"), ("cost", "f8")]),
}


def write(log: RunLog, count: int, close: bool = True) -> None:
    log.begin({"robot": "go2", "feet": ["FL"], "nan": float("nan")}, TYPES)
    for k in range(count):
        log.add("ticks", (0.1 * k, np.full(3, k)))
        if k % 3 == 0:
            log.add("solves", (0.1 * k, float("nan") if k == 0 else k))
        if k % 10 == 5:
            log.event(0.1 * k, "robot", f"event {k}", ticks=k)
        log.breathe()
    if close:
        log.close({"ticks": count, "objective_mean": float("inf")})


def test_what_was_logged_is_read(tmp_path: Path) -> None:
    write(RunLog(tmp_path / "a.run", interval=1e-9), 25)
    run = load_run(tmp_path / "a.run")
    assert run.complete and run.summary == {"ticks": 25, "objective_mean": float("inf")}
    assert (run.states == np.arange(25)[:, None]).all() and run.states.shape == (25, 3)
    assert run.times.tolist() == [0.1 * k for k in range(25)]
    assert len(run.solves) == 9 and np.isnan(run.solves["cost"][0])
    assert [event["message"] for event in run.events] == ["event 5", "event 15"]
    assert run.about["robot"] == "go2" and np.isnan(run.about["nan"])
    assert repr(run) == "<Run of go2: 25 ticks>"


def test_a_closed_log_is_a_plain_npz(tmp_path: Path) -> None:
    write(RunLog(tmp_path / "a.npz"), 4)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        chunks = [archive[name] for name in archive.files if name.startswith("ticks")]
    assert np.concatenate(chunks)["time"].tolist() == [0.0, 0.1, 0.2, 0.1 * 3]


def test_a_log_in_memory_is_the_same(tmp_path: Path) -> None:
    memory, file = RunLog(), RunLog(tmp_path / "a.run")
    write(memory, 12)
    write(file, 12)
    a, b = run_of(memory), run_of(file)
    assert a.ticks.tobytes() == b.ticks.tobytes() and a.events == b.events
    assert a.complete and a.summary == b.summary


def test_chunks_that_fill_up_are_handed_over() -> None:
    log = RunLog(interval=1e9)
    write(log, 2500)
    assert (run_of(log).states[:, 0] == np.arange(2500)).all()
    assert sum(name.startswith("ticks") for name in log.members) == 4


def test_cut_off_at_any_byte_it_reads_what_is_whole(tmp_path: Path) -> None:
    write(RunLog(tmp_path / "a.run", interval=1e-9), 6)
    whole = (tmp_path / "a.run").read_bytes()
    counts = []
    for length in range(0, len(whole), 97):
        (tmp_path / "cut.run").write_bytes(whole[:length])
        try:
            run = load_run(tmp_path / "cut.run")
        except ValueError:  # not even the description is there
            assert not counts
            continue
        counts.append(len(run.ticks))
        assert (run.states == np.arange(len(run.ticks))[:, None]).all()
    assert counts == sorted(counts) and counts[0] == 0 and counts[-1] == 6


def test_a_killed_process_leaves_what_it_had_logged(tmp_path: Path) -> None:
    path = tmp_path / "killed.run"
    code = f"""
import time, numpy as np
from cito.realtime.run_log import RunLog
log = RunLog({str(path)!r}, interval=0.01)
log.begin({{"robot": "go2", "feet": []}}, {{
    "ticks": np.dtype([("time", "f8"), ("state", "f8", (3,))]),
    "solves": np.dtype([("time", "f8"), ("cost", "f8")])}})
for k in range(10**6):
    log.add("ticks", (k, np.full(3, k)))
    log.breathe()
    time.sleep(1e-3)
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not path.exists() or path.stat().st_size < 4000):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    run = load_run(path)
    assert not run.complete and not run.summary and len(run.ticks) > 10
    assert (run.times == np.arange(len(run.ticks))).all()
    assert repr(run).endswith("ticks, cut off>")


def test_files_that_are_no_runs(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file"):
        load_run(tmp_path / "none.run")
    with pytest.raises(FileNotFoundError, match="no folder"):
        RunLog(tmp_path / "none" / "a.run")
    (tmp_path / "text.run").write_text("hello")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    for name in ("text.run", "other.npz"):
        with pytest.raises(ValueError, match="not a run of cito"):
            load_run(tmp_path / name)


def test_a_damaged_run_says_so(tmp_path: Path) -> None:
    write(RunLog(tmp_path / "a.run"), 5)
    raw = bytearray((tmp_path / "a.run").read_bytes())
    place = raw.index(b"NUMPY") + 200
    raw[place] ^= 0xFF
    (tmp_path / "a.run").write_bytes(raw)
    with pytest.raises(ValueError, match="is damaged"):
        load_run(tmp_path / "a.run")


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.run", "w") as archive:
        archive.writestr("about.json", '{"format": "cito run", "schema": 99}')
    with pytest.raises(ValueError, match="newer cito"):
        load_run(tmp_path / "a.run")


def test_a_full_disk_ends_the_log_and_not_the_run() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    log = RunLog()
    log._file = open("/dev/full", "wb", buffering=0)
    log._archive = zipfile.ZipFile(log._file, "w")
    write(log, 3)
    assert isinstance(log.failure, OSError)
