"""Robots of any size to measure on: legs of n joints, a humanoid, a Go2 with n contact points."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cito.benchmarks.mujoco_twin import Contact, mujoco_model
from cito.dynamics import _native
from cito.dynamics.candidates import ContactPoint
from cito.dynamics.conversions import rotation_matrix
from cito.dynamics.robot import Robot
from cito.dynamics.tree import Body, TreeSystem
from cito.dynamics.types import Array
from cito.problems.robots import load_robot

X, Y, Z = np.eye(3)


class Standee(NamedTuple):
    """A robot and how it stands, (nq,); the file it came from, if any."""

    name: str
    system: TreeSystem
    stance: Array
    source: Path | None = None

    def mujoco_model(self, time_step: float) -> Any:
        """The same robot in MuJoCo, with MuJoCo's own contact parameters."""
        if self.source is None:
            return mujoco_model(self.system, time_step, contact=Contact())
        import mujoco

        model = mujoco.MjModel.from_xml_path(str(self.source))
        model.opt.timestep = time_step
        return model


def shipped(name: str) -> Standee:
    """A robot that comes with cito."""
    robot = load_robot(name)
    return Standee(name, robot.system, robot.stance, robot.source)


def legged(joints: int) -> Standee:
    """A trunk of 8 kg on four legs of 0.4 m and 2 kg with `joints` hinges each; 4 contacts.

    Hinges turn about y and x by turns; all legs stand bent, so that a foot moves every way it can.
    """
    bodies = [Body("trunk", None, "free", 8.0, inertia=np.diag([0.1, 0.15, 0.2]))]
    contacts = []
    length, mass = 0.4 / joints, 2.0 / joints
    for leg, (x, y) in enumerate([(0.2, 0.15), (0.2, -0.15), (-0.2, 0.15), (-0.2, -0.15)]):
        parent, place = "trunk", np.array([x, y, 0])
        for k in range(joints):
            link = _rod(f"leg {leg} link {k}", parent, place, (Y, X)[k % 2], mass, length)
            bodies.append(link)
            parent, place = link.name, np.array([0, 0, -length])
        contacts.append(ContactPoint(f"foot {leg}", parent, place, 0.02))
    system = TreeSystem(bodies, contacts)
    bend = np.array([0.4, 0.2, -0.7, -0.4, 0.6, 0.4, -0.6, -0.4])[:joints]
    stance = np.array([0, 0, 0, 0, 0, 0, 1, *np.outer([1, 1, -1, -1], bend).ravel()])
    heights = _native.system_terms(system.native, None, stance, np.zeros(6 + 4 * joints))[4]
    stance[2] = -heights.min()
    return Standee(f"legs of {joints}", system, stance)


def humanoid() -> Standee:
    """35 kg, 29 hinges (waist 3, legs 6 each, arms 7 each), four points under each foot."""
    bodies = [Body("pelvis", None, "free", 5.0, inertia=np.diag([0.03, 0.03, 0.03]))]
    contacts = []
    for k, axis in enumerate((Z, X, Y)):
        parent = bodies[-1].name
        bodies.append(_rod(f"waist {k}", parent, np.array([0, 0, 0.05]), axis, 3.0, -0.1))
    for side, y in (("left", 0.2), ("right", -0.2)):
        parent, place = "waist 2", np.array([0, y, 0.2])
        for k, axis in enumerate((Y, X, Z, Y, Z, Y, X)):
            bodies.append(_rod(f"{side} arm {k}", parent, place, axis, 0.5, 0.08))
            parent, place = bodies[-1].name, np.array([0, 0, -0.08])
    for side, y in (("left", 0.1), ("right", -0.1)):
        parent, place = "pelvis", np.array([0, y, 0])
        for k, (axis, length) in enumerate(
            zip((Z, X, Y, Y, Y, X), (0.02, 0.02, 0.36, 0.36, 0.02, 0.02))
        ):
            bodies.append(_rod(f"{side} leg {k}", parent, place, axis, 1.5, length))
            parent, place = bodies[-1].name, np.array([0, 0, -length])
        for i, (dx, dy) in enumerate([(0.1, 0.03), (0.1, -0.03), (-0.05, 0.03), (-0.05, -0.03)]):
            contacts.append(ContactPoint(f"{side} {i}", parent, place + [dx, dy, 0], 0.005))
    bend = np.array([0, 0, -0.4, 0.8, -0.4, 0])
    drop = 0.36 * 2 * np.cos(0.4) + 0.08 + 0.005
    joints = np.concatenate([np.zeros(17), bend, bend])
    stance = np.array([0, 0, drop, 0, 0, 0, 1, *joints])
    return Standee("humanoid", TreeSystem(bodies, contacts), stance)


def go2_on_points(count: int) -> Standee:
    """The Go2 with `count` points of contact: its feet in turn, then corners 1 cm around them."""
    robot = load_robot("go2")
    offsets = 0.01 * np.array([[0, 0, 0], [1, 0, 0], [-0.5, 0.8, 0], [-0.5, -0.8, 0]])
    feet, rotations = robot.system.contacts, _rotations(robot)
    contacts = []
    for i in range(count):
        foot = feet[i % len(feet)]
        moved = foot.position + rotations[foot.body].T @ offsets[i // len(feet)]
        contacts.append(
            ContactPoint(f"{foot.name} {i // len(feet)}", foot.body, moved, foot.radius)
        )
    system = TreeSystem(robot.system.bodies, contacts, robot.system.actuation)
    return Standee(f"go2 on {count}", system, robot.stance)


def _rod(name: str, parent: str, place: Array, axis: Array, mass: float, length: float) -> Body:
    """A rod of radius 3 cm down from its hinge (up where the length is negative)."""
    across = mass * (length**2 + 3 * 0.03**2) / 12
    inertia = np.diag([across, across, mass * 0.03**2 / 2])
    com = np.array([0, 0, -length / 2])
    return Body(name, parent, "revolute", mass, com, inertia, place, axis=axis, armature=0.01)


def _rotations(robot: Robot) -> dict[str, Array]:
    """Attitude of each body in the stance, (3, 3)."""
    rotations: dict[str | None, Array] = {None: np.eye(3)}
    at = 0
    for body in robot.system.bodies:
        if body.joint == "free":
            turn = rotation_matrix(robot.stance[at + 3 : at + 7])
        elif body.joint == "revolute":
            half = robot.stance[at] / 2
            turn = rotation_matrix(np.append(np.sin(half) * body.axis, np.cos(half)))
        else:
            turn = np.eye(3)
        rotations[body.name] = rotations[body.parent] @ body.rotation @ turn
        at += 7 if body.joint == "free" else 1
    return {name: R for name, R in rotations.items() if name is not None}
