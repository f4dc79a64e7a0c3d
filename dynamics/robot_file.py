"""What the readers of robot files hand over: bodies, shapes, joints and drives as plain tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from cito.dynamics.tree import Body
from cito.dynamics.types import Array, freeze

GeometryKind = Literal["sphere", "capsule", "box", "cylinder", "ellipsoid", "point"]


class Place(NamedTuple):
    """Where a frame of the file lies: in which of the tree's bodies (None: the world), and how.

    owner: name; rotation: (3, 3); position: (3,) [m].
    """

    owner: str | None
    rotation: Array
    position: Array


@dataclass(frozen=True, eq=False)
class Geometry:
    """Something in a file that may touch the ground.

    Args:
        name: of the geometry, site or frame; may be empty.
        link: name of the file's body that carries it.
        body: name of the tree's body.
        position: of its centre in the tree's body frame, (3,) [m].
        kind: what the file has there; a point is a site, a frame or the origin of a link.
        size: radius; radius and half length; half lengths of a box; radii; (3,) [m].
        rotation: its axes in the tree's body frame, (3, 3); capsules and cylinders lie along z.
        friction: [-], NaN where the file has none.
        collides: whether the file lets it touch anything.
    """

    name: str
    link: str
    body: str
    position: Array
    kind: GeometryKind = "point"
    size: Array = field(default_factory=lambda: np.zeros(3))
    rotation: Array = field(default_factory=lambda: np.eye(3))
    friction: float = float("nan")
    collides: bool = True

    def __post_init__(self) -> None:
        freeze(self)


@dataclass
class RobotFile:
    """What a reader found in a file; `assemble` makes a `Robot` of it."""

    name: str
    source: Path
    bodies: list[Body] = field(default_factory=list)
    shapes: list[Geometry] = field(default_factory=list)
    joints: list[str] = field(default_factory=list)
    joint_limits: list[tuple[float, float]] = field(default_factory=list)
    torque_limits: dict[str, float] = field(default_factory=dict)  # of the joints with a drive
    velocity_limits: list[float] | None = None
    stance: Array | None = None
    gravity: float = 9.81
    unused: dict[str, list[str]] = field(default_factory=dict)  # what of which joints
    unlimited: list[str] = field(default_factory=list)  # joints driven without a stated limit
    warnings: list[str] = field(default_factory=list)


def merged(parts: list[tuple[float, Array, Array]]) -> tuple[float, Array, Array]:
    """Mass, centre and inertia of parts: I = sum I_i + m_i (|d|^2 1 - d d'), d from the centre."""
    mass = sum(m for m, _, _ in parts)
    if mass == 0:
        return 0.0, np.zeros(3), np.asarray(sum((I for *_, I in parts), np.zeros((3, 3))))
    com = np.asarray(sum(m * c for m, c, _ in parts)) / mass
    inertia = np.zeros((3, 3))
    for m, c, I in parts:
        d = c - com
        inertia += I + m * (d @ d * np.eye(3) - np.outer(d, d))
    return float(mass), com, 0.5 * (inertia + inertia.T)


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names as a sentence has them; of many the first ones and how many more."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
