"""Spherical joints: against MuJoCo's ball joints, a top, and with all that acts on joints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cito.dynamics import Bundled, ContactDynamics, Exact, FullCone, Randomized, Signorini, _native
from cito.dynamics.candidates import ContactPoint
from cito.dynamics.check import check_gradients, finite_difference
from cito.dynamics.conversions import from_mujoco, rotation_matrix, to_mujoco
from cito.dynamics.joints import Body, PositionDrive
from cito.dynamics.robot import Robot, load_robot
from cito.dynamics.tree import TreeSystem
from tests.reference.trees import neutral, random_state, random_tree

BALLS = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="trunk" pos="0 0 1"><freejoint/>
      <geom type="box" size=".1 .2 .1" density="700"/>
      <body name="thigh" pos=".1 .05 -.1" euler="20 30 40">
        <joint name="hip" type="ball" pos=".02 .1 0" damping=".3" armature=".01"/>
        <geom type="capsule" size=".03 .1" pos="0 .1 -.1" euler="0 50 0"/>
        <body name="shank" pos="0 .1 -.25" euler="0 10 0">
          <joint name="knee" type="hinge" axis="0 1 0" range="-100 0"/>
          <geom type="capsule" size=".02 .1" pos="0 0 -.1"/>
          <body name="ankle" pos="0 0 -.25" euler="5 0 0">
            <joint name="twist" type="ball" frictionloss=".2"/>
            <geom name="foot" type="sphere" size=".03" pos="0 0.01 -.05" friction="0.7"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="knee" joint="knee" ctrlrange="-5 5"/>
    <motor name="hip" joint="hip" gear="0 0 1"/>
  </actuator>
</mujoco>"""


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    path: Path = tmp_path_factory.mktemp("models") / "balls.xml"
    path.write_text(BALLS)
    return load_robot(path)


def test_ball_joints_are_read(robot: Robot) -> None:
    kinds = [(body.name, body.joint) for body in robot.system.bodies]
    assert kinds == [
        ("trunk", "free"),
        ("thigh", "spherical"),
        ("shank", "revolute"),
        ("ankle", "spherical"),
    ]
    assert (robot.native.nq, robot.native.nv, robot.native.nu) == (16, 13, 1)
    assert robot.names[7:12] == ("thigh.qx", "thigh.qy", "thigh.qz", "thigh.qw", "shank")
    assert robot.joints == robot.actuated == ("knee",)
    assert np.allclose(robot.joint_limits, np.radians([[-100, 0]]))
    assert robot.system.bodies[3].dry_friction == 0.2 and robot.system.bodies[1].armature == 0.01
    assert any("'hip' acts on a ball joint" in text for text in robot.warnings)
    *_, phi = _native.system_terms(robot.native, None, robot.stance, np.zeros(13))
    assert phi == pytest.approx([0.0], abs=1e-12)


def test_agrees_with_mujoco(robot: Robot) -> None:
    """M = T' M' T and c = T' (c' + M' dT/dt v) with v' = T v, and where the foot is."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(BALLS)
    data, system, rng = mujoco.MjData(model), robot.native, np.random.default_rng(0)
    for _ in range(5):
        x = random_state(robot.system, rng)
        q, v = x[:16], x[16:]
        data.qpos[:], data.qvel[:] = to_mujoco(robot, x)
        assert np.allclose(from_mujoco(robot, data.qpos, data.qvel), x, rtol=0, atol=1e-13)
        mujoco.mj_forward(model, data)
        T, T_dot_v, R = np.eye(13), np.zeros(13), rotation_matrix(q[3:7])
        T[:3, :3], T_dot_v[:3] = R, R @ np.cross(v[3:6], v[:3])
        M_mj = np.zeros((13, 13))
        if "_structs.MjData, dst" in str(mujoco.mj_fullM.__doc__):  # MuJoCo 4
            mujoco.mj_fullM(model, data, M_mj)
        else:
            mujoco.mj_fullM(model, M_mj, data.qM)
        M, c, _, _, phi = _native.system_terms(system, None, q, v)
        expected = T.T @ M_mj @ T
        assert np.allclose(M, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
        expected = T.T @ (data.qfrc_bias - data.qfrc_passive + M_mj @ T_dot_v)
        assert np.allclose(c, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
        assert phi[0] == pytest.approx(data.geom("foot").xpos[2] - 0.03, abs=1e-12)


def test_a_fast_top_precesses() -> None:
    """Steady precession Omega with the axis level: m g l = I_s omega Omega (fast top)."""
    m, l, spin = 0.1, 0.1, 50.0
    inertia = np.diag([2e-3, 2e-3, 4e-3])
    top = Body("top", None, "spherical", m, np.array([0, 0, l]), inertia)
    dynamics = ContactDynamics(TreeSystem([top], gravity=9.81, actuation=np.zeros((3, 0))), 1e-4)
    rate = m * 9.81 * l / (inertia[2, 2] * spin)
    level = np.sqrt(0.5) * np.array([0, 1.0, 0, 1.0])  # body z along the world's x
    # omega in the body: spin about z and the precession about the vertical, -x of the body
    x0 = np.concatenate([level, [-rate, 0, spin]])
    states = dynamics.rollout(x0, np.zeros((4000, 0))).states
    axis = np.array([rotation_matrix(x[:4])[:, 2] for x in states])
    angle = np.unwrap(np.arctan2(axis[:, 1], axis[:, 0]))
    assert angle[-1] == pytest.approx(rate * 0.4, rel=2e-2)
    assert np.abs(axis[:, 2]).max() < 5e-3


@pytest.mark.parametrize("floating", [True, False])
def test_gradients_with_contacts_and_joint_forces(floating: bool) -> None:
    """Damping, dry friction and armature on ball joints, springs, drives and limits on others."""
    tree = random_tree(8 if floating else 9, bodies=6, floating=floating, limits=True, balls=True)
    rng = np.random.default_rng(1)
    bodies = [
        replace(b, dry_friction=rng.uniform(0, 2), stiffness=10.0 if b.nv == 1 else 0.0)
        if b.joint != "free"
        else b
        for b in tree.bodies
    ]
    single = np.repeat([b.nv == 1 for b in bodies], [b.nv for b in bodies])
    driven = np.eye(len(single))[:, single]
    tree = replace(tree, bodies=bodies, actuation=driven, drive=PositionDrive(50.0, 1.0))
    dynamics = ContactDynamics(tree, 0.02, 0.6)
    report = check_gradients(dynamics, center=neutral(tree), spread=0.4, samples=16)
    assert report.passed, str(report)
    assert min(row.magnitude for row in report.rows) > 0.01


@pytest.mark.parametrize(
    "gradient",
    [
        Exact(),
        Signorini(0.1),
        FullCone(0.1),
        Randomized(order=0),
        Randomized(order=1),
        Bundled(threshold=0.0),
    ],
    ids=lambda g: g.name,
)
def test_vjp_is_the_transpose_of_the_jacobians(gradient: Any) -> None:
    tree = random_tree(8, bodies=6, balls=True)
    dynamics, rng = ContactDynamics(tree, 0.02, 0.6), np.random.default_rng(2)
    x = np.array([random_state(tree, rng) for _ in range(6)])
    u, g = rng.standard_normal((6, dynamics.nu)), rng.standard_normal((6, dynamics.ndx))
    out = dynamics.step(x, u)
    got = dynamics.vjp(x, u, out.impulse, out.velocity, out.modes, g, gradient)
    f_x, f_u = dynamics.transition(x, u, gradient)
    for ours, jacobian in ((got.state, f_x), (got.control, f_u)):
        expected = np.einsum("ki,kij->kj", g, jacobian)
        assert np.allclose(ours, expected, rtol=0, atol=1e-10 * max(1, np.abs(expected).max()))


def test_gradients_between_coordinates_and_tangents() -> None:
    tree, rng = random_tree(8, bodies=6, balls=True), np.random.default_rng(3)
    system = tree.native
    x = random_state(tree, rng)
    g_x, g = rng.standard_normal(len(x)), rng.standard_normal(2 * system.nv)

    def move(x0: np.ndarray, dx: np.ndarray) -> np.ndarray:
        return _native.on_manifold(system, np.ascontiguousarray(x0), dx, True)

    def difference(points: np.ndarray) -> np.ndarray:
        at = np.broadcast_to(x, points.shape)
        return _native.on_manifold(system, np.ascontiguousarray(at), points, False)

    along = finite_difference(lambda y: y, x, step=1e-4, integrate=move, tangent=2 * system.nv)
    ours = _native.move_gradient(system, x[None], g_x[None], True)[0]
    assert np.allclose(ours, g_x @ along, rtol=0, atol=1e-10)
    across = finite_difference(difference, x, step=1e-4)
    ours = _native.move_gradient(system, x[None], g[None], False)[0]
    assert np.allclose(ours, g @ across, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"lower": 0.0}, "`lower` and `upper`"), ({"stiffness": 1.0}, "`stiffness` of body 'link'")],
)
def test_balls_have_no_limits_and_no_springs(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message + ".* its joint is spherical"):
        Body(**{"name": "link", "parent": None, "joint": "spherical", "mass": 1.0, **change})


def test_a_ball_foot_swings_and_lands() -> None:
    """A pendulum on a ball joint falls onto the floor and rests there."""
    rod = Body(
        "rod",
        None,
        "spherical",
        1.0,
        np.array([0.25, 0, 0]),
        0.01 * np.eye(3),
        position=np.array([0, 0, 0.2]),
        damping=0.2,
    )
    tip = ContactPoint("tip", "rod", np.array([0.5, 0, 0]), 0.02)
    tree = TreeSystem([rod], [tip], actuation=np.zeros((3, 0)))
    dynamics = ContactDynamics(tree, 0.01, 0.5)
    x0 = np.array([0, 0, 0, 1.0, 0.3, 0, 0.5])
    rollout = dynamics.rollout(x0, np.zeros((300, 0)))
    assert rollout.modes[0, 0] == 0 and rollout.modes[-1, 0] > 0
    end = rollout.states[-1]
    assert (rotation_matrix(end[:4]) @ [0.5, 0, 0])[2] == pytest.approx(-0.18, abs=1e-6)
    assert np.abs(end[5]) < 1e-6 and rollout.residual < 1e-9
