"""Kinematic trees against finite differences, conservation laws and Pinocchio (if installed)."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.candidates import ContactPoint
from cito.dynamics.check import check_transition, finite_difference
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Exact, FullCone, Signorini
from cito.dynamics.shapes import contact_frame
from cito.dynamics.tree import Body, TreeSystem
from tests.reference.trees import pinocchio_tree, random_state, random_tree

TREES = [random_tree(seed, floating=seed % 2 == 0, limits=seed > 3) for seed in range(6)]
TREES += [random_tree(seed, floating=seed % 2 == 0, balls=True) for seed in (6, 7)]

BALLS = [i for i, body in enumerate(TREES[6].bodies) if body.joint == "spherical"]


@pytest.mark.parametrize("tree", TREES)
def test_mass_matrix_is_the_kinetic_energy_and_momentum_balance_holds(tree: TreeSystem) -> None:
    """Without gravity, damping and forces kinetic energy is conserved: v' c = 1/2 v' dM/dt v."""
    system, rng = tree.native, np.random.default_rng(1)
    nq, nv = system.nq, system.nv
    x = random_state(tree, rng)
    q, v = x[:nq], x[nq:]
    quiet = TreeSystem(
        [Body(**{**vars(body), "damping": 0.0}) for body in tree.bodies], tree.contacts, gravity=0
    ).native
    M, c, *_ = _native.system_terms(quiet, None, q, v)
    assert np.linalg.eigvalsh(M)[0] > 0
    assert np.allclose(M, M.T, atol=0, rtol=0)

    def energy(rows: np.ndarray) -> np.ndarray:
        return np.array([[0.5 * v @ _native.system_terms(quiet, None, r, v)[0] @ v] for r in rows])

    def along(rows: np.ndarray, t: np.ndarray) -> np.ndarray:
        x0 = np.hstack([rows, np.zeros((len(rows), nv))])
        dx = np.hstack([t * v, np.zeros((len(t), nv))])
        return _native.on_manifold(quiet, x0, dx, True)[:, :nq]

    rate = finite_difference(energy, q, step=1e-4, integrate=along, tangent=1)
    assert v @ c == pytest.approx(float(rate[0, 0]), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("tree", TREES)
def test_derivatives_of_terms(tree: TreeSystem) -> None:
    system, rng = tree.native, np.random.default_rng(2)
    nq, nv, nu, n = system.nq, system.nv, system.nu, system.n
    x = random_state(tree, rng)
    a, u, f, w = (rng.standard_normal(k) for k in (nv, nu, n, nv))

    def residual(rows: np.ndarray) -> np.ndarray:
        out = []
        for row in rows:
            M, c, B, J, phi = _native.system_terms(system, None, row[:nq], row[nq:])
            out.append(np.concatenate([M @ a + c - B @ u - J.T @ f, J @ w, phi]))
        return np.array(out)

    def move(x0: np.ndarray, dx: np.ndarray) -> np.ndarray:
        return _native.on_manifold(system, np.ascontiguousarray(x0), dx, True)

    numeric = finite_difference(residual, x, step=1e-4, integrate=move, tangent=2 * nv)
    r_q, r_v, Jw_q, phi_q, *_ = _native.system_derivatives(system, None, x[:nq], x[nq:], a, u, f, w)
    for analytic, block in (
        (r_q, numeric[:nv, :nv]),
        (r_v, numeric[:nv, nv:]),
        (Jw_q, numeric[nv : nv + n, :nv]),
        (phi_q, numeric[nv + n :, :nv]),
    ):
        assert np.abs(block).max() > 0.01
        assert np.allclose(analytic, block, rtol=0, atol=1e-8 * np.abs(block).max())


def test_contact_jacobian_is_the_velocity_of_the_touching_material_point() -> None:
    """A ball of radius r that rolls on a plane: the touching point stands still."""
    ball = TreeSystem(
        [Body("ball", None, "free", 1.0, inertia=0.4 * 0.01 * np.eye(3))],
        [ContactPoint("touch", "ball", np.zeros(3), 0.1)],
    )
    q = np.array([0.0, 0, 0.1, 0, 0, 0, 1])
    *_, J, phi = _native.system_terms(ball.native, None, q, np.zeros(6))
    rolling = np.array([0.5, 0, 0, 0, 5.0, 0])
    assert np.allclose(J @ rolling, 0, atol=1e-15)
    assert phi == pytest.approx([0.0], abs=1e-15)


def test_ball_slides_then_rolls() -> None:
    """Sliding friction slows a ball until v = r w, at 5/7 of its first speed."""
    ball = TreeSystem(
        [Body("ball", None, "free", 2.0, inertia=0.4 * 2.0 * 0.01 * np.eye(3))],
        [ContactPoint("touch", "ball", np.zeros(3), 0.1)],
    )
    dynamics = ContactDynamics(ball, time_step=1e-4, friction=0.3)
    x0 = np.array([0.0, 0, 0.1, 0, 0, 0, 1, 1.4, 0, 0, 0, 0, 0])
    rollout = dynamics.rollout(x0, np.zeros((1500, 0)))
    world = [
        _rotation(x[3:7]) @ x[7:10] for x in rollout.states
    ]  # velocities are in the body frame
    assert rollout.modes[1000, 0] == 1 and rollout.modes[-1, 0] == 2
    assert world[-1][0] == pytest.approx(1.0, rel=2e-3)


@pytest.mark.parametrize(
    ("seed", "floating", "balls"),
    [(7, True, False), (2, False, False), (8, True, True), (9, False, True)],
)
@pytest.mark.parametrize("gradient", [Exact(), Signorini(0.1), FullCone(0.1, eps=0.1)])
def test_transition_against_finite_differences(
    seed: int, floating: bool, balls: bool, gradient: object
) -> None:
    tree = random_tree(seed, bodies=6, floating=floating, contacts=3, balls=balls)
    dynamics = ContactDynamics(tree, time_step=0.02, friction=0.6)
    rng = np.random.default_rng(3)
    patterns, errors = set(), []
    for _ in range(40):
        x, u = random_state(tree, rng), rng.standard_normal(dynamics.nu)
        step = dynamics.step(x, u)
        result = check_transition(dynamics, x, u, gradient)  # type: ignore[arg-type]
        if result is None or step.residual > 1e-9:
            continue
        patterns |= set(step.modes.tolist())
        errors.append(result[0])
        assert result[1] > 0.01
    assert len(errors) > 10 and patterns == {0, 1, 2}
    assert max(errors) < 1e-6


def test_manifold_axioms() -> None:
    tree = TREES[6]
    system, rng = tree.native, np.random.default_rng(4)
    first = int(np.cumsum([0] + [body.nv for body in tree.bodies])[BALLS[0]])
    for size in (1e-9, 1e-5, 0.04, 0.06, 1.0, 3.0):
        x = random_state(tree, rng)[None]
        dx = 0.5 * rng.standard_normal((1, 2 * system.nv))
        for turn in (slice(3, 6), slice(first, first + 3)):
            dx[0, turn] *= size / np.linalg.norm(dx[0, turn])
        back = _native.on_manifold(system, x, _native.on_manifold(system, x, dx, True), False)
        assert np.allclose(back, dx, rtol=0, atol=1e-12 * max(1, 1 / size * 1e-3))


@pytest.mark.parametrize("balls", [False, True])
def test_agrees_with_pinocchio(balls: bool) -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is an optional oracle")
    tree = random_tree(11, bodies=12, balls=balls)
    assert any(body.joint == "spherical" for body in tree.bodies) == balls
    system, rng = tree.native, np.random.default_rng(5)
    model = pinocchio_tree(pin, tree)
    data = model.createData()
    widths = [body.nv for body in tree.bodies]
    armature = np.repeat([0 if b.joint == "free" else b.armature for b in tree.bodies], widths)
    damping = np.repeat([body.damping for body in tree.bodies], widths)
    x = random_state(tree, rng)
    q, v, a = x[: model.nq], x[model.nq :], rng.standard_normal(model.nv)
    M, c, *_ = _native.system_terms(system, None, q, v)
    pin.crba(model, data, q)
    expected = np.triu(data.M) + np.triu(data.M, 1).T + np.diag(armature)
    assert np.allclose(M, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    bias = pin.nonLinearEffects(model, data, q, v) + damping * v
    assert np.allclose(c, bias, rtol=0, atol=1e-12 * np.abs(bias).max())
    dq, dv, _ = (d.copy() for d in pin.computeRNEADerivatives(model, data, q, v, a))
    zero = np.zeros
    r_q, r_v, *_ = _native.system_derivatives(
        system, None, q, v, a, zero(system.nu), zero(system.n), v
    )
    assert np.allclose(r_q, dq, rtol=0, atol=1e-11 * np.abs(dq).max())
    assert np.allclose(r_v, dv + np.diag(damping), rtol=0, atol=1e-11 * np.abs(dv).max())
    step = 0.7 * rng.standard_normal(model.nv)
    moved = _native.on_manifold(system, x[None], np.append(step, 0 * step)[None], True)[0]
    assert np.allclose(moved[: model.nq], pin.integrate(model, q, step), atol=1e-13)
    back = _native.on_manifold(system, x[None], moved[None], False)[0]
    assert np.allclose(back[: model.nv], pin.difference(model, q, moved[: model.nq]), atol=1e-13)


def test_contact_frame_is_right_handed_with_x_along_the_ground() -> None:
    for normal in ([0, 0, 1.0], [0.3, 0.2, 0.9], [1.0, 0, 0]):
        unit = np.array(normal) / np.linalg.norm(normal)
        frame = contact_frame(unit)
        assert np.allclose(frame @ frame.T, np.eye(3), atol=1e-14)
        assert np.linalg.det(frame) == pytest.approx(1)
        assert np.allclose(frame[2], unit)
    assert np.allclose(contact_frame(np.array([0, 0, 1.0])), np.eye(3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"joint": "ball"}, "joint"),
        ({"mass": -1.0}, "mass"),
        ({"axis": np.zeros(3)}, "axis"),
        ({"rotation": 2 * np.eye(3)}, "rotation"),
        ({"inertia": np.diag([1.0, 1.0, -1.0])}, "inertia"),
        ({"com": np.array([np.nan, 0, 0])}, "com"),
        ({"parent": "nobody"}, "parent"),
    ],
)
def test_broken_bodies_are_refused(change: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"name": "link", "parent": None, "joint": "revolute", "mass": 1.0}
    with pytest.raises(ValueError, match=message):
        TreeSystem([Body(**{**good, **change})])  # type: ignore[arg-type]


def test_contacts_need_a_body() -> None:
    with pytest.raises(ValueError, match="contact 'tip'"):
        TreeSystem(
            [Body("link", None, "revolute", 1.0)], [ContactPoint("tip", "nobody", np.zeros(3))]
        )


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    x, y, z, w = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
