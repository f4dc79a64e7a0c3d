"""Candidate contacts of a kinematic tree: spheres and points on its bodies, and what they touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cito.dynamics.shapes import Box, Shape
from cito.dynamics.types import Array, as_array, freeze, positive


@dataclass(frozen=True, eq=False)
class ContactPoint:
    """A candidate contact with the ground: a sphere (radius 0: a point) fixed to a body.

    Args:
        name: of the contact, e.g. "FL".
        body: name of the body that carries it.
        position: of the sphere's centre in the body frame, (3,) [m].
        radius: [m].
    """

    name: str
    body: str
    position: Array
    radius: float = 0.0

    def __post_init__(self) -> None:
        set_, label = object.__setattr__, f"contact {self.name!r}"
        set_(self, "position", as_array(f"position of {label}", self.position, (3,)))
        set_(self, "radius", positive(f"radius of {label}", self.radius, allow_zero=True))
        freeze(self)


@dataclass(frozen=True, eq=False)
class ContactPair(ContactPoint):
    """A candidate contact of a sphere or point on a body with a shape on another, or on the world.

        ContactPair("ball-hand", "ball", (0, 0, 0), 0.1, shape=Capsule(...), other="hand")
        ContactPair("foot-step", "calf", (0, 0, -0.2), 0.02, shape=Box((0.3, 1.0, 0.1)))

    The contact frame's normal points out of the shape; impulses are those on `body`, the opposite
    ones act on `other` at the same point.

    Args:
        shape: in the frame of the body that carries it.
        other: name of that body; None: the world.
    """

    shape: Shape = field(kw_only=True)
    other: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.shape, Shape):
            raise ValueError(
                f"`shape` of contact {self.name!r} must be a Plane, Sphere, Capsule, Box or "
                f"HeightField, got {type(self.shape).__name__}"
            )
        if self.other == self.body:
            raise ValueError(f"`other` of contact {self.name!r} must not be its own body")


def corner_contacts(name: str, body: str, box: Box) -> list[ContactPoint]:
    """The corners of a box on a body as contacts with the ground: "NAME 0", ..., "NAME 7"."""
    return [
        ContactPoint(f"{name} {i}", body, corner, box.rounding)
        for i, corner in enumerate(box.corners)
    ]


def check_contacts(contacts: Sequence[ContactPoint], bodies: Sequence[str]) -> None:
    """Refuse contacts of bodies that are not there."""
    for contact in contacts:
        for name in ("body", "other"):
            body = getattr(contact, name, None)
            if body is not None and body not in bodies:
                raise ValueError(
                    f"`{name}` of contact {contact.name!r} must be one of {', '.join(bodies)}, "
                    f"got {body!r}"
                )
