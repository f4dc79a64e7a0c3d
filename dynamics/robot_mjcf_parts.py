"""Shapes, sites and drives of a compiled MuJoCo model."""

from __future__ import annotations

from typing import Any

import numpy as np

from cito.dynamics.robot_file import Geometry, GeometryKind, Place, RobotFile, listed
from cito.dynamics.robot_mjcf_bodies import matrix, names_of_bodies


def read_shapes(mujoco: Any, model: Any, file: RobotFile, places: list[Place]) -> None:
    """Geometries of known shape, bodies and sites, in the frames of the tree's bodies."""
    geoms = mujoco.mjtGeom
    kinds: dict[int, GeometryKind] = {
        int(geoms.mjGEOM_SPHERE): "sphere",
        int(geoms.mjGEOM_CAPSULE): "capsule",
        int(geoms.mjGEOM_BOX): "box",
        int(geoms.mjGEOM_CYLINDER): "cylinder",
        int(geoms.mjGEOM_ELLIPSOID): "ellipsoid",
    }
    links = names_of_bodies(model)
    for g in range(model.ngeom):
        i, kind = int(model.geom_bodyid[g]), kinds.get(int(model.geom_type[g]))
        owner, R, p = places[i]
        if owner is None or kind is None:
            continue
        if kind == "ellipsoid" and np.ptp(model.geom_size[g]) == 0:
            kind = "sphere"
        file.shapes.append(
            Geometry(
                model.geom(g).name,
                links[i],
                owner,
                p + R @ model.geom_pos[g],
                kind,
                np.array(model.geom_size[g]),
                R @ matrix(mujoco, model.geom_quat[g]),
                float(model.geom_friction[g][0]),
                bool(model.geom_contype[g] or model.geom_conaffinity[g]),
            )
        )
    for link, (owner, _, p) in zip(links, places):
        if owner is not None:
            file.shapes.append(Geometry("", link, owner, p))
    for s in range(model.nsite):
        i = int(model.site_bodyid[s])
        owner, R, p = places[i]
        if owner is not None:
            at = p + R @ model.site_pos[s]
            file.shapes.append(Geometry(model.site(s).name, links[i], owner, at))


def read_drives(mujoco: Any, model: Any, file: RobotFile) -> None:
    """Torque limit of each driven joint: gear * force, bounded by the joint's own range."""
    servos = []
    for a in range(model.nu):
        k, name = int(model.actuator_trnid[a][0]), model.actuator(a).name or f"actuator{a}"
        kinds = {mujoco.mjtJoint.mjJNT_FREE: "free", mujoco.mjtJoint.mjJNT_BALL: "ball"}
        kind = kinds.get(mujoco.mjtJoint(int(model.jnt_type[k])))
        if kind:
            file.warnings.append(f"Actuator {name!r} acts on a {kind} joint: it is not used.")
            continue
        joint = model.joint(k).name or f"joint{k}"
        plain = _is_plain(mujoco, model, a)
        if not plain:
            servos.append(name)
        ranges = _force_ranges(model, a, k, plain)
        limit = min((float(np.abs(r).min()) for r in ranges), default=np.inf)
        if any(not np.isclose(-r[0], r[1]) for r in ranges):
            file.warnings.append(
                f"The force range of actuator {name!r} is not symmetric: its smaller bound holds."
            )
        if not np.isfinite(limit):
            file.unlimited.append(joint)
        file.torque_limits[joint] = file.torque_limits.get(joint, 0.0) + limit
    if servos:
        file.warnings.append(
            f"The actuators {listed(servos)} are servos (position, velocity, ...): here the "
            "controls are torques."
        )


def _is_plain(mujoco: Any, model: Any, a: int) -> bool:
    """Whether the force is a fixed gain times the control."""
    return (
        int(model.actuator_gaintype[a]) == int(mujoco.mjtGain.mjGAIN_FIXED)
        and int(model.actuator_biastype[a]) == int(mujoco.mjtBias.mjBIAS_NONE)
        and int(model.actuator_dyntype[a]) == int(mujoco.mjtDyn.mjDYN_NONE)
    )


def _force_ranges(model: Any, a: int, k: int, plain: bool) -> list[Any]:
    """Every range (2,) that bounds the force of actuator a on joint k."""
    ranges = []
    if model.actuator_forcelimited[a]:
        ranges.append(model.actuator_forcerange[a])
    if plain and model.actuator_ctrllimited[a]:
        ranges.append(model.actuator_gainprm[a][0] * model.actuator_ctrlrange[a])
    ranges = [abs(model.actuator_gear[a][0]) * np.asarray(r) for r in ranges]
    if model.jnt_actfrclimited[k]:
        ranges.append(model.jnt_actfrcrange[k])
    return ranges
