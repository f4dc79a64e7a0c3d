"""Random kinematic trees and their states, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cito.dynamics import _native
from cito.dynamics.candidates import ContactPoint
from cito.dynamics.shapes import Plane
from cito.dynamics.tree import Body, TreeSystem


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    Q, R = np.linalg.qr(rng.standard_normal((3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q if np.linalg.det(Q) > 0 else Q[:, [1, 0, 2]]


def random_bodies(
    rng: np.random.Generator, bodies: int, floating: bool, letter: str = "b", balls: bool = False
) -> list[Body]:
    """A branching tree of revolute and prismatic (on demand spherical) joints, any inertia."""
    parts: list[Body] = []
    branch: list[int] = []  # from the root to the last body: children are added depth first
    for i in range(bodies):
        hinge = ("revolute", "prismatic")[int(rng.random() < 0.3)]
        ball = balls and rng.random() < 0.5
        joint = "free" if i == 0 and floating else "spherical" if ball else hinge
        del branch[max(1, len(branch) - int(rng.integers(3))) :]
        half = rng.standard_normal((3, 3)) * 0.2
        parts.append(
            Body(
                f"{letter}{i}",
                f"{letter}{branch[-1]}" if branch else None,
                joint,
                mass=rng.uniform(0.2, 3),
                com=0.1 * rng.standard_normal(3),
                inertia=half @ half.T,
                position=0.3 * rng.standard_normal(3),
                rotation=random_rotation(rng),
                axis=rng.standard_normal(3),
                armature=rng.uniform(0, 0.1),
                damping=rng.uniform(0, 0.1),
            )
        )
        branch.append(i)
    return parts


def random_tree(
    seed: int,
    bodies: int = 8,
    floating: bool = True,
    contacts: int = 3,
    limits: bool = False,
    balls: bool = False,
) -> TreeSystem:
    """One tree with sphere contacts over a slope, on demand with joint limits or ball joints."""
    rng = np.random.default_rng(seed)
    parts = random_bodies(rng, bodies, floating, balls=balls)
    points = [
        ContactPoint(f"c{i}", f"b{rng.integers(bodies)}", 0.2 * rng.standard_normal(3), 0.02 * i)
        for i in range(contacts)
    ]
    for i in range(1, bodies if limits else 0):
        sides = {"lower": -0.5 if i % 2 else -np.inf, "upper": 0.5 if i % 3 == 1 else np.inf}
        parts[i] = replace(parts[i], **sides) if parts[i].nv == 1 else parts[i]
    return TreeSystem(parts, points, ground=Plane([0.2, -0.1, 1.0], 0.05), joint_limits=limits)


def random_forest(seed: int, contacts: Sequence[ContactPoint]) -> TreeSystem:
    """A fixed tree a0..a5 with ball joints, a floating tree b0..b2 and a free body c0."""
    rng = np.random.default_rng(seed)
    parts = [
        *random_bodies(rng, 6, False, "a", balls=True),
        *random_bodies(rng, 3, True, "b"),
        *random_bodies(rng, 1, True, "c"),
    ]
    return TreeSystem(parts, contacts)


def neutral(tree: TreeSystem) -> np.ndarray:
    """Joints at zero, free bodies at the origin, at rest: (nx,)."""
    values: list[float] = []
    for body in tree.bodies:
        values += [0] if body.nq == 1 else [0] * (body.nq - 1) + [1]
    return np.array(values + [0.0] * tree.native.nv)


def random_state(tree: TreeSystem, rng: np.random.Generator) -> np.ndarray:
    system = tree.native
    dx = rng.standard_normal(2 * system.nv)
    return _native.on_manifold(system, neutral(tree)[None], dx[None], True)[0]


def bodies_in_world(tree: TreeSystem, q: np.ndarray) -> dict[str | None, tuple]:
    """Rotation and origin of every body, by the definition of its joint."""
    frames: dict[str | None, tuple] = {None: (np.eye(3), np.zeros(3))}
    first = 0
    for body in tree.bodies:
        R, p = frames[body.parent]
        R, p = R @ body.rotation, p + R @ body.position
        if body.joint == "free":
            p, R = p + R @ q[first : first + 3], R @ quaternion_matrix(q[first + 3 : first + 7])
            first += 7
        elif body.joint == "spherical":
            R = R @ quaternion_matrix(q[first : first + 4])
            first += 4
        else:
            if body.joint == "revolute":
                R = R @ axis_angle(body.axis, q[first])
            else:
                p = p + q[first] * (R @ body.axis)
            first += 1
        frames[body.name] = R, p
    return frames


def quaternion_matrix(quaternion: np.ndarray) -> np.ndarray:
    v, w = quaternion[:3], quaternion[3]
    return np.eye(3) + 2 * w * skew(v) + 2 * skew(v) @ skew(v)


def axis_angle(axis: np.ndarray, angle: float) -> np.ndarray:
    K = skew(axis)
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def skew(v: np.ndarray) -> np.ndarray:
    return np.cross(np.eye(3), v)


def pinocchio_tree(pin: Any, tree: TreeSystem) -> Any:
    """Pinocchio's model of the same joints and inertias."""
    model, ids = pin.Model(), {None: 0}
    for body in tree.bodies:
        joint = {
            "free": pin.JointModelFreeFlyer,
            "revolute": lambda b=body: pin.JointModelRevoluteUnaligned(b.axis),
            "prismatic": lambda b=body: pin.JointModelPrismaticUnaligned(b.axis),
            "spherical": pin.JointModelSpherical,
        }[body.joint]()
        placement = pin.SE3(body.rotation, body.position)
        ids[body.name] = model.addJoint(ids[body.parent], joint, placement, body.name)
        inertia = pin.Inertia(body.mass, body.com, body.inertia)
        model.appendBodyToJoint(ids[body.name], inertia, pin.SE3.Identity())
    return model
