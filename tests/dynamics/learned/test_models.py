"""What holds of every learned model, whatever its weights: the physics that its form promises."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd.functional import hessian, jacobian

from cito.dynamics.learned.lagrangian import StructuredLagrangian
from cito.dynamics.learned.model import Model
from cito.dynamics.learned.model_file import KINDS, new_model
from cito.dynamics.learned.motions import Motions
from cito.dynamics.learned.shape import Scales, Shape
from cito.solvers.model_learning import Training, learn

N = 10
WITH_ENERGY = [kind for kind, model in KINDS.items() if model.has_energy]
STRUCTURED = [kind for kind in KINDS if kind.endswith("structured")]


def some_motions(n: int = 2, count: int = 40, seed: int = 0) -> Motions:
    rng = np.random.default_rng(seed)
    spread = np.array([1.0, 2.0, 9.0, 3.0, 2.5, 4.0])[:, None, None]
    return Motions(*(spread * rng.standard_normal((6, count, n))))


def a_model(kind: str, periodic: tuple[bool, ...] = (True, False), **shape: object) -> Model:
    """With random weights; a black-box Hamiltonian has no momentum for a velocity before it has
    learned that momenta grow with velocities."""
    motions = some_motions(len(periodic))
    if kind == "hamiltonian-black-box":
        v = motions.v
        motions = Motions(motions.q, v, motions.a, motions.tau, 0.5 * v, motions.tau)
    model = new_model(kind, motions, periodic, seed=3, width=9, **shape)
    if kind == "hamiltonian-black-box":
        learn(model, motions, Training(steps=100, batch=40, rounds=0))
    return model


@pytest.fixture(params=list(KINDS))
def model(request: pytest.FixtureRequest) -> Model:
    return a_model(request.param)


@pytest.fixture
def states() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.uniform(-2, 2, (N, 2)), rng.standard_normal((N, 2)), rng.standard_normal((N, 2))


def reachable(model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Samples whose velocity belongs to a momentum: all but in a black box that was not trained."""
    found = model.conjugate(torch.from_numpy(q), torch.from_numpy(v)).isfinite().all(1).numpy()
    assert found.sum() >= 3
    return found


@pytest.mark.parametrize("kind", WITH_ENERGY)
def test_inverse_and_forward_model_undo_each_other(kind: str, states) -> None:
    model, (q, v, tau) = a_model(kind), states
    q, v, tau = (x[reachable(model, q, v)] for x in (q, v, tau))
    a = model.forward(q, v, tau)
    ridge = model._ridge.numpy() if kind == "lagrangian-black-box" else np.zeros((2, 2))
    np.testing.assert_allclose(model.inverse(q, v, a) + a @ ridge, tau, rtol=1e-6, atol=1e-7)
    assert np.abs(a).min() > 1e-6


@pytest.mark.parametrize("kind", WITH_ENERGY)
def test_the_motors_power_is_the_change_of_energy(kind: str, states) -> None:
    model, (q, v, a) = a_model(kind), states
    q, v, a = (x[reachable(model, q, v)] for x in (q, v, a))
    tau, h = model.inverse(q, v, a), 1e-4
    ahead = model.energy(q + h * v + h * h / 2 * a, v + h * a)
    behind = model.energy(q - h * v + h * h / 2 * a, v - h * a)
    power = (v * tau).sum(1)
    scale = np.abs(power).max() + 1
    np.testing.assert_allclose((ahead - behind) / (2 * h), power, atol=1e-5 * scale)
    assert np.abs(power).max() > 1e-2


@pytest.mark.parametrize("kind", ["lagrangian-structured", "lagrangian-black-box"])
def test_the_torque_is_that_of_the_euler_lagrange_equation(kind: str, states) -> None:
    """d/dt L_v - L_q by PyTorch's own derivatives of the Lagrangian."""
    model, (q, v, a) = a_model(kind), (torch.from_numpy(x) for x in states)

    def lagrangian(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        if isinstance(model, StructuredLagrangian):
            terms = model.terms(q[None])
            return 0.5 * v @ terms.H[0] @ v - terms.V[0]
        return model.derivatives(q[None], v[None])[0][0]

    for k, (q_k, v_k, a_k) in enumerate(zip(q, v, a)):
        L_q = jacobian(lagrangian, (q_k, v_k))[0]
        _, (L_vq, L_vv) = hessian(lagrangian, (q_k, v_k))
        expected = (L_vv @ a_k + L_vq @ v_k - L_q).detach().numpy()
        found = model.inverse(*(x[k] for x in states))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", ["hamiltonian-structured", "hamiltonian-black-box"])
def test_the_flow_is_hamiltons(kind: str, states) -> None:
    model, (q, p, tau) = a_model(kind), (torch.from_numpy(x) for x in states)
    rate = model.rate(q, p, tau)
    H = lambda q, p: model.total_energy(q[None], p[None])[0]  # noqa: E731
    for k in range(N):
        H_q, H_p = jacobian(H, (q[k], p[k]))
        torch.testing.assert_close(rate.q[k], H_p, rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(rate.s[k], tau[k] - H_q, rtol=1e-9, atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    size=st.floats(0.0, 30.0),
    q=st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3),
)
def test_the_mass_matrix_is_positive_definite_everywhere(
    seed: int, size: float, q: list[float]
) -> None:
    """At any place and with any weights, even ones that no training would make."""
    one = np.ones(3)
    shape = Shape((True, True, False), width=8)
    model = StructuredLagrangian(shape, Scales(one, one, one, one, one, one), seed)
    model.set_weights({name: size * W for name, W in model.weights.items()})
    H = model.mass_matrix(q)
    np.testing.assert_array_equal(H, H.T)
    L = np.linalg.cholesky(H + 1e-12 * np.abs(H).max() * np.eye(3))
    assert (np.diag(L) >= 0.99 * shape.floor).all()


@pytest.mark.parametrize("kind", STRUCTURED)
def test_a_turn_of_a_periodic_joint_changes_nothing(kind: str, states) -> None:
    model, (q, v, a) = a_model(kind), states
    turned = q + np.array([2 * np.pi, 0.0])
    np.testing.assert_allclose(model.inverse(turned, v, a), model.inverse(q, v, a), atol=1e-9)
    moved = q + np.array([0.0, 2 * np.pi])
    assert np.abs(model.inverse(moved, v, a) - model.inverse(q, v, a)).max() > 1e-3


def test_parts_of_the_torque_make_the_whole(model: Model, states) -> None:
    q, v, a = states
    if model.has_energy:
        q, v, a = (x[reachable(model, q, v)] for x in (q, v, a))
    parts = model.parts(q, v, a)
    np.testing.assert_allclose(sum(parts.values()), model.inverse(q, v, a), atol=1e-9)
    np.testing.assert_allclose(parts["gravity"], model.inverse(q, 0 * v, 0 * a), atol=1e-12)


def test_arrays_may_have_any_leading_axes_and_are_broadcast(model: Model) -> None:
    q, v, tau = np.ones(2), 1e-2 * np.ones((3, 1, 2)), np.ones((1, 4, 2))
    a = model.forward(q, v, tau)
    assert a.shape == (3, 4, 2)
    one = model.forward(q, v[1, 0], tau[0, 2])
    np.testing.assert_allclose(a[1, 2], one, rtol=1e-9)  # equal where both are NaN


def test_single_precision_is_close_to_double(states) -> None:
    q, v, a = states
    double, single = (
        a_model("lagrangian-structured", dtype=dtype) for dtype in ("float64", "float32")
    )
    single.set_weights(double.weights)
    np.testing.assert_allclose(single.inverse(q, v, a), double.inverse(q, v, a), rtol=1e-3)
    assert single.inverse(q, v, a).dtype == np.float64


def test_a_plain_network_has_no_energy() -> None:
    with pytest.raises(ValueError, match="a model of kind network has no energy"):
        a_model("network").energy([0, 0], [0, 0])


def test_misuse_is_told_in_one_sentence(model: Model) -> None:
    with pytest.raises(ValueError, match=r"`v` must have shape \(\.\.\., 2\), got \(3,\)"):
        model.inverse([0, 0], [0, 0, 0], [0, 0])
    with pytest.raises(ValueError, match="`q` must be finite, got nan"):
        model.forward([0, np.nan], [0, 0], [0, 0])
    with pytest.raises(ValueError, match="shapes must fit each other"):
        model.inverse(np.zeros((3, 2)), np.zeros((4, 2)), np.zeros(2))


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"kind": "delan"}, "`kind` must be one of lagrangian-structured, "),
        ({"periodic": (True,)}, "`periodic` must have 2 entries, got 1"),
        ({"width": 0}, "`width` must be a whole number >= 1"),
        ({"dtype": "half"}, "`dtype` must be one of float64, float32"),
        ({"floor": -1.0}, "`floor` must be > 0"),
        ({"seed": -1}, "`seed` must be a whole number >= 0"),
        ({"motions": None}, "`motions` must be Motions, got NoneType"),
    ],
)
def test_a_model_that_cannot_be_is_refused(wrong: dict, message: str) -> None:
    options = {"kind": "network", "motions": some_motions(), "periodic": (True, True)} | wrong
    with pytest.raises(ValueError, match=message):
        new_model(**options)


def test_momenta_are_asked_for_where_they_are_needed() -> None:
    whole = some_motions()
    without = Motions(whole.q, whole.v, whole.a, whole.tau)
    with pytest.raises(ValueError, match="`motions` must hold momenta p, pdot for a model of kind"):
        new_model("hamiltonian-structured", without, (True, True))
    assert new_model("lagrangian-structured", without, (True, True)).n == 2
