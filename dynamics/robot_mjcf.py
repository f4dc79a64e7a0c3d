"""Robots in MJCF files, read through MuJoCo, without their meshes.

MuJoCo                                        here
joint anchored anywhere in its body           body frame at the joint's anchor
several joints on one body                    a chain of bodies without mass
bodies without joints                         part of their parent

This file asks MuJoCo; `robot_mjcf_bodies` and `robot_mjcf_parts` take its answer apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cito.dynamics.conversions import from_mujoco
from cito.dynamics.robot_file import RobotFile, listed
from cito.dynamics.robot_mjcf_bodies import read_bodies
from cito.dynamics.robot_mjcf_parts import read_drives, read_shapes
from cito.dynamics.tree import TreeSystem
from cito.dynamics.types import Array


def read_mjcf(source: Path, floating_base: bool | None) -> RobotFile:
    """Bodies, shapes, limits and stance of an MJCF file.

    Raises:
        ValueError: MuJoCo refuses the file, or it holds what a tree cannot.
    """
    import mujoco

    file = RobotFile(source.stem, source)
    model = _compile(mujoco, file, floating_base)
    file.gravity = _gravity(model, source)
    places = read_bodies(mujoco, model, file)
    read_shapes(mujoco, model, file, places)
    read_drives(mujoco, model, file)
    file.stance = _stance(model, file)
    if file.bodies and file.bodies[0].joint != "free" and len(file.bodies) > 1:
        if model.body_jntnum[model.jnt_bodyid[0]] == 1:
            file.warnings.append(f"The base is fixed to the world by joint {file.joints[0]!r}.")
    return file


def _compile(mujoco: Any, file: RobotFile, floating_base: bool | None) -> Any:
    """MuJoCo's model of the file without its meshes."""
    source = file.source
    told: list[str] = []
    try:
        with _warnings_go_to(mujoco, told):
            spec = mujoco.MjSpec.from_file(str(source))
            _strip(mujoco, spec, file)
            _set_base(mujoco, spec, floating_base)
            keys = [(key.name, len(key.qpos)) for key in spec.keys]
            model = spec.compile()
    except (ValueError, RuntimeError, TypeError, LookupError, mujoco.FatalError) as error:
        text = " ".join(str(error).split())
        if str(source) in text:
            raise ValueError(text) from error
        raise ValueError(f"MuJoCo cannot read {source}: {text}") from error
    for name, count in keys:  # MuJoCo would fill it up with zeros
        if count not in (0, model.nq):
            raise ValueError(
                f"`qpos` of key {name!r} of {source} must have {model.nq} numbers, got {count}"
            )
    file.warnings += [f"MuJoCo warns: {' '.join(text.split())}" for text in told]
    weighed = [b.name for b in spec.bodies if _moves(b) and not b.explicitinertial and b.geoms]
    weighed = [name for name in weighed if model.body(name).mass[0] > 0]
    if weighed:
        file.warnings.append(f"The inertia of {listed(weighed)} is that of its geometries.")
    if spec.modelname not in ("", "MuJoCo Model"):
        file.name = spec.modelname
    return model


@contextmanager
def _warnings_go_to(mujoco: Any, told: list[str]) -> Iterator[None]:
    """MuJoCo's warnings as texts, instead of lines on the screen and in a file."""
    handler = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(told.append)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        told += [str(warning.message) for warning in caught]
    finally:
        mujoco.set_mju_user_warning(handler)


def _gravity(model: Any, source: Path) -> float:
    gravity = np.array(model.opt.gravity)
    if gravity[2] > 0 or not np.allclose(gravity[:2], 0):
        raise ValueError(f"the gravity of {source} must point along -z, got {gravity}")
    return float(abs(gravity[2]))


def _stance(model: Any, file: RobotFile) -> Array | None:
    """The keyframe called home, or after standing, or the first."""
    keys = [model.key(i).name.lower() for i in range(model.nkey)]
    if not keys or not file.bodies:
        return None
    standing = [i for i, key in enumerate(keys) if key == "home" or "stand" in key]
    qpos = np.array(model.key_qpos[standing[0] if standing else 0])
    x = from_mujoco(TreeSystem(file.bodies), qpos, np.zeros(model.nv))
    return x[: model.nq]


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
    others = [actuator for actuator in spec.actuators if actuator.trntype not in driven]
    if others:
        names = listed([actuator.name or "without a name" for actuator in others])
        file.warnings.append(f"Actuators that act on no joint are not used: {names}.")
    for actuator in others:
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
