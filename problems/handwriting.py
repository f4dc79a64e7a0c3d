"""Characters that an arm with two links writes: splines over a pad of 3 x 3 points.

    1 2 3
    4 5 6      a character is the string of points that the pen passes: "1739" is an N, "2486 2" an O
    7 8 9

The points become joint angles, and these the knots of a spline of fifth degree that starts and
ends at rest: positions, velocities and accelerations are those of one smooth motion.
"""  # noqa: E501

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cito.dynamics.learned.motions import Motions
from cito.dynamics.types import Array
from cito.problems.model_data import SYSTEMS, completed
from cito.problems.two_link_arm import LENGTH

CHARACTERS = {
    "a": "6247896", "b": "17965", "c": "3247 9", "d": "69748", "e": "46217 9", "g": "6247869",
    "h": "175469", "i": "258", "l": "1479", "m": "741596", "n": "7426 9", "o": "24862",
    "p": "7135", "q": "6245698", "s": "3214698 7", "u": "14869", "v": "183", "w": "175 93",
    "y": "15 37", "z": "137 9",
}  # fmt: skip
PAD, MIDDLE = 0.18, (0.55, -0.45)  # half its size, and where it is from the shoulder (x, z) [m]
TIME_STEP, PER_STROKE = 0.02, 0.35  # [s]; from one point of the pad to the next


class Writing(NamedTuple):
    """One character: times (N,) and samples, and the forces at any time."""

    times: Array
    motions: Motions
    spline: object

    def torque(self, t: Array) -> Array:
        """tau (m, n) at the times t (m,)."""
        return _motion(self.spline, t).tau


def write(character: str) -> Writing:
    """The motion of the two-link arm that writes `character`.

    Raises:
        ValueError: it is not among `CHARACTERS`.
    """
    if character not in CHARACTERS:
        raise ValueError(f"`character` must be one of {''.join(CHARACTERS)}, got {character!r:.20}")
    from scipy.interpolate import make_interp_spline

    angles = np.array([joint_angles(*pad_point(d)) for d in CHARACTERS[character].replace(" ", "")])
    knots = PER_STROKE * np.arange(len(angles))
    rest = [(1, np.zeros(2)), (2, np.zeros(2))]
    spline = make_interp_spline(knots, angles, k=5, bc_type=(rest, rest))
    times = np.arange(0.0, knots[-1] + 1e-9, TIME_STEP)
    return Writing(times, _motion(spline, times), spline)


def pad_point(digit: str) -> tuple[float, float]:
    """Place (x, z) [m] of a point of the pad."""
    row, column = divmod(int(digit) - 1, 3)
    return MIDDLE[0] + PAD * (column - 1), MIDDLE[1] + PAD * (1 - row)


def joint_angles(x: float, z: float) -> tuple[float, float]:
    """Shoulder and elbow that bring the tip to (x, z), elbow bent forward [rad]."""
    l1, l2 = LENGTH
    cos = (x * x + z * z - l1 * l1 - l2 * l2) / (2 * l1 * l2)
    elbow = float(np.arccos(cos))
    shoulder = np.arctan2(x, -z) - np.arctan2(l2 * np.sin(elbow), l1 + l2 * np.cos(elbow))
    return float(shoulder), elbow


def _motion(spline: object, t: Array) -> Motions:
    q, v, a = (np.asarray(spline(t, k)) for k in range(3))  # type: ignore[operator]
    return completed(SYSTEMS["two-link-arm"].tree, q, v, a)
