"""Costs on the motion of robots: values against numpy, derivatives against finite differences."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cito.dynamics import ContactDynamics, point_mass
from cito.dynamics.candidates import ContactPair
from cito.dynamics.check import finite_difference
from cito.dynamics.shapes import Capsule, Plane
from cito.dynamics.terrain import HeightField
from cito.problems import ControlCost, Problem
from cito.problems.objective import Objective
from cito.problems.robot_costs import (
    AirTime,
    BasePose,
    BaseVelocity,
    CenterOfMass,
    FootSlip,
    JointVelocity,
    PointPosition,
    Posture,
    SoftLimit,
    Torque,
    TorqueSmoothness,
)
from cito.problems.robots import load_robot
from tests.reference import kinematics
from tests.reference.trees import neutral, random_forest, random_tree

N = 2
RNG = np.random.default_rng(0)
POINT, REFERENCE = np.array([0.1, -0.2, 0.3]), np.array([0.2, -0.1, 0.4])
TREES = {
    "floating": random_tree(2, bodies=5),
    "fixed": random_tree(1, bodies=5, floating=False),
    "go2": load_robot("go2"),
    "hopper": load_robot("hopper"),
}
# feet over waves, and bodies that touch each other
FORESTS = {
    "waves": replace(TREES["floating"], ground=HeightField.waves(0.2, 1.7, (-9, 9), (-9, 9))),
    "pairs": random_forest(
        1,
        [
            ContactPair(
                "ball", "c0", np.zeros(3), 0.1, shape=Capsule(0.05, POINT, -POINT), other="a5"
            ),
            ContactPair("arms", "b2", POINT, shape=Capsule(0.02, POINT, REFERENCE), other="a2"),
            ContactPair("self", "a3", POINT, 0.02, shape=Plane((0.1, 0.2, 1.0)), other="a1"),
        ],
    ),
}
TURN = Rotation.from_rotvec([0.3, -0.5, 0.2])
MOVING = REFERENCE + 0.1 * RNG.standard_normal((N + 1, 3))


def tree_of(system):
    return getattr(system, "system", system)


def base_of(tree) -> int:
    return next(i for i, body in enumerate(tree.bodies) if body.mass > 0)


def joints_of(tree) -> tuple[np.ndarray, np.ndarray]:
    """Where the driven joints are in q and in v."""
    widths = [(7, 6) if body.joint == "free" else (1, 1) for body in tree.bodies]
    q, v = np.cumsum([(0, 0), *widths], axis=0)[:-1].T
    driven = [i for i, j in enumerate(v) if widths[i] == (1, 1) and tree.actuation[j].any()]
    return q[driven], v[driven]


def problem(name: str, *terms) -> Problem:
    system = {**TREES, **FORESTS}[name]
    dynamics, start = ContactDynamics(system, 0.02), neutral(tree_of(system))
    return Problem("test", dynamics, start, N, (*terms, ControlCost(np.full(dynamics.nu, 1e-300))))


def trajectory(name: str, spread: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    p = problem(name)
    rng = np.random.default_rng(3)
    dx = spread * rng.standard_normal((N + 1, p.dynamics.ndx))
    X = p.dynamics.integrate(np.tile(p.start, (N + 1, 1)), dx)
    return X, rng.standard_normal((N, p.dynamics.nu))


def pose(term, tree, k, x, u):
    position = np.broadcast_to(term.position, (N + 1, 3))[k]
    m, b = kinematics.motion(tree, x), base_of(tree)
    turn = Rotation.from_quat(term.orientation).inv() * Rotation.from_matrix(m.R[b])
    return np.concatenate([kinematics.body_point(m, b, term.point)[0] - position, turn.as_rotvec()])


def twist(term, tree, k, x, u):
    m, b = kinematics.motion(tree, x), base_of(tree)
    heading = np.arctan2(m.R[b][1, 0], m.R[b][0, 0])
    Q = {
        "world": np.eye(3),
        "yaw": Rotation.from_euler("z", heading).as_matrix(),
        "body": m.R[b],
    }[term.frame]
    v = kinematics.body_point(m, b, term.point)[1]
    return np.concatenate([Q.T @ v - term.linear, Q.T @ m.omega[b] - term.angular])


def point(term, tree, k, x, u):
    contact, m = tree.contacts[0], kinematics.motion(tree, x)
    b = [body.name for body in tree.bodies].index(contact.body)
    return kinematics.body_point(m, b, contact.position)[0] - term.position


def com(term, tree, k, x, u):
    return kinematics.centre_of_mass(tree, kinematics.motion(tree, x)) - term.position


def posture(term, tree, k, x, u):
    return x[joints_of(tree)[0]] - np.broadcast_to(term.position, len(joints_of(tree)[0]))


def speed(term, tree, k, x, u):
    v = x[len(x) - sum(6 if b.joint == "free" else 1 for b in tree.bodies) :][joints_of(tree)[1]]
    return v - (0 if term.velocity is None else term.velocity)


def beyond(z, lower, upper):
    return np.maximum(z - upper, 0) + np.minimum(z - lower, 0)


def limit(term, tree, k, x, u):
    if term.of == "control":
        return beyond(u, term.lower, term.upper)
    plain = {"position": Posture(0.0, 1), "velocity": JointVelocity(1)}[term.of]
    z = {"position": posture, "velocity": speed}[term.of](plain, tree, k, x, u)
    return beyond(z, -np.inf if term.lower is None else term.lower, term.upper)


def slip(term, tree, k, x, u):
    m, rows = kinematics.motion(tree, x), []
    for i in range(len(tree.contacts)):
        phi, v = kinematics.foot(tree, m, i)
        S = 2 / (1 + np.exp(term.sharpness * phi)) if phi > 0 else 1
        rows.append(np.sqrt(S) * v)
    return np.concatenate(rows)


def air(term, tree, k, x, u):
    m = kinematics.motion(tree, x)
    phi = np.array([kinematics.foot(tree, m, i)[0] for i in range(len(tree.contacts))])
    return np.tanh(phi / term.length) - np.broadcast_to(term.target, len(phi))


def torque(term, tree, k, x, u):
    return u - (0 if term.reference is None else np.broadcast_to(term.reference, (N, len(u)))[k])


WEIGHTS = np.array([0.5, 2.0, 1.3])
# the term for a tree, its plain residual, and the weight of each row
CASES = {
    "pose": (
        BasePose(REFERENCE, TURN.as_quat(), WEIGHTS, 0.7, point=POINT, knots="all"),
        pose,
        [*WEIGHTS, 0.7, 0.7, 0.7],
    ),
    "pose, moving": (
        BasePose(MOVING, position_weight=2.0, orientation_weight=WEIGHTS),
        pose,
        [2, 2, 2, *WEIGHTS],
    ),
    "velocity in the body": (
        BaseVelocity(REFERENCE, -REFERENCE, WEIGHTS, 0.4, point=POINT, knots="terminal"),
        twist,
        [*WEIGHTS, 0.4, 0.4, 0.4],
    ),
    "velocity in the yaw frame": (
        BaseVelocity(REFERENCE, REFERENCE, WEIGHTS, 0.4 * WEIGHTS, "yaw", point=POINT),
        twist,
        [*WEIGHTS, *(0.4 * WEIGHTS)],
    ),
    "velocity in the world": (
        BaseVelocity(REFERENCE, REFERENCE, WEIGHTS, 0.4, "world", knots="all"),
        twist,
        [*WEIGHTS, 0.4, 0.4, 0.4],
    ),
    "foot": (PointPosition(REFERENCE, WEIGHTS, knots="all"), point, WEIGHTS),
    "centre of mass": (CenterOfMass(REFERENCE, WEIGHTS, knots=(0, 2)), com, WEIGHTS),
    "posture": (Posture(0.1, 3.0, knots="all"), posture, 3.0),
    "joint speed": (JointVelocity(0.2), speed, 0.2),
    "position limits": (SoftLimit("position", 5.0, -0.2, 0.4, knots="all"), limit, 5.0),
    "speed limits": (SoftLimit("velocity", 5.0, upper=0.1), limit, 5.0),
    "control limits": (SoftLimit("control", 5.0, -0.3, 0.2), limit, 5.0),
    "slip": (FootSlip(2.0, sharpness=3.0, knots="all"), slip, 2.0),
    "air": (AirTime(2.0, length=0.5, target=0.2, knots="all"), air, 2.0),
    "torque": (Torque(1.7), torque, 1.7),
}
EVERY = [(tree, case) for tree in TREES for case in CASES]
EVERY += [(tree, case) for tree in FORESTS for case in ("slip", "air")]


def case_of(tree_name: str, name: str):
    """The term with what depends on the tree, and sqrt(weight) r of a knot, (nr,) or empty."""
    term, residual, weight = CASES[name]
    tree = tree_of({**TREES, **FORESTS}[tree_name])
    if isinstance(term, PointPosition):
        term = replace(term, foot=tree.contacts[0].name)
    if isinstance(term, Posture):
        term = replace(term, position=np.linspace(-0.3, 0.2, len(joints_of(tree)[0])))
    return term, partial(residual, term, tree), np.sqrt(weight)


def active(term, k: int) -> bool:
    if isinstance(term.knots, str):
        return term.knots == "all" or (term.knots == "terminal") == (k == N)
    return k in term.knots


def rows(tree_name: str, name: str, X, U) -> np.ndarray:
    """sqrt(weight) r of all active knots."""
    term, residual, root = case_of(tree_name, name)
    found = [root * residual(k, X[k], U[min(k, N - 1)]) for k in range(N + 1) if active(term, k)]
    return np.concatenate(found)


@pytest.mark.parametrize(("tree", "case"), EVERY)
def test_value_is_half_the_weighted_square_of_the_residual(tree: str, case: str) -> None:
    X, U = trajectory(tree)
    r = rows(tree, case, X, U)
    assert r @ r > 1e-3
    value = float(Objective(problem(tree, case_of(tree, case)[0])).value(X, U))
    assert value == pytest.approx(0.5 * float(r @ r), rel=1e-12)


@pytest.mark.parametrize(("tree", "case"), [pair for pair in EVERY if pair[0] != "go2"])
def test_expansion_is_the_finite_difference_of_the_residual(tree: str, case: str) -> None:
    """l_z = r_z' W r and l_zz = r_z' W r_z, on the manifold."""
    p = problem(tree, case_of(tree, case)[0])
    n, nx, ndx, nu = (N + 1), p.dynamics.nx, p.dynamics.ndx, p.dynamics.nu
    X, U = trajectory(tree)

    def split(points):
        return points[:, : n * nx].reshape(-1, n, nx), points[:, n * nx :].reshape(-1, N, nu)

    def move(points, d):
        states, controls = split(points)
        states = p.dynamics.integrate(states, d[:, : n * ndx].reshape(-1, n, ndx))
        controls = controls + d[:, n * ndx :].reshape(-1, N, nu)
        return np.hstack([states.reshape(len(points), -1), controls.reshape(len(points), -1)])

    z = np.concatenate([X.ravel(), U.ravel()])
    # every knot is moved at once along each coordinate: a knot's residual sees its own x, u only
    directions = np.zeros((ndx + nu, n * ndx + N * nu))
    for i in range(ndx):
        directions[i, i : n * ndx : ndx] = 1
    for i in range(nu):
        directions[ndx + i, n * ndx + i :: nu] = 1
    D = finite_difference(
        lambda points: np.array(
            [rows(tree, case, *(a[0] for a in split(q[None]))) for q in points]
        ),
        z,
        step=1e-4,
        integrate=lambda points, d: move(points, d @ directions),
        tangent=ndx + nu,
    )
    assert np.abs(D).max() > 0.05
    term, e = case_of(tree, case)[0], Objective(p).expansion(X, U)
    knots = [k for k in range(N + 1) if active(term, k)]
    r = rows(tree, case, X, U).reshape(len(knots), -1)
    blocks = D.reshape(len(knots), -1, ndx + nu)
    for k in range(N + 1):
        J = blocks[knots.index(k)] if k in knots else np.zeros((1, ndx + nu))
        l_z = J.T @ (r[knots.index(k)] if k in knots else np.zeros(1))
        H = J.T @ J
        scale = max(1.0, np.abs(H).max(), np.abs(l_z).max())
        np.testing.assert_allclose(e.l_x[k], l_z[:ndx], atol=1e-9 * scale)
        np.testing.assert_allclose(e.l_xx[k], H[:ndx, :ndx], atol=1e-9 * scale)
        if k < N:
            np.testing.assert_allclose(e.l_u[k], l_z[ndx:], atol=1e-9 * scale)
            np.testing.assert_allclose(e.l_uu[k], H[ndx:, ndx:], atol=1e-9 * scale)
    assert e.l_ux is None


def test_terms_add_up() -> None:
    terms = [case_of("go2", name)[0] for name in CASES]
    X, U = trajectory("go2")
    whole = Objective(problem("go2", *terms))
    parts = [Objective(problem("go2", term)) for term in terms]
    assert float(whole.value(X, U)) == pytest.approx(sum(float(p.value(X, U)) for p in parts))
    batch = whole.value(np.stack([X, X[::-1]]), np.stack([U, U]))
    assert batch[0] == pytest.approx(float(whole.value(X, U)))
    assert batch[1] != pytest.approx(batch[0])
    e = whole.expansion(X, U)
    for name in ("l_x", "l_u", "l_xx", "l_uu"):
        total = sum(getattr(p.expansion(X, U), name) for p in parts)
        np.testing.assert_allclose(getattr(e, name), total, atol=1e-10)


@pytest.mark.parametrize("angle", [1e-9, 1e-5, 0.02, 1.0, 3.0, 3.14159])
def test_orientation_is_the_angle_about_any_axis(angle: float) -> None:
    """The logarithm from the smallest angles to half a turn, whatever part of q is largest."""
    for axis in (*np.eye(3), -np.eye(3)[1], np.array([0.6, 0.0, -0.8])):
        X, U = trajectory("go2")
        X[:, 3:7] = (TURN * Rotation.from_rotvec(angle * axis)).as_quat()
        objective = Objective(
            problem("go2", BasePose(orientation=TURN.as_quat(), orientation_weight=1, knots=(0,)))
        )
        assert float(objective.value(X, U)) == pytest.approx(0.5 * angle**2, rel=1e-6, abs=1e-30)
        J = objective.expansion(X, U)
        # along the axis of the error the angle grows as fast as the body turns
        along = np.concatenate([np.zeros(3), axis, np.zeros(30)])
        assert float(J.l_x[0] @ along) == pytest.approx(angle, rel=1e-6, abs=1e-15)
        assert np.isfinite(J.l_xx).all()


def test_feet_on_the_ground_pay_for_sliding_and_high_feet_do_not() -> None:
    robot = TREES["go2"]
    p = problem("go2", FootSlip(weight=2.0))
    X, U = np.tile(np.concatenate([robot.stance, np.zeros(18)]), (N + 1, 1)), np.zeros((N, 12))
    X[:, 19] = 0.5  # the base, and all feet with it, forward at 0.5 m/s
    objective = Objective(p)
    on_ground = float(objective.value(X, U))
    X[:, 2] += 0.1
    lifted = float(objective.value(X, U))
    assert on_ground == pytest.approx(N * 4 * 0.5 * 2.0 * 0.25, rel=1e-6)
    assert 0 < lifted < 0.02 * on_ground


def test_air_time_counts_knots_off_the_ground() -> None:
    robot = TREES["go2"]
    X, U = np.tile(np.concatenate([robot.stance, np.zeros(18)]), (N + 1, 1)), np.zeros((N, 12))
    X[1, 2] += 0.2
    weight = np.array([1.0, 2.0, 3.0, 4.0])
    down, up = (
        float(Objective(problem("go2", AirTime(weight, target=target))).value(X, U))
        for target in (0, 1)
    )
    assert down == pytest.approx(0.5 * weight.sum(), rel=1e-6)
    assert up == pytest.approx(0.5 * weight.sum() * (N - 1), rel=1e-6)


def test_torque_smoothness_is_measured_from_the_plan() -> None:
    X, U = trajectory("hopper")
    term = TorqueSmoothness(3.0, U + 0.1)
    value = float(Objective(problem("hopper", term)).value(X, U))
    assert value == pytest.approx(0.5 * 3 * 0.01 * U.size)
    with pytest.raises(ValueError, match="`reference` must be the controls of a plan"):
        TorqueSmoothness(3.0)


def test_parts_are_found_by_name() -> None:
    X, U = trajectory("go2")
    by_body = Posture(np.zeros(2), 1.0, joints=["FL_hip", "RR_calf"])
    by_joint = Posture(np.zeros(2), 1.0, joints=["FL_hip_joint", "RR_calf_joint"])
    expected = 0.5 * float((X[:N, [7, 18]] ** 2).sum())
    for term in (by_body, by_joint):
        assert float(Objective(problem("go2", term)).value(X, U)) == pytest.approx(expected)
    slips = [
        float(Objective(problem("go2", FootSlip(1.0, feet))).value(X, U))
        for feet in (["RR"], ["FL", "FR", "RL"], None)
    ]
    assert min(slips) > 0
    assert sum(slips[:2]) == pytest.approx(slips[2])


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("`position_weight` must be >= 0", lambda: BasePose(position_weight=-1)),
        ("`orientation_weight` must be finite", lambda: BasePose(orientation_weight=np.nan)),
        ("`orientation` must be unit quaternions", lambda: BasePose(orientation=(0, 0, 0, 2))),
        ("`frame` must be one of world, yaw, body", lambda: BaseVelocity(frame="base")),
        ("`foot` and `body` exclude", lambda: PointPosition(REFERENCE, 1, foot="FL", body="base")),
        ("`of` must be position", lambda: SoftLimit("torque", 1)),
        ("`joints` must be None", lambda: SoftLimit("control", 1, joints=["FL_hip"])),
        ("`sharpness` must be > 0", lambda: FootSlip(1, sharpness=0)),
        ("`length` must be > 0", lambda: AirTime(1, length=-1)),
        ("`knots` must be 'running'", lambda: FootSlip(1, knots="last")),
        ("`knots` must be a whole number >= 0", lambda: FootSlip(1, knots=[-1])),
        ("`knots` must be a name or numbers", lambda: FootSlip(1, knots=3)),
        ("`joints` must be a sequence of names", lambda: Posture(0, 1, joints="FL_hip")),
    ],
)
def test_terms_that_mean_nothing_are_refused(message: str, make) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("message", "term"),
    [
        (r"`costs\[0\].position` must have shape \(3,\) or \(3, 3\)", BasePose(np.zeros(2))),
        (r"`costs\[0\].position_weight` must have", BasePose(position_weight=[1, 2])),
        (r"`costs\[0\].body` names 'trunk'", BasePose(body="trunk")),
        (r"`costs\[0\].foot` names 'XX'", PointPosition(REFERENCE, 1, foot="XX")),
        (r"`costs\[0\].joints` names 'hip'", Posture(0.0, 1, joints=["hip"])),
        (r"`costs\[0\].position` must have shape \(12,\)", Posture(np.zeros(3), 1)),
        (r"`costs\[0\].feet` names 'FLL'.*did you mean FL", FootSlip(1, feet=["FLL"])),
        (r"`costs\[0\].weight` must have shape \(4,\)", FootSlip([1, 2, 3])),
        (r"`costs\[0\].lower` must not exceed", SoftLimit("control", 1, 1, -1)),
        (r"`costs\[0\].reference` must have shape", Torque(1, np.zeros(3))),
        (r"`knots` must be <= 2", FootSlip(1, knots=[4])),
    ],
)
def test_terms_that_do_not_fit_the_robot_are_refused(message: str, term) -> None:
    with pytest.raises(ValueError, match=message):
        problem("go2", term)


def test_systems_that_are_no_tree_are_refused() -> None:
    dynamics = ContactDynamics(point_mass(2), 0.05)
    with pytest.raises(ValueError, match="needs a Robot or TreeSystem, got a LinearSystem"):
        Problem("test", dynamics, np.zeros(4), N, (FootSlip(1), ControlCost(np.ones(2))))


def test_terms_are_frozen_and_their_arrays_read_only() -> None:
    target = np.zeros(3)
    term = BasePose(target, position_weight=1)
    target[0] = 5
    assert term.position[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        term.position[0] = 1
    with pytest.raises(AttributeError):
        term.knots = "all"
