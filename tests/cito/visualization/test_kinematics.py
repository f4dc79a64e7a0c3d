"""Poses, contact points and frames against the native core and against MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.candidates import ContactPair, ContactPoint
from cito.dynamics.conversions import to_mujoco
from cito.dynamics.shapes import Box, Plane
from cito.dynamics.terrain import HeightField
from cito.dynamics.tree import Body, TreeSystem
from cito.problems.robots import load_robot, robots
from cito.visualization.kinematics import (
    body_poses,
    contact_frames,
    contact_points,
    contact_velocities,
)
from cito.visualization.shapes import boxes, capsule, cone, ground_height, links, surface
from cito.visualization.viewer import _quaternion


def configurations(system: TreeSystem, count: int) -> np.ndarray:
    """Random ones, on the manifold."""
    random = np.random.default_rng(0)
    nq, nv = system.native.nq, system.native.nv
    x = np.zeros((count, nq + nv))
    at = 0
    for body in system.bodies:
        if body.joint == "free":
            x[:, at + 6] = 1.0
        at += 7 if body.joint == "free" else 1
    dx = random.normal(size=(count, 2 * nv))
    return _native.on_manifold(system.native, x, dx, True)


@pytest.mark.parametrize("name", robots())
def test_poses_are_those_of_mujoco(name: str) -> None:
    robot = load_robot(name)
    model = mujoco.MjModel.from_xml_path(str(robot.source))
    data = mujoco.MjData(model)
    states = configurations(robot.system, 3)
    poses = body_poses(robot.system, states[:, : robot.native.nq])
    for k, x in enumerate(states):
        data.qpos[:] = to_mujoco(robot, x).q
        mujoco.mj_kinematics(model, data)
        for i, body in enumerate(robot.system.bodies):
            there = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, body.name)
            if there < 0:
                continue  # a body between two joints of one body has no name there
            np.testing.assert_allclose(poses.positions[k, i], data.xpos[there], atol=1e-9)
            R = data.xmat[there].reshape(3, 3)
            np.testing.assert_allclose(poses.rotations[k, i], R, atol=1e-9)


@pytest.mark.parametrize("name", ["go2", "pair"])
def test_heights_and_velocities_of_contacts_are_those_of_the_core(name: str) -> None:
    system = load_robot("go2").system
    if name == "pair":
        system = TreeSystem(
            [Body("ball", None, "free", 1.0, inertia=np.eye(3)),
             Body("table", None, "free", 2.0, inertia=np.eye(3))],
            [ContactPair("on", "ball", np.array([0.1, 0, 0]), 0.05, shape=Box((1.0, 1.0, 0.2)),
                         other="table"),
             ContactPoint("floor", "ball", np.zeros(3), 0.1)],
        )  # fmt: skip
    x, nq, dt = configurations(system, 1)[0], system.native.nq, 1e-5
    v = x[nq:]
    *_, J, phi = _native.system_terms(system.native, None, x[:nq], v)
    times = dt * np.arange(-1.0, 2.0)
    steps = np.concatenate([times[:, None] * v, np.zeros((3, len(v)))], axis=1)
    states = _native.on_manifold(system.native, np.tile(x, (3, 1)), steps, True)
    poses = body_poses(system, states[:, :nq])
    points = contact_points(system, poses)
    frames = contact_frames(system, poses, points)
    velocities = contact_velocities(system, poses, points, times)
    sigma = (J @ v).reshape(-1, 3)
    for c, contact in enumerate(system.contacts):
        # The core takes the velocity of the touching point, a radius below the centre.
        R, body = frames[1, c], [b.name for b in system.bodies].index(contact.body)
        turned = poses.rotations[2, body] @ poses.rotations[0, body].T
        spin = np.array([turned[2, 1], turned[0, 2], turned[1, 0]]) / (2 * dt)
        touching = velocities[1, c] - np.cross(spin, contact.radius * R[2])
        if getattr(contact, "other", None) is None:
            np.testing.assert_allclose(R @ touching, sigma[c], atol=1e-4)
        else:
            assert R[2] @ velocities[1, c] == pytest.approx(sigma[c, 2], abs=1e-4)
    if isinstance(system.ground, Plane) and name != "pair":
        np.testing.assert_allclose(
            points[1, :, 2] - [c.radius for c in system.contacts], phi, atol=1e-9
        )


def test_frames_are_right_handed_with_x_along_the_world() -> None:
    x, y = np.meshgrid(np.arange(-5, 5, 0.5), np.arange(-5, 5, 0.5), indexing="ij")
    hills = HeightField(0.2 * np.sin(x) * np.cos(y), 0.5, (-5, -5))
    system = load_robot("go2").system.with_ground(hills)
    poses = body_poses(system, configurations(system, 2)[:, : system.native.nq])
    points = contact_points(system, poses)
    normals = hills.distance(points).normal.reshape(-1, 3)
    assert np.abs(normals[:, :2]).max() > 0.02
    for (T1, T2, N), normal in zip(
        contact_frames(system, poses, points).reshape(-1, 3, 3), normals
    ):
        np.testing.assert_allclose(N, normal)
        np.testing.assert_allclose(np.cross(N, T1), T2, atol=1e-12)
        assert T1[0] > 0.9 and T1 @ np.cross(N, [1, 0, 0]) == pytest.approx(0, abs=1e-12)


def test_a_capsule_is_closed_and_has_its_radius() -> None:
    start, end = np.array([0.0, 1, 2]), np.array([0.3, 1, 2])
    vertices, faces = capsule(start, end, 0.1)
    along = np.clip((vertices - start) @ [1, 0, 0], 0, 0.3)
    distance = np.linalg.norm(vertices - start - along[:, None] * [1, 0, 0], axis=1)
    np.testing.assert_allclose(distance, 0.1, atol=1e-12)
    assert faces.max() == len(vertices) - 1
    a, b, c = vertices[faces].transpose(1, 0, 2)
    volume = np.einsum("ij,ij->", a, np.cross(b, c)) / 6
    exact = np.pi * 0.1**2 * 0.3 + 4 / 3 * np.pi * 0.1**3
    assert volume == pytest.approx(exact, rel=0.15) and volume < exact


def test_a_friction_cone_has_its_slope() -> None:
    vertices, _ = cone(0.2, 0.7)
    np.testing.assert_allclose(np.linalg.norm(vertices[1:, :2], axis=1), 0.14)
    assert not vertices[0].any()


def test_the_shape_of_the_go2() -> None:
    system = load_robot("go2").system
    (trunk,) = boxes(system)
    assert system.bodies[trunk.body].name == "base" and trunk.half[0] > 0.19
    lengths = sorted(round(float(np.linalg.norm(link.ends[1])), 3) for link in links(system))
    assert lengths == [0.096] * 4 + [0.213] * 8  # hips, thighs, calves; what is in the trunk not


def test_the_ground_is_where_it_is() -> None:
    x, y = np.meshgrid(np.arange(4.0), np.arange(4.0), indexing="ij")
    slope = HeightField(0.5 + 0.1 * x * y, 1.0)
    system = load_robot("go2").system.with_ground(slope)
    np.testing.assert_allclose(ground_height(system, np.array([[1.0, 2.0]])), 0.7, atol=1e-9)
    vertices, faces = surface(system, np.zeros(2), np.ones(2), 5)
    assert len(vertices) == 25 and len(faces) == 32
    np.testing.assert_allclose(slope.distance(vertices).value, 0, atol=1e-9)


def test_quaternions_of_rotations() -> None:
    random = np.random.default_rng(1)
    half_turns = [np.diag(d) for d in ([1, -1, -1.0], [-1, 1, -1.0], [-1, -1, 1.0])]
    turns = [np.linalg.qr(random.normal(size=(3, 3)))[0] for _ in range(50)]
    for R in [*half_turns, *(R * np.linalg.det(R) for R in turns)]:
        w, x, y, z = _quaternion(R)
        data = np.zeros(9)
        mujoco.mju_quat2Mat(data, np.array([w, x, y, z]))
        np.testing.assert_allclose(data.reshape(3, 3), R, atol=1e-12)
