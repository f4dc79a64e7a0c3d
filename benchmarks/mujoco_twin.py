"""A kinematic tree over its ground as a MuJoCo model: the same bodies, contacts and parameters.

MuJoCo's contact is soft. `Contact` holds what that softness is made of; `STIFF` comes as near to
the hard law as the time step allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.candidates import ContactPair, ContactPoint
from cito.dynamics.shapes import Plane, contact_frame
from cito.dynamics.tree import Body, TreeSystem
from cito.dynamics.types import Array, as_vector

POINT_RADIUS = 1e-6  # [m] MuJoCo's spheres must have one
NEVER = 1e6  # [rad or m] a limit where there is none


class Contact(NamedTuple):
    """MuJoCo's contact parameters; these are its defaults.

    Args:
        cone: "pyramidal" or "elliptic"; the latter is Coulomb's.
        impratio: stiffness of friction over that of the normal; more means less creep.
        solref: time constant in time steps (2 is the least that is stable) and damping ratio.
        solimp: impedance at contact, at `width` penetration, the width [m], midpoint, power.
    """

    cone: str = "pyramidal"
    impratio: float = 1.0
    solref: tuple[float, float] | None = None
    solimp: tuple[float, ...] = (0.9, 0.95, 0.001, 0.5, 2)


STIFF = Contact("elliptic", 100.0, (2.0, 3.0), (0.9999, 0.9999, 1e-4, 0.5, 2))


def mujoco_model(
    system: TreeSystem,
    time_step: float,
    friction: ArrayLike = 0.8,
    contact: Contact = STIFF,
    integrator: str = "Euler",
) -> Any:
    """The `mujoco.MjModel` with one motor for each control of `system`.

    States convert with `cito.from_mujoco` and `cito.to_mujoco`.

    Args:
        system: every body with a mass and followed by its descendants (MuJoCo's order), free
            bodies placed in the world's frame, each control driving one joint, contacts with a
            plane ground.
        time_step: [s].
        friction: of every contact, or one for each, (nc,) [-].
        contact: MuJoCo's contact parameters.
        integrator: "Euler", "implicitfast", "RK4", ...

    Raises:
        ValueError: other ground than a plane, contacts between bodies, or bodies in another order
            than MuJoCo's.
    """
    import mujoco

    ground = system.ground
    if not isinstance(ground, Plane) or any(isinstance(c, ContactPair) for c in system.contacts):
        raise ValueError("`system` must have contacts with a plane ground only")
    mu = as_vector("friction", friction, len(system.contacts))
    children: dict[str | None, list[Body]] = {}
    for body in system.bodies:
        children.setdefault(body.parent, []).append(body)
    geoms: dict[str, list[tuple[ContactPoint, float]]] = {}
    for point, coefficient in zip(system.contacts, mu):
        geoms.setdefault(point.body, []).append((point, float(coefficient)))
    time_constant, ratio = contact.solref or (0.02 / time_step, 1.0)
    normal = np.asarray(ground.normal)
    frame = contact_frame(normal)
    text = f"""<mujoco>
  <compiler angle="radian" inertiafromgeom="false"/>
  <option timestep="{time_step!r}" gravity="0 0 {-system.gravity!r}" cone="{contact.cone}"
    impratio="{contact.impratio!r}" integrator="{integrator}"/>
  <default><geom solref="{time_constant * time_step!r} {ratio!r}" solimp="{_text(contact.solimp)}"
    priority="1" condim="3"/></default>
  <worldbody>
    <geom type="plane" size="0 0 1" pos="{_text(ground.height * normal)}"
      quat="{_text(_quaternion(mujoco, frame.T))}" priority="0"/>
    {_bodies(mujoco, children, geoms, None)}
  </worldbody>
  <actuator>{_motors(system)}</actuator>
</mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    order = [model.body(i).name for i in range(1, model.nbody)]
    if order != [body.name for body in system.bodies]:
        raise ValueError(f"`system` must have its bodies in the order {', '.join(order)}")
    if system.joint_limits:
        _set_limits(model, system, (time_constant * time_step, ratio), contact.solimp)
    return model


def _set_limits(
    model: Any, system: TreeSystem, solref: tuple[float, float], solimp: tuple[float, ...]
) -> None:
    """Limits of the joints, as stiff as the contacts; joint i is that of body i."""
    model.jnt_solref[:], model.jnt_solimp[:] = solref, solimp
    for i, body in enumerate(system.bodies):
        limits = np.array([body.lower, body.upper])
        model.jnt_limited[i] = np.isfinite(limits).any()
        model.jnt_range[i] = np.clip(limits, -NEVER, NEVER)


def _bodies(
    mujoco: Any,
    children: dict[str | None, list[Body]],
    geoms: dict[str, list[tuple[ContactPoint, float]]],
    parent: str | None,
) -> str:
    parts = []
    for body in children.get(parent, []):
        I = body.inertia
        joint = f'<joint name="{body.name}" ' + (
            'type="free"/>'
            if body.joint == "free"
            else f'type="{"hinge" if body.joint == "revolute" else "slide"}" '
            f'axis="{_text(body.axis)}" armature="{body.armature!r}" damping="{body.damping!r}"/>'
        )
        spheres = "".join(
            f'<geom name="{point.name}" type="sphere" size="{max(point.radius, POINT_RADIUS)!r}" '
            f'pos="{_text(point.position)}" friction="{mu!r} 0 0" contype="1" conaffinity="0"/>'
            for point, mu in geoms.get(body.name, [])
        )
        parts.append(
            f'<body name="{body.name}" pos="{_text(body.position)}" '
            f'quat="{_text(_quaternion(mujoco, body.rotation))}">'
            f'<inertial pos="{_text(body.com)}" mass="{body.mass!r}" fullinertia="'
            f'{_text([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])}"/>'
            f"{joint}{spheres}{_bodies(mujoco, children, geoms, body.name)}</body>"
        )
    return "\n".join(parts)


def _motors(system: TreeSystem) -> str:
    B, names, row = np.asarray(system.actuation), {}, 0
    for body in system.bodies:
        if body.joint != "free":
            names[row] = body.name
        row += 6 if body.joint == "free" else 1
    motors = []
    for column in B.T:
        [driven] = np.flatnonzero(column)
        motors.append(f'<motor joint="{names[int(driven)]}" gear="{float(column[driven])!r}"/>')
    return "".join(motors)


def _quaternion(mujoco: Any, R: Array) -> Array:
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(R).ravel())
    return quaternion


def _text(numbers: Sequence[float] | Array) -> str:
    return " ".join(repr(float(number)) for number in numbers)
