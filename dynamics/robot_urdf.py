"""Robots in URDF files, read through Pinocchio (optional); no mesh is opened."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np

from cito.dynamics.robot import Candidate, RobotFile
from cito.dynamics.tree import Body, Joint
from cito.dynamics.types import Array, as_array


def read_urdf(source: Path, root: ElementTree.Element, floating_base: bool | None) -> RobotFile:
    """Bodies, foot candidates and limits of a URDF file.

    Raises:
        ValueError: Pinocchio is not installed or refuses the file, or it holds what a tree cannot.
    """
    try:
        import pinocchio as pin
    except ImportError as error:
        raise ValueError(
            f"{source} is a URDF file, which Pinocchio reads: install it with "
            "`pip install 'cito[urdf]'`"
        ) from error
    joints = root.findall("joint")
    _check_links(source, root, joints)
    children = {_attribute(joint, "child", "link") for joint in joints}
    bases = [str(link.get("name")) for link in root.findall("link")]
    bases = [name for name in bases if name not in children]
    states_base = bases == ["world"] or any(joint.get("type") == "floating" for joint in joints)
    floats = not states_base if floating_base is None else floating_base
    free = (pin.JointModelFreeFlyer(),) if floats else ()
    try:
        model = pin.buildModelFromXML(ElementTree.tostring(root, "unicode"), *free)
    except (ValueError, RuntimeError, IndexError) as error:
        raise ValueError(f"Pinocchio cannot read {source}: {error}") from error
    file = RobotFile(root.get("name") or source.stem, source, velocity_limits=[])
    bodies = {i: _body_name(pin, model, i) for i in range(1, model.njoints)}
    damping = {
        str(joint.get("name")): dynamics
        for joint in joints
        if (dynamics := joint.find("dynamics")) is not None
    }
    for i in range(1, model.njoints):
        _add_body(pin, model, file, i, bodies, damping.get(model.names[i]))
    _read_candidates(pin, model, file, root, bodies)
    for joint in joints:
        if joint.find("mimic") is not None:
            file.warnings.append(
                f"Joint {joint.get('name')!r} mimics another: here it moves on its own."
            )
    return file


def _check_links(
    source: Path, root: ElementTree.Element, joints: list[ElementTree.Element]
) -> None:
    known = {"revolute", "continuous", "prismatic", "fixed", "floating"}
    for joint in joints:
        if joint.get("type") not in known:
            raise ValueError(
                f"joint {joint.get('name')!r} of {source} must be revolute, continuous, prismatic, "
                f"fixed or floating, got {joint.get('type')!r}"
            )
    for link in root.findall("link"):
        mass = _attribute(link, "inertial/mass", "value")
        if mass and _number(source, link, mass) < 0:
            raise ValueError(
                f"`mass` of link {link.get('name')!r} of {source} must be >= 0: {mass}"
            )


def _number(source: Path, element: ElementTree.Element, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(
            f"{element.tag} {element.get('name')!r} of {source} must have numbers, got {text!r}"
        ) from error


def _attribute(element: ElementTree.Element, path: str, name: str) -> str:
    found = element.find(path)
    return "" if found is None else found.get(name, "")


def _body_name(pin: Any, model: Any, i: int) -> str:
    """The link that hangs on joint i."""
    for frame in model.frames:
        if frame.parentJoint == i and frame.type == pin.FrameType.BODY:
            return str(frame.name)
    return str(model.names[i])


def _add_body(
    pin: Any,
    model: Any,
    file: RobotFile,
    i: int,
    bodies: dict[int, str],
    dynamics: ElementTree.Element | None,
) -> None:
    joint, inertia, name = model.joints[i], model.inertias[i], str(model.names[i])
    parent, placement = bodies.get(model.parents[i]), model.jointPlacements[i]
    common: dict[str, Any] = {
        "mass": inertia.mass,
        "com": np.array(inertia.lever),
        "inertia": 0.5 * (inertia.inertia + inertia.inertia.T),
    }
    if joint.nv == 6 and parent is None:
        file.bodies.append(Body(bodies[i], None, "free", **common))
        return
    if joint.nv != 1:
        raise ValueError(
            f"joint {name!r} of {file.source} must turn about or move along one axis, "
            f"got {joint.shortname()}"
        )
    data = joint.createData()
    joint.calc(data, pin.neutral(model))
    S = np.array(data.S).reshape(6)  # linear, angular
    kind: Joint = "revolute" if np.any(S[3:]) else "prismatic"
    damping = 0.0
    if dynamics is not None:
        damping = _number(file.source, dynamics, dynamics.get("damping") or "0")
        if _number(file.source, dynamics, dynamics.get("friction") or "0") != 0:
            file.unused.setdefault("dry friction", []).append(name)
    file.bodies.append(
        Body(
            bodies[i],
            parent,
            kind,
            position=np.array(placement.translation),
            rotation=np.array(placement.rotation),
            axis=S[3:] if kind == "revolute" else S[:3],
            damping=damping,
            **common,
        )
    )
    turns = joint.nq == 2  # continuous: cosine and sine, without limits
    q, v = joint.idx_q, joint.idx_v
    lower, upper = model.lowerPositionLimit[q], model.upperPositionLimit[q]
    file.joints.append(name)
    file.joint_limits.append((-np.inf, np.inf) if turns else (float(lower), float(upper)))
    effort, speed = float(model.upperEffortLimit[v]), float(model.upperVelocityLimit[v])
    if not 0 < effort < np.inf:
        file.unlimited.append(name)
        effort = np.inf
    file.torque_limits[name] = effort
    assert file.velocity_limits is not None
    file.velocity_limits.append(speed if speed > 0 else np.inf)


def _read_candidates(
    pin: Any, model: Any, file: RobotFile, root: ElementTree.Element, bodies: dict[int, str]
) -> None:
    links = {str(link.get("name")): link for link in root.findall("link")}
    for frame in model.frames:
        body = bodies.get(frame.parentJoint)
        if body is None:
            continue
        name = str(frame.name)
        if frame.type == pin.FrameType.BODY:
            for at, radius in _spheres(file.source, links.get(name)):
                centre = np.array(frame.placement.act(at))
                file.candidates.append(Candidate("", name, body, centre, radius, "sphere"))
            at = np.array(frame.placement.translation)
            file.candidates.append(Candidate("", name, body, at))
    for frame in model.frames:  # joints' frames answer to their names only
        body = bodies.get(frame.parentJoint)
        if body is not None and frame.type == pin.FrameType.FIXED_JOINT:
            at = np.array(frame.placement.translation)
            link = str(model.frames[frame.parentFrame].name)
            file.candidates.append(Candidate(str(frame.name), link, body, at))


def _spheres(source: Path, link: ElementTree.Element | None) -> list[tuple[Array, float]]:
    """Centre in the link's frame and radius of each sphere among the collision shapes."""
    found = []
    for collision in link.findall("collision") if link is not None else []:
        radius = _attribute(collision, "geometry/sphere", "radius")
        if radius and link is not None:
            words = (_attribute(collision, "origin", "xyz") or "0 0 0").split()
            label = f"origin of a sphere of link {link.get('name')!r}"
            centre = as_array(label, [_number(source, link, word) for word in words], (3,))
            found.append((centre, _number(source, link, radius)))
    return found
