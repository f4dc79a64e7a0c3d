"""`cito plot`, `cito render` and `cito view`: runs and solutions made visible."""

from __future__ import annotations

import argparse
import re
from contextlib import suppress
from pathlib import Path

from cito.cli_output import print_json
from cito.realtime.run_file import load_run
from cito.visualization.motion import load_motion


def plot(arguments: argparse.Namespace) -> int:
    """Draw the log of a run on one sheet."""
    from cito.visualization.plot import plot_run

    out = arguments.out or Path(arguments.file).with_suffix(".png")
    return _told([plot_run(load_run(arguments.file), out)], arguments.json)


def render(arguments: argparse.Namespace) -> int:
    """Draw a motion as pictures."""
    from cito.visualization.render import render

    size = re.fullmatch(r"(\d+)x(\d+)", arguments.size)
    if size is None:
        raise ValueError(f"--size must be WIDTHxHEIGHT, e.g. 640x480, got {arguments.size!r}")
    files = render(
        load_motion(arguments.file),
        arguments.out or Path(arguments.file).with_suffix(".gif"),
        arguments.fps,
        (int(size[1]), int(size[2])),
        arguments.renderer,
    )
    return _told(files, arguments.json)


def view(arguments: argparse.Namespace) -> int:
    """Serve a motion to the browser until Ctrl-C."""
    from cito.visualization.viewer import Viewer

    motion = load_motion(arguments.file)
    with suppress(KeyboardInterrupt), Viewer(motion, arguments.port, arguments.host) as viewer:
        if arguments.json:
            print_json({"url": viewer.url})
        else:
            print(f"{viewer.url}  (Ctrl-C ends)", flush=True)
        viewer.play()
    return 0


def _told(files: list[Path], as_json: bool) -> int:
    """Print the names of the files that were written."""
    if as_json:
        print_json({"files": [str(file) for file in files]})
    else:
        print(*files, sep="\n")
    return 0
