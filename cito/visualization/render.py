"""A motion as pictures, without a screen: numbered .png files, or one animated .gif.

MuJoCo draws robots that come from an MJCF file, where the machine has EGL; matplotlib draws
all others, and everywhere else, as stick figures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cito.dynamics.types import Array, positive, whole_number
from cito.solvers.solution_file import checked_target
from cito.visualization.motion import Motion

Picture = NDArray[np.uint8]
RENDERERS = ("auto", "mujoco", "sticks")


class Renderer(Protocol):
    """Draws one instant at a time."""

    def draw(self, k: int) -> Picture:
        """The motion at its k-th instant, (height, width, 3)."""

    def close(self) -> None:
        """Let go of the graphics."""


def render(
    motion: Motion,
    path: str | os.PathLike[str],
    fps: float = 25.0,
    size: tuple[int, int] = (640, 480),
    renderer: str = "auto",
) -> list[Path]:
    """Draw `motion` into the folder `path`, or into one file where it ends in .gif.

    Args:
        motion: of a run or a solution.
        path: a folder, made if need be; frames become frame_00000.png, frame_00001.png, ...
        fps: pictures a second of the motion.
        size: width and height [pixels].
        renderer: "mujoco", "sticks", or "auto": the first where it works.

    Returns:
        The files, in order.

    Raises:
        FileNotFoundError: the folder above `path` does not exist.
        ValueError: an argument out of its range.
        RuntimeError: "mujoco" was asked for and does not work here; says why.
    """
    path, fps = Path(path), positive("fps", fps)
    width, height = (whole_number("size", number, 16, 4096) for number in size)
    times = np.arange(motion.times[0], motion.times[-1] + 1e-9, 1 / fps)
    shown = motion.at(times)
    single = path.suffix == ".gif"
    target = checked_target(path) if single else path
    if not single:
        if path.suffix:
            raise ValueError(f"`path` must be a folder or end in .gif, got {path.name!r}")
        path.mkdir(exist_ok=True)
    chosen = _renderer(renderer, shown, width, height)
    try:
        if single:
            return [_animation(chosen, len(times), target, fps)]
        return list(_frames(chosen, len(times), target))
    finally:
        chosen.close()


def _renderer(name: str, motion: Motion, width: int, height: int) -> Renderer:
    if name not in RENDERERS:
        raise ValueError(f"`renderer` must be {', '.join(RENDERERS)}, got {name!r}")
    if name != "sticks":
        try:
            from cito.visualization.render_mujoco import MujocoRenderer

            return MujocoRenderer(motion, width, height)
        except (ImportError, RuntimeError, AttributeError, ValueError) as error:
            if name == "mujoco":  # no EGL on this machine, or a robot that is not from MJCF
                raise RuntimeError(f"MuJoCo does not render here: {error}") from error
    from cito.visualization.render_sticks import StickRenderer

    return StickRenderer(motion, width, height)


def _frames(renderer: Renderer, count: int, folder: Path) -> Iterator[Path]:
    for k in range(count):
        path = folder / f"frame_{k:05d}.png"
        Image.fromarray(renderer.draw(k)).save(path)
        yield path


def _animation(renderer: Renderer, count: int, path: Path, fps: float) -> Path:
    pictures: list[Any] = [Image.fromarray(renderer.draw(k)) for k in range(count)]
    temporary = path.with_name(f".{path.stem[:40]}.{os.getpid()}.gif")
    try:
        pictures[0].save(
            temporary, save_all=True, append_images=pictures[1:], duration=1e3 / fps, loop=0
        )
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def view_of(motion: Motion) -> tuple[Array, float]:
    """Where a camera that follows the robot looks, (K, 3), and how far it must see around that
    [m]."""
    points = np.concatenate([motion.poses.positions, motion.contacts], axis=1)
    centres = (points.min(axis=1) + points.max(axis=1)) / 2
    reach = np.linalg.norm(points - centres[:, None], axis=-1).max()
    return centres, max(float(reach), 0.1)
