"""Parameters of a kinematic tree that its motion is differentiated with respect to.

    robot = load_robot("go2").with_parameters([Parameter.mass("FL_calf"), Parameter.contact("FL")])
    ContactDynamics(robot, 0.02, theta=[np.log(1.1), 0, 0, -0.01])  # calf 10 % heavier, leg longer

theta (np,) are offsets from the nominal numbers, all zero by default; its entries follow the order
of the parameters, named by `TreeSystem.parameter_names`. What is not among the parameters costs
nothing. Friction is no part of theta: every gradient has it beside theta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from cito.dynamics.types import IntArray

if TYPE_CHECKING:
    from cito.dynamics.candidates import ContactPoint
    from cito.dynamics.tree import Body

KINDS = ("mass", "damping", "armature", "placement", "contact")  # as ParameterKind in tree.hpp
Kind = Literal["mass", "damping", "armature", "placement", "contact"]


@dataclass(frozen=True)
class Parameter:
    """Numbers of one body or contact that theta offsets; made by one of its constructors.

    Args:
        kind: which numbers.
        of: name of the body, or of the contact.
    """

    kind: Kind
    of: str

    @classmethod
    def mass(cls, body: str) -> Parameter:
        """One entry: logarithm of a scale on mass and inertia of a body; its shape is kept [-]."""
        return cls("mass", body)

    @classmethod
    def damping(cls, body: str) -> Parameter:
        """One entry: logarithm of a scale on the damping of the joint of a body [-]."""
        return cls("damping", body)

    @classmethod
    def armature(cls, body: str) -> Parameter:
        """One entry: logarithm of a scale on the armature of the joint of a body [-]."""
        return cls("armature", body)

    @classmethod
    def placement(cls, body: str) -> Parameter:
        """Three entries: the joint of a body moves in the parent's body frame [m].

        That is how the parent link gets longer; the masses of both bodies stay where they are in
        their frames.
        """
        return cls("placement", body)

    @classmethod
    def contact(cls, contact: str) -> Parameter:
        """Three entries: a contact point moves in the frame of the body that carries it [m]."""
        return cls("contact", contact)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"`kind` must be one of {KINDS}, got {self.kind!r}")

    @property
    def size(self) -> int:
        """Number of its entries in theta."""
        return 3 if self.kind in ("placement", "contact") else 1


def parameter_names(parameters: Sequence[Parameter]) -> tuple[str, ...]:
    """Names of the entries of theta, such as "mass calf" and "contact foot.x"."""
    axes = {1: ("",), 3: (".x", ".y", ".z")}
    return tuple(f"{p.kind} {p.of}{axis}" for p in parameters for axis in axes[p.size])


def parameter_table(
    parameters: Sequence[Parameter], bodies: Sequence[Body], contacts: Sequence[ContactPoint]
) -> IntArray:
    """Rows (kind, index of the body or contact, axis), one for each entry of theta, (np, 3).

    Raises:
        ValueError: an owner that is not there, a parameter that comes twice, or a logarithm of a
            scale on what is zero.
    """
    rows = []
    for i, parameter in enumerate(parameters):
        if not isinstance(parameter, Parameter):
            raise ValueError(f"`parameters` must be Parameter each, got {parameter!r:.80}")
        owners = {x.name: x for x in (contacts if parameter.kind == "contact" else bodies)}
        if parameter.of not in owners:
            what = "contact" if parameter.kind == "contact" else "body"
            raise ValueError(
                f"`parameters` names the {what} {parameter.of!r}, which is not there; "
                f"there are {', '.join(owners) or 'none'}"
            )
        if parameter in parameters[:i]:
            raise ValueError(f"`parameters` has the {parameter.kind} of {parameter.of!r} twice")
        owner = owners[parameter.of]
        if parameter.size == 1 and _nominal(parameter.kind, owner) == 0:
            raise ValueError(
                f"{parameter.kind} of {parameter.of!r} must be > 0 to be scaled, got 0"
            )
        index = list(owners).index(parameter.of)
        rows += [(KINDS.index(parameter.kind), index, axis) for axis in range(parameter.size)]
    return np.array(rows, dtype=np.int32).reshape(-1, 3)


def _nominal(kind: str, body: Body | ContactPoint) -> float:
    """The number that the logarithm of a scale belongs to; a free joint has no armature."""
    if kind == "armature" and getattr(body, "joint", None) == "free":
        return 0.0
    return float(getattr(body, kind))
