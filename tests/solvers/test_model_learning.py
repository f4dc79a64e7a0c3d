"""Training: it learns, one seed gives one result, and an interruption leaves no trace."""

import sys

import numpy as np
import pytest

from cito.dynamics.learned.model import Model
from cito.dynamics.learned.model_file import KINDS, load_model, new_model, save_model
from cito.dynamics.learned.motions import Motions
from cito.solvers.model_learning import Training, learn, tensorboard

SHORT = Training(steps=30, batch=32, rounds=4, samples=200)


def pendulum_on_a_rail(count: int = 300, seed: int = 0) -> Motions:
    """m = 1 on a massless rod of 1 m under a cart of 2 kg: H = [[3, cos], [cos, 1]], V = -g cos."""
    rng = np.random.default_rng(seed)
    q, v, a = (rng.uniform(-s, s, (count, 2)) for s in (np.pi, 2.0, 6.0))
    sin, cos, g = np.sin(q[:, 1]), np.cos(q[:, 1]), 9.81
    p = np.stack([3 * v[:, 0] + cos * v[:, 1], cos * v[:, 0] + v[:, 1]], 1)
    turning = -sin * v[:, 1]
    Ma = np.stack([3 * a[:, 0] + cos * a[:, 1], cos * a[:, 0] + a[:, 1]], 1)
    Mdot_v = np.stack([turning * v[:, 1], turning * v[:, 0]], 1)
    dL = np.stack([0 * sin, -sin * v[:, 0] * v[:, 1] - g * sin], 1)
    return Motions(q, v, a, Ma + Mdot_v - dL, p, Ma + Mdot_v)


@pytest.fixture(scope="module")
def motions() -> Motions:
    return pendulum_on_a_rail()


def fresh(kind: str, motions: Motions, seed: int = 0) -> Model:
    return new_model(kind, motions, (False, True), seed=seed, width=16)


def same(a: Model, b: Model) -> bool:
    return all(np.array_equal(a.weights[name], b.weights[name]) for name in a.weights)


@pytest.mark.parametrize("kind", list(KINDS))
def test_training_lowers_the_loss(kind: str, motions: Motions) -> None:
    history = learn(fresh(kind, motions), motions, SHORT).history
    assert history.shape == (34,)
    assert history[-1] < 0.1 * history[:3].mean()


def test_a_structured_lagrangian_finds_mass_matrix_and_potential(motions: Motions) -> None:
    model = learn(
        fresh("lagrangian-structured", motions), motions, Training(steps=200, rounds=12)
    ).model
    unseen = pendulum_on_a_rail(seed=9)
    error = (model.inverse(unseen.q, unseen.v, unseen.a) - unseen.tau) / model.scales.tau
    assert np.sqrt((error**2).mean()) < 0.01
    angle = np.linspace(-np.pi, np.pi, 20)
    q = np.stack([0 * angle, angle], 1)
    H = model.mass_matrix(q)
    assert np.abs(H[:, 0, 0] - 3).max() < 0.1 and np.abs(H[:, 0, 1] - np.cos(angle)).max() < 0.1
    height = model.potential(q) - model.potential([0.0, 0.0])
    assert np.abs(height - 9.81 * (1 - np.cos(angle))).max() < 0.3


def test_one_seed_makes_one_model(motions: Motions) -> None:
    a, b, c = (
        learn(fresh("lagrangian-structured", motions, s), motions, SHORT).model for s in (0, 0, 1)
    )
    assert same(a, b) and not same(a, c)


@pytest.mark.parametrize("kind", ["lagrangian-structured", "network"])
@pytest.mark.parametrize("cut", [13, 30, 32])
def test_training_that_was_cut_ends_where_it_would_have_ended(
    kind: str, cut: int, motions: Motions, tmp_path
) -> None:
    """Within the first phase, between the two, and within the second."""
    path = tmp_path / "model.npz"
    whole = learn(fresh(kind, motions), motions, SHORT)
    learn(fresh(kind, motions), motions, SHORT, checkpoint=path, stop=lambda step: step == cut)
    part = load_model(path)
    assert not same(part, whole.model)
    resumed = learn(fresh(kind, motions), motions, SHORT, checkpoint=path, resume=True)
    assert same(resumed.model, whole.model)
    np.testing.assert_array_equal(resumed.history, whole.history)
    assert same(load_model(path), whole.model)
    again = learn(fresh(kind, motions), motions, SHORT, checkpoint=path, resume=True)
    assert same(again.model, whole.model)
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]


def test_a_checkpoint_of_another_training_is_refused(motions: Motions, tmp_path) -> None:
    path = tmp_path / "model.npz"
    model = fresh("network", motions)
    learn(model, motions, SHORT, checkpoint=path)
    other = Training(steps=30, batch=32, rounds=4, samples=200, rate=1e-3)
    with pytest.raises(ValueError, match="is of another training: training"):
        learn(model, motions, other, checkpoint=path, resume=True)
    with pytest.raises(ValueError, match="is of another training: seed 0 instead of 1"):
        learn(fresh("network", motions, 1), motions, SHORT, checkpoint=path, resume=True)
    save_model(model, path)
    with pytest.raises(ValueError, match="is of another training: training None"):
        learn(model, motions, SHORT, checkpoint=path, resume=True)
    with pytest.raises(ValueError, match="`checkpoint` must be given with `resume`"):
        learn(model, motions, SHORT, resume=True)


def test_samples_that_do_not_fit_are_refused(motions: Motions) -> None:
    model = fresh("hamiltonian-structured", motions)
    with pytest.raises(ValueError, match="must have n = 2 coordinates, got 1"):
        learn(model, Motions(*np.ones((4, 3, 1))))
    with pytest.raises(ValueError, match="must hold momenta"):
        learn(model, Motions(motions.q, motions.v, motions.a, motions.tau))
    with pytest.raises(ValueError, match="`motions` must be Motions, got ndarray"):
        learn(model, motions.q)


def test_a_loss_that_is_not_finite_is_told(motions: Motions) -> None:
    model = fresh("network", motions)
    model.set_weights({name: 1e200 * (W + 1) for name, W in model.weights.items()})
    with pytest.raises(ArithmeticError, match="the loss of network is not finite after 0 steps"):
        learn(model, motions, SHORT)


def test_a_writer_gets_the_curve(motions: Motions) -> None:
    seen = []

    class Writer:
        def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
            seen.append((tag, scalar_value, global_step))

    history = learn(fresh("network", motions), motions, SHORT, writer=Writer()).history
    assert [row[2] for row in seen] == list(range(1, 35))
    assert [row[1] for row in seen] == list(history) and seen[0][0] == "loss/network"


def test_without_tensorboard_the_error_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        tensorboard("runs")
