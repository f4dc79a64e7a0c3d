"""What the benchmark of learned dynamics measures, on small models and on known answers."""

import json

import numpy as np
import pytest

from cito.benchmarks import lagrangian
from cito.benchmarks import lagrangian_measures as measures
from cito.benchmarks.lagrangian_control import Size, arm_over_the_floor, attempts, fall
from cito.dynamics.learned.model_file import KINDS
from cito.problems.model_data import truth
from cito.solvers.model_learning import Training

SMALL = Size(600, 16, Training(steps=100, batch=64, rounds=7, samples=500))
TINY = Size(60, 6, Training(steps=5, batch=32, rounds=1, samples=60))


@pytest.fixture(scope="module")
def learned() -> dict[str, dict]:
    kinds = ("lagrangian-structured", "network")
    return {kind: lagrangian.model_row("uniform", kind, 0, SMALL) for kind in kinds}


def test_structure_lowers_the_torque_error_tenfold_on_uniform_samples(learned) -> None:
    structured, plain = learned["lagrangian-structured"], learned["network"]
    assert plain["torque_error"] > 10 * structured["torque_error"]
    assert structured["valid_time"] > plain["valid_time"]
    assert structured["energy_drift"] < 0.1


def test_rows_are_plain_values_with_name_and_seed(learned) -> None:
    for kind, row in learned.items():
        assert row["name"] == f"uniform/{kind}" and row["seed"] == 0
        assert set(lagrangian.MEASURES[:6]) < set(json.loads(json.dumps(row)))


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_of_model_is_measured_on_handwriting(kind: str) -> None:
    row = lagrangian.model_row("characters", kind, 1, TINY)
    assert row["name"] == f"characters/{kind}"
    assert 0 <= row["valid_time"] < 3 and row["torque_error"] > 0


def test_the_integration_is_of_fourth_order() -> None:
    """A pendulum of 1 rad/s: the error falls by 16 as the steps are halved."""

    def rate(q, v, tau):
        return v, tau - q

    def error(step: float) -> float:
        times = np.arange(0, 1 + 1e-9, step)
        start, rest = np.ones((1, 1)), np.zeros((1, 1))
        q, v = measures.integrate(rate, start, rest, lambda t: rest, times)
        return abs(float(q[-1, 0, 0]) - np.cos(1.0))

    assert error(0.1) / error(0.05) == pytest.approx(16, rel=0.1)


class Truth:
    """The true arm in the place of a model."""

    kind = "truth"

    def tensor(self, x):
        import torch

        return torch.tensor(np.asarray(x))

    def conjugate(self, q, v):
        return v

    def rate(self, q, s, tau):
        from cito.dynamics.learned.model import Rate

        M, c, _ = truth(measures.ARM.tree, q.numpy(), s.numpy())
        a = np.linalg.solve(M, (tau.numpy() - c)[..., None])[..., 0]
        return Rate(s, self.tensor(a))


def test_the_truth_stays_valid_to_the_end_and_keeps_its_energy() -> None:
    trial = measures.released(2, 0, 1.0)
    found = measures.forecast(Truth(), trial, measures.ARM.tree)
    np.testing.assert_array_equal(found.valid_times, trial.times[-1])
    assert found.energy_drift < 1e-3
    (written,) = measures.written("e")
    assert measures.forecast(Truth(), written).valid_times[0] == written.times[-1]


def test_the_valid_time_is_when_the_error_passes_its_bound() -> None:
    trial = measures.released(1, 0, 1.0)
    error = np.where(trial.times < 0.5, 0.09, 0.11)[:, None, None] / np.sqrt(2)
    moved = trial._replace(q=trial.q + error)
    first = measures.forecast(Truth(), moved._replace(q=np.vstack([trial.q[:1], moved.q[1:]])))
    assert first.valid_times[0] == pytest.approx(0.5, abs=0.021)


def test_errors_are_relative_to_the_variance() -> None:
    true = np.random.default_rng(0).standard_normal((500, 2)) * [1.0, 100.0]
    assert measures.relative(true.mean(0) + 0 * true, true) == pytest.approx(1.0)
    passive = true * [1.0, 0.0]
    assert measures.relative(passive + [0.0, 0.1], passive) == pytest.approx(0.005, rel=0.2)
    assert measures.relative(np.full_like(true, np.nan), true) == np.inf


def test_the_summary_has_spread_and_ratio(learned) -> None:
    other = {k: row | {"seed": 1, "torque_error": 3e-3} for k, row in learned.items()}
    swing = {"name": "furuta/mpc", "seed": 0, "success": True, "up_after": 1.0}
    rows = [*learned.values(), *other.values(), swing]
    summary = lagrangian.summarize(rows)
    assert summary["network_over_structured"][1] == 1.0
    spread = summary["uniform/network"]["torque_error"]
    assert spread["std"] > 0 and spread["mean"] == pytest.approx(
        (learned["network"]["torque_error"] + 3e-3) / 2
    )
    assert summary["furuta/mpc"]["success"]["mean"] == 1.0
    tables = lagrangian.tables(rows)
    assert len(tables) == 3 and tables[1][1][0][:2] == ["furuta/mpc", "100 %"]


def test_a_learned_cart_pole_swings_up_the_true_one() -> None:
    found = {a.row["name"]: a for a in attempts("cart-pole", 0, SMALL)}
    assert found.keys() == {"cart-pole/mpc", "cart-pole/energy"}
    assert all(a.row["success"] for a in found.values())
    for a in found.values():
        assert abs(a.states[0, 1]) < 0.06 and a.states.shape == (len(a.times), 4)


def test_a_learned_arm_falls_on_the_floor_as_the_true_one_does() -> None:
    row = fall(0, SMALL)
    assert 0.1 < row["touches_after"] < 0.9
    assert row["position_error"] < 0.3 and row["same_modes"] > 0.9
    assert arm_over_the_floor().contact_dims == (3,)
