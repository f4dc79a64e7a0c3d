"""Which body, joints and feet of a robot a cost means: names become numbers."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from cito.dynamics.base import Dynamics
from cito.dynamics.robot import Robot
from cito.dynamics.tree import TreeSystem
from cito.dynamics.types import Array, IntArray


class Joints(NamedTuple):
    """Joints of one coordinate: where they are in q and in v, (nj,) each; nq and nv of the tree."""

    q: IntArray
    v: IntArray
    nq: int
    nv: int

    @property
    def positions(self) -> IntArray:
        """Their entries in x, then in dx, (2 nj,)."""
        return np.concatenate([self.q, self.v]).astype(np.int32)

    @property
    def velocities(self) -> IntArray:
        """Entries in x, then in dx, of their rates, (2 nj,)."""
        return np.concatenate([self.nq + self.v, self.nv + self.v]).astype(np.int32)


class Parts(NamedTuple):
    """The tree of some dynamics, and the robot it belongs to if a file described it."""

    tree: TreeSystem
    robot: Robot | None

    @classmethod
    def of(cls, name: str, dynamics: Dynamics) -> Parts:
        """The parts of these dynamics; `name` is the term's.

        Raises:
            ValueError: the system is no kinematic tree.
        """
        return cls.of_system(name, getattr(dynamics, "system", dynamics))

    @classmethod
    def of_system(cls, name: str, system: object) -> Parts:
        """The same of a system by itself."""
        tree = system.system if isinstance(system, Robot) else system
        if not isinstance(tree, TreeSystem):
            raise ValueError(f"`{name}` needs a Robot or TreeSystem, got a {type(system).__name__}")
        return cls(tree, system if isinstance(system, Robot) else None)

    def body(self, argument: str, name: str | None) -> int:
        """The number of a body; None: the first that has a mass."""
        names = [body.name for body in self.tree.bodies]
        if name is None:
            return next((i for i, body in enumerate(self.tree.bodies) if body.mass > 0), 0)
        return _index(argument, name, names)

    def joints(self, argument: str, names: Sequence[str] | None) -> Joints:
        """Joints by the robot's names or by those of the bodies they move; None: the driven."""
        widths_q = [body.nq for body in self.tree.bodies]
        widths_v = [body.nv for body in self.tree.bodies]
        single = np.flatnonzero(np.array(widths_v) == 1)
        q = np.cumsum([0, *widths_q])[single]
        v = np.cumsum([0, *widths_v])[single]
        if names is None:
            assert self.tree.actuation is not None
            chosen = np.flatnonzero((self.tree.actuation[v] != 0).any(axis=1))
            if not len(chosen):
                raise ValueError(f"`{argument}` must name joints: no control drives any")
        else:
            of_bodies = [self.tree.bodies[int(i)].name for i in single]
            known = of_bodies if self.robot is None else list(self.robot.joints)
            if self.robot is not None and set(names) <= set(of_bodies):
                known = of_bodies
            chosen = np.array([_index(argument, name, known) for name in names], dtype=int)
        return Joints(
            q[chosen].astype(np.int32), v[chosen].astype(np.int32), sum(widths_q), sum(widths_v)
        )

    def feet(self, argument: str, names: Sequence[str] | None) -> IntArray:
        """Numbers of contacts; None: the robot's feet, or all contacts of a bare tree."""
        known = [contact.name for contact in self.tree.contacts]
        if names is None:
            names = known if self.robot is None else self.robot.feet
        if not names:
            raise ValueError(f"`{argument}` must name contacts: the robot has no feet")
        return np.array([_index(argument, name, known) for name in names], dtype=np.int32)

    def foot_place(self, argument: str, name: str) -> tuple[str, Array]:
        """Body and centre, (3,) in its frame [m], of a contact."""
        known = [contact.name for contact in self.tree.contacts]
        contact = self.tree.contacts[_index(argument, name, known)]
        return contact.body, contact.position


def _index(argument: str, name: str, known: Iterable[str]) -> int:
    known = list(known)
    if name not in known:
        close = difflib.get_close_matches(str(name), known, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(known)}"
        raise ValueError(f"`{argument}` names {name!r}, which the robot does not have; {hint}")
    return known.index(name)
