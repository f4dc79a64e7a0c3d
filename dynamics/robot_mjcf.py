"""Robots in MJCF files, read through MuJoCo, without their meshes.

MuJoCo                                        here
joint anchored anywhere in its body           body frame at the joint's anchor
several joints on one body                    a chain of bodies without mass
bodies without joints                         part of their parent
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from cito.dynamics.conversions import from_mujoco
from cito.dynamics.robot import Candidate, RobotFile
from cito.dynamics.tree import Body, Joint, TreeSystem
from cito.dynamics.types import Array


def read_mjcf(source: Path, floating_base: bool | None) -> RobotFile:
    """Bodies, foot candidates, limits and stance of an MJCF file.

    Raises:
        ValueError: MuJoCo refuses the file, or it holds what a tree cannot.
    """
    import mujoco

    file = RobotFile(source.stem, source)
    try:
        spec = mujoco.MjSpec.from_file(str(source))
        _strip(mujoco, spec, file)
        _set_base(mujoco, spec, floating_base)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = spec.compile()
    except (RuntimeError, TypeError, IndexError, KeyError, mujoco.FatalError) as error:
        raise ValueError(f"MuJoCo cannot read {source}: {error}") from error
    except ValueError as error:
        if str(source) in str(error):
            raise
        raise ValueError(f"MuJoCo cannot read {source}: {error}") from error
    file.warnings += [f"MuJoCo warns: {warning.message}" for warning in caught]
    file.name = spec.modelname if spec.modelname not in ("", "MuJoCo Model") else source.stem
    gravity = np.array(model.opt.gravity)
    if gravity[2] > 0 or not np.allclose(gravity[:2], 0):
        raise ValueError(f"the gravity of {source} must point along -z, got {gravity}")
    file.gravity = float(abs(gravity[2]))
    _read_tree(mujoco, model, file)
    _read_drives(mujoco, model, file)
    if file.bodies and file.bodies[0].joint != "free" and len(file.bodies) > 1:
        if model.body_jntnum[model.jnt_bodyid[0]] == 1:
            file.warnings.append(f"The base is fixed to the world by joint {file.joints[0]!r}.")
    keys = [model.key(i).name for i in range(model.nkey)]
    if keys and file.bodies:
        standing = [i for i, key in enumerate(keys) if key == "home" or "stand" in key.lower()]
        qpos = np.array(model.key_qpos[standing[0] if standing else 0])
        x = from_mujoco(TreeSystem(file.bodies), qpos, np.zeros(model.nv))
        file.stance = x[: model.nq]
    return file


def _strip(mujoco: Any, spec: Any, file: RobotFile) -> None:
    """Take out what needs other files or cannot move a tree; meshes must carry no mass."""
    needs_file = (
        mujoco.mjtGeom.mjGEOM_MESH,
        mujoco.mjtGeom.mjGEOM_HFIELD,
        mujoco.mjtGeom.mjGEOM_SDF,
    )
    always = spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    low, high = spec.compiler.inertiagrouprange
    for geom in list(spec.geoms):
        if geom.type in needs_file or geom.meshname:
            body = geom.parent
            weighs = not (geom.mass == 0 or geom.density == 0) and low <= geom.group <= high
            if weighs and _moves(body) and (always or not body.explicitinertial):
                raise ValueError(
                    f"body {body.name!r} of {file.source} must have an <inertial>: its mass would "
                    "come from a mesh, and meshes are not read"
                )
            spec.delete(geom)
        else:
            geom.material = ""
    for body in spec.bodies:  # MuJoCo would take such a mass for zero
        if body.explicitinertial and body.mass < 0:
            raise ValueError(
                f"body {body.name!r} of {file.source} must have a mass >= 0, got {body.mass:g}"
            )
    for site in spec.sites:
        site.material = ""
    for kind in ("equalities", "tendons"):
        if getattr(spec, kind):
            file.warnings.append(f"The file's {kind} are not used.")
    driven = mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT
    for actuator in list(spec.actuators):
        if actuator.trntype not in driven:
            file.warnings.append(f"Actuator {actuator.name!r} acts on no joint: it is not used.")
            spec.delete(actuator)
    unused = "sensors skins flexes pairs excludes equalities tendons tuples"
    for kind in f"{unused} meshes hfields materials textures".split():
        for element in list(getattr(spec, kind)):
            spec.delete(element)
    for key in spec.keys:  # the controls of actuators that were deleted
        key.ctrl = []
        key.act = []


def _moves(body: Any) -> bool:
    while body is not None and body.name != "world":
        if body.joints:
            return True
        body = body.parent
    return False


def _set_base(mujoco: Any, spec: Any, floating_base: bool | None) -> None:
    if floating_base is None:
        return
    for body in spec.worldbody.bodies:
        free = [j for j in body.joints if j.type == mujoco.mjtJoint.mjJNT_FREE]
        if floating_base and not body.joints and body.find_all("joint"):
            body.add_freejoint()
        elif not floating_base:
            for joint in free:
                spec.delete(joint)
        else:
            continue
        for key in list(spec.keys):  # no longer of the right length
            spec.delete(key)


def _read_tree(mujoco: Any, model: Any, file: RobotFile) -> None:
    """Bodies by their place in the tree: (owner, R, p) of each of the file's bodies."""
    names = ["world"] + [model.body(i).name or f"body{i}" for i in range(1, model.nbody)]
    places: list[tuple[str | None, Array, Array]] = [(None, np.eye(3), np.zeros(3))]
    inertias: dict[str, list[tuple[float, Array, Array]]] = {}
    for i in range(1, model.nbody):
        owner, R_parent, p_parent = places[model.body_parentid[i]]
        R = R_parent @ _matrix(mujoco, model.body_quat[i])
        p = p_parent + R_parent @ model.body_pos[i]
        first = int(model.body_jntadr[i])
        for k in range(first, first + int(model.body_jntnum[i])):
            last = k == first + model.body_jntnum[i] - 1
            owner, R, p = _add_joint(
                mujoco, model, file, k, names[i] if last else "", (owner, R, p), k == first
            )
        places.append((owner, R, p))
        if owner is not None:
            _check_body(model, i, names[i], file.source)
            Q = R @ _matrix(mujoco, model.body_iquat[i])
            inertia = Q @ np.diag(model.body_inertia[i]) @ Q.T
            part = float(model.body_mass[i]), p + R @ model.body_ipos[i], inertia
            inertias.setdefault(owner, []).append(part)
            if model.body_gravcomp[i] != 0:
                file.unused.setdefault("gravity compensation", []).append(names[i])
    for k, body in enumerate(file.bodies):
        mass, com, inertia = _merged(inertias.get(body.name, []))
        file.bodies[k] = Body(**{**vars(body), "mass": mass, "com": com, "inertia": inertia})
    _read_candidates(mujoco, model, file, names, places)


def _check_body(model: Any, i: int, name: str, source: Path) -> None:
    mass, moments = float(model.body_mass[i]), np.array(model.body_inertia[i])
    if not (0 <= mass < np.inf and (moments >= 0).all() and np.isfinite(moments).all()):
        raise ValueError(
            f"body {name!r} of {source} must have a finite mass and moments of inertia >= 0, "
            f"got {mass:g} kg and {', '.join(f'{m:g}' for m in moments)} kg m^2"
        )


def _add_joint(
    mujoco: Any,
    model: Any,
    file: RobotFile,
    k: int,
    name: str,
    place: tuple[str | None, Array, Array],
    first: bool,
) -> tuple[str, Array, Array]:
    """Append the body that joint k moves; where the file's body lies in it is returned."""
    owner, R, p = place
    joint = model.joint(k).name or f"joint{k}"
    kinds = mujoco.mjtJoint
    kind, dof = kinds(int(model.jnt_type[k])), int(model.jnt_dofadr[k])
    if kind == kinds.mjJNT_BALL:
        raise ValueError(
            f"joint {joint!r} of {file.source} is a ball joint, which a tree cannot hold: "
            "write it as three hinges"
        )
    damping = float(model.dof_damping[dof])
    if kind == kinds.mjJNT_FREE:
        file.bodies.append(Body(name, None, "free", 0.0, damping=damping))
        _warn_unused(model, file, k, dof, joint)
        return name, np.eye(3), np.zeros(3)
    axis, anchor = np.array(model.jnt_axis[k]), np.array(model.jnt_pos[k])
    reference = float(model.qpos0[model.jnt_qposadr[k]])  # the file's pose is at q = reference
    position, rotation = p + R @ anchor, R
    if kind == kinds.mjJNT_HINGE:
        turn = np.zeros(4)
        mujoco.mju_axisAngle2Quat(turn, axis, -reference)
        rotation = R @ _matrix(mujoco, turn)
    else:
        position = position - reference * R @ axis
    hinge: Joint = "revolute" if kind == kinds.mjJNT_HINGE else "prismatic"
    name = name or f"{model.body(model.jnt_bodyid[k]).name}:{joint}"
    armature = float(model.dof_armature[dof])
    file.bodies.append(
        Body(
            name,
            owner,
            hinge,
            0.0,
            position=position,
            rotation=rotation,
            axis=axis,
            armature=armature,
            damping=damping,
        )
    )
    file.joints.append(joint)
    limited = bool(model.jnt_limited[k])
    lower, upper = model.jnt_range[k] if limited else (-np.inf, np.inf)
    file.joint_limits.append((float(lower), float(upper)))
    _warn_unused(model, file, k, dof, joint)
    return name, np.eye(3), -anchor


def _warn_unused(model: Any, file: RobotFile, k: int, dof: int, joint: str) -> None:
    free = model.jnt_type[k] == 0
    higher = model.dof_dampingpoly[dof] if hasattr(model, "dof_dampingpoly") else np.zeros(1)
    for what, there in (
        ("dry friction", model.dof_frictionloss[dof] != 0),
        ("spring", np.any(model.jnt_stiffness[k] != 0)),
        ("armature", free and model.dof_armature[dof] != 0),
        ("damping of higher order", np.any(higher != 0)),
    ):
        if there:
            file.unused.setdefault(what, []).append(joint)


def _merged(parts: list[tuple[float, Array, Array]]) -> tuple[float, Array, Array]:
    """Mass, centre and inertia of parts: I = sum I_i + m_i (|d|^2 1 - d d'), d from the centre."""
    mass = sum(m for m, _, _ in parts)
    if mass == 0:
        return 0.0, np.zeros(3), np.asarray(sum((I for *_, I in parts), np.zeros((3, 3))))
    com = np.asarray(sum(m * c for m, c, _ in parts)) / mass
    inertia = np.zeros((3, 3))
    for m, c, I in parts:
        d = c - com
        inertia += I + m * (d @ d * np.eye(3) - np.outer(d, d))
    return float(mass), com, 0.5 * (inertia + inertia.T)


def _read_candidates(
    mujoco: Any,
    model: Any,
    file: RobotFile,
    names: list[str],
    places: list[tuple[str | None, Array, Array]],
) -> None:
    kinds = mujoco.mjtGeom
    for g in range(model.ngeom):
        i, name = int(model.geom_bodyid[g]), model.geom(g).name
        owner, R, p = places[i]
        shape = kinds(int(model.geom_type[g]))
        if owner is None or shape not in (kinds.mjGEOM_SPHERE, kinds.mjGEOM_CAPSULE):
            continue
        radius, friction = float(model.geom_size[g][0]), float(model.geom_friction[g][0])
        centre = p + R @ model.geom_pos[g]
        if shape == kinds.mjGEOM_SPHERE:
            candidate = Candidate(name, names[i], owner, centre, radius, "sphere", friction)
            file.candidates.append(candidate)
            continue
        half = model.geom_size[g][1] * (R @ _matrix(mujoco, model.geom_quat[g]))[:, 2]
        for end in (centre - half, centre + half):
            file.candidates.append(
                Candidate(name, names[i], owner, end, radius, "capsule", friction)
            )
    for i, (owner, _, p) in enumerate(places):
        if owner is not None:
            file.candidates.append(Candidate("", names[i], owner, p))
    for s in range(model.nsite):
        owner, R, p = places[int(model.site_bodyid[s])]
        if owner is not None:
            link = names[int(model.site_bodyid[s])]
            at = p + R @ model.site_pos[s]
            file.candidates.append(Candidate(model.site(s).name, link, owner, at))


def _read_drives(mujoco: Any, model: Any, file: RobotFile) -> None:
    """Torque limit of each driven joint: gear * force, bounded by the joint's own range."""
    for a in range(model.nu):
        k, name = int(model.actuator_trnid[a][0]), model.actuator(a).name
        if int(model.jnt_type[k]) == int(mujoco.mjtJoint.mjJNT_FREE):
            file.warnings.append(f"Actuator {name!r} acts on a free joint: it is not used.")
            continue
        joint = model.joint(k).name or f"joint{k}"
        ranges = []
        if model.actuator_forcelimited[a]:
            ranges.append(model.actuator_forcerange[a])
        plain = (
            int(model.actuator_gaintype[a]) == int(mujoco.mjtGain.mjGAIN_FIXED)
            and int(model.actuator_biastype[a]) == int(mujoco.mjtBias.mjBIAS_NONE)
            and int(model.actuator_dyntype[a]) == int(mujoco.mjtDyn.mjDYN_NONE)
        )
        if plain and model.actuator_ctrllimited[a]:
            ranges.append(model.actuator_gainprm[a][0] * model.actuator_ctrlrange[a])
        ranges = [abs(model.actuator_gear[a][0]) * np.asarray(r) for r in ranges]
        if model.jnt_actfrclimited[k]:
            ranges.append(model.jnt_actfrcrange[k])
        limit = min((float(np.abs(r).min()) for r in ranges), default=np.inf)
        if any(not np.isclose(-r[0], r[1]) for r in ranges):
            file.warnings.append(
                f"The force range of actuator {name!r} is not symmetric: its smaller bound holds."
            )
        if not np.isfinite(limit):
            file.unlimited.append(joint)
        file.torque_limits[joint] = file.torque_limits.get(joint, 0.0) + limit


def _matrix(mujoco: Any, quaternion: Any) -> Array:
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, np.array(quaternion, float))
    return R.reshape(3, 3)
