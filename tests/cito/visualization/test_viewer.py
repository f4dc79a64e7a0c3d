"""The viewer: what the server holds at each time, and what a headless browser makes of it."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from cito.realtime.run_file import load_run
from cito.visualization.motion import CLAMPING, SLIDING, load_motion
from cito.visualization.viewer import Viewer

viser = pytest.importorskip("viser")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_it_shows_the_motion_at_the_time_of_the_slider(run_file: Path) -> None:
    motion = load_motion(run_file)
    with Viewer(motion, port=0) as viewer:
        for t in (0.4, 0.1):
            viewer.show(t)
            k = round(t * 250)
            np.testing.assert_allclose(viewer._bodies[0].position, motion.states[k, :3])
            x, y, z, w = motion.states[k, 3:7]
            assert abs(np.dot(viewer._bodies[0].wxyz, [w, x, y, z])) == pytest.approx(1)
            visible = np.array([[mesh.visible for mesh in pair] for pair in viewer._cones])
            assert (visible[:, 0] == (motion.modes[k] == CLAMPING)).all()
            assert (visible[:, 1] == (motion.modes[k] == SLIDING)).all()
            starts = viewer._forces.points[:, 0]
            np.testing.assert_allclose(starts, motion.contacts[k], atol=1e-6)


def test_it_plays_to_the_end_and_begins_anew(run_file: Path) -> None:
    with Viewer(load_motion(run_file), port=0) as viewer:
        viewer._playing.value = True
        thread = threading.Thread(target=viewer.play, daemon=True)
        thread.start()
        seen: set[int] = set()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (seen and max(seen) > 100 and min(seen) < 50):
            seen.add(viewer._moment)
            time.sleep(0.005)
        viewer.close()
        thread.join(10.0)
    assert max(seen) > 100 and not thread.is_alive()


def test_without_viser_it_says_what_to_install(
    run_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "viser", None)
    with pytest.raises(ImportError, match=r"pip install '.\[view\]'"):
        Viewer(load_motion(run_file), port=0)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_browser_draws_the_robot(run_file: Path, tmp_path: Path) -> None:
    motion = load_motion(run_file)
    assert len(load_run(run_file).ticks) == len(motion.times)
    arguments = [
        str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
        "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--window-size=160,120",
        f"--user-data-dir={tmp_path}",
    ]  # fmt: skip
    with Viewer(motion, port=0) as viewer:
        browser = subprocess.Popen(
            [*arguments, viewer.url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            picture = drawn(viewer)
        finally:
            browser.terminate()
            browser.wait(30)
    background = np.median(picture.reshape(-1, 3), axis=0)
    different = (np.abs(picture.astype(float) - background) > 60).any(axis=-1)
    assert 0.003 < different.mean() < 0.6  # a robot on an empty floor
    across = np.flatnonzero(different.any(axis=0))
    assert across[-1] - across[0] > 20


def drawn(viewer: Viewer) -> np.ndarray:
    """What the first browser that connects shows."""
    deadline = time.monotonic() + 120
    while not viewer.server.get_clients():
        assert time.monotonic() < deadline, "no browser has connected"
        time.sleep(0.1)
    client = next(iter(viewer.server.get_clients().values()))
    client.camera.position, client.camera.look_at = (0.8, -0.8, 0.5), (0.0, 0.0, 0.2)
    viewer.show(0.1)
    return client.get_render(120, 160, timeout=120)
