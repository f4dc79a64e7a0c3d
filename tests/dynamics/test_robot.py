"""Robots from files: what comes along, joints wherever they may be, limits, drives, the stance."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.conversions import rotation_matrix
from cito.dynamics.robot import Robot, load_robot
from cito.dynamics.robot_stance import body_poses
from cito.problems.robots import MODELS, SUMMARIES, robots
from cito.problems.robots import load_robot as load_named
from tests.reference.robots import agrees_with_mujoco

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


def gaps(robot: Robot) -> np.ndarray:
    """phi (nc,) in the stance."""
    v = np.zeros(robot.native.nv)
    return np.asarray(_native.system_terms(robot.native, None, robot.stance, v)[4])


@pytest.mark.parametrize("name", robots())
def test_shipped_robots_stand(name: str) -> None:
    robot = load_named(name)
    assert robot.warnings == () and f"{robot.system.mass:.4g} kg" in SUMMARIES[name]
    assert np.allclose(gaps(robot), 0, atol=1e-9)
    angles = robot.stance[-len(robot.joints) :]
    assert (robot.joint_limits[:, 0] <= angles).all() and (angles <= robot.joint_limits[:, 1]).all()
    dynamics = ContactDynamics(robot, 0.01, friction=robot.friction)
    step = dynamics.step(np.append(robot.stance, np.zeros(robot.native.nv)), np.zeros(dynamics.nu))
    assert step.residual < 1e-9 and (step.modes > 0).any()


def test_every_model_file_has_a_summary() -> None:
    assert robots() == sorted(path.stem for path in MODELS.glob("*.xml"))


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
    assert any("inertia of trunk, welded, end is that of" in text for text in robot.warnings)
    _, _, B, *_ = _native.system_terms(robot.native, None, robot.stance, np.zeros(5))
    assert np.array_equal(B, np.eye(5)[:, [1, 2, 3]])
    tip = load_robot(tmp_path / "awkward.xml", feet=["tip"])
    assert tip.feet == ("tip",) and tip.system.contacts[0].radius == 0


DRIVES = """<mujoco><worldbody><body name="base"><freejoint name="root"/><geom size="0.1"/>
  <body name="arm" pos="0 0 0.2"><joint name="j" axis="0 1 0" {joint}/>
    <geom size="0.05" pos="0 0 0.1"/></body></body></worldbody>
  <actuator>{actuators}</actuator></mujoco>"""


@pytest.mark.parametrize(
    ("joint", "actuators", "limit", "warning"),
    [
        ("", '<motor joint="j" ctrlrange="-2 2" gear="3"/>', 6.0, ""),
        ("", '<motor joint="j" ctrlrange="-2 2" gear="-3"/>', 6.0, ""),
        ("", '<motor joint="j" forcerange="-5 5" ctrlrange="-9 9"/>', 5.0, ""),
        ('actuatorfrcrange="-4 4"', '<motor joint="j" ctrlrange="-9 9"/>', 4.0, ""),
        ("", '<general joint="j" gainprm="10" ctrlrange="-1 1"/>', 10.0, ""),
        ("", '<position name="p" joint="j" kp="50" forcerange="-7 7"/>', 7.0, "p are servos"),
        ("", '<position joint="j" kp="50" ctrlrange="-1 1"/>', np.inf, "no force limit of j"),
        ("", '<velocity joint="j" kv="5" forcerange="-7 7"/>', 7.0, "servos"),
        ("", '<motor joint="j" ctrlrange="-2 2"/><motor joint="j" ctrlrange="-3 3"/>', 5.0, ""),
        ("", '<motor name="m" joint="j" ctrlrange="-1 3"/>', 1.0, "'m' is not symmetric"),
        ("", '<motor joint="root"/><motor joint="j" ctrlrange="-1 1"/>', 1.0, "on a free joint"),
    ],
)  # fmt: skip
def test_torque_limits_wherever_they_are_stated(
    tmp_path: Path, joint: str, actuators: str, limit: float, warning: str
) -> None:
    (tmp_path / "arm.xml").write_text(DRIVES.format(joint=joint, actuators=actuators))
    robot = load_robot(tmp_path / "arm.xml", feet=["arm"])
    assert robot.torque_limits.tolist() == [limit] and robot.native.nu == 1
    assert warning in " ".join(robot.warnings)


def test_base_is_welded_and_freed() -> None:
    fixed = load_named("go2", floating_base=False)
    assert fixed.native.nq == 12 and fixed.native.nu == 12
    assert not any(body.name == "base" for body in fixed.system.bodies)
    assert load_named("go2", floating_base=True).native.nq == 19


def test_no_actuators_is_a_warning(tmp_path: Path) -> None:
    text = (MODELS / "hopper.xml").read_text()
    (tmp_path / "limp.xml").write_text(text[: text.index("<actuator>")] + "</mujoco>")
    robot = load_robot(tmp_path / "limp.xml")
    assert robot.native.nu == 0 and any("no actuators" in text for text in robot.warnings)


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


@pytest.mark.parametrize("height", [-1.0, 0.0, 2.0])
def test_the_stance_touches_the_ground_wherever_the_keyframe_is(
    tmp_path: Path, height: float
) -> None:
    text, home = (MODELS / "go2.xml").read_text(), 'qpos="0 0 0.333699458140'
    assert home in text
    (tmp_path / "go2.xml").write_text(text.replace(home, f'qpos="0 0 {height}'))
    lifted = load_robot(tmp_path / "go2.xml").stance
    assert np.allclose(lifted, load_named("go2").stance, atol=1e-9)


def test_without_a_keyframe_joints_stand_at_zero_or_the_nearest_limit(tmp_path: Path) -> None:
    text = (MODELS / "go2.xml").read_text()
    (tmp_path / "go2.xml").write_text(text[: text.index("<keyframe>")] + "</mujoco>")
    robot = load_robot(tmp_path / "go2.xml")
    assert np.allclose(robot.stance[7:], [0, 0, -0.83776] * 4) and np.allclose(gaps(robot), 0)


def test_body_poses_are_those_of_the_core() -> None:
    robot = load_named("go2", contacts=["trunk", "*_knee"])
    rng = np.random.default_rng(0)
    x = np.append(robot.stance, np.zeros(18))[None]
    dx = np.append(rng.standard_normal(18), np.zeros(18))[None]
    q = _native.on_manifold(robot.native, x, dx, True)[0, :19].copy()
    phi = _native.system_terms(robot.native, None, q, np.zeros(18))[4]
    poses = body_poses(robot.system.bodies, q)
    assert np.allclose(poses["base"].rotation, rotation_matrix(q[3:7]))
    for contact, height in zip(robot.contacts, phi):
        pose = poses[contact.body]
        z = (pose.position + pose.rotation @ contact.position)[2]
        assert height == pytest.approx(z - contact.radius, abs=1e-12)


def test_import_stays_light() -> None:
    code = "import sys, cito; cito.load_robot; sys.exit('mujoco' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
