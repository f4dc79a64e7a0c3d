"""States to and from MuJoCo's and Pinocchio's conventions: round trips and what they must mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.conversions import (
    from_mujoco,
    from_pinocchio,
    rotation_matrix,
    to_mujoco,
    to_pinocchio,
)
from cito.dynamics.robot import load_robot
from cito.dynamics.tree import Body, TreeSystem
from cito.problems.robots import load_robot as load_named

URDF = """<robot name="arm">
  <link name="base"><inertial><mass value="2"/>
    <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="wheel"><inertial><mass value="1"/><origin xyz="0 0.1 0"/>
    <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tip"><inertial><mass value="1"/><origin xyz="0 0.1 0"/>
    <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="turns" type="continuous"><parent link="base"/><child link="wheel"/>
    <origin xyz="0 0 0.2"/><axis xyz="0 1 0"/></joint>
  <joint name="bends" type="revolute"><parent link="wheel"/><child link="tip"/>
    <axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="5" velocity="5"/></joint>
</robot>"""

TWO_FREE = TreeSystem(
    [
        Body("cart", None, "prismatic", 1.0),
        Body("one", None, "free", 1.0, inertia=np.eye(3)),
        Body("arm", "one", "revolute", 1.0, inertia=np.eye(3)),
        Body("two", None, "free", 2.0, inertia=np.eye(3)),
    ]
)


def random_states(system: Any, shape: tuple[int, ...] = (), seed: int = 0) -> np.ndarray:
    """States with any attitude, (*shape, nx)."""
    dynamics = ContactDynamics(system, 0.01)
    x0 = from_mujoco(system, *rest(system))
    rng = np.random.default_rng(seed)
    return dynamics.integrate(x0, rng.standard_normal((*shape, dynamics.ndx)))


def rest(system: Any) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's coordinates at zero."""
    qpos = [
        value
        for body in getattr(system, "system", system).bodies
        for value in ([0, 0, 0, 1, 0, 0, 0] if body.joint == "free" else [0])
    ]
    return np.array(qpos, float), np.zeros(system.native.nv)


@pytest.mark.parametrize("system", [TWO_FREE, load_named("go2"), load_named("hopper")])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_mujoco_and_back(system: Any, shape: tuple[int, ...]) -> None:
    x = random_states(system, shape)
    qpos, qvel = to_mujoco(system, x)
    assert qpos.shape == (*shape, system.native.nq) and qvel.shape == (*shape, system.native.nv)
    np.testing.assert_allclose(from_mujoco(system, qpos, qvel), x, rtol=0, atol=1e-14)


def test_mujoco_moves_its_bodies_as_the_converted_state_says() -> None:
    """Position and velocity of a point of the body after a turn, from MuJoCo's own kinematics."""
    mujoco = pytest.importorskip("mujoco")
    robot = load_named("go2")
    model = mujoco.MjModel.from_xml_path(str(robot.source))
    data = mujoco.MjData(model)
    x = random_states(robot, seed=3)
    data.qpos[:], data.qvel[:] = to_mujoco(robot, x)
    mujoco.mj_forward(model, data)
    R, v, w = rotation_matrix(x[3:7]), x[19:22], x[22:25]
    np.testing.assert_allclose(data.body("base").xmat.reshape(3, 3), R, atol=1e-14)
    twist = np.zeros(6)  # (angular, linear) in the body's own axes
    mujoco.mj_objectVelocity(
        model, data, mujoco.mjtObj.mjOBJ_XBODY, model.body("base").id, twist, 1
    )
    np.testing.assert_allclose(twist, np.append(w, v), atol=1e-13)


def test_quaternions_of_any_length_are_taken_and_zero_is_refused() -> None:
    robot = load_named("go2")
    qpos, qvel = to_mujoco(robot, random_states(robot))
    longer = qpos.copy()
    longer[3:7] *= 3
    np.testing.assert_allclose(
        from_mujoco(robot, longer, qvel), from_mujoco(robot, qpos, qvel), atol=1e-14
    )
    longer[3:7] = 0
    with pytest.raises(ValueError, match="`qpos` must not hold a quaternion of zero"):
        from_mujoco(robot, longer, qvel)


def test_shapes_are_checked_and_batch_axes_broadcast() -> None:
    robot = load_named("go2")
    qpos, qvel = to_mujoco(robot, random_states(robot))
    assert from_mujoco(robot, qpos, np.tile(qvel, (5, 1))).shape == (5, 37)
    for call, message in (
        (lambda: from_mujoco(robot, qpos[:-1], qvel), r"`qpos` must have shape \(..., 19\)"),
        (lambda: from_mujoco(robot, qpos, qvel[:-1]), r"`qvel` must have shape \(..., 18\)"),
        (lambda: to_mujoco(robot, qpos), r"`x` must have shape \(..., 37\)"),
        (lambda: to_mujoco(robot, np.full(37, np.nan)), "`x` must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_pinocchio_and_back(tmp_path: Path) -> None:
    """The base is the same; a continuous joint is an angle here and (cos, sin) there."""
    pin = pytest.importorskip("pinocchio")
    file = tmp_path / "arm.urdf"
    file.write_text(URDF)
    robot = load_robot(file, feet=["tip"])
    model = pin.buildModelFromUrdf(str(file), pin.JointModelFreeFlyer())
    assert (model.nq, robot.native.nq) == (10, 9)
    x = random_states(robot, (4,))
    q, v = to_pinocchio(model, x)
    assert q.shape == (4, 10) and v.shape == (4, 8)
    np.testing.assert_allclose(from_pinocchio(model, q, v), x, rtol=0, atol=1e-14)
    for k in range(4):  # joint placements do not depend on how they are written
        data = model.createData()
        pin.forwardKinematics(model, data, q[k], v[k])
        np.testing.assert_allclose(data.oMi[1].rotation, rotation_matrix(x[k, 3:7]), atol=1e-14)
        turned = pin.integrate(model, pin.neutral(model), np.eye(8)[6] * x[k, 7])
        np.testing.assert_allclose(turned[7:9], q[k, 7:9], atol=1e-14)
    with pytest.raises(ValueError, match=r"`q` must have shape \(..., 10\)"):
        from_pinocchio(model, x[0, :9], x[0, 9:])
