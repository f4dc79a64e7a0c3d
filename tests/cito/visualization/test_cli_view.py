"""`cito plot`, `render` and `view`: files, JSON, misuse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import cito
from cito.cli import main

ROOT = Path(cito.__file__).parent.parent


def test_plot_and_render_write_beside_the_run(
    run_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "a.run"
    copy.write_bytes(run_file.read_bytes())
    assert main(["plot", str(copy)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'a.png'}\n"
    arguments = ["--renderer", "sticks", "--fps", "4", "--size", "64x48", "--json"]
    assert main(["render", str(copy), *arguments]) == 0
    assert json.loads(capsys.readouterr().out) == {"files": [str(tmp_path / "a.gif")]}
    assert (tmp_path / "a.png").stat().st_size > 0 < (tmp_path / "a.gif").stat().st_size


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plot", "none.run"], "there is no file none.run"),
        (["render", "none.run"], "there is no file none.run"),
        (["view", "none.run"], "there is no file none.run"),
        (["render", "none.run", "--size", "big"], "--size must be WIDTHxHEIGHT"),
    ],
)
def test_misuse(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_view_serves_until_it_is_interrupted(run_file: Path) -> None:
    pytest.importorskip("viser")
    process = subprocess.Popen(
        [sys.executable, "-m", "cito", "view", str(run_file), "--port", "0", "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = json.loads(process.stdout.readline())["url"]
    assert url.startswith("http://127.0.0.1:")
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")
