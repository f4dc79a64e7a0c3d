"""Links and joints of a URDF file as plain numbers; whatever is broken is refused by its name."""

from __future__ import annotations

import difflib
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cito.dynamics.robot_file import GeometryKind
from cito.dynamics.types import Array

Element = ElementTree.Element
JOINT_KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating")
# What is read of an element; other elements may stand there too.
KNOWN = {
    "robot": "link joint gazebo",
    "link": "inertial visual collision",
    "inertial": "origin mass inertia",
    "joint": "origin parent child axis limit dynamics mimic",
    "collision": "origin geometry",
    "geometry": "sphere box cylinder capsule mesh",
}


class LinkShape(NamedTuple):
    """A collision shape in the frame of its link; see `robot_file.Geometry`."""

    name: str
    kind: GeometryKind
    size: Array
    rotation: Array
    position: Array


class Link(NamedTuple):
    """mass [kg], com (3,) and inertia about it (3, 3) in the frame of the link, and shapes.

    weighed: whether the file states an inertia.
    """

    mass: float
    com: Array
    inertia: Array
    shapes: Sequence[LinkShape]
    weighed: bool


class UrdfJoint(NamedTuple):
    """A joint; rotation (3, 3) and position (3,) of the child in the parent, where q is 0.

    limits: lower and upper [rad or m], infinite where there are none.
    effort [N m or N] and velocity [rad/s or m/s]: infinite where there are none.
    """

    kind: str
    parent: str
    child: str
    rotation: Array = np.eye(3)
    position: Array = np.zeros(3)
    axis: Array = np.zeros(3)
    limits: tuple[float, float] = (-np.inf, np.inf)
    effort: float = np.inf
    velocity: float = np.inf
    damping: float = 0.0
    friction: float = 0.0
    mimics: bool = False


def read_links(source: Path, root: Element) -> dict[str, Link]:
    """The links by their names."""
    links: dict[str, Link] = {}
    for element in root.findall("link"):
        name = _new_name(source, element, links)
        links[name] = _link(f"link {name!r} of {source}", element)
    if not links:
        raise ValueError(f"{source} must have a <link>: there is none")
    return links


def read_joints(source: Path, root: Element) -> dict[str, UrdfJoint]:
    """The joints by their names, in the order of these."""
    joints: dict[str, UrdfJoint] = {}
    for element in root.findall("joint"):
        name = _new_name(source, element, joints)
        joints[name] = _joint(f"joint {name!r} of {source}", element)
    return dict(sorted(joints.items()))


def misspelt_elements(element: Element) -> list[str]:
    """A sentence for each element whose tag is nearly one that is read there."""
    known = KNOWN.get(element.tag, "").split()
    sentences = []
    for child in element if known else ():
        if child.tag in known:
            sentences += misspelt_elements(child)
        elif near := difflib.get_close_matches(str(child.tag), known, 1, 0.75):
            where = f"{element.tag} {element.get('name', '')}".strip()
            sentences.append(f"<{child.tag}> in {where} is not used: did you mean <{near[0]}>?")
    return sentences


def frictions(source: Path, root: Element) -> dict[str, float]:
    """Gazebo's coefficient of friction of each link that has one."""
    found = {}
    for element in root.findall("gazebo"):
        mu, link = element.find("mu1"), element.get("reference")
        if mu is not None and link:
            text = mu.get("value") or mu.text or ""
            found[link] = _number(f"mu1 of link {link!r} of {source}", text)
    return found


def _new_name(source: Path, element: Element, known: dict[str, Link] | dict[str, UrdfJoint]) -> str:
    name = element.get("name") or ""
    if not name:
        raise ValueError(f"every <{element.tag}> of {source} must have a name")
    if name in known:
        raise ValueError(f"{source} must have one {element.tag} called {name!r}, there are more")
    return name


def _link(label: str, element: Element) -> Link:
    shapes = [s for c in element.findall("collision") if (s := _shape(label, c)) is not None]
    inertial = element.find("inertial")
    if inertial is None:
        return Link(0.0, np.zeros(3), np.zeros((3, 3)), shapes, False)
    R, com = _origin(label, inertial)
    mass = _value(label, inertial, "mass", "value")
    if mass < 0:
        raise ValueError(f"`mass` of {label} must be >= 0: {mass:g}")
    xx, xy, xz, yy, yz, zz = (
        _value(label, inertial, "inertia", key, "0" if key[1] != key[2] else None)
        for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    inertia = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
    return Link(mass, com, inertia, shapes, True)


def _shape(label: str, collision: Element) -> LinkShape | None:
    R, p = _origin(f"a collision of {label}", collision)
    name = collision.get("name") or ""
    geometry = collision.find("geometry")
    shape = None if geometry is None or not len(geometry) else geometry[0]
    if shape is None:
        return None
    if shape.tag == "sphere":
        return LinkShape(name, "sphere", np.array([_size(label, shape, "radius"), 0, 0]), R, p)
    if shape.tag == "box":
        size = _numbers(f"size of a box of {label}", shape.get("size") or "", 3)
        if (size <= 0).any():
            raise ValueError(f"`size` of a box of {label} must be > 0, got {shape.get('size')!r}")
        return LinkShape(name, "box", size / 2, R, p)
    for kind in ("cylinder", "capsule"):
        if shape.tag == kind:
            size = np.array([_size(label, shape, "radius"), _size(label, shape, "length") / 2, 0])
            return LinkShape(name, kind, size, R, p)
    return None


def _joint(label: str, element: Element) -> UrdfJoint:
    kind = element.get("type")
    if kind not in JOINT_KINDS:
        raise ValueError(
            f"{label} must be {', '.join(JOINT_KINDS[:-1])} or {JOINT_KINDS[-1]}, got {kind!r}"
        )
    R, p = _origin(label, element)
    axis = _numbers(f"axis of {label}", _text(element, "axis", "xyz", "1 0 0"), 3)
    length = np.linalg.norm(axis)
    if kind in ("revolute", "continuous", "prismatic") and not 0 < length < np.inf:
        raise ValueError(f"`axis` of {label} must not be zero, got {axis}")
    limits = -np.inf, np.inf
    if kind in ("revolute", "prismatic") and element.find("limit") is not None:
        limits = _bound(label, element, "lower"), _bound(label, element, "upper")
        if limits[0] > limits[1]:
            raise ValueError(f"`limit` of {label} must have lower <= upper, got {limits}")
    effort, velocity = _bound(label, element, "effort"), _bound(label, element, "velocity")
    for name in ("damping", "friction"):
        if _value(label, element, "dynamics", name, "0") < 0:
            raise ValueError(f"`{name}` of {label} must be >= 0")
    return UrdfJoint(
        kind,
        _text(element, "parent", "link"),
        _text(element, "child", "link"),
        R,
        p,
        axis,
        limits,
        effort if effort > 0 else np.inf,
        velocity if velocity > 0 else np.inf,
        _value(label, element, "dynamics", "damping", "0"),
        _value(label, element, "dynamics", "friction", "0"),
        element.find("mimic") is not None,
    )


def _origin(label: str, element: Element) -> tuple[Array, Array]:
    """R (3, 3) and p (3,) of an element's origin: roll, pitch, yaw about fixed axes."""
    p = _numbers(f"origin of {label}", _text(element, "origin", "xyz", "0 0 0"), 3)
    a, b, c = _numbers(f"origin of {label}", _text(element, "origin", "rpy", "0 0 0"), 3)
    about_x = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    about_y = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
    about_z = np.array([[np.cos(c), -np.sin(c), 0], [np.sin(c), np.cos(c), 0], [0, 0, 1]])
    return np.asarray(about_z @ about_y @ about_x), p


def _bound(label: str, element: Element, name: str) -> float:
    """A number of an element's limit, which may be infinite."""
    text = _text(element, "limit", name, "0")
    if text.strip().lstrip("+-").lower() in ("inf", "infinity"):
        return float(text)
    return _number(f"limit of {label}", text)


def _size(label: str, shape: Element, name: str) -> float:
    size = _number(f"{name} of a {shape.tag} of {label}", shape.get(name) or "")
    if size <= 0:
        raise ValueError(f"`{name}` of a {shape.tag} of {label} must be > 0, got {size:g}")
    return size


def _value(label: str, element: Element, tag: str, name: str, default: str | None = None) -> float:
    text = _text(element, tag, name, default or "")
    return _number(f"{tag if name == 'value' else name} of {label}", text)


def _text(element: Element, tag: str, name: str, default: str = "") -> str:
    found = element.find(tag)
    return default if found is None else found.get(name) or default


def _number(label: str, text: str) -> float:
    return float(_numbers(label, text, 1)[0])


def _numbers(label: str, text: str, count: int) -> Array:
    try:
        numbers = np.array([float(word) for word in text.split()])
    except ValueError:
        numbers = np.zeros(0)
    if len(numbers) != count or not np.isfinite(numbers).all():
        wanted = "a number" if count == 1 else f"{count} numbers"
        raise ValueError(f"the {label} must be {wanted}, got {text!r:.80}")
    return numbers
