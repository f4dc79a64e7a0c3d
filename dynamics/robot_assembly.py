"""A robot from what its file holds: contacts chosen, drives in order, standing, checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cito.dynamics import _native
from cito.dynamics.robot import Robot
from cito.dynamics.robot_feet import Contact, choose_contacts
from cito.dynamics.robot_file import RobotFile, listed
from cito.dynamics.robot_stance import body_poses, on_the_ground, rest
from cito.dynamics.tree import TreeSystem
from cito.dynamics.types import Array

NEGLIGIBLE = 1e-12  # moment of inertia [kg m^2]
HUGE = 1e9  # of any number, in SI units


def assemble(
    file: RobotFile,
    feet: Sequence[str] | None = None,
    contacts: Sequence[str] = (),
    joint_limits: bool = False,
) -> Robot:
    """The robot with its contacts, its drives and its stance.

    Raises:
        ValueError: no body moves, a joint moves no inertia, or a contact is not in the file.
    """
    _check_inertia(file)
    limits = np.array(file.joint_limits).reshape(-1, 2)
    pose = rest(file.bodies, limits) if file.stance is None else file.stance
    chosen, count = choose_contacts(file, feet, contacts, body_poses(file.bodies, pose))
    points = [item.point for item in chosen]
    actuated = [joint for joint in file.joints if joint in file.torque_limits]
    if not actuated:
        file.warnings.append("The file has no actuators: the robot has no controls.")
    system = TreeSystem(
        file.bodies,
        points,
        _actuation(file, actuated),
        file.gravity,
        joint_limits=joint_limits,
        guards=len(points) - count if count else 0,
    )
    _check_sizes(file, chosen)
    _check_mass_matrix(system, pose, file.source)
    friction = np.array([item.friction for item in chosen])
    velocities = file.velocity_limits
    return Robot(
        name=file.name,
        system=system,
        joints=tuple(file.joints),
        joint_limits=limits,
        actuated=tuple(actuated),
        torque_limits=np.array([file.torque_limits[joint] for joint in actuated], float),
        velocity_limits=None if velocities is None else np.array(velocities, float),
        feet=tuple(point.name for point in points[:count]),
        friction=None if np.isnan(friction).any() else friction,
        stance=on_the_ground(system, pose),
        warnings=_warnings(file),
        source=file.source,
    )


def _actuation(file: RobotFile, actuated: Sequence[str]) -> Array:
    """B (nv, nu): a column of the identity for each joint with a drive."""
    single = np.repeat([body.nv == 1 for body in file.bodies], [body.nv for body in file.bodies])
    columns = [file.joints.index(joint) for joint in actuated]
    return np.asarray(np.eye(len(single))[:, single][:, columns])


def _warnings(file: RobotFile) -> tuple[str, ...]:
    sentences = [f"The {what} of {listed(of)} is not used." for what, of in file.unused.items()]
    if file.unlimited:
        sentences.append(f"The file states no force limit of {listed(file.unlimited)}.")
    return tuple(dict.fromkeys(file.warnings + sentences))


def _check_inertia(file: RobotFile) -> None:
    if not file.bodies:
        raise ValueError(f"{file.source} must have a body that moves: there is no joint in it")
    carried = {body.name: body.mass for body in file.bodies}
    for body in reversed(file.bodies):
        if not carried[body.name] > 0:
            raise ValueError(
                f"body {body.name!r} of {file.source} must have a mass > 0, or carry one: got 0"
            )
        if body.parent is not None:
            carried[body.parent] += carried[body.name]
        a, b, c = np.linalg.eigvalsh(body.inertia)
        if a + b < c * (1 - 1e-6) and c > NEGLIGIBLE:
            file.warnings.append(
                f"The inertia of body {body.name!r} is of no rigid body: its principal moments "
                f"{a:.3g}, {b:.3g}, {c:.3g} violate the triangle inequality."
            )


def _check_sizes(file: RobotFile, contacts: Sequence[Contact]) -> None:
    """Numbers that are no robot's would overflow in the dynamics."""
    numbers = [("gravity", file.source.name, file.gravity)]
    for body in file.bodies:
        for name in ("mass", "com", "inertia", "position", "armature", "damping"):
            numbers.append((name, f"body {body.name!r}", np.abs(getattr(body, name)).max()))
    for point, friction in contacts:
        if friction < 0:
            raise ValueError(
                f"`friction` of contact {point.name!r} of {file.source} must be >= 0: {friction:g}"
            )
        for name, value in (("position", point.position), ("radius", point.radius)):
            numbers.append((name, f"contact {point.name!r}", np.abs(value).max()))
        numbers.append(("friction", f"contact {point.name!r}", np.nan_to_num(friction)))
    for name, owner, size in numbers:
        if not size < HUGE:
            raise ValueError(
                f"`{name}` of {owner} of {file.source} must be below {HUGE:g}, got {size:g}"
            )


def _check_mass_matrix(system: TreeSystem, stance: Array, source: Path) -> None:
    M, *_ = _native.system_terms(system.native, None, stance, np.zeros(system.native.nv))
    if np.isfinite(M).all():
        values, vectors = np.linalg.eigh(M)
        if values[0] > 1e-12 * values[-1]:
            return
        index = int(np.argmax(np.abs(vectors[:, 0])))
        owners = [b.name for b in system.bodies for _ in range(b.nv)]
        where = f"joint of body {owners[index]!r} moves no inertia"
    else:
        where = "its entries are not finite"
    raise ValueError(f"the mass matrix of {source} must be positive definite: {where}")
