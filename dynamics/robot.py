"""Legged robots read from files: a kinematic tree, its feet, its limits and how it stands.

    robot = load_robot("path/to/robot.xml")            # MJCF (MuJoCo) or URDF (Pinocchio)
    dynamics = ContactDynamics(robot, time_step=0.02)

What a file states and the tree cannot hold (dry friction, springs, ...) is said in `warnings`.
"""

from __future__ import annotations

import difflib
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from cito.dynamics import _native
from cito.dynamics.parameters import Parameter
from cito.dynamics.tree import Body, ContactPoint, TreeSystem
from cito.dynamics.types import Array

LEGS = (("FL", "LF"), ("FR", "RF"), ("RL", "HL", "LH"), ("RR", "HR", "RH"))
_LEG = re.compile("|".join(name for names in LEGS for name in names), re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot as its file describes it; itself a `System` that `ContactDynamics` steps.

    Args:
        name: of the robot in its file, else the file's name.
        system: bodies, contacts (one for each foot) and actuation.
        joints: names of the joints that are not free, in the order of q, (nj,).
        joint_limits: lower and upper, (nj, 2) [rad or m]; infinite where there is none.
        actuated: names of the joints with a drive, in the order of u, (nu,).
        torque_limits: (nu,) [N m or N]; infinite where the file states none.
        velocity_limits: (nj,) [rad/s or m/s]; None where the format has none.
        feet: names of the contacts.
        friction: sliding friction of each foot, (nc,) [-]; None where the format has none.
        stance: configuration in which the robot stands, (nq,).
        warnings: one sentence for each thing that was guessed, or read and not used.
        source: the file.
    """

    name: str
    system: TreeSystem
    joints: tuple[str, ...]
    joint_limits: Array
    actuated: tuple[str, ...]
    torque_limits: Array
    velocity_limits: Array | None
    feet: tuple[str, ...]
    friction: Array | None
    stance: Array
    warnings: tuple[str, ...]
    source: Path

    @property
    def native(self) -> _native.System:
        """The system as the native core sees it."""
        return self.system.native

    @property
    def contact_dims(self) -> tuple[int, ...]:
        """Three rows (T1, T2, N) for each foot."""
        return self.system.contact_dims

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates of q."""
        return self.system.names

    @property
    def contacts(self) -> Sequence[ContactPoint]:
        """The feet as contact points."""
        return self.system.contacts

    def with_parameters(self, parameters: Sequence[Parameter]) -> Robot:
        """The same robot with these parameters theta, see `Parameter`."""
        return replace(self, system=self.system.with_parameters(parameters))

    def __repr__(self) -> str:
        return (
            f"<Robot {self.name}: {self.system.mass:.4g} kg, {len(self.joints)} joints, "
            f"{len(self.actuated)} driven, feet {', '.join(self.feet) or 'none'}>"
        )


@dataclass(frozen=True, eq=False)
class Candidate:
    """Something in a file that may be a foot: a sphere, an end of a capsule or a point.

    Args:
        name: of the geometry, site or frame; may be empty.
        link: name of the file's body that carries it.
        body: name of the tree's body.
        position: in the tree's body frame, (3,) [m].
        radius: [m].
        shape: what the file has there.
        friction: [-], NaN where the file has none.
    """

    name: str
    link: str
    body: str
    position: Array
    radius: float = 0.0
    shape: Literal["sphere", "capsule", "point"] = "point"
    friction: float = float("nan")


@dataclass
class RobotFile:
    """What a reader found in a file; `assemble` makes a `Robot` of it."""

    name: str
    source: Path
    bodies: list[Body] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    joints: list[str] = field(default_factory=list)
    joint_limits: list[tuple[float, float]] = field(default_factory=list)
    torque_limits: dict[str, float] = field(default_factory=dict)
    velocity_limits: list[float] | None = None
    stance: Array | None = None
    gravity: float = 9.81
    unused: dict[str, list[str]] = field(default_factory=dict)  # what of which joints
    unlimited: list[str] = field(default_factory=list)  # joints driven without a stated limit
    warnings: list[str] = field(default_factory=list)


def load_robot(
    path: str | Path, feet: Sequence[str] | None = None, floating_base: bool | None = None
) -> Robot:
    """Read a robot from an MJCF file (.xml) or a URDF file.

    Args:
        path: of the file; meshes it names are not needed.
        feet: names of geometries, bodies or frames, in the order wanted; by default spheres
            (else capsules, else bodies) named after a leg (FL, RH, ...) or a foot.
        floating_base: whether the base moves freely; by default as the file has it, and a URDF
            without a link called world floats.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no robot, or holds what a tree cannot; names what and where.
    """
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"`path` must be an MJCF or URDF file, there is none at {source}")
    if feet is not None and (isinstance(feet, str) or not feet):
        raise ValueError(f"`feet` must be a list of names, not empty, got {feet!r}")
    try:
        root = ElementTree.fromstring(source.read_bytes())
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise ValueError(f"{source} must be an XML file, got: {error}") from error
    if root.tag not in ("mujoco", "robot"):
        raise ValueError(
            f"{source} must open with <mujoco> (MJCF) or <robot> (URDF), got <{root.tag}>"
        )
    _refuse_nan(source, root)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by name
            return assemble(_read(source, root, floating_base), feet)
    except ValueError as error:
        if str(source) in str(error):
            raise
        raise ValueError(f"{source}: {error}") from error


def _read(source: Path, root: ElementTree.Element, floating_base: bool | None) -> RobotFile:
    if root.tag == "mujoco":
        from cito.dynamics.robot_mjcf import read_mjcf

        return read_mjcf(source, floating_base)
    from cito.dynamics.robot_urdf import read_urdf

    return read_urdf(source, root, floating_base)


def _refuse_nan(source: Path, root: ElementTree.Element) -> None:
    for element in root.iter():
        for key, value in element.attrib.items():
            if "nan" in value.lower().split() and key != "name":
                raise ValueError(f"`{key}` of a <{element.tag}> of {source} must not be NaN")


def assemble(file: RobotFile, feet: Sequence[str] | None) -> Robot:
    """The robot with its feet chosen, its drives and its stance."""
    _check_inertia(file)
    chosen = _named_feet(file, feet) if feet is not None else _guessed_feet(file)
    contacts = [ContactPoint(name, c.body, c.position, c.radius) for name, c in chosen]
    free = [body.joint == "free" for body in file.bodies]
    joint_dofs = np.repeat(~np.array(free), np.where(free, 6, 1))
    actuated = [joint for joint in file.joints if joint in file.torque_limits]
    columns = [file.joints.index(joint) for joint in actuated]
    if not actuated:
        file.warnings.append("The file has no actuators: the robot has no controls.")
    system = TreeSystem(
        file.bodies,
        contacts,
        actuation=np.eye(len(joint_dofs))[:, joint_dofs][:, columns],
        gravity=file.gravity,
    )
    limits = np.array(file.joint_limits).reshape(-1, 2)
    stance = _standing(system, limits) if file.stance is None else file.stance
    _check_mass_matrix(system, stance, file.source)
    friction = np.array([c.friction for _, c in chosen])
    velocities = file.velocity_limits
    return Robot(
        name=file.name,
        system=system,
        joints=tuple(file.joints),
        joint_limits=limits,
        actuated=tuple(actuated),
        torque_limits=np.array([file.torque_limits[joint] for joint in actuated], float),
        velocity_limits=None if velocities is None else np.array(velocities, float),
        feet=tuple(name for name, _ in chosen),
        friction=None if np.isnan(friction).any() else friction,
        stance=stance,
        warnings=_warnings(file),
        source=file.source,
    )


def _warnings(file: RobotFile) -> tuple[str, ...]:
    sentences = [f"The {what} of {_list(of)} is not used." for what, of in file.unused.items()]
    if file.unlimited:
        sentences.append(f"The file states no force limit of {_list(file.unlimited)}.")
    return tuple(dict.fromkeys(file.warnings + sentences))


def _list(names: Sequence[str]) -> str:
    rest = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + rest


def _guessed_feet(file: RobotFile) -> list[tuple[str, Candidate]]:
    for shape in ("sphere", "capsule", "point"):
        found = [
            c for c in file.candidates if c.shape == shape and (_foot(c.name) or _foot(c.link))
        ]
        if found:
            named = [(c.name if _foot(c.name) else c.link, c) for c in found]
            if shape == "point":  # links beside the foot may carry its name too: foot_imu
                ends = [(name, c) for name, c in named if name.lower().endswith("foot")]
                named = ends or named
            feet = _distinct(named)
            if shape == "point":
                names = ", ".join(name for name, _ in feet)
                file.warnings.append(f"No sphere is stated for the feet {names}: they are points.")
            return _in_leg_order(feet)
    parents = {body.parent for body in file.bodies}
    leaves = [body.name for body in file.bodies if body.name not in parents]
    found = [c for leaf in leaves for c in _lowest(file.candidates, leaf)]
    feet = _distinct([(c.name or c.link, c) for c in found])
    names = ", ".join(name for name, _ in feet)
    file.warnings.append(
        f"Nothing in {file.source.name} is named like a foot: the ends of the tree were taken "
        f"({names}); say which with feet=[...]."
    )
    return _in_leg_order(feet)


def _named_feet(file: RobotFile, feet: Sequence[str]) -> list[tuple[str, Candidate]]:
    chosen: list[tuple[str, Candidate]] = []
    for name in feet:
        found = [c for c in file.candidates if c.name == name and c.shape != "point"]
        found = found or [c for c in file.candidates if c.link == name and c.shape == "sphere"]
        found = found or [c for c in file.candidates if name in (c.name, c.link)][:1]
        if not found:
            names = sorted({n for c in file.candidates for n in (c.name, c.link) if n})
            near = difflib.get_close_matches(str(name), names, 3, 0.5)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
            hint = hint or f"there are {', '.join(names[:40])}"
            raise ValueError(f"`feet` names {name!r}, which is not in {file.source}; {hint}")
        chosen += [(name, c) for c in found]
    return _distinct(chosen)


def _distinct(feet: Sequence[tuple[str, Candidate]]) -> list[tuple[str, Candidate]]:
    """Each place once, each name once: a name that comes again gets a number."""
    places: dict[tuple[str, bytes], tuple[str, Candidate]] = {}
    for name, c in feet:
        places.setdefault((c.body, np.round(c.position, 9).tobytes()), (name, c))
    kept, names = list(places.values()), [name for name, _ in places.values()]
    return [
        (name if names.count(name) == 1 else f"{name}.{names[:i].count(name) + 1}", c)
        for i, (name, c) in enumerate(kept)
    ]


def _foot(name: str) -> bool:
    plain = name.lower().replace("footprint", "")
    return "foot" in plain or _LEG.fullmatch(name) is not None


def _in_leg_order(feet: list[tuple[str, Candidate]]) -> list[tuple[str, Candidate]]:
    """FL, FR, RL, RR where each of four feet is named after another leg; else as in the file."""
    legs = [_leg(name) for name, _ in feet]
    if sorted(legs) != [0, 1, 2, 3]:
        return feet
    return [feet[legs.index(leg)] for leg in range(4)]


def _leg(name: str) -> int:
    tokens = re.split(r"[^A-Z]+", name.upper())
    found = [i for i, names in enumerate(LEGS) if any(leg in tokens for leg in names)]
    return found[0] if len(found) == 1 else -1


def _lowest(candidates: Sequence[Candidate], leaf: str) -> list[Candidate]:
    """The sphere, else capsule end, else point of a body farthest from its joint."""
    for shape in ("sphere", "capsule", "point"):
        found = [c for c in candidates if c.body == leaf and c.shape == shape]
        if found:
            return [max(found, key=lambda c: float(np.linalg.norm(c.position)))]
    return []


def _standing(system: TreeSystem, limits: Array) -> Array:
    """Joints at zero or the nearest limit, the base where the lowest foot touches the ground."""
    values: list[float] = []
    vertical, j = -1, 0
    for body in system.bodies:
        if body.joint == "free":
            vertical = len(values) + 2 if vertical < 0 else vertical
            values += [0, 0, 0, 0, 0, 0, 1]
        else:
            values.append(float(np.clip(0.0, *limits[j])))
            j += 1
    q = np.array(values, float)
    if not system.contacts:
        return q
    *_, J, phi = _native.system_terms(system.native, None, q, np.zeros(system.native.nv))
    if vertical < 0:  # a joint that lifts all feet alike
        lifts = np.flatnonzero((np.abs(J[2::3] - 1) < 1e-9).all(axis=0))
        vertical = int(lifts[0]) if len(lifts) else -1
    if vertical >= 0:
        q[vertical] -= phi.min()
    return q


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
        if a + b < c * (1 - 1e-6):
            file.warnings.append(
                f"The inertia of body {body.name!r} is of no rigid body: its principal moments "
                f"{a:.3g}, {b:.3g}, {c:.3g} violate the triangle inequality."
            )


def _check_mass_matrix(system: TreeSystem, stance: Array, source: Path) -> None:
    M, *_ = _native.system_terms(system.native, None, stance, np.zeros(system.native.nv))
    if np.isfinite(M).all():
        values, vectors = np.linalg.eigh(M)
        if values[0] > 1e-12 * values[-1]:
            return
        index = int(np.argmax(np.abs(vectors[:, 0])))
        owners = [b.name for b in system.bodies for _ in range(6 if b.joint == "free" else 1)]
        where = f"joint of body {owners[index]!r} moves no inertia"
    else:
        where = "its entries are not finite"
    raise ValueError(f"the mass matrix of {source} must be positive definite: {where}")
