"""Stick figures in perspective, by matplotlib: works wherever Python does."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cito.dynamics.shapes import Plane
from cito.dynamics.types import Array
from cito.visualization.motion import SEPARATING, Motion
from cito.visualization.render import Picture, view_of
from cito.visualization.shapes import boxes, ground_height, links

DPI = 100
FORCE_SCALE = 4e-3  # length of a line [m/N]


class StickRenderer:
    """Draws links as lines, trunks as their edges, contacts as dots and forces as red lines."""

    def __init__(self, motion: Motion, width: int, height: int) -> None:
        self._motion = motion
        self._links, self._boxes = links(motion.system), boxes(motion.system)
        self._figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI)
        self._canvas = FigureCanvasAgg(self._figure)
        self._axes: Any = self._figure.add_axes((0, 0, 1, 1), projection="3d")
        self._centres, radius = view_of(motion)
        self._radius = 1.5 * radius

    def draw(self, k: int) -> Picture:
        """The motion at its k-th instant."""
        axes, motion = self._axes, self._motion
        axes.clear()
        self._frame(k)
        for start, stop in self._segments(k):
            axes.plot(*np.array([start, stop]).T, color="#333333", linewidth=2.5)
        closed = motion.modes[k] != SEPARATING
        points = motion.contacts[k]
        axes.scatter(*points.T, c=np.where(closed, "#0072b2", "#b4b4b4"), s=18, depthshade=False)
        for point, force in zip(points, np.nan_to_num(motion.world_forces[k])):
            axes.plot(*np.array([point, point + FORCE_SCALE * force]).T, color="#d55e00")
        axes.set_title(f"{motion.times[k]:.2f} s", y=0.94, fontsize=9)
        self._canvas.draw()
        return np.asarray(self._canvas.buffer_rgba())[:, :, :3].copy()

    def close(self) -> None:
        """Let go of the figure."""
        self._figure.clear()

    def _frame(self, k: int) -> None:
        """Limits around the robot, and lines on the ground that stand still in the world."""
        low, high = self._centres[k] - self._radius, self._centres[k] + self._radius
        self._axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
        self._axes.set_box_aspect((1, 1, 1), zoom=1.3)
        self._axes.view_init(elev=18, azim=-50)
        self._axes.set_axis_off()
        step = self._radius / 4
        line = {"color": "#dddddd", "linewidth": 0.6}
        for x in step * np.arange(np.ceil(low[0] / step), high[0] / step):
            self._axes.plot(*ground_line(self._motion, (x, low[1]), (x, high[1])), **line)
        for y in step * np.arange(np.ceil(low[1] / step), high[1] / step):
            self._axes.plot(*ground_line(self._motion, (low[0], y), (high[0], y)), **line)

    def _segments(self, k: int) -> list[tuple[Array, Array]]:
        """Ends of all lines in the world."""
        R, p = self._motion.poses.rotations[k], self._motion.poses.positions[k]
        segments = [
            tuple(p[link.body] + end @ R[link.body].T for end in link.ends) for link in self._links
        ]
        for box in self._boxes:
            signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8).T
            corners = p[box.body] + (box.centre + signs * box.half) @ R[box.body].T
            edges = [
                (corners[i], corners[j])
                for i in range(8)
                for j in range(i)
                if np.abs(signs[i] - signs[j]).sum() == 2
            ]
            segments += edges
        return [(start, stop) for start, stop in segments]


def ground_line(motion: Motion, start: tuple[float, float], stop: tuple[float, float]) -> Array:
    """Points along a line on the ground, (3, n)."""
    xy = np.linspace(start, stop, 2 if isinstance(motion.system.ground, Plane) else 40)
    return np.column_stack([xy, ground_height(motion.system, xy)]).T
