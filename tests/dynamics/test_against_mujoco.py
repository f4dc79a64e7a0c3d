"""The same motions in MuJoCo with matched parameters, its contact as stiff as its step allows.

Both integrate by Euler steps, so they differ by O(h) from the true motion and from each other;
where contact decides, by MuJoCo's softness too: it gives way by about v h at an impact of speed v
and lets a foot creep. Every tolerance is a small multiple of what was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from cito.benchmarks.mujoco_twin import STIFF, mujoco_model
from cito.dynamics import _native
from cito.dynamics.candidates import ContactPoint
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.conversions import from_mujoco, rotation_matrix, to_mujoco
from cito.dynamics.robot import Robot
from cito.dynamics.shapes import Plane
from cito.dynamics.tree import Body, TreeSystem
from cito.problems.robots import load_robot

mujoco = pytest.importorskip("mujoco")

G = 9.81  # [m/s^2]
Law = Callable[[np.ndarray], np.ndarray]


class Motion(NamedTuple):
    """States (N+1, nx) and the normal force of each contact (N, nc) [N]."""

    states: np.ndarray
    forces: np.ndarray


def no_control(x: np.ndarray) -> np.ndarray:
    return np.zeros(0)


def ours(dynamics: ContactDynamics, x0: np.ndarray, steps: int, law: Law = no_control) -> Motion:
    states, forces = [x0], []
    for _ in range(steps):
        step = dynamics.step(states[-1], law(states[-1]))
        states.append(step.state)
        forces.append(step.impulse[2::3] / dynamics.time_step)
    return Motion(np.array(states), np.array(forces))


def theirs(
    model: Any, system: TreeSystem | Robot, x0: np.ndarray, steps: int, law: Law = no_control
) -> Motion:
    """Contacts are told apart by the spheres that carry them, in the order of the model."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = to_mujoco(system, x0)
    spheres = [g for g in range(model.ngeom) if model.geom_contype[g] and model.geom_bodyid[g]]
    states, forces = [x0], np.zeros((steps, len(spheres)))
    force = np.zeros(6)
    for k in range(steps):
        data.ctrl[:] = law(states[-1])
        mujoco.mj_step(model, data)
        states.append(from_mujoco(system, np.array(data.qpos), np.array(data.qvel)))
        for i in range(data.ncon):
            mujoco.mj_contactForce(model, data, i, force)
            sphere = [g for g in data.contact[i].geom if g in spheres]
            forces[k, spheres.index(sphere[0])] += force[0]
    return Motion(np.array(states), forces)


def gaps(system: Any, states: np.ndarray) -> np.ndarray:
    """phi (N, nc) [m]."""
    native = system.native
    return np.array(
        [_native.system_terms(native, None, x[: native.nq], x[native.nq :])[4] for x in states]
    )


def stiff_robot_model(robot: Robot, time_step: float) -> Any:
    """The robot's own file with stiff contact, without the joint limits that cito leaves out."""
    model = mujoco.MjModel.from_xml_path(str(robot.source))
    model.opt.timestep, model.opt.impratio = time_step, STIFF.impratio
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    assert STIFF.solref is not None
    model.geom_solref[:] = STIFF.solref[0] * time_step, STIFF.solref[1]
    model.geom_solimp[:] = STIFF.solimp
    return model


# --- free flight


def floating_arm(damping: float, gravity: float = G) -> TreeSystem:
    """A body with a turning and a sliding joint in series, all frames askew."""
    c, s = np.cos(0.7), np.sin(0.7)
    askew = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]]) @ np.array(
        [[1, 0, 0], [0, c, -s], [0, s, c]]
    )
    bodies = [
        Body("base", None, "free", 2.0, np.array([0.05, 0.02, -0.03]), np.diag([0.02, 0.03, 0.04])),
        Body(
            "arm", "base", "revolute", 0.8, np.array([0, 0.1, 0.05]), np.diag([3e-3, 4e-3, 5e-3]),
            np.array([0.1, 0, 0.1]), askew, np.array([1.0, 2, 0]), armature=0.01, damping=damping,
        ),
        Body(
            "slide", "arm", "prismatic", 0.3, np.array([0.02, 0, 0]), np.diag([1e-3, 1e-3, 1e-3]),
            np.array([0, 0.2, 0]), askew.T, np.array([0, 1.0, 1]), armature=0.1, damping=damping,
        ),
    ]  # fmt: skip
    return TreeSystem(bodies, gravity=gravity)


FLIGHT = np.array([0, 0, 1, 0.1, -0.2, 0.3, 0.9, 0.4, 0.1, 1.0, -0.3, 0.5, 4, -2, 3, 2, -0.5])
FLIGHT[3:7] /= np.linalg.norm(FLIGHT[3:7])


def energy(model: Any, system: TreeSystem, x: np.ndarray) -> float:
    """Kinetic and potential energy [J] by MuJoCo's account."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = to_mujoco(system, x)
    mujoco.mj_forward(model, data)
    mujoco.mj_energyPos(model, data)
    mujoco.mj_energyVel(model, data)
    return float(np.sum(data.energy))


@pytest.mark.parametrize("gravity", [0.0, G])
def test_energy_in_flight_is_conserved_to_first_order_by_both(gravity: float) -> None:
    """0.4 s at 5 rad/s: less than 20 h of the kinetic energy, h in seconds; half with h/2."""
    system = floating_arm(0, gravity)
    drift: dict[str, list[float]] = {"ours": [], "theirs": []}
    for h in (2e-3, 1e-3):
        model, steps = mujoco_model(system, h), round(0.4 / h)
        start = energy(model, system, FLIGHT)
        kinetic = start - system.gravity * energy_height(model, system, FLIGHT)
        for name, motion in (
            ("ours", ours(ContactDynamics(system, h), FLIGHT, steps, lambda x: np.zeros(2))),
            ("theirs", theirs(model, system, FLIGHT, steps, lambda x: np.zeros(2))),
        ):
            drift[name].append((energy(model, system, motion.states[-1]) - start) / kinetic)
            assert abs(drift[name][-1]) < 20 * h
    for coarse, fine in drift.values():
        assert coarse / fine == pytest.approx(2, abs=0.15)


def energy_height(model: Any, system: TreeSystem, x: np.ndarray) -> float:
    """Sum of mass times height [kg m]."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = to_mujoco(system, x)
    mujoco.mj_forward(model, data)
    return float(model.body_mass @ data.xipos[:, 2])


@pytest.mark.parametrize("name", ["arm", "go2"])
def test_flight_with_torques_converges_to_mujocos_runge_kutta_motion(name: str) -> None:
    """Damping, armature, gravity and torques: the difference is O(h), about 3 h after 0.2 s."""
    robot = load_robot("go2")
    system = floating_arm(0.05) if name == "arm" else robot.system
    dynamics = [ContactDynamics(system, h) for h in (2e-3, 1e-3)]
    x0 = FLIGHT
    if name == "go2":
        x0 = np.append(robot.stance, np.zeros(18))
        x0[2], x0[19:25] = 2.0, [1, 0.5, 1, 2, -3, 1]
    u = np.linspace(-1, 1, system.native.nu)
    model = mujoco_model(system, 2e-4, integrator="RK4")
    reference = theirs(model, system, x0, 1000, lambda x: u).states[-1]
    error = [
        dynamics.difference(reference, ours(dynamics, x0, steps, lambda x: u).states[-1])
        for dynamics, steps in zip(dynamics, (100, 200))
    ]
    sizes = [np.abs(e).max() for e in error]
    assert np.abs(dynamics[0].difference(x0, reference)).max() > 0.5  # it did move
    assert sizes[0] / sizes[1] == pytest.approx(2, abs=0.2)
    assert sizes[1] < 0.05


# --- one body with contact


def box(normal: np.ndarray) -> TreeSystem:
    """A box of 0.2 m x 0.12 m x 0.08 m and 2 kg that touches with its corners."""
    mass, half = 2.0, np.array([0.1, 0.06, 0.04])
    inertia = mass / 3 * np.diag(half @ half - half**2)
    corners = half * np.stack(np.meshgrid(*[[-1, 1]] * 3), axis=-1).reshape(-1, 3)
    points = [ContactPoint(f"corner {i}", "box", corner) for i, corner in enumerate(corners)]
    body = Body("box", None, "free", mass, inertia=inertia)
    return TreeSystem([body], points, ground=Plane(normal))


def ball() -> TreeSystem:
    """A full ball of radius 0.1 m and 2 kg."""
    body = Body("ball", None, "free", 2.0, inertia=0.4 * 2.0 * 0.1**2 * np.eye(3))
    return TreeSystem([body], [ContactPoint("touch", "ball", np.zeros(3), 0.1)])


def world_velocity(states: np.ndarray) -> np.ndarray:
    return np.einsum("kij,kj->ki", rotation_matrix(states[:, 3:7]), states[:, 7:10])


@pytest.mark.parametrize(("angle", "mu"), [(0.4, 0.3), (0.5, 0.2), (0.3, 0.5), (0.25, 0.3)])
def test_box_on_a_slope_slides_with_coulombs_acceleration_or_sticks(
    angle: float, mu: float
) -> None:
    """g (sin a - mu cos a) where tan a > mu, to rounding here; else at rest.

    MuJoCo's box chatters as it slides: hops of v_N change its friction by m mu v_N [N s].
    """
    h, steps = 1e-3, 300
    along, normal = (
        np.array([np.cos(angle), 0, -np.sin(angle)]),
        np.array([np.sin(angle), 0, np.cos(angle)]),
    )
    system = box(normal)
    x0 = np.array([*(0.04 * normal), 0, np.sin(angle / 2), 0, np.cos(angle / 2), *np.zeros(6)])
    expected = max(0.0, G * (np.sin(angle) - mu * np.cos(angle))) * h * steps
    motion = ours(ContactDynamics(system, h, mu), x0, steps)
    soft = theirs(mujoco_model(system, h, mu), system, x0, steps)
    v, v_soft = (world_velocity(m.states)[-1] for m in (motion, soft))
    assert v @ along == pytest.approx(expected, abs=1e-9)
    hop = mu * v_soft @ normal if expected else 0.0
    assert abs(v_soft @ normal) < 0.1
    assert v_soft @ along + hop == pytest.approx(expected, rel=1e-3, abs=1e-3)
    assert motion.forces[-1].sum() == pytest.approx(2.0 * G * np.cos(angle), rel=1e-9)
    assert np.abs(motion.states[-1] - soft.states[-1])[:3].max() < 5e-3


def test_tumbling_box_falls_bounces_off_nothing_and_comes_to_rest() -> None:
    """Thrown askew from 0.3 m: it lands on corners and edges and rests on its large face.

    Each corner's impact is resolved within h here and within about 2 h there, and a tumble
    magnifies the difference: 3 mm and 0.02 rad were measured at rest.
    """
    h, steps = 1e-3, 700
    system = box(np.array([0.0, 0, 1]))
    attitude = np.array([0.2, 0.1, 0.05, 0.97])
    x0 = np.array([0, 0, 0.3, *(attitude / np.linalg.norm(attitude)), 0.3, 0, 0, 1, 2, 0.5])
    hard = ours(ContactDynamics(system, h, 0.5), x0, steps)
    soft = theirs(mujoco_model(system, h, 0.5), system, x0, steps)
    depth_hard, depth_soft = gaps(system, hard.states).min(), gaps(system, soft.states).min()
    assert -1e-4 < depth_hard < 0 and depth_soft < depth_hard
    for motion in (hard, soft):
        assert motion.states[-1, 2] == pytest.approx(0.04, abs=2e-5)
        assert np.abs(motion.states[-1, 7:]).max() < 1e-3
        assert motion.forces[-1].sum() == pytest.approx(2.0 * G, rel=1e-3)
    before_contact = 170
    assert np.abs(hard.states - soft.states)[:before_contact].max() < 0.01
    dynamics = ContactDynamics(system, h)
    apart = dynamics.difference(soft.states[-1], hard.states[-1])
    assert np.abs(apart[:3]).max() < 0.01 and np.abs(apart[3:6]).max() < 0.06


def test_dropped_ball_slides_then_rolls_at_five_sevenths_of_its_speed() -> None:
    """Slip ends after 2 v0 / (7 mu g) with v = r w = 5/7 v0, however it chatters in MuJoCo."""
    h, mu, v0, r = 2e-4, 0.3, 1.4, 0.1
    system = ball()
    x0 = np.array([0, 0, r + 1e-4, 0, 0, 0, 1, v0, 0, 0, 0, 0, 0])
    stop = 2 * v0 / (7 * mu * G)
    steps = round(1.5 * stop / h)
    hard = ours(ContactDynamics(system, h, mu), x0, steps)
    soft = theirs(mujoco_model(system, h, mu), system, x0, steps)
    for motion in (hard, soft):
        v = world_velocity(motion.states)[:, 0]
        w = np.einsum("kij,kj->ki", rotation_matrix(motion.states[:, 3:7]), motion.states[:, 10:])
        slip = v - r * w[:, 1]
        rolls = int(np.argmax(np.abs(slip) < 1e-3))
        assert rolls * h == pytest.approx(stop, rel=0.04)
        assert v[rolls:] == pytest.approx(5 / 7 * v0, rel=3e-3)
        assert np.abs(slip[rolls + 5 :]).max() < 1e-3
        assert motion.states[-1, 2] == pytest.approx(r, abs=1e-5)
    assert np.abs(hard.states - soft.states)[:, :3].max() < 0.01


def test_pendulum_falls_on_its_stop_and_rests_there() -> None:
    """Released from the horizontal it hits the lower stop without rebound and is held by it."""
    h, steps, mass, length, lower = 5e-4, 1600, 0.7, 0.3, -0.4
    swinging = Body(
        "bob", None, "revolute", mass, np.array([length, 0, 0]), 1e-3 * np.eye(3),
        axis=np.array([0, -1.0, 0]), armature=0.01, damping=0.02, lower=lower,
    )  # fmt: skip
    system = TreeSystem([swinging], joint_limits=True)
    x0, law = np.zeros(2), lambda x: np.zeros(1)
    dynamics, model = ContactDynamics(system, h), mujoco_model(system, h)
    hard = [x0]
    for _ in range(steps):
        step = dynamics.step(hard[-1], law(x0))
        hard.append(step.state)
    soft = theirs(model, system, x0, steps, law).states
    assert min(x[0] for x in hard) > lower - 1e-9
    assert np.abs(hard - soft)[:, 0].max() < 4e-3  # 2 h times the speed of the impact
    assert soft[-1, 0] == pytest.approx(lower, abs=1e-4)
    assert hard[-1] == pytest.approx([lower, 0], abs=1e-9)
    torque = mass * G * length * np.cos(lower)
    assert step.impulse[0] / h == pytest.approx(torque, rel=1e-9)


# --- robots with feet


def hold(robot: Robot, stiffness: float, damping: float, target: np.ndarray) -> Law:
    """Torques of springs and dampers on the driven joints, within their limits."""
    system, nq = robot.system, robot.native.nq
    driven = [int(np.flatnonzero(column)[0]) for column in np.asarray(system.actuation).T]
    offset = 1 if system.bodies[0].joint == "free" else 0  # a quaternion has one number more
    places = np.array(driven) + offset

    def law(x: np.ndarray) -> np.ndarray:
        torques = stiffness * (target[places] - x[places]) - damping * x[nq:][driven]
        return np.clip(torques, -robot.torque_limits, robot.torque_limits)

    return law


def test_go2_drops_onto_its_feet_and_stands_as_in_mujoco() -> None:
    """From 5 cm: within 0.3 mm and 4 mrad all along, where the whole drop is 20 times that."""
    h, steps = 1e-3, 1500
    robot = load_robot("go2")
    law = hold(robot, 60.0, 3.0, robot.stance)
    x0 = np.append(robot.stance, np.zeros(18))
    x0[2] += 0.05
    hard = ours(ContactDynamics(robot, h, robot.friction), x0, steps, law)
    soft = theirs(stiff_robot_model(robot, h), robot, x0, steps, law)
    assert np.ptp(hard.states[:, 2]) > 0.05
    assert np.abs(hard.states - soft.states)[:, :3].max() < 6e-4
    assert np.abs(hard.states - soft.states)[:, 7:19].max() < 0.01
    assert np.abs(hard.states - soft.states)[-1, :19].max() < 5e-4
    for motion in (hard, soft):
        assert motion.forces[-1].sum() == pytest.approx(robot.system.mass * G, rel=1e-3)
    np.testing.assert_allclose(hard.forces[-1], soft.forces[-1], rtol=2e-3)
    assert gaps(robot, hard.states).min() > -1e-4


@pytest.mark.parametrize("motion", ["jump", "landing"])
def test_hopper_jumps_and_lands_as_in_mujoco(motion: str) -> None:
    """Up from a crouch, or down from 10 cm: within 2 mm and 0.02 rad over 0.35 s.

    Contact begins and ends within a millisecond of MuJoCo's (which chatters a little while in
    contact, and sees none at its first step, where the gap is zero).
    """
    h, steps = 5e-4, 700
    robot = load_robot("hopper")
    law = hold(robot, 100.0, 2.0, robot.stance)
    x0 = np.append(robot.stance, np.zeros(5))
    x0[3:5] += (-0.3, 0.6) if motion == "jump" else (0, 0)
    x0[1] += (0.0 if motion == "jump" else 0.1) - gaps(robot, x0[None])[0, 0]
    hard = ours(ContactDynamics(robot, h, robot.friction), x0, steps, law)
    soft = theirs(stiff_robot_model(robot, h), robot, x0, steps, law)
    touching = [np.flatnonzero(forces[:, 0])[[0, -1]] for _, forces in (hard, soft)]
    assert 0.05 < np.ptp(hard.states[:, 1]) < 0.2
    assert np.abs(np.subtract(*touching)).max() * h <= 1e-3
    assert np.abs(hard.states - soft.states)[:, :2].max() < 2e-3
    assert np.abs(hard.states - soft.states)[:, 2:5].max() < 0.02
