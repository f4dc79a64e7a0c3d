"""Robots in URDF files, read without any other package; no mesh is opened.

Links that hang on fixed joints are part of the body that carries them. Children come in the order
of their joints' names, as in urdfdom and Pinocchio, so that q and v are those of Pinocchio's model
(but for continuous joints, which it describes by cosine and sine).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from cito.dynamics.robot_file import Geometry, Place, RobotFile, listed, merged
from cito.dynamics.robot_urdf_elements import (
    Element,
    Link,
    UrdfJoint,
    frictions,
    misspelt_elements,
    read_joints,
    read_links,
)
from cito.dynamics.tree import Body
from cito.dynamics.types import Array


def read_urdf(source: Path, root: Element, floating_base: bool | None) -> RobotFile:
    """Bodies, shapes and limits of a URDF file.

    Raises:
        ValueError: an element is broken, the links form no tree, or a joint is of a kind that a
            tree cannot hold.
    """
    file = RobotFile(root.get("name") or source.stem, source, velocity_limits=[])
    file.warnings += misspelt_elements(root)
    links, joints = read_links(source, root), read_joints(source, root)
    base = _root(source, links, joints)
    joints = _carried(base, joints, floating_base)
    places = _read_tree(file, links, joints)
    _add_inertias(file, links, places)
    _add_shapes(file, links, joints, places, frictions(source, root))
    _warn(file, links, joints, places)
    return file


def _root(source: Path, links: dict[str, Link], joints: dict[str, UrdfJoint]) -> str:
    """The one link that hangs on no other."""
    carriers: dict[str, str] = {}
    for name, joint in joints.items():
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links:
                raise ValueError(
                    f"the {role} of joint {name!r} of {source} must be a link of it, got {link!r}"
                )
        if joint.child in carriers:
            raise ValueError(
                f"link {joint.child!r} of {source} must hang on one joint, it hangs on "
                f"{carriers[joint.child]!r} and {name!r}"
            )
        carriers[joint.child] = name
    roots = [name for name in links if name not in carriers]
    if len(roots) != 1:
        found = listed(roots) or "none, the joints form a circle"
        raise ValueError(f"{source} must have one link that hangs on no joint, got {found}")
    return roots[0]


def _carried(
    base: str, joints: dict[str, UrdfJoint], floating_base: bool | None
) -> dict[str, UrdfJoint]:
    """The joints with one more that carries the base, fixed or floating."""
    floats = any(joint.kind == "floating" for joint in joints.values())
    if floating_base is False and floats:
        joints = {
            name: joint._replace(kind="fixed" if joint.kind == "floating" else joint.kind)
            for name, joint in joints.items()
        }
    free = not floats and (base != "world" if floating_base is None else floating_base)
    return {"": UrdfJoint("floating" if free else "fixed", "", base), **joints}


def _read_tree(
    file: RobotFile, links: dict[str, Link], joints: dict[str, UrdfJoint]
) -> dict[str, Place]:
    """Append the bodies, depth first; the place of each link in them."""
    children: dict[str, list[str]] = {}
    for name, joint in joints.items():
        children.setdefault(joint.parent, []).append(name)
    places = {"": Place(None, np.eye(3), np.zeros(3))}
    waiting = [""]
    while waiting:
        name = waiting.pop()
        joint = joints[name]
        parent = places[joint.parent]
        place = Place(
            parent.owner,
            parent.rotation @ joint.rotation,
            parent.position + parent.rotation @ joint.position,
        )
        if joint.kind != "fixed":
            _add_body(file, name, joint, place)
            place = Place(joint.child, np.eye(3), np.zeros(3))
        places[joint.child] = place
        waiting += reversed(children.get(joint.child, []))
    del places[""]
    unreached = [link for link in links if link not in places]
    if unreached:
        raise ValueError(f"the links {listed(unreached)} of {file.source} hang on each other only")
    return places


def _add_body(file: RobotFile, name: str, joint: UrdfJoint, place: Place) -> None:
    if joint.kind == "floating":
        if place.owner is not None:
            raise ValueError(
                f"joint {name!r} of {file.source} must not float: it hangs on the moving body "
                f"{place.owner!r}"
            )
        file.bodies.append(Body(joint.child, None, "free", 0.0))
        return
    file.bodies.append(
        Body(
            joint.child,
            place.owner,
            "prismatic" if joint.kind == "prismatic" else "revolute",
            0.0,
            position=place.position,
            rotation=place.rotation,
            axis=joint.axis,
            damping=joint.damping,
            dry_friction=joint.friction,
            lower=joint.limits[0],
            upper=joint.limits[1],
        )
    )
    file.joints.append(name)
    file.joint_limits.append(joint.limits)
    file.torque_limits[name] = joint.effort
    if not np.isfinite(joint.effort):
        file.unlimited.append(name)
    assert file.velocity_limits is not None
    file.velocity_limits.append(joint.velocity)


def _add_inertias(file: RobotFile, links: dict[str, Link], places: dict[str, Place]) -> None:
    parts: dict[str, list[tuple[float, Array, Array]]] = {}
    for name, (owner, R, p) in places.items():
        if owner is not None:
            link = links[name]
            part = link.mass, p + R @ link.com, R @ link.inertia @ R.T
            parts.setdefault(owner, []).append(part)
    for k, body in enumerate(file.bodies):
        mass, com, inertia = merged(parts[body.name])
        file.bodies[k] = replace(body, mass=mass, com=com, inertia=inertia)


def _add_shapes(
    file: RobotFile,
    links: dict[str, Link],
    joints: dict[str, UrdfJoint],
    places: dict[str, Place],
    mu: dict[str, float],
) -> None:
    """Collision shapes, the origins of links, and of fixed joints under their own names."""
    for link, (owner, R, p) in places.items():
        friction = mu.get(link, float("nan"))
        if owner is None:
            continue
        for name, kind, size, rotation, position in links[link].shapes:
            at = p + R @ position
            file.shapes.append(Geometry(name, link, owner, at, kind, size, R @ rotation, friction))
        file.shapes.append(Geometry("", link, owner, p, friction=friction))
    for name, joint in joints.items():
        owner, _, p = places[joint.child]
        if joint.kind == "fixed" and owner is not None:
            friction = mu.get(joint.child, float("nan"))
            file.shapes.append(Geometry(name, joint.child, owner, p, friction=friction))


def _warn(
    file: RobotFile, links: dict[str, Link], joints: dict[str, UrdfJoint], places: dict[str, Place]
) -> None:
    weightless = [
        name
        for name, link in links.items()
        if not link.weighed and (owner := places[name].owner) and (link.shapes or owner == name)
    ]
    if weightless:
        file.warnings.append(f"No inertia is stated of {listed(weightless)}: taken as weightless.")
    mimics = [name for name, joint in joints.items() if joint.mimics]
    if mimics:
        file.warnings.append(
            f"The joints {listed(mimics)} mimic others: here they move on their own."
        )
