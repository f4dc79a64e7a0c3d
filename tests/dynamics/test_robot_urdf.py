"""Robots from URDF files: links, joints, limits, and what is broken in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.robot import load_robot
from cito.dynamics.robot_stance import body_poses

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
    robot = load_robot(urdf(tmp_path, kind=kind))
    assert robot.names[-1] == "shank" and robot.native.nq == 8
    assert robot.torque_limits.tolist() == [7.0]
    assert robot.velocity_limits is not None and robot.velocity_limits.tolist() == [9.0]
    assert robot.system.contacts[0].radius == 0.03 and robot.system.bodies[1].damping == 0.3
    assert robot.system.bodies[1].dry_friction == 0.2
    assert any("feet=[...]" in text for text in robot.warnings)
    limits = [-np.inf, np.inf] if kind == "continuous" else [-1.0, 2.0]
    assert robot.joint_limits.tolist() == [limits]
    *_, phi = _native.system_terms(robot.native, None, robot.stance, np.zeros(7))
    assert phi.min() == pytest.approx(0, abs=1e-12)
    assert load_robot(robot.source, floating_base=False).native.nq == 1
    assert load_robot(urdf(tmp_path, root="world", kind=kind)).native.nq == 1
    assert load_robot(robot.source, feet=["pad"]).feet == ("pad",)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "continuous"])
def test_urdf_equals_pinocchio(tmp_path: Path, kind: str) -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is an optional oracle")
    from cito.dynamics.conversions import to_pinocchio

    robot = load_robot(urdf(tmp_path, kind=kind))
    text = robot.source.read_text()
    model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
    data, rng = model.createData(), np.random.default_rng(0)
    x = np.append(robot.stance, rng.standard_normal(7))
    x[7] = 0.7
    q, v = to_pinocchio(model, x)
    pin.crba(model, data, q)
    M, c, *_ = _native.system_terms(robot.native, None, x[:8].copy(), x[8:].copy())
    assert np.allclose(M, np.triu(data.M) + np.triu(data.M, 1).T, rtol=0, atol=1e-12)
    damping = np.append(np.zeros(6), 0.3 * x[-1])
    assert np.allclose(c, pin.nonLinearEffects(model, data, q, v) + damping, rtol=0, atol=1e-12)


def test_shapes_friction_and_fixed_links(tmp_path: Path) -> None:
    text = urdf(tmp_path).read_text()
    collisions = """<collision name="heel"><origin rpy="0 1.5707963267948966 0"/>
        <geometry><cylinder radius="0.02" length="0.3"/></geometry></collision>
      <collision><geometry><capsule radius="0.01" length="0.2"/></geometry></collision>
      <collision><geometry><mesh filename="package://nowhere/pad.stl"/></geometry></collision>
      </link><gazebo reference="pad"><mu1>0.7</mu1></gazebo>"""
    (tmp_path / "leg.urdf").write_text(
        text.replace("</collision></link>", "</collision>" + collisions)
    )
    robot = load_robot(tmp_path / "leg.urdf", feet=["pad"], contacts=["heel"])
    assert robot.friction is not None and robot.friction.tolist() == [0.7] * len(robot.contacts)
    assert [c.name for c in robot.contacts] == ["pad", "heel.1", "heel.2"]
    # The heel lies in the pad, which is turned by 0.2 about x, 0.1 and -0.3 from the shank.
    ends = np.array([c.position for c in robot.contacts[1:]])
    assert np.allclose(ends[1] - ends[0], [0.26, 0, 0], atol=1e-12)
    assert np.allclose(ends.mean(axis=0), [0, 0.1, -0.3])
    centre = robot.contacts[0].position - ends.mean(axis=0)
    assert np.allclose(centre, 0.02 * np.array([0, -np.sin(0.2), np.cos(0.2)]))
    pose = body_poses(robot.system.bodies, np.array([0, 0, 0, 0, 0, 0, 1, 0.0]))["shank"]
    assert np.allclose(pose.position, [0, 0, 0.2])


def test_warnings_of_what_is_missing_or_misspelt(tmp_path: Path) -> None:
    text = urdf(tmp_path).read_text()
    warnings = load_robot(tmp_path / "leg.urdf").warnings
    assert any("No inertia is stated of pad" in sentence for sentence in warnings)
    start, end = text.index('<limit lower="-1"'), text.index('<dynamics damping="0.3"')
    (tmp_path / "free.urdf").write_text(text[:start] + text[end:])
    robot = load_robot(tmp_path / "free.urdf")
    assert np.isinf(robot.joint_limits).all() and np.isinf(robot.torque_limits).all()
    assert any("no force limit of hip" in sentence for sentence in robot.warnings)
    (tmp_path / "typo.urdf").write_text(text.replace("collision", "colision"))
    warnings = load_robot(tmp_path / "typo.urdf").warnings
    assert any("did you mean <collision>" in sentence for sentence in warnings)


def test_children_come_in_the_order_of_their_joints_names(tmp_path: Path) -> None:
    link = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
    links = "".join(f'<link name="{name}">{link}' for name in "abcd")
    joints = "".join(
        f'<joint name="{name}" type="continuous"><parent link="{parent}"/>'
        f'<child link="{child}"/></joint>'
        for name, parent, child in (("y", "a", "b"), ("x", "a", "c"), ("z", "c", "d"))
    )
    (tmp_path / "tree.urdf").write_text(f"<robot>{links}{joints}</robot>")
    assert load_robot(tmp_path / "tree.urdf").joints == ("x", "z", "y")


def test_a_floating_joint_is_the_base_and_a_long_chain_is_no_problem(tmp_path: Path) -> None:
    text = urdf(tmp_path, root="world").read_text()
    body = text.replace('type="revolute"', 'type="floating"')
    (tmp_path / "leg.urdf").write_text(body)
    robot = load_robot(tmp_path / "leg.urdf")
    assert [b.joint for b in robot.system.bodies] == ["free"]
    link = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
    links = "".join(f'<link name="l{k}">{link}' for k in range(2000))
    joints = "".join(
        f'<joint name="j{k}" type="fixed"><parent link="l{k}"/><child link="l{k + 1}"/></joint>'
        for k in range(1999)
    )
    (tmp_path / "chain.urdf").write_text(f"<robot>{links}{joints}</robot>")
    assert load_robot(tmp_path / "chain.urdf").system.mass == pytest.approx(2000)


SHANK_INERTIA = '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('type="revolute"', 'type="planar"', "joint 'hip'.*must be revolute.*got 'planar'"),
        ('type="revolute"', 'type="wobbly"', "joint 'hip'.*got 'wobbly'"),
        ('type="revolute"', "", "joint 'hip'.*got None"),
        ('<mass value="1"/>', '<mass value="0"/>', "body 'shank'.*mass > 0"),
        ('<mass value="1"/>', '<mass value="-1"/>', "link 'shank'.*>= 0"),
        ('<mass value="1"/>', '<mass value="much"/>', "mass of link 'shank'.*a number"),
        ('<mass value="1"/>', '<mass value="inf"/>', "mass of link 'shank'.*got 'inf'"),
        ('<mass value="1"/>', '<mass value="1e308"/>', "`mass` of body 'shank'.*below 1e"),
        ('<mass value="1"/>', '<mass value="nan"/>', "`value` of a <mass>.*NaN"),
        ('<mass value="1"/>', "", "mass of link 'shank'.*got ''"),
        (SHANK_INERTIA, "", "ixx of link 'shank'.*got ''"),
        ('ixx="0.01"', 'ixx="-0.01"', "inertia.*shank.*positive semidefinite"),
        ('<axis xyz="0 1 1"/>', '<axis xyz="0 0 0"/>', "axis.*joint 'hip'.*zero"),
        ('<axis xyz="0 1 1"/>', '<axis xyz="0 1"/>', "axis of joint 'hip'.*3 numbers"),
        ('lower="-1"', 'lower="3"', "limit.*joint 'hip'.*lower <= upper"),
        ('damping="0.3"', 'damping="-1"', "damping.*joint 'hip'.*>= 0"),
        ('<parent link="base"/>', '<parent link="trunk"/>', "parent of joint 'hip'.*'trunk'"),
        ('<child link="shank"/>', '<child link="pad"/>', "link 'pad'.*one joint.*'hip' and 'weld'"),
        ('<parent link="base"/>', '<parent link="pad"/>', "no joint.*|hang on each other"),
        ('<link name="pad">', '<link name="shank">', "one link called 'shank'"),
        ('<joint name="weld"', '<joint name="hip"', "one joint called 'hip'"),
        ('<joint name="weld"', "<joint", "every <joint>.*name"),
        ('sphere radius="0.03"', 'sphere radius="-0.03"', "radius.*sphere of link 'pad'.*> 0"),
        ("<robot ", "<robots ", "open with <mujoco>|mismatched"),
        ("</robot>", "", "XML file"),
    ],
)
def test_broken_urdf_is_refused_by_name(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = URDF.format(root="base", kind="revolute", mass="1")
    assert old in text
    (tmp_path / "broken.urdf").write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=message) as caught:
        load_robot(tmp_path / "broken.urdf")
    assert "broken.urdf" in str(caught.value) and "\n" not in str(caught.value)
