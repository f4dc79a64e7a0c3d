"""Damping, springs, position drives and dry friction of joints, taken at the end of each step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cito.dynamics import Bundled, ContactDynamics, Exact, FullCone, Randomized, Signorini, _native
from cito.dynamics.candidates import ContactPoint
from cito.dynamics.check import check_gradients
from cito.dynamics.joints import Body, PositionDrive
from cito.dynamics.shapes import Plane
from cito.dynamics.tree import TreeSystem
from cito.problems.robots import load_robot
from tests.reference.trees import neutral, random_tree

GRADIENTS = [
    Exact(),
    Signorini(0.1),
    FullCone(0.1),
    Randomized(order=0),
    Randomized(order=1),
    Bundled(threshold=0.0),
    Bundled(),
]
INERTIA = 0.02  # of the pendulum about its hinge [kg m^2]


def pendulum(gravity: float = 0.0, drive: PositionDrive | None = None, **joint: Any) -> TreeSystem:
    """A bar of 0.5 kg with its centre of mass at 0.2 m from a hinge, hanging at q = 0."""
    bar = Body(
        "bar",
        None,
        "revolute",
        0.5,
        np.array([0, 0, -0.2]),
        axis=np.array([0.0, 1, 0]),
        **joint,
    )
    return TreeSystem([bar], gravity=gravity, drive=drive)


def step(system: TreeSystem, h: float, q: float, v: float, u: float = 0.0) -> np.ndarray:
    return ContactDynamics(system, h).step([q, v], [u]).state


def calm_state(tree: TreeSystem, rng: np.random.Generator, speed: float) -> np.ndarray:
    """Joints within their limits, between -0.3 and 0.3."""
    nv = tree.native.nv
    dx = np.append(rng.uniform(-0.3, 0.3, nv), speed * rng.standard_normal(nv))
    return _native.on_manifold(tree.native, neutral(tree)[None], dx[None], True)[0]


def every_force(seed: int, floating: bool, driven: bool) -> TreeSystem:
    """A random tree with springs, dampers and dry friction on its joints, and limits on some."""
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, bodies=6, floating=floating, limits=True)
    bodies = [
        body
        if body.joint == "free"
        else replace(
            body,
            damping=rng.uniform(0, 5),
            stiffness=rng.uniform(0, 20),
            rest=rng.uniform(-1, 1),
            dry_friction=rng.choice([0.0, 1.0, 30.0]),
        )
        for body in tree.bodies
    ]
    drive = PositionDrive(rng.uniform(10, 1000, len(bodies) - floating), 3.0) if driven else None
    return replace(tree, bodies=bodies, drive=drive, slip_speed=0.2)


# ------------------------------------------------------------------------- the law itself


@pytest.mark.parametrize("seed", range(4))
def test_step_satisfies_its_implicit_law(seed: int) -> None:
    """M (v+ - v) = h (B u - c + forces at (q + h v+, v+)) + J' lambda, to rounding."""
    driven, h, rng = seed > 1, 0.025, np.random.default_rng(seed)
    tree = every_force(seed, seed % 2 == 0, driven)
    tree = replace(tree, ground=Plane([0.2, -0.1, 1.0], -0.3))
    system, dynamics = tree.native, ContactDynamics(tree, h, 0.6)
    nq = system.nq
    slipping = sticking = 0
    for speed in (1e-3, 0.1, 1.0, 1.0, 5.0):
        x = calm_state(tree, rng, speed)
        u = rng.standard_normal(system.nu)
        out = dynamics.step(x, u)
        q, v, w = x[:nq], x[nq:], out.state[nq:]
        M, c, B, J, _ = _native.system_terms(system, None, q, v)
        d, k, spring, friction = _native.system_joint_forces(system, None, q)
        plain = c - d * v - spring
        late = -spring - h * k * w - d * w - friction * np.tanh(w / tree.slip_speed)
        left, right = M @ (w - v), h * (B @ u - plain + late) + J.T @ out.impulse
        assert np.allclose(left, right, rtol=0, atol=1e-11 * np.abs(M).max() * np.abs(w).max())
        rubs = friction > 0
        slipping += (np.abs(w[rubs]) > 3 * tree.slip_speed).sum()
        sticking += (np.abs(w[rubs]) < 0.3 * tree.slip_speed).sum()
        assert out.residual < 1e-9
    assert slipping > 3 and (driven or sticking > 0)


def test_tables_of_the_forces() -> None:
    body = pendulum(damping=0.3, stiffness=2.0, rest=0.5, dry_friction=0.7).bodies[0]
    system = TreeSystem([body], drive=PositionDrive(10.0, 1.5)).native
    q, v = np.array([0.2]), np.array([3.0])
    got = np.concatenate(_native.system_joint_forces(system, None, q))
    assert np.allclose(got, [1.8, 12.0, 2 * (0.2 - 0.5) + 10 * 0.2, 0.7], rtol=1e-15)
    _, c, B, *_ = _native.system_terms(system, None, q, v)
    weight = 0.5 * 9.81 * 0.2 * np.sin(0.2)
    assert c[0] == pytest.approx(weight + 1.8 * 3.0 + 2 * (0.2 - 0.5) + 10 * 0.2, rel=1e-14)
    assert B.tolist() == [[10.0]]
    bare = pendulum().native
    assert not np.concatenate(_native.system_joint_forces(bare, None, q)).any()


# ------------------------------------------------------------------------- damping and springs


@pytest.mark.parametrize("damping", [0.1, 1e2, 1e6])
def test_damping_only_ever_slows_down(damping: float) -> None:
    """v+ = I v / (I + h d): explicit damping explodes where h d > 2 I."""
    system, h = pendulum(damping=damping), 0.025
    inertia = _native.system_terms(system.native, None, np.zeros(1), np.zeros(1))[0][0, 0]
    v = step(system, h, 0.0, 2.0)[1]
    assert v == pytest.approx(2 * inertia / (inertia + h * damping), rel=1e-13)


def test_a_stiff_spring_settles_where_it_is_slack() -> None:
    dynamics = ContactDynamics(pendulum(stiffness=1e6, rest=0.4), 0.025)
    states = dynamics.rollout([0.0, 0.0], np.zeros((5, 1))).states
    assert states[1, 0] == pytest.approx(0.4, rel=1e-4)
    assert np.abs(states[-1] - [0.4, 0]).max() < 1e-6


# ------------------------------------------------------------------------- position drives


def test_stiff_drive_is_stable_and_accurate() -> None:
    """kp = 1e5 at 25 ms: explicit gains would be unstable by a factor of 1e3 in h^2 kp / I."""
    drive, h = PositionDrive(1e5, 10.0), 0.025
    dynamics = ContactDynamics(pendulum(gravity=9.81, drive=drive), h)
    targets = 0.6 * np.sin(2 * np.arange(1, 81) * h)
    states = dynamics.rollout([0.0, 0.0], targets[:, None]).states
    assert np.abs(states[2:, 0] - targets[1:]).max() < 2e-4
    assert 1e5 * h**2 / INERTIA > 1e3


def test_infinite_gain_reaches_the_target_in_one_step() -> None:
    errors = []
    for kp in (1e4, 1e6, 1e8):
        system = pendulum(gravity=9.81, drive=PositionDrive(kp, 0.1))
        errors.append(abs(step(system, 0.02, 0.1, -3.0, 0.7)[0] - 0.7))
    assert errors[0] > 50 * errors[1] > 2500 * errors[2] and errors[2] < 1e-6


def test_drive_becomes_explicit_as_the_time_step_vanishes() -> None:
    """Against torques u = kp (target - q) - kd v: the difference of the motions falls like h."""
    kp, kd, target, gaps = 40.0, 0.5, 0.5, []
    for h in (2e-3, 1e-3, 5e-4):
        steps = round(0.2 / h)
        driven = ContactDynamics(pendulum(9.81, PositionDrive(kp, kd)), h)
        ours = driven.rollout([0.0, 0.0], np.full((steps, 1), target)).states[-1]
        gains = np.tile([[-kp, -kd]], (steps, 1, 1))
        states = np.zeros((steps + 1, 2))
        theirs = ContactDynamics(pendulum(9.81), h).rollout(
            [0.0, 0.0], np.full((steps, 1), kp * target), states=states, feedback=gains
        )
        gaps.append(np.abs(ours - theirs.states[-1]).max())
    assert gaps[0] / gaps[1] == pytest.approx(2, abs=0.1)
    assert gaps[1] / gaps[2] == pytest.approx(2, abs=0.1)
    assert gaps[2] < 0.02


# ------------------------------------------------------------------------- dry friction


@pytest.mark.parametrize("h", [1e-3, 0.025])
def test_friction_stops_a_joint_as_coulomb_would(h: float) -> None:
    """Constant deceleration tau / I, then rest: also where friction stops it within a step."""
    tau, v0 = 0.2, 5.0
    dynamics = ContactDynamics(replace(pendulum(dry_friction=tau), slip_speed=1e-3), h)
    speed = dynamics.rollout([0.0, v0], np.zeros((round(1 / h), 1))).states[:, 1]
    inertia = _native.system_terms(dynamics.manifold, None, np.zeros(1), np.zeros(1))[0][0, 0]
    time = h * np.arange(len(speed))
    coulomb = np.maximum(v0 - tau / inertia * time, 0.0)
    assert np.abs(speed - coulomb).max() < 5e-3
    assert np.diff(speed).max() < 1e-300 and speed.min() > -1e-300


def test_light_joint_with_large_friction_is_stable() -> None:
    """h tau / I = 1250 rad/s: where an explicit law jumps back and forth the joint stops."""
    light = Body("rotor", None, "revolute", 1.0, armature=1e-5, dry_friction=0.5)
    dynamics = ContactDynamics(TreeSystem([light], gravity=0.0), 0.025)
    states = dynamics.rollout([0.0, 300.0], np.zeros((4, 1))).states
    assert (states[1:, 1] >= 0).all() and states[1, 1] < 0.05 and states[-1, 1] < 1e-8


def test_friction_holds_what_is_below_it_and_yields_to_what_is_above() -> None:
    tau, h = 0.5, 0.025
    system = replace(pendulum(dry_friction=tau), slip_speed=0.01)
    held = ContactDynamics(system, h).rollout([0.0, 0.0], np.full((80, 1), 0.4))
    assert held.states[-1, 1] == pytest.approx(0.01 * np.arctanh(0.4 / tau), rel=1e-9)  # it creeps
    # The first step from rest loses no more than tau.
    inertia = _native.system_terms(system.native, None, np.zeros(1), np.zeros(1))[0][0, 0]
    assert step(system, h, 0.0, 0.0, 20.0)[1] == pytest.approx((20 - tau) * h / inertia, rel=1e-12)


def test_friction_never_does_work() -> None:
    """Against the same motion without it: a free tree only loses energy to dry friction."""
    tree = replace(every_force(2, False, False), gravity=0.0, joint_limits=False)
    bare = [replace(b, damping=0.0, stiffness=0.0, rest=0.0) for b in tree.bodies]
    tree = replace(tree, bodies=bare, contacts=())
    dynamics, rng = ContactDynamics(tree, 1e-3), np.random.default_rng(0)
    rollout = dynamics.rollout(calm_state(tree, rng, 1.0), np.zeros((800, dynamics.nu)))
    nq = tree.native.nq
    energies = [
        0.5 * x[nq:] @ _native.system_terms(tree.native, None, x[:nq], x[nq:])[0] @ x[nq:]
        for x in rollout.states
    ]
    assert energies[-1] < 0.9 * energies[0]
    assert np.diff(energies).max() < 1e-3 * energies[0]


# ------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize(
    ("seed", "floating", "driven"), [(1, True, False), (2, False, True), (1, True, True)]
)
def test_gradients_of_the_step(seed: int, floating: bool, driven: bool) -> None:
    tree = every_force(seed, floating, driven)
    dynamics = ContactDynamics(tree, 0.02, 0.6)
    center = np.zeros(dynamics.nx)
    center[6] = floating
    report = check_gradients(dynamics, center=center, spread=0.5, samples=20)
    assert report.passed, str(report)
    assert min(row.magnitude for row in report.rows) > 0.01
    assert len({row.modes for row in report.rows}) > 3


def test_gradient_where_friction_holds_and_where_it_slips() -> None:
    """dv+/du = h / (I + h tau sech^2(v+ / v_s) / v_s)."""
    tau, h = 0.5, 0.025
    dynamics = ContactDynamics(pendulum(dry_friction=tau), h)
    inertia = _native.system_terms(dynamics.manifold, None, np.zeros(1), np.zeros(1))[0][0, 0]
    for u in (0.0, 0.3, 20.0):
        w = dynamics.step([0.0, 0.0], [u]).state[1]
        slope = tau / 0.05 * (1 - np.tanh(w / 0.05) ** 2)
        expected = h / (inertia + h * slope)
        f_x, f_u = dynamics.transition([0.0, 0.0], [u])
        assert f_u[1, 0] == pytest.approx(expected, rel=1e-9)
        assert f_x[1, 1] == pytest.approx(inertia / (inertia + h * slope), rel=1e-9)


@pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda g: f"{g.name}")
def test_vjp_is_the_transpose_of_the_jacobians(gradient: Any) -> None:
    tree = every_force(4, True, True)
    dynamics, rng = ContactDynamics(tree, 0.02, 0.6), np.random.default_rng(2)
    x = np.array([calm_state(tree, rng, 1.0) for _ in range(8)])
    u, g = rng.standard_normal((8, dynamics.nu)), rng.standard_normal((8, dynamics.ndx))
    out = dynamics.step(x, u)
    got = dynamics.vjp(x, u, out.impulse, out.velocity, out.modes, g, gradient)
    f_x, f_u = dynamics.transition(x, u, gradient)
    for ours, jacobian in ((got.state, f_x), (got.control, f_u)):
        expected = np.einsum("ki,kij->kj", g, jacobian)
        assert np.allclose(ours, expected, rtol=0, atol=1e-10 * max(1, np.abs(expected).max()))


def test_bundled_threshold_is_the_weight_whatever_the_drives_pull() -> None:
    """By default a contact is averaged where it carries more than 1.2 m g h."""
    trunk = Body("trunk", None, "prismatic", 2.0)
    leg = Body("leg", "trunk", "prismatic", 0.5)
    foot = ContactPoint("foot", "leg", np.zeros(3))
    system = TreeSystem(
        [trunk, leg], [foot], actuation=np.eye(2)[:, 1:], drive=PositionDrive(1e3, 10)
    )
    dynamics = ContactDynamics(system, 0.02)
    weight = 2.5 * 9.81 * 0.02
    for push, averages in ((-0.03, True), (0.0, False)):
        x, u = np.array([0.5, -0.5, 0, 0]), np.array([-0.5 + push])
        impulse = dynamics.step(x, u).impulse[2]
        assert (impulse > 1.2 * weight) == averages and impulse > 0.1 * weight
        same = np.allclose(dynamics.transition(x, u, Bundled()).f_x, dynamics.transition(x, u).f_x)
        assert same != averages


# ------------------------------------------------------------------------- misuse


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stiffness": -1.0}, "`stiffness of body 'link'` must be >= 0"),
        ({"dry_friction": -1.0}, "`dry_friction of body 'link'` must be >= 0"),
        ({"rest": np.nan}, "`rest of body 'link'` must be finite"),
        ({"joint": "free", "stiffness": 1.0}, "`stiffness` of body 'link' must be 0"),
        ({"joint": "free", "dry_friction": 1.0}, "`dry_friction` of body 'link' must be 0"),
    ],
)
def test_wrong_bodies_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Body(**{"name": "link", "parent": None, "joint": "revolute", "mass": 1.0, **change})


@pytest.mark.parametrize(
    ("gains", "message"),
    [((-1.0,), "`kp` must be >= 0"), ((1.0, np.eye(2)), "`kd` must"), (("stiff",), "`kp` must")],
)
def test_wrong_gains_are_refused(gains: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PositionDrive(*gains)


def test_drives_need_joints_of_their_own() -> None:
    bodies = [Body("base", None, "free", 1.0, inertia=np.eye(3)), *pendulum().bodies]
    for actuation in (np.eye(7)[:, :1], 2 * np.eye(7)[:, 6:], np.eye(7)[:, [6, 6]]):
        with pytest.raises(ValueError, match="`actuation` must have one 1 in each column"):
            TreeSystem(bodies, actuation=actuation, drive=PositionDrive(1.0))
    with pytest.raises(ValueError, match="`kp` must have shape"):
        TreeSystem(bodies, drive=PositionDrive([1.0, 2.0]))
    with pytest.raises(ValueError, match="`slip_speed` must be > 0"):
        TreeSystem(bodies, slip_speed=0.0)


def test_robots_take_drives() -> None:
    robot = load_robot("hopper")
    for limit, sign in zip(robot.control_limits, (-1, 1)):
        assert np.array_equal(limit, sign * robot.torque_limits)
    driven = robot.with_drive(PositionDrive([200.0, 100.0], 2.0))
    lower, upper = driven.control_limits
    assert np.array_equal(np.stack([lower, upper], 1), robot.joint_limits[-2:])
    x, angles = np.append(robot.stance, np.zeros(5)), robot.stance[-2:]
    dynamics = ContactDynamics(driven, 0.02, 0.8)
    rollout = dynamics.rollout(x, np.tile(angles, (20, 1)))
    assert np.abs(rollout.states[-1, 3:5] - angles).max() < 0.05 and (rollout.modes == 2).all()
    assert driven.with_drive(None).control_limits[1].tolist() == robot.torque_limits.tolist()
