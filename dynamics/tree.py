"""Kinematic trees: bodies moved by joints against their parents, with sphere or point contacts.

    q   per body: free joint (position in the world [m], quaternion x y z w), spherical joint
        (quaternion), else angle or length
    v   per body: free joint (linear [m/s], angular [rad/s], both in the body frame), spherical
        joint (angular, in the body frame), else rate

A tree is a `System` like any other: the native core holds its mass matrix, bias and contact
Jacobians with their derivatives in closed form (dynamics/native/tree.inc).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from cito.dynamics import _native
from cito.dynamics.candidates import ContactPoint, check_contacts
from cito.dynamics.joints import JOINTS, Body, Joint, PositionDrive
from cito.dynamics.parameters import Parameter, parameter_names, parameter_table
from cito.dynamics.shapes import Plane, Shape
from cito.dynamics.types import Array, as_array, freeze, positive, whole_number, without_native

__all__ = ["Body", "Joint", "PositionDrive", "TreeSystem"]


@dataclass(frozen=True, eq=False)
class TreeSystem:
    """Kinematic trees, free bodies among them, over a ground.

    Args:
        bodies: parents before their children.
        contacts: candidate contacts with the ground, and of bodies with each other.
        actuation: B, (nv, nu); by default a motor for every velocity of a joint that is not free.
        gravity: >= 0, along -z of the world [m/s^2].
        ground: what every `ContactPoint` may touch: a `Plane` or a `HeightField`, or another shape
            on the world.
        parameters: which numbers theta offsets from their nominal values, none by default.
        joint_limits: whether the finite limits of the joints are contacts too, one-dimensional
            and without friction, after the contacts with the ground.
        drive: None where controls are forces; with a `PositionDrive` they are the positions
            [rad or m] of the driven joints, each of which then has a column of the identity in B.
        guards: how many contacts, the last ones, are there only to keep what they belong to off the
            ground: relaxed gradients see them when they are near.
        slip_speed: at which the dry friction of a joint has 76 % of its size [rad/s or m/s].
    """

    bodies: Sequence[Body]
    contacts: Sequence[ContactPoint] = ()
    actuation: Array | None = None
    gravity: float = 9.81
    ground: Shape = field(default_factory=Plane)
    parameters: Sequence[Parameter] = ()
    joint_limits: bool = False
    drive: PositionDrive | None = None
    slip_speed: float = 0.05
    guards: int = 0

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "bodies", tuple(self.bodies))
        set_(self, "contacts", tuple(self.contacts))
        if not self.bodies:
            raise ValueError("`bodies` must not be empty")
        known: list[str] = []
        for body in self.bodies:
            if body.name in known:
                raise ValueError(f"`bodies` must have distinct names, got {body.name!r} twice")
            if body.parent is not None and body.parent not in known:
                raise ValueError(
                    f"`parent` of body {body.name!r} must be an earlier body, got {body.parent!r}"
                )
            known.append(body.name)
        check_contacts(self.contacts, known)
        nv = sum(self._widths)
        free = np.repeat([body.joint == "free" for body in self.bodies], self._widths)
        motors = np.eye(nv)[:, ~free] if self.actuation is None else self.actuation
        set_(self, "actuation", as_array("actuation", motors, (nv, None)))
        set_(self, "gravity", positive("gravity", self.gravity, allow_zero=True))
        if not isinstance(self.ground, Shape):
            raise ValueError(
                f"`ground` must be a Plane or a HeightField, got {type(self.ground).__name__}"
            )
        set_(self, "parameters", tuple(self.parameters))
        parameter_table(self.parameters, self.bodies, self.contacts)  # refuses what is not there
        set_(self, "slip_speed", positive("slip_speed", self.slip_speed))
        set_(self, "guards", whole_number("guards", self.guards, 0, len(self.contacts)))
        if self.drive is not None:
            self._check_drive(self.drive)
        freeze(self)

    __getstate__ = without_native

    def __repr__(self) -> str:
        return (
            f"<TreeSystem: {len(self.bodies)} bodies, {self.mass:.4g} kg, nv {sum(self._widths)}, "
            f"contacts {', '.join(contact.name for contact in self.contacts) or 'none'}>"
        )

    @property
    def _widths(self) -> list[int]:
        return [body.nv for body in self.bodies]

    @property
    def contact_dims(self) -> tuple[int, ...]:
        """Three rows (T1, T2, N) for each contact with the ground, one for each joint limit."""
        return (3,) * len(self.contacts) + (1,) * len(self._limits)

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contacts, and "knee lower", "knee upper" of the joint limits."""
        sides = {1: "lower", -1: "upper"}
        limits = (f"{self.bodies[i].name} {sides[side]}" for i, side, _ in self._limits)
        return (*(contact.name for contact in self.contacts), *limits)

    @property
    def _limits(self) -> list[tuple[int, int, float]]:
        """Body, side (1: the joint stays above, -1: below) and value of each joint limit."""
        sides = [
            (i, side, limit)
            for i, body in enumerate(self.bodies)
            for side, limit in ((1, body.lower), (-1, body.upper))
        ]
        return [row for row in sides if self.joint_limits and math.isfinite(row[2])]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates of q."""
        names: list[str] = []
        for body in self.bodies:
            parts = ("x", "y", "z", "qx", "qy", "qz", "qw")[7 - body.nq :] if body.nq > 1 else ("",)
            names += [f"{body.name}.{part}" if part else body.name for part in parts]
        return tuple(names)

    def with_ground(self, ground: Shape) -> TreeSystem:
        """The same trees over another ground."""
        return replace(self, ground=ground)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the entries of theta, (np,)."""
        return parameter_names(self.parameters)

    def with_drive(self, drive: PositionDrive | None) -> TreeSystem:
        """The same trees with controls that are positions of the driven joints (None: forces)."""
        return replace(self, drive=drive)

    def with_parameters(self, parameters: Sequence[Parameter]) -> TreeSystem:
        """The same tree with these parameters theta."""
        return replace(self, parameters=parameters)

    @property
    def _gains(self) -> tuple[Array, Array, Array]:
        """Of springs, and kp and kd of the drive, for each velocity, (nv,)."""
        springs = np.repeat([body.stiffness for body in self.bodies], self._widths)
        if self.drive is None:
            return springs, 0 * springs, 0 * springs
        assert self.actuation is not None
        kp, kd = self.drive.gains(self.actuation.shape[1])
        return springs, self.actuation @ kp, self.actuation @ kd

    def _check_drive(self, drive: PositionDrive) -> None:
        assert self.actuation is not None
        single = np.repeat([body.nv == 1 for body in self.bodies], self._widths)
        B = self.actuation
        if (
            not ((B == 0) | (B == 1)).all()
            or (B.sum(axis=0) != 1).any()
            or (B.sum(axis=1) > single).any()
        ):
            raise ValueError(
                "`actuation` must have one 1 in each column, at a joint with one coordinate of its "
                "own, where a `drive` takes positions"
            )
        drive.gains(B.shape[1])

    @property
    def mass(self) -> float:
        """Of all bodies [kg]."""
        return float(sum(body.mass for body in self.bodies))

    @cached_property
    def native(self) -> _native.System:
        """The system as the native core sees it."""
        index = {body.name: i for i, body in enumerate(self.bodies)}
        bodies, contacts, widths = self.bodies, self.contacts, self._widths
        joints = [body.joint == "free" for body in bodies]
        assert self.actuation is not None
        stiffness, kp, kd = self._gains
        return _native.tree_system(
            parent=np.array([-1 if b.parent is None else index[b.parent] for b in bodies], "i4"),
            type=np.array([JOINTS.index(b.joint) for b in bodies], "i4"),
            placement=np.array([np.append(b.rotation, b.position) for b in bodies]),
            axis=np.array([b.axis for b in bodies]),
            mass=np.array([b.mass for b in bodies]),
            com=np.array([b.com for b in bodies]),
            inertia=np.array([b.inertia.ravel() for b in bodies]),
            armature=np.repeat([0.0 if f else b.armature for f, b in zip(joints, bodies)], widths),
            damping=np.repeat([b.damping for b in bodies], widths),
            actuation=kp[:, None] * self.actuation if self.drive else self.actuation,
            gravity=self.gravity,
            point_body=np.array([index[c.body] for c in contacts], "i4"),
            point=np.array([c.position for c in contacts]).reshape(-1, 3),
            radius=np.array([c.radius for c in contacts], float),
            shape_body=np.array([index.get(getattr(c, "other", ""), -1) for c in contacts], "i4"),
            shapes=[getattr(c, "shape", self.ground).native for c in contacts],
            parameters=parameter_table(self.parameters, bodies, contacts),
            limit_body=np.array([i for i, _, _ in self._limits], "i4"),
            limit_side=np.array([side for _, side, _ in self._limits], "i4"),
            limit=np.array([limit for _, _, limit in self._limits], float),
            stiffness=stiffness + kp,
            pull=stiffness * np.repeat([b.rest for b in bodies], widths),
            drive_damping=kd,
            dry_friction=np.repeat([b.dry_friction for b in bodies], widths),
            slip_speed=self.slip_speed,
            guards=self.guards,
        )
