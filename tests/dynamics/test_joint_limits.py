"""Joint limits as one-dimensional contacts: a leg against its stops, its foot on the ground."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cito.dynamics import Bundled, ContactDynamics, Exact, FullCone, Randomized, Signorini, _native
from cito.dynamics.candidates import ContactPoint
from cito.dynamics.check import check_gradients, check_transition
from cito.dynamics.tree import Body, TreeSystem
from cito.problems.robots import load_robot
from tests.reference.step import hard_solve

GRADIENTS = [
    Exact(),
    Signorini(0.1),
    FullCone(0.1),
    Randomized(order=0),
    Randomized(order=1),
    Bundled(threshold=0.0),
    Bundled(),
]
H = 0.02


def leg(limits: bool = True) -> TreeSystem:
    """A trunk that slides up and down, a thigh and a shank with a ball foot; q = (z, hip, knee)."""
    y, down, round_ = np.array([0.0, 1, 0]), np.array([0, 0, -0.1]), 2e-3 * np.eye(3)
    return TreeSystem(
        [
            Body("trunk", None, "prismatic", 2.0),
            Body("thigh", "trunk", "revolute", 0.5, down, round_, axis=y, lower=-1.0, upper=1.5),
            Body(
                "shank",
                "thigh",
                "revolute",
                0.3,
                down,
                round_,
                position=2 * down,
                axis=y,
                armature=0.01,
                lower=-2.0,
            ),
        ],
        [ContactPoint("foot", "shank", 2 * down, 0.02)],
        joint_limits=limits,
    )


LEG = ContactDynamics(leg(), H, friction=0.7)
Q_AT_STOP = np.array([0.2 * np.cos(1) + 0.2 * np.cos(1) + 0.02, -1.0, 2.0])  # foot on the ground


def test_limits_are_contacts_after_the_feet() -> None:
    assert LEG.system.contact_dims == (3, 1, 1, 1)
    assert LEG.contact_names == ("foot", "thigh lower", "thigh upper", "shank lower")
    q = np.array([0.5, 0.3, -1.2])
    *_, J, phi = _native.system_terms(LEG.manifold, None, q, np.zeros(3))
    assert np.array_equal(J[3:], [[0, 1, 0], [0, -1, 0], [0, 0, 1]])
    assert np.allclose(phi[1:], [1.3, 1.2, 0.8], rtol=0, atol=1e-15)
    assert leg(limits=False).contact_dims == (3,)


def test_step_is_the_numpy_one() -> None:
    """The same law on the system's terms, solved by projections."""
    rng, active = np.random.default_rng(0), set()
    mu = np.append(0.7, np.zeros(3))
    for _ in range(15):
        q = Q_AT_STOP + 0.02 * rng.standard_normal(3)
        v, u = rng.standard_normal(3), rng.standard_normal(3)
        M, c, B, J, phi = _native.system_terms(LEG.manifold, None, q, v)
        b = J @ (v + H * np.linalg.solve(M, B @ u - c))
        b[[2, 3, 4, 5]] += phi / H
        expected = hard_solve(J @ np.linalg.solve(M, J.T), b, LEG.system.contact_dims, mu)
        step = LEG.step(np.append(q, v), u)
        active.add(tuple((step.modes > 0).tolist()))
        assert np.allclose(step.impulse, expected, rtol=0, atol=1e-8)
    assert {(True, True, False, False), (False, True, False, False)} <= active


def test_leg_is_driven_into_its_stop_rests_on_it_and_leaves() -> None:
    """In the air, knee driven back for 0.4 s, then held against the stop, then driven off."""
    dynamics = ContactDynamics(replace(leg(), gravity=0.0), H)
    drive = np.concatenate([np.full(20, -0.5), np.full(10, -0.1), np.full(10, 0.5)])
    controls = np.zeros((40, 3))
    controls[:, 2] = drive
    rollout = dynamics.rollout(np.array([1.0, 0, 0, 0, 0, 0]), controls)
    knee, impulse, modes = rollout.states[:, 2], rollout.impulses[:, 5], rollout.modes[:, 3]
    first = int(np.argmax(modes == 2))
    assert 0 < first < 18 and (modes[first:30] == 2).all() and (modes[31:] == 0).all()
    assert knee.min() == pytest.approx(-2.0, abs=1e-12)
    assert np.allclose(knee[first + 1 : 31], -2.0, rtol=0, atol=1e-12)
    assert knee[-1] > -1.9
    assert impulse[first] > 3 * impulse[first + 2] > 0  # it arrives with a speed
    assert (rollout.impulses[:30, 5] * (rollout.modes[:30, 3] == 0) == 0).all()


def test_standing_on_a_bent_leg_the_stop_carries_what_pushes_on_it() -> None:
    """At rest: the ground carries the weight, the hip's stop the torque that is left over."""
    x = np.append(Q_AT_STOP, np.zeros(3))
    _, c, _, J, phi = _native.system_terms(LEG.manifold, None, Q_AT_STOP, np.zeros(3))
    assert phi[:2] == pytest.approx(0.0, abs=1e-15)
    weight, push = 9.81 * 2.8, -1.0
    u = np.array([0, push, c[2] - J[2, 2] * weight])
    rollout = LEG.rollout(x, np.tile(u, (20, 1)))
    assert (rollout.modes[:, :2] == 2).all() and (rollout.modes[:, 2:] == 0).all()
    assert np.allclose(rollout.states, x, rtol=0, atol=1e-10)
    assert rollout.impulses[-1, 2] == pytest.approx(weight * H, rel=1e-9)
    stop = c[1] - push - J[2, 1] * weight
    assert rollout.impulses[-1, 3] == pytest.approx(stop * H, rel=1e-9) and stop > 0.1


def test_gradients_with_feet_and_stops_active() -> None:
    center = np.append(Q_AT_STOP, np.zeros(3))
    report = check_gradients(LEG, center=center, spread=0.6, samples=110)
    assert report.passed, str(report)
    for gradient in ("exact", "signorini", "full-cone"):
        rows = [row for row in report.rows if row.gradient == gradient]
        assert {"ccss", "scss", "csss", "lsss", "ssss"} <= {row.modes for row in rows}
        assert min(row.magnitude for row in rows) > 0.01


def test_gradients_at_the_stops_of_a_turning_tree() -> None:
    """Bodies that turn in space, every joint near one of its limits."""
    rng = np.random.default_rng(3)
    bodies = [Body("base", None, "free", 2.0, inertia=np.diag([0.02, 0.03, 0.04]))]
    for i in range(3):
        half = 0.1 * rng.standard_normal((3, 3))
        joint = ("revolute", "prismatic", "revolute")[i]
        bodies.append(
            Body(
                f"link {i}",
                bodies[-1].name,
                joint,  # type: ignore[arg-type]
                0.5,
                0.1 * rng.standard_normal(3),
                half @ half.T,
                position=0.2 * rng.standard_normal(3),
                axis=rng.standard_normal(3),
                lower=-0.02,
                upper=0.02 if i == 2 else np.inf,
            )
        )
    tree = TreeSystem(bodies, [ContactPoint("tip", "link 2", np.zeros(3))], joint_limits=True)
    dynamics = ContactDynamics(tree, H, friction=0.6)
    met, errors = set(), []
    for _ in range(60):
        dx, u = 0.3 * rng.standard_normal(dynamics.ndx), rng.standard_normal(3)
        dx[6:9] *= 0.05
        x = dynamics.integrate(np.append([0, 0, 0.05, 0, 0, 0, 1.0], np.zeros(12)), dx)
        for gradient in (Exact(), Signorini(0.1), FullCone(0.1, eps=0.1)):
            result = check_transition(dynamics, x, u, gradient)
            if result is not None:
                errors.append(result[0])
                met.add("".join("slc"[m] for m in dynamics.step(x, u).modes[1:]))
    assert max(errors) < 1e-6 and len(met) > 6 and any(modes.count("c") > 1 for modes in met)


@pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda g: g.name)
def test_vjp_is_the_transpose_of_the_jacobians(gradient) -> None:
    rng = np.random.default_rng(5)
    x = np.append(Q_AT_STOP, np.zeros(3)) + 0.02 * rng.standard_normal((20, 6))
    u, g = rng.standard_normal((20, 3)), rng.standard_normal((20, 6))
    step = LEG.step(x, u)
    assert (step.modes[:, 1] == 2).any() and (step.modes[:, 0] > 0).any()
    f_x, f_u = LEG.transition(x, u, gradient)
    got = LEG.vjp(x, u, step.impulse, step.velocity, step.modes, g, gradient)
    for ours, jacobian in ((got.state, f_x), (got.control, f_u)):
        expected = np.einsum("ki,kij->kj", g, jacobian)
        scale = max(1.0, np.abs(expected).max())
        assert np.allclose(ours, expected, rtol=0, atol=1e-11 * scale)
    assert np.array_equal(got.friction[:, 1:], np.zeros((20, 3)))


def test_margins_of_a_stop() -> None:
    """Separating: relative speed sigma; held: its impulse as a velocity; the second slot unused."""
    air = np.append([1.0, 0, 0], np.zeros(3))
    for x, pushed in ((air, 0.0), (np.append([1.0, 0, -2.0], np.zeros(3)), -1.0)):
        u = np.array([0, 0, pushed])
        margins = LEG.linearize(LEG.rollout(x, u[None])).margins()
        assert margins is not None and margins.value.shape == (1, 8)
        assert np.isinf(margins.value[0, [3, 5, 7]]).all() and np.isfinite(margins.value[0, 6])
        step, delta = LEG.step(x, u), 1e-6
        assert step.modes[3] == (2 if pushed else 0)
        more = LEG.linearize(LEG.rollout(x, u[None] + [0, 0, delta])).margins()
        assert more is not None and margins.value[0, 6] > 0.1
        slope = (more.value[0, 6] - margins.value[0, 6]) / delta
        assert margins.control[0, 6, 2] == pytest.approx(slope, rel=1e-6)
        assert abs(slope) > 0.1


@pytest.mark.parametrize(
    ("friction", "expected"),
    [(0.4, [0.4] * 4), ([0.4], [0.4, 0, 0, 0]), ([0.4, 0, 0, 0], [0.4, 0, 0, 0])],
)
def test_friction_needs_no_entry_for_a_limit(friction, expected) -> None:
    assert ContactDynamics(leg(), H, friction).friction.tolist() == expected


@pytest.mark.parametrize("friction", [[0.4, 0.4], [[0.4], [0.4, 0.4]], [], -0.1, [-0.1], "rough"])
def test_wrong_friction_is_refused(friction) -> None:
    with pytest.raises(ValueError, match="`friction` must"):
        ContactDynamics(leg(), H, friction)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lower": 1.0, "upper": 0.5}, "`lower` of body 'link' must be <= upper"),
        ({"lower": np.nan}, "`lower and upper of body 'link'` must be finite"),
        ({"upper": "far"}, "`lower and upper of body 'link'` must"),
        ({"joint": "free", "lower": 0.0}, "its joint is free"),
    ],
)
def test_wrong_limits_are_refused(change, message) -> None:
    with pytest.raises(ValueError, match=message):
        Body(**{"name": "link", "parent": None, "joint": "revolute", "mass": 1.0, **change})


def test_limits_of_a_robot_from_a_file() -> None:
    plain, limited = load_robot("hopper"), load_robot("hopper", joint_limits=True)
    assert plain.contact_names == ("foot",)
    sides = ("thigh lower", "thigh upper", "shank lower", "shank upper")
    assert limited.contact_names == ("foot", *sides)
    assert np.array_equal(plain.stance, limited.stance)
    *_, phi = _native.system_terms(limited.native, None, limited.stance, np.zeros(5))
    (hip, knee), angles = limited.joint_limits[-2:], limited.stance[-2:]
    expected = [angles[0] - hip[0], hip[1] - angles[0], angles[1] - knee[0], knee[1] - angles[1]]
    assert np.allclose(phi, [0, *expected], rtol=0, atol=1e-9)
    assert ContactDynamics(limited, H, limited.friction).friction.tolist() == [0.8, 0, 0, 0, 0]


def test_a_robot_at_its_limit_stands_on_the_ground(tmp_path: Path) -> None:
    """The lowest foot touches, whichever limit is nearer."""
    model = """<mujoco><worldbody><body name="trunk" pos="0 0 1"><freejoint/>
      <geom type="box" size=".1 .1 .1"/><body name="leg"><joint name="hip" range="0 90"/>
      <geom name="foot" type="sphere" size=".05" pos="0 0 -.5"/>
      </body></body></worldbody></mujoco>"""
    (tmp_path / "robot.xml").write_text(model)
    robot = load_robot(tmp_path / "robot.xml", joint_limits=True)
    *_, phi = _native.system_terms(robot.native, None, robot.stance, np.zeros(7))
    assert np.allclose(phi, [0, 0, np.pi / 2], rtol=0, atol=1e-12)
