"""Bodies and joints of a compiled MuJoCo model as those of a tree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cito.dynamics.robot_file import Place, RobotFile, merged
from cito.dynamics.robot_stance import axis_rotation
from cito.dynamics.tree import Body, Joint
from cito.dynamics.types import Array


def read_bodies(mujoco: Any, model: Any, file: RobotFile) -> list[Place]:
    """Append the tree's bodies; the places of the model's bodies in them, world first."""
    names = names_of_bodies(model)
    places = [Place(None, np.eye(3), np.zeros(3))]
    parts: dict[str, list[tuple[float, Array, Array]]] = {}
    for i in range(1, model.nbody):
        parent = places[model.body_parentid[i]]
        R = parent.rotation @ matrix(mujoco, model.body_quat[i])
        place = Place(parent.owner, R, parent.position + parent.rotation @ model.body_pos[i])
        first, count = int(model.body_jntadr[i]), int(model.body_jntnum[i])
        for k in range(first, first + count):
            name = names[i] if k == first + count - 1 else ""
            place = _add_joint(mujoco, model, file, k, name, place)
        places.append(place)
        owner, R, p = place
        if owner is None:
            continue
        _check_body(model, i, names[i], file.source)
        Q = R @ matrix(mujoco, model.body_iquat[i])
        inertia = Q @ np.diag(model.body_inertia[i]) @ Q.T
        part = float(model.body_mass[i]), p + R @ model.body_ipos[i], inertia
        parts.setdefault(owner, []).append(part)
        if model.body_gravcomp[i] != 0:
            file.unused.setdefault("gravity compensation", []).append(names[i])
    for k, body in enumerate(file.bodies):
        mass, com, inertia = merged(parts.get(body.name, []))
        file.bodies[k] = replace(body, mass=mass, com=com, inertia=inertia)
    return places


def names_of_bodies(model: Any) -> list[str]:
    """Those of the file, or numbers."""
    return ["world"] + [model.body(i).name or f"body{i}" for i in range(1, model.nbody)]


def _check_body(model: Any, i: int, name: str, source: Path) -> None:
    mass, moments = float(model.body_mass[i]), np.array(model.body_inertia[i])
    if not (0 <= mass < np.inf and (moments >= 0).all() and np.isfinite(moments).all()):
        raise ValueError(
            f"body {name!r} of {source} must have a finite mass and moments of inertia >= 0, "
            f"got {mass:g} kg and {', '.join(f'{m:g}' for m in moments)} kg m^2"
        )


def _add_joint(mujoco: Any, model: Any, file: RobotFile, k: int, name: str, place: Place) -> Place:
    """Append the body that joint k moves; where the file's body lies in it is returned."""
    owner, R, p = place
    joint = model.joint(k).name or f"joint{k}"
    kinds = mujoco.mjtJoint
    kind, dof = kinds(int(model.jnt_type[k])), int(model.jnt_dofadr[k])
    _warn_unused(model, file, k, dof, joint)
    damping = float(model.dof_damping[dof])
    if kind == kinds.mjJNT_FREE:
        file.bodies.append(Body(name, None, "free", 0.0, damping=damping))
        return Place(name, np.eye(3), np.zeros(3))
    axis, anchor = np.array(model.jnt_axis[k]), np.array(model.jnt_pos[k])
    common: dict[str, Any] = {
        "armature": float(model.dof_armature[dof]),
        "damping": damping,
        "dry_friction": float(model.dof_frictionloss[dof]),
    }
    name = name or f"{model.body(model.jnt_bodyid[k]).name}:{joint}"
    if kind == kinds.mjJNT_BALL:
        ball = Body(name, owner, "spherical", 0.0, position=p + R @ anchor, rotation=R, **common)
        file.bodies.append(ball)
        return Place(name, np.eye(3), -anchor)
    reference = float(model.qpos0[model.jnt_qposadr[k]])  # the file's pose is at q = reference
    hinge: Joint = "revolute" if kind == kinds.mjJNT_HINGE else "prismatic"
    turn = axis_rotation(axis, -reference) if hinge == "revolute" else np.eye(3)
    shift = np.zeros(3) if hinge == "revolute" else -reference * axis
    limited = bool(model.jnt_limited[k])
    lower, upper = map(float, model.jnt_range[k] if limited else (-np.inf, np.inf))
    file.bodies.append(
        Body(
            name,
            owner,
            hinge,
            0.0,
            position=p + R @ (anchor + shift),
            rotation=R @ turn,
            axis=axis,
            lower=lower,
            upper=upper,
            stiffness=float(model.jnt_stiffness[k]),
            rest=float(model.qpos_spring[model.jnt_qposadr[k]]),
            **common,
        )
    )
    file.joints.append(joint)
    file.joint_limits.append((lower, upper))
    return Place(name, np.eye(3), -anchor)


def _warn_unused(model: Any, file: RobotFile, k: int, dof: int, joint: str) -> None:
    free, ball = model.jnt_type[k] == 0, model.jnt_type[k] == 1
    bent = getattr(model, "jnt_stiffnesspoly", np.zeros((k + 1, 1)))[k]
    higher = getattr(model, "dof_dampingpoly", np.zeros((dof + 1, 1)))[dof]
    for what, there in (
        ("dry friction", free and model.dof_frictionloss[dof] != 0),
        ("spring", (free or ball) and model.jnt_stiffness[k] != 0),
        ("limit", ball and bool(model.jnt_limited[k])),
        ("armature", free and model.dof_armature[dof] != 0),
        ("stiffness of higher order", np.any(bent != 0)),
        ("damping of higher order", np.any(higher != 0)),
    ):
        if there:
            file.unused.setdefault(what, []).append(joint)


def matrix(mujoco: Any, quaternion: Any) -> Array:
    """R (3, 3) of MuJoCo's w x y z."""
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, np.array(quaternion, float))
    return R.reshape(3, 3)
