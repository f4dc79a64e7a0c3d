"""The hard step as physics, against its numpy twin, and as a pure function of its arguments."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import ContactDynamics, FullCone, LinearSystem, Rollout, Step, point_mass
from tests.reference import step as twin
from tests.reference.systems import (
    contact_free,
    contact_systems,
    exploding_spring,
    random_system,
    two_bodies,
)

SYSTEMS = contact_systems()
G, H = 9.81, 0.05


def samples(
    dynamics: ContactDynamics, count: int = 300, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """States near and far from contact, some slightly penetrating, and controls."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, dynamics.nx))
    x[: count // 2, : dynamics.ndx // 2] *= 2 * dynamics.time_step
    x[: count // 3, dynamics.ndx // 2 :] *= 0.1
    return x, 5 * rng.standard_normal((count, dynamics.nu))


def rows(dynamics: ContactDynamics) -> list[np.ndarray]:
    """The rows of each contact in stacked contact vectors."""
    return np.split(np.arange(dynamics.n), np.cumsum(dynamics.system.contact_dims)[:-1])


@pytest.fixture(scope="module", params=SYSTEMS)
def stepped(request) -> tuple[ContactDynamics, np.ndarray, np.ndarray, Step]:
    dynamics = SYSTEMS[request.param]
    x, u = samples(dynamics)
    return dynamics, x, u, dynamics.step(x, u)


# ------------------------------------------------------------------------------ the contact law


def test_samples_meet_every_mode(stepped):
    dynamics, *_, step = stepped
    with_friction = [i for i, r in enumerate(rows(dynamics)) if len(r) > 1 and dynamics.friction[i]]
    for i in with_friction:
        assert np.isin([0, 1, 2], step.modes[:, i]).all()
    for i in set(range(dynamics.nc)) - set(with_friction):
        assert len(np.unique(step.modes[:, i])) >= 2


def test_no_contact_penetrates_after_the_step(stepped):
    dynamics, _, _, step = stepped
    system = dynamics.system
    q = step.state[:, : dynamics.ndx // 2]
    gap = q @ system.gap_jacobian.T + system.gap_offset
    assert gap.min() >= -1e-12
    assert (gap[step.modes > 0] <= 1e-12).all()


def test_impulses_are_in_the_cone_and_complement_the_velocity(stepped):
    dynamics, _, _, step = stepped
    scale = 1e-11 * (1 + np.abs(step.impulse).max()) * (1 + np.abs(step.velocity).max())
    for i, r in enumerate(rows(dynamics)):
        mu, l, s = dynamics.friction[i], step.impulse[:, r], step.velocity[:, r]
        l_T, s_T = np.linalg.norm(l[:, :-1], axis=1), np.linalg.norm(s[:, :-1], axis=1)
        assert (l_T <= mu * l[:, -1] + scale).all() and (l[:, -1] >= 0).all()
        assert (s[:, -1] >= -scale).all()
        assert (np.abs(l[:, -1] * s[:, -1]) <= scale).all()
        # Maximum dissipation: friction is antiparallel to slip, at the edge of the cone.
        assert np.abs(np.sum(l[:, :-1] * s[:, :-1], axis=1) + mu * l[:, -1] * s_T).max() <= scale


def test_modes_say_what_the_impulses_do(stepped):
    dynamics, _, _, step = stepped
    for i, r in enumerate(rows(dynamics)):
        mode, mu = step.modes[:, i], dynamics.friction[i]
        l, s = step.impulse[:, r], step.velocity[:, r]
        assert (l[mode == 0] == 0).all()
        assert np.abs(s[mode == 2]).max(initial=0) <= 1e-12
        sliding = l[mode == 1]
        edge = np.linalg.norm(sliding[:, :-1], axis=1) - mu * sliding[:, -1]
        assert np.abs(edge).max(initial=0) <= 1e-11 * (1 + np.abs(sliding).max(initial=0))


def test_momentum_balance(stepped):
    dynamics, x, u, step = stepped
    s, h, nv = dynamics.system, dynamics.time_step, dynamics.ndx // 2
    q, v, v_next = x[:, :nv], x[:, nv:], step.state[:, nv:]
    force = u @ s.actuation.T - s.bias - q @ s.stiffness.T - v @ s.damping.T
    balance = (v_next - v) @ s.mass_matrix - h * force - step.impulse @ s.contact_jacobian
    assert np.abs(balance).max() <= 1e-12 * (1 + np.abs(step.impulse).max())
    np.testing.assert_allclose(step.state[:, :nv], q + h * v_next, rtol=0, atol=1e-14)


def test_residual_is_reported_and_small(stepped):
    *_, step = stepped
    assert (step.residual >= 0).all() and step.residual.max() <= 1e-10


@pytest.mark.parametrize("name", SYSTEMS)
def test_step_equals_its_numpy_twin(name):
    dynamics = SYSTEMS[name]
    x, u = samples(dynamics, 12, seed=1)
    step = dynamics.step(x, u)
    for k in range(len(x)):
        state, _ = twin.step(dynamics.system, dynamics.time_step, dynamics.friction, x[k], u[k])
        np.testing.assert_allclose(step.state[k], state, rtol=1e-9, atol=1e-9)


# --------------------------------------------------------------------------------- known motions


@pytest.mark.parametrize("dimension", [2, 3])
def test_free_flight(dimension):
    dynamics = ContactDynamics(point_mass(dimension, mass=0.7), H)
    N, k = 20, np.arange(21)[:, None]
    p, v, up = np.full(dimension, 50.0), np.linspace(1, 2, dimension), np.eye(dimension)[-1]
    states = dynamics.rollout(np.concatenate([p, v]), np.zeros((N, dimension))).states
    np.testing.assert_allclose(states[:, dimension:], v - k * H * G * up, rtol=1e-13)
    parabola = p + k * H * v - k * (k + 1) / 2 * H**2 * G * up
    np.testing.assert_allclose(states[:, :dimension], parabola, rtol=1e-13)


@pytest.mark.parametrize("angle", [0.0, 0.3, 2.0])
def test_coulomb_deceleration_until_rest(angle):
    mu, speed, direction = 0.3, 1.0, np.array([np.cos(angle), np.sin(angle), 0])
    dynamics = ContactDynamics(point_mass(3, mass=1.7), H, mu)
    start = np.concatenate([np.zeros(3), speed * direction])
    rollout = dynamics.rollout(start, np.zeros((12, 3)))
    expected = np.maximum(speed - mu * G * H * np.arange(13), 0)[:, None] * direction
    np.testing.assert_allclose(rollout.states[:, 3:], expected, atol=1e-13)
    stop = int(np.ceil(speed / (mu * G * H)))
    assert rollout.modes[:, 0].tolist() == [1] * (stop - 1) + [2] * (13 - stop)


def test_sticks_below_the_cone_and_slides_above():
    mass, mu = 2.0, 0.4
    dynamics = ContactDynamics(point_mass(2, mass=mass), H, mu)
    limit, start = mu * mass * G, np.zeros(4)
    below = dynamics.step(start, [0.999 * limit, 0])
    np.testing.assert_allclose(below.state, 0, atol=1e-15)
    np.testing.assert_allclose(below.impulse, H * np.array([-0.999 * limit, mass * G]))
    above = dynamics.step(start, [1.5 * limit, 0])
    np.testing.assert_allclose(above.state[2], 0.5 * limit * H / mass)
    assert (below.modes[0], above.modes[0]) == (2, 1)


def test_lands_exactly_on_the_ground():
    dynamics = ContactDynamics(point_mass(2), H)
    rollout = dynamics.rollout([0, 0.3, 0, 0], np.zeros((20, 2)))
    touch = int(np.flatnonzero(rollout.modes[:, 0])[0])
    assert 3 <= touch <= 10
    # The touching step ends on the ground, and all later ones stay at rest there.
    np.testing.assert_allclose(rollout.states[touch + 1 :, 1], 0, atol=1e-16)
    np.testing.assert_allclose(rollout.states[touch + 2 :, 3], 0, atol=1e-14)
    assert np.abs(rollout.states[touch]).max() > 1e-3
    # What gravity brought in, the ground took out.
    assert rollout.impulses[:, 1].sum() == pytest.approx(20 * H * G, rel=1e-12)


def test_frictionless_contact_leaves_the_tangent_alone():
    dynamics = ContactDynamics(point_mass(3), H, friction=0.0)
    rollout = dynamics.rollout([0, 0, 0, 1.0, -2.0, 0], np.zeros((10, 3)))
    assert (rollout.impulses[..., :2] == 0).all()
    assert (rollout.states[:, 3:5] == [1.0, -2.0]).all()
    np.testing.assert_allclose(rollout.impulses[..., 2], H * G)


def test_contact_between_bodies_conserves_their_momentum():
    masses = (1.0, 3.0)
    dynamics = ContactDynamics(two_bodies(masses, gravity=0.0), H, friction=0.5)
    x = np.array([0, 1.0, 0.3, 2.005, 0.5, 0.2, -0.1, -2.0])
    rollout = dynamics.rollout(x, np.zeros((4, 4)))
    assert rollout.modes[0, 1] > 0 and rollout.impulses[0, 3] > 0
    momentum = rollout.states[:, 4:] @ np.diag(np.repeat(masses, 2))
    total = momentum[:, :2] + momentum[:, 2:]
    np.testing.assert_allclose(total, total[[0]].repeat(5, 0), atol=1e-13)
    assert np.abs(momentum[1] - momentum[0]).max() > 0.1


def test_ground_carries_the_weight_of_a_stack():
    dynamics = ContactDynamics(two_bodies((1.0, 3.0)), H, friction=0.5)
    step = dynamics.step([0, 0, 0, 1.0, 0, 0, 0, 0], np.zeros(4))
    np.testing.assert_allclose(step.impulse, H * G * np.array([0, 4.0, 0, 3.0]), atol=1e-13)
    assert step.modes.tolist() == [2, 2]


def test_system_without_contacts():
    system = contact_free()
    dynamics = ContactDynamics(system, H)
    x, u = samples(dynamics, 20)
    step = dynamics.step(x, u)
    assert step.impulse.shape == (20, 0) and step.modes.shape == (20, 0)
    assert (step.residual == 0).all()
    for k in range(20):
        state, _ = twin.step(system, H, np.zeros(0), x[k], u[k])
        np.testing.assert_allclose(step.state[k], state, rtol=1e-13, atol=1e-14)


def test_mass_scale_acts_like_a_heavier_mass():
    x, u = samples(ContactDynamics(point_mass(3), H))
    scaled = ContactDynamics(point_mass(3, mass=1.0), H, theta=np.log(2.5)).step(x, u)
    heavy = ContactDynamics(point_mass(3, mass=2.5), H).step(x, u)
    np.testing.assert_allclose(scaled.state, heavy.state, rtol=1e-12, atol=1e-13)


# ---------------------------------------------------------------------------- a pure function


@pytest.mark.parametrize("name", ["point mass 3-D", "coupled 3, 2, 1, 3"])
def test_same_arguments_give_the_same_bits_and_stay_untouched(name):
    dynamics = SYSTEMS[name]
    x, u = samples(dynamics)
    x0, u0 = x.copy(), u.copy()
    first, second = dynamics.step(x, u), dynamics.step(x[::-1], u[::-1])
    for a, b in zip(first, second):
        assert np.array_equal(a, b[::-1])
    assert np.array_equal(x, x0) and np.array_equal(u, u0)


@pytest.mark.parametrize("name", SYSTEMS)
def test_batch_axes_are_a_loop(name):
    dynamics = SYSTEMS[name]
    x, u = samples(dynamics, 6)
    batch = dynamics.step(x.reshape(2, 3, -1), u.reshape(2, 3, -1))
    assert batch.modes.shape == (2, 3, dynamics.nc) and batch.residual.shape == (2, 3)
    for k in range(6):
        one = dynamics.step(x[k], u[k])
        for a, b in zip(batch, one):
            assert np.array_equal(a[k // 3, k % 3], b)


def test_batch_axes_are_broadcast():
    dynamics = SYSTEMS["point mass 2-D"]
    x, u = samples(dynamics, 5)
    grid = dynamics.step(x[:, None], u[None])
    assert grid.state.shape == (5, 5, 4)
    assert np.array_equal(grid.state[1, 2], dynamics.step(x[1], u[2]).state)
    rollouts = dynamics.rollout(x[:, None], np.stack([u, -u]))
    assert rollouts.states.shape == (5, 2, 6, 4)
    assert np.array_equal(rollouts.states[3, 1], dynamics.rollout(x[3], -u).states)


def test_threads_give_the_same_bits():
    system = random_system((3, 1), 2)
    one, two = (ContactDynamics(system, H, 0.6, threads=k) for k in (1, 2))
    x, u = samples(one, 65)
    for a, b in zip(one.step(x, u), two.step(x, u)):
        assert np.array_equal(a, b)
    rollout = one.rollout(x[0], u)
    transitions = [d.linearize(rollout).with_gradient(FullCone(0.1)) for d in (one, two)]
    for a, b in zip(*transitions):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("name", SYSTEMS)
def test_warm_start_changes_nothing_but_time(name):
    dynamics = SYSTEMS[name]
    x, u = samples(dynamics, 20, seed=3)
    cold = dynamics.rollout(x[0], 0.2 * u)
    rng = np.random.default_rng(0)
    for warm in (cold.impulses, rng.standard_normal(cold.impulses.shape)):
        again = dynamics.rollout(x[0], 0.2 * u, impulses=warm)
        np.testing.assert_allclose(again.states, cold.states, rtol=1e-12, atol=1e-12)
        assert np.array_equal(again.modes, cold.modes)


# ------------------------------------------------------------------------------------ rollouts


def nominal(dynamics: ContactDynamics, N: int, seed: int = 0) -> dict[str, np.ndarray]:
    """A random nominal trajectory with a policy around it."""
    rng = np.random.default_rng(seed)
    return {
        "states": 0.1 * rng.standard_normal((N + 1, dynamics.nx)),
        "feedforward": rng.standard_normal((N, dynamics.nu)),
        "feedback": 0.1 * rng.standard_normal((N, dynamics.nu, dynamics.ndx)),
    }


@pytest.mark.parametrize("name", ["point mass 2-D", "two bodies", "coupled 1, 2, 3"])
def test_closed_loop_rollout_is_a_loop_over_steps(name):
    dynamics, N = SYSTEMS[name], 8
    policy, U = nominal(dynamics, N), samples(dynamics, N, seed=2)[1]
    lower, upper = np.full(dynamics.nu, -1.0), np.full(dynamics.nu, 1.5)
    lower[0] = -np.inf
    start, alphas = policy["states"][0] + 0.05, np.array([1.0, 0.5, 0.0])
    rollout = dynamics.rollout(start, U, alphas=alphas, lower=lower, upper=upper, **policy)
    assert rollout.states.shape == (3, N + 1, dynamics.nx)
    assert (rollout.controls == -1.0).any() and (rollout.controls == 1.5).any()
    assert rollout.controls.min() < -1.0
    for i, alpha in enumerate(alphas):
        x, worst = start, 0.0
        for k in range(N):
            dx = x - policy["states"][k]
            u = U[k] + alpha * policy["feedforward"][k] + policy["feedback"][k] @ dx
            u = np.clip(u, lower, upper)
            step = dynamics.step(x, u)
            np.testing.assert_allclose(rollout.controls[i, k], u, rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(rollout.states[i, k + 1], step.state, rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(rollout.velocities[i, k], step.velocity, atol=1e-9)
            assert np.array_equal(rollout.modes[i, k], step.modes)
            x, worst = step.state, max(worst, float(step.residual))
        assert rollout.residual[i] <= 1e-10


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_rollout_with_gaps_keeps_the_part_not_stepped(alpha):
    dynamics, N = SYSTEMS["coupled 2, 2"], 6
    policy, U = nominal(dynamics, N), samples(dynamics, N)[1]
    X = policy["states"]
    gaps = dynamics.step(X[:-1], U).state - X[1:]
    rollout = dynamics.rollout(X[0], U, alphas=np.array([alpha]), gaps=gaps, **policy)
    x = X[0]
    for k in range(N):
        u = U[k] + alpha * policy["feedforward"][k] + policy["feedback"][k] @ (x - X[k])
        x = dynamics.step(x, u).state - (1 - alpha) * gaps[k]
        np.testing.assert_allclose(rollout.states[0, k + 1], x, rtol=1e-9, atol=1e-10)
    if alpha == 0:
        np.testing.assert_allclose(rollout.states[0], X, atol=1e-12)


def test_rollout_that_leaves_the_finite_numbers_says_so():
    system = exploding_spring(1e160)
    rollout = ContactDynamics(system, 1.0).rollout([1.0, 0.0], np.zeros((10, 1)))
    assert rollout.residual == np.inf
    finite = np.isfinite(rollout.states).all(axis=1)
    assert finite[0] and not finite[-1] and not finite[np.argmin(finite) :].any()


def test_rollout_of_no_steps_is_its_start():
    rollout = SYSTEMS["point mass 2-D"].rollout([1.0, 2, 3, 4], np.zeros((0, 2)))
    assert np.array_equal(rollout.states, [[1.0, 2, 3, 4]])


def test_difference_and_integrate_are_inverse():
    dynamics = SYSTEMS["coupled 3, 1"]
    x, _ = samples(dynamics, 10)
    dx = dynamics.difference(x[:1], x)
    assert dx.shape == x.shape
    np.testing.assert_allclose(dynamics.integrate(x[0], dx), x, atol=1e-14)


# -------------------------------------------------------------------------------------- misuse

NAN2, X4 = [np.nan, 0.0], np.zeros(4)


@pytest.mark.parametrize(
    ("argument", "call"),
    {
        "x: length": ("x", lambda d: d.step(np.zeros(3), np.zeros(2))),
        "x: NaN": ("x", lambda d: d.step([0, 0, np.nan, 0], np.zeros(2))),
        "x: text": ("x", lambda d: d.step("abc", np.zeros(2))),
        "x: scalar": ("x", lambda d: d.step(1.0, np.zeros(2))),
        "u: length": ("u", lambda d: d.step(X4, np.zeros(3))),
        "u: infinite": ("u", lambda d: d.step(X4, [np.inf, 0])),
        "u: batch": ("u", lambda d: d.step(np.zeros((3, 4)), np.zeros((2, 2)))),
        "transition x": ("x", lambda d: d.transition(np.zeros(5), np.zeros(2))),
        "start": ("start", lambda d: d.rollout(np.zeros(5), np.zeros((3, 2)))),
        "start: NaN": ("start", lambda d: d.rollout([np.nan, 0, 0, 0], np.zeros((3, 2)))),
        "start: batch": ("start", lambda d: d.rollout(np.zeros((3, 4)), np.zeros((2, 5, 2)))),
        "controls": ("controls", lambda d: d.rollout(X4, np.zeros(2))),
        "controls: NaN": ("controls", lambda d: d.rollout(X4, [NAN2])),
        "feedforward": ("feedforward", lambda d: closed(d, feedforward=np.zeros((2, 2)))),
        "feedback": ("feedback", lambda d: closed(d, feedback=np.zeros((3, 4, 2)))),
        "feedback alone": (
            "states",
            lambda d: d.rollout(X4, np.zeros((3, 2)), feedback=np.zeros((3, 2, 4))),
        ),
        "states": ("states", lambda d: closed(d, states=np.zeros((3, 4)))),
        "alphas": ("alphas", lambda d: closed(d, alphas=1.0)),
        "alphas: batch": (
            "alphas",
            lambda d: d.rollout(np.zeros((2, 4)), np.zeros((3, 2)), alphas=np.ones(2)),
        ),
        "lower": ("lower", lambda d: closed(d, lower=np.zeros(3))),
        "lower: NaN": ("lower", lambda d: closed(d, lower=NAN2)),
        "upper: text": ("upper", lambda d: closed(d, upper="high")),
        "gaps": ("gaps", lambda d: closed(d, gaps=np.zeros((4, 4)))),
        "impulses": ("impulses", lambda d: closed(d, impulses=np.zeros((3, 3)))),
        "rollout": (
            "rollout",
            lambda d: d.linearize(d.rollout(np.zeros((2, 4)), np.zeros((3, 2)))),
        ),
        "rollout: shape": (
            "rollout",
            lambda d: d.linearize(
                d.rollout(X4, np.zeros((3, 2)))._replace(states=np.zeros((3, 4)))
            ),
        ),
        "difference": ("x1", lambda d: d.difference(X4, np.zeros(3))),
        "integrate": ("dx", lambda d: d.integrate(X4, np.zeros(3))),
        "vjp impulse": ("impulse", lambda d: vjp(d, impulse=np.zeros(3))),
        "vjp velocity": ("velocity", lambda d: vjp(d, velocity=np.zeros(3))),
        "vjp modes": ("modes", lambda d: vjp(d, modes=np.zeros(2, dtype=np.int32))),
        "vjp modes: value": ("modes", lambda d: vjp(d, modes=np.array([3], dtype=np.int32))),
        "vjp g": ("g", lambda d: vjp(d, g=np.zeros(2))),
        "time_step": ("time_step", lambda d: ContactDynamics(d.system, 0.0)),
        "friction": ("friction", lambda d: ContactDynamics(d.system, 0.1, friction=-0.1)),
        "friction: shape": ("friction", lambda d: ContactDynamics(d.system, 0.1, friction=[1, 2])),
        "theta": ("theta", lambda d: ContactDynamics(d.system, 0.1, theta=[0, 0])),
        "threads": ("threads", lambda d: ContactDynamics(d.system, 0.1, threads=0)),
    }.values(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_misuse_is_one_clear_error(argument, call):
    with pytest.raises(ValueError, match=f"`{argument}`"):
        call(SYSTEMS["point mass 2-D"])


def closed(dynamics: ContactDynamics, **arguments) -> Rollout:
    return dynamics.rollout(X4, np.zeros((3, 2)), **{"states": np.zeros((4, 4)), **arguments})


def vjp(dynamics: ContactDynamics, **arguments):
    step = dynamics.step(X4, np.zeros(2))
    given = {
        "impulse": step.impulse,
        "velocity": step.velocity,
        "modes": step.modes,
        "g": np.ones(4),
    }
    return dynamics.vjp(X4, np.zeros(2), **{**given, **arguments})


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("mass_matrix", {"mass_matrix": np.array([[1, 2], [0, 1.0]])}),
        ("mass_matrix", {"mass_matrix": -np.eye(2)}),
        ("mass_matrix", {"mass_matrix": np.zeros((2, 3))}),
        ("actuation", {"actuation": np.zeros((3, 2))}),
        ("bias", {"bias": np.zeros(3)}),
        ("contact_jacobian", {"contact_jacobian": np.zeros((1, 2))}),
        ("contact_dims", {"contact_dims": (4,)}),
        ("gap_jacobian", {"gap_jacobian": np.zeros((2, 2))}),
        ("gap_offset", {"gap_offset": [np.nan]}),
        ("stiffness", {"stiffness": np.zeros(2)}),
        ("damping", {"damping": np.zeros((3, 3))}),
    ],
)
def test_linear_system_refuses(argument, change):
    good = {
        "mass_matrix": np.eye(2),
        "actuation": np.eye(2),
        "bias": np.zeros(2),
        "contact_jacobian": np.eye(2),
        "contact_dims": (2,),
        "gap_jacobian": np.array([[0.0, 1]]),
        "gap_offset": np.zeros(1),
    }
    LinearSystem(**good)
    with pytest.raises(ValueError, match=f"`{argument}`"):
        LinearSystem(**{**good, **change})


@pytest.mark.parametrize(
    ("argument", "values"),
    [("dimension", {"dimension": 4}), ("mass", {"mass": 0}), ("gravity", {"gravity": -1})],
)
def test_point_mass_refuses(argument, values):
    with pytest.raises(ValueError, match=f"`{argument}`"):
        point_mass(**values)
