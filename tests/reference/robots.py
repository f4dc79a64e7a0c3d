"""A robot against MuJoCo's model of the same file, and random states of it."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.conversions import from_mujoco, rotation_matrix, to_mujoco
from cito.dynamics.robot import Robot


def random_motion(robot: Robot, seed: int) -> np.ndarray:
    """A state (nx,) with any attitude, posture and velocity."""
    rng = np.random.default_rng(seed)
    nv = robot.native.nv
    x = np.append(robot.stance, np.zeros(nv))
    dx = np.append(0.8 * rng.standard_normal(nv), rng.standard_normal(nv))
    return np.asarray(_native.on_manifold(robot.native, x[None], dx[None], True)[0])


def terms(robot: Robot, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """M, c, B, J, phi."""
    nq = robot.native.nq
    return tuple(_native.system_terms(robot.native, None, x[:nq].copy(), x[nq:].copy()))


def agree(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Equal to 1e-10 of the largest entry, which is not zero."""
    size = np.abs(theirs).max()
    assert size > 0 and ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= 1e-10 * size


def agrees_with_mujoco(robot: Robot) -> None:
    """M = T' M' T and c = T' (c' + M' dT/dt v) with v' = T v, and the height of every sphere."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(robot.source))
    data, system = mujoco.MjData(model), robot.native
    free = robot.system.bodies[0].joint == "free"
    assert (model.nq, model.nv) == (system.nq, system.nv)
    model.dof_frictionloss[:] = 0
    if free:
        model.dof_armature[:6] = 0  # is said not to be used
    for seed in range(2):
        x = random_motion(robot, seed)
        q, v = x[: system.nq], x[system.nq :]
        T, T_dot_v = np.eye(system.nv), np.zeros(system.nv)
        if free:
            T[:3, :3] = R = rotation_matrix(q[3:7])
            T_dot_v[:3] = R @ np.cross(v[3:6], v[:3])
        data.qpos[:], data.qvel[:] = to_mujoco(robot, x)
        assert np.allclose(from_mujoco(robot, data.qpos, data.qvel), x, atol=1e-13)
        assert np.allclose(data.qvel, T @ v, atol=1e-13)
        mujoco.mj_forward(model, data)
        M_mj = np.zeros((system.nv, system.nv))
        if "_structs.MjData, dst" in str(mujoco.mj_fullM.__doc__):  # MuJoCo 4
            mujoco.mj_fullM(model, data, M_mj)
        else:
            mujoco.mj_fullM(model, M_mj, data.qM)
        M, c, _, _, phi = terms(robot, x)
        agree(M, T.T @ M_mj @ T)
        agree(c, T.T @ (data.qfrc_bias - data.qfrc_passive + M_mj @ T_dot_v))
        for foot, contact, height in zip(robot.feet, robot.contacts, phi):
            centre = data.geom(foot).xpos
            assert height == pytest.approx(centre[2] - contact.radius, abs=1e-10)
