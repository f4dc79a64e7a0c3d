"""Legged robots read from files: a kinematic tree, its feet, its limits and how it stands.

    robot = load_robot("path/to/robot.xml")            # MJCF (through MuJoCo) or URDF
    dynamics = ContactDynamics(robot, time_step=0.02)

The way of a file: `robot_mjcf` or `robot_urdf` reads it into plain tables (`robot_file`),
`robot_feet` chooses what touches the ground, `robot_assembly` builds the tree and lets it stand.
What a file states and the tree cannot hold is said in `warnings`.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cito.dynamics import _native
from cito.dynamics.candidates import ContactPoint
from cito.dynamics.joints import PositionDrive
from cito.dynamics.parameters import Parameter
from cito.dynamics.shapes import Shape
from cito.dynamics.tree import TreeSystem
from cito.dynamics.types import Array


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot as its file describes it; itself a `System` that `ContactDynamics` steps.

    Args:
        name: of the robot in its file, else the file's name.
        system: bodies, contacts (the feet, then the others) and actuation.
        joints: names of the joints with one coordinate, in the order of q, (nj,).
        joint_limits: lower and upper, (nj, 2) [rad or m]; infinite where there is none.
        actuated: names of the joints with a drive, in the order of u, (nu,).
        torque_limits: (nu,) [N m or N]; infinite where the file states none.
        velocity_limits: (nj,) [rad/s or m/s]; None where the format has none.
        feet: names of the contacts that are feet, the first ones.
        friction: sliding friction of each contact, (nc,) [-]; None where the file has none.
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
        """Three rows (T1, T2, N) for each contact, one for each joint limit that is one."""
        return self.system.contact_dims

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates of q."""
        return self.system.names

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the candidate contacts, then of the joint limits that are contacts."""
        return self.system.contact_names

    @property
    def contacts(self) -> Sequence[ContactPoint]:
        """The candidate contacts, feet first."""
        return self.system.contacts

    def with_ground(self, ground: Shape) -> Robot:
        """The same robot over another ground; its stance is lifted until it touches there."""
        from cito.dynamics.robot_stance import on_the_ground

        system = self.system.with_ground(ground)
        return replace(self, system=system, stance=on_the_ground(system, self.stance))

    def with_drive(self, drive: PositionDrive | None) -> Robot:
        """The same robot with controls that are positions of its driven joints (None: forces)."""
        return replace(self, system=self.system.with_drive(drive))

    @property
    def control_limits(self) -> tuple[Array, Array]:
        """Lower and upper limits of the controls, (nu,) each; infinite where there is none.

        Minus and plus `torque_limits`; where a drive takes positions, the limits of its joints.
        """
        if self.system.drive is None:
            return -self.torque_limits, self.torque_limits
        lower, upper = self.joint_limits[[self.joints.index(name) for name in self.actuated]].T
        return lower, upper

    def with_parameters(self, parameters: Sequence[Parameter]) -> Robot:
        """The same robot with these parameters theta, see `Parameter`."""
        return replace(self, system=self.system.with_parameters(parameters))

    def __repr__(self) -> str:
        return (
            f"<Robot {self.name}: {self.system.mass:.4g} kg, {len(self.joints)} joints, "
            f"{len(self.actuated)} driven, feet {', '.join(self.feet) or 'none'}>"
        )


def load_robot(
    path: str | Path,
    feet: Sequence[str] | None = None,
    floating_base: bool | None = None,
    contacts: Sequence[str] = (),
    joint_limits: bool = False,
) -> Robot:
    """Read a robot from an MJCF file (.xml) or a URDF file.

    Args:
        path: of the file; meshes it names are not needed.
        feet: names of geometries, sites, bodies or frames, in the order wanted; `*` stands for
            any letters. By default what is named after a leg (FL, RH, ...) or a foot. A sphere is
            one contact, a capsule two (its ends), a box four (the corners below).
        floating_base: whether the base moves freely; by default as the file has it, and a URDF
            without a link called world floats.
        contacts: what else may touch the ground, named in the same way, e.g. the trunk (a box has
            eight corners here). Several contacts of one name get numbers: "trunk.1", "trunk.2".
        joint_limits: whether the limits of the joints are contacts too, one-dimensional and after
            the others; else they are only stated.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no robot, or holds what a tree cannot; names what and where.
    """
    from cito.dynamics.robot_assembly import assemble

    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"`path` must be an MJCF or URDF file, there is none at {source}")
    root = _xml(source)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by name
            if root.tag == "mujoco":
                from cito.dynamics.robot_mjcf import read_mjcf

                file = read_mjcf(source, floating_base)
            else:
                from cito.dynamics.robot_urdf import read_urdf

                file = read_urdf(source, root, floating_base)
            return assemble(file, feet, contacts, joint_limits)
    except ValueError as error:
        if str(source) in str(error):
            raise
        raise ValueError(f"{source}: {error}") from error


def _xml(source: Path) -> ElementTree.Element:
    """The root element, <mujoco> or <robot>, of a file without NaN."""
    try:
        root = ElementTree.fromstring(source.read_bytes())
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise ValueError(f"{source} must be an XML file, got: {error}") from error
    if root.tag not in ("mujoco", "robot"):
        raise ValueError(
            f"{source} must open with <mujoco> (MJCF) or <robot> (URDF), got <{root.tag}>"
        )
    for element in root.iter():
        for key, value in element.attrib.items():
            if "nan" in value.lower().split() and key != "name":
                raise ValueError(f"`{key}` of a <{element.tag}> of {source} must not be NaN")
    return root
