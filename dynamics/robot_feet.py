"""Which shapes of a file become contacts: the feet, named or guessed, and what else was asked for.

sphere      one sphere
capsule     a sphere at each end
box         its corners as points: of a foot, the four that lie below in the stance
cylinder    upright: four points of the rim below; lying: as a capsule of the same length
ellipsoid   refused, unless it is a sphere
site, frame, link without a shape: a point
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import product
from typing import NamedTuple

import numpy as np

from cito.dynamics.candidates import ContactPoint
from cito.dynamics.robot_file import Geometry, RobotFile, listed
from cito.dynamics.robot_stance import Pose
from cito.dynamics.types import Array

LEGS = (("FL", "LF"), ("FR", "RF"), ("RL", "HL", "LH"), ("RR", "HR", "RH"))
_LEG = re.compile("|".join(name for names in LEGS for name in names), re.IGNORECASE)
FEET = ("foot", "feet", "sole", "toe", "ankle")  # the first that anything is named after
KINDS = ("sphere", "capsule", "box", "cylinder", "point")  # of a link, the first that it has
ROUND = 1e-9  # [m] places and radii closer than this are equal


class Contact(NamedTuple):
    """A contact point, and the friction of its shape (NaN where the file has none)."""

    point: ContactPoint
    friction: float


Poses = dict[str, Pose]


def choose_contacts(
    file: RobotFile, feet: Sequence[str] | None, contacts: Sequence[str], poses: Poses
) -> tuple[list[Contact], int]:
    """All contacts, feet first, and how many are feet; `poses` of the bodies in the stance.

    Raises:
        ValueError: a name that is in no way in the file, or of a shape that cannot touch.
    """
    if feet is None:
        shapes = _in_leg_order(_guessed(file, poses))
    else:
        shapes = _named("feet", feet, file, poses)
    others = _named("contacts", contacts, file, poses)
    found = [item for name, shape in shapes for item in _points(name, shape, poses, foot=True)]
    count = len(_distinct(found))
    found += [item for name, shape in others for item in _points(name, shape, poses, foot=False)]
    return _distinct(found), count


Named = tuple[str, Geometry]


def _guessed(file: RobotFile, poses: Poses) -> list[Named]:
    shapes = [shape for shape in file.shapes if shape.kind in KINDS]
    for word in FEET:
        found = [
            (name, shape)
            for shape in shapes
            if (name := next((n for n in _answers(shape) if _is_foot(n, word)), ""))
        ]
        if not found:
            continue
        chosen = _best_of_links(found)
        if chosen[0][1].kind == "point":
            # Frames and links beside the foot may carry its name too: foot_joint, foot_imu.
            chosen = [item for item in chosen if not item[1].name] or chosen
            chosen = [item for item in chosen if item[0].lower().endswith(word)] or chosen
            names = listed([name for name, _ in chosen], 6)
            file.warnings.append(f"No shape is stated for the feet {names}: they are points.")
        return chosen
    nothing = f"Nothing in {file.source.name} is named like a foot"
    if file.bodies[0].joint != "free":
        file.warnings.append(f"{nothing}, and the base is held: there are no contacts.")
        return []
    chosen = _lowest_ends(file, poses)
    names = listed(list(dict.fromkeys(name for name, _ in chosen)), 6)
    file.warnings.append(
        f"{nothing}: the lowest ends of the tree were taken ({names}). Say which with feet=[...], "
        "or floating_base=False where the base is held."
    )
    return chosen


def _best_of_links(found: Sequence[Named]) -> list[Named]:
    """Of each link the shapes that collide, of the first kind; points where there are no others."""
    if any(shape.kind != "point" for _, shape in found):
        found = [(name, shape) for name, shape in found if shape.kind != "point"]
    if any(shape.collides for _, shape in found):
        found = [(name, shape) for name, shape in found if shape.collides]
    best: dict[str, int] = {}
    for _, shape in found:
        rank = KINDS.index(shape.kind)
        best[shape.link] = min(best.get(shape.link, rank), rank)
    return [(n, shape) for n, shape in found if KINDS.index(shape.kind) == best[shape.link]]


def _lowest_ends(file: RobotFile, poses: Poses) -> list[Named]:
    """Shapes at ends of the tree that reach down to the lowest one, nearly."""
    parents = {body.parent for body in file.bodies}
    ends = [s for s in file.shapes if s.body not in parents and s.kind in KINDS]
    ends = [s for s in ends if s.kind != "point" or not s.name]
    chosen = _best_of_links([(shape.name or shape.link, shape) for shape in ends])
    lows = np.array([_lowest(shape, poses) for _, shape in chosen])
    span = max(max(pose.position[2] for pose in poses.values()) - lows.min(), 0.0)
    near = lows <= lows.min() + 0.05 * span + ROUND
    return [item for item, low in zip(chosen, near) if low]


def _lowest(shape: Geometry, poses: Poses) -> float:
    pose = poses[shape.body]
    return float(
        min(
            (pose.position + pose.rotation @ at)[2] - radius
            for at, radius in _spheres(shape, poses, foot=True)
        )
    )


def _named(argument: str, names: Sequence[str], file: RobotFile, poses: Poses) -> list[Named]:
    if isinstance(names, str) or (argument == "feet" and not names):
        raise ValueError(f"`{argument}` must be a list of names, not empty, got {names!r}")
    chosen: list[Named] = []
    for pattern in map(str, names):
        solid = [s for s in file.shapes if s.kind != "point"]
        by_name = [(s.name, s) for s in solid if s.name and fnmatchcase(s.name, pattern)]
        by_link = [(s.link, s) for s in solid if fnmatchcase(s.link, pattern)]
        if argument == "feet" and by_link:
            by_link = _best_of_links([n for n in by_link if n[1].kind in KINDS] or by_link)
        elif any(shape.collides for _, shape in by_link):
            by_link = [(link, shape) for link, shape in by_link if shape.collides]
        points = [
            (_answers(s)[0], s)
            for s in file.shapes
            if s.kind == "point" and fnmatchcase(_answers(s)[0], pattern)
        ]
        found = by_name or by_link or points
        if not found:
            raise ValueError(_unknown(argument, pattern, file))
        refused = [shape for _, shape in found if shape.kind == "ellipsoid"]
        if refused:
            raise ValueError(
                f"`{argument}` names {pattern!r}, an ellipsoid of {file.source}: contacts are "
                "spheres, capsules, boxes, cylinders or sites"
            )
        chosen += found
    return chosen


def _unknown(argument: str, name: str, file: RobotFile) -> str:
    names = sorted({n for shape in file.shapes for n in (shape.name, shape.link) if n})
    near = difflib.get_close_matches(name, names, 3, 0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
    hint = hint or f"there are {', '.join(names[:40])}"
    return f"`{argument}` names {name!r}, which is not in {file.source}; {hint}"


def _points(name: str, shape: Geometry, poses: Poses, *, foot: bool) -> list[Contact]:
    return [
        Contact(ContactPoint(name, shape.body, at, radius), shape.friction)
        for at, radius in _spheres(shape, poses, foot=foot)
    ]


def _spheres(shape: Geometry, poses: Poses, *, foot: bool) -> list[tuple[Array, float]]:
    """Centre in the body frame and radius of the spheres that stand for a shape."""
    centre, R, size = shape.position, shape.rotation, shape.size
    down = -(poses[shape.body].rotation @ R)[2]  # the world's -z in the axes of the shape
    if shape.kind in ("point", "sphere"):
        return [(centre, float(size[0]))]
    if shape.kind == "box":
        signs = np.array(list(product((-1, 1), repeat=3)))
        axis = int(np.argmax(np.abs(down)))
        if foot:
            signs = signs[signs[:, axis] == (1 if down[axis] > 0 else -1)]
        return [(centre + R @ (sign * size), 0.0) for sign in signs]
    radius, half = float(size[0]), float(size[1])
    if shape.kind == "cylinder" and abs(down[2]) > np.sqrt(0.5):
        ends = (np.sign(down[2]),) if foot else (-1.0, 1.0)
        rim = radius * np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]])
        return [(centre + R @ (at + [0, 0, end * half]), 0.0) for end in ends for at in rim]
    if shape.kind == "cylinder":
        half = max(half - radius, 0.0)
    offset = half * R[:, 2]
    return [(centre - offset, radius), (centre + offset, radius)]


def _distinct(contacts: Sequence[Contact]) -> list[Contact]:
    """Each place once, each name once: a name that comes again gets a number."""
    places: dict[tuple[str, bytes], Contact] = {}
    for item in contacts:
        place = np.round(np.append(item.point.position, item.point.radius) / ROUND) + 0.0
        places.setdefault((item.point.body, place.tobytes()), item)
    kept = list(places.values())
    names = [item.point.name for item in kept]
    return [
        item
        if names.count(name) == 1
        else Contact(
            ContactPoint(
                f"{name}.{names[:i].count(name) + 1}",
                item.point.body,
                item.point.position,
                item.point.radius,
            ),
            item.friction,
        )
        for i, (name, item) in enumerate(zip(names, kept))
    ]


def _answers(shape: Geometry) -> tuple[str, ...]:
    """What a shape may be called: sites and frames by their own names only."""
    names = tuple(filter(None, (shape.name, shape.link)))
    return names[:1] if shape.kind == "point" else names


def _is_foot(name: str, word: str) -> bool:
    if word == "foot" and _LEG.fullmatch(name):
        return True
    words = [part.lower() for part in re.findall(r"[A-Z]*[a-z]+|[A-Z]+", name)]
    return word in words or (word == "foot" and any(part.endswith(word) for part in words))


def _in_leg_order(feet: list[Named]) -> list[Named]:
    """FL, FR, RL, RR where every foot is named after one of four legs; else as in the file."""
    legs = [_leg(name) for name, _ in feet]
    if set(legs) != {0, 1, 2, 3}:
        return feet
    return [item for leg in range(4) for item, of in zip(feet, legs) if of == leg]


def _leg(name: str) -> int:
    tokens = re.split(r"[^A-Z]+", name.upper())
    found = [i for i, names in enumerate(LEGS) if any(leg in tokens for leg in names)]
    return found[0] if len(found) == 1 else -1
