"""PPO: advantages against their sum, the loss against finite differences, a tiny task learned."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cito.problems.locomotion import LocomotionEnvironment, NotFinite, locomotion_task
from cito.problems.locomotion.environment import Outcome
from cito.solvers.learning.advantages import advantages
from cito.solvers.learning.critic import Critic
from cito.solvers.learning.ppo import PPO, PPOSettings
from cito.solvers.learning.ppo_loss import Batch, log_density, loss

SMALL = PPOSettings(horizon=4, epochs=2, hidden=(16,))


def test_advantages_are_the_discounted_sum_of_errors() -> None:
    random = np.random.default_rng(0)
    T, gamma, decay = 9, 0.97, 0.9
    r, V, after = random.standard_normal((3, T, 1))
    ended = np.zeros((T, 1), bool)
    ended[4] = True
    A = advantages(r, V, after, ended, gamma, decay)
    for t in range(T):
        expected = 0.0
        for k in range(t, 5 if t <= 4 else T):
            error = r[k, 0] + gamma * after[k, 0] - V[k, 0]
            expected += (gamma * decay) ** (k - t) * error
        assert A[t, 0] == pytest.approx(expected, abs=1e-13)


def test_with_a_decay_of_one_advantages_are_returns_less_values() -> None:
    random = np.random.default_rng(1)
    r, V = random.standard_normal((2, 6, 3))
    end = random.standard_normal(3)
    A = advantages(r, V, np.vstack([V[1:], end[None]]), np.zeros((6, 3), bool), 0.9, 1.0)
    returns = sum(0.9**k * r[k] for k in range(6)) + 0.9**6 * end
    assert np.allclose(A[0], returns - V[0])


def batch(n: int = 40, nj: int = 3) -> tuple[Batch, Any, Any, Any]:
    """Steps whose ratios are on both sides of the clip, and means, deviations, values."""
    random = np.random.default_rng(2)
    action, mean = random.standard_normal((2, n, nj))
    s = random.uniform(0.5, 1.0, nj)
    old = log_density(action, mean, s) + 0.4 * random.standard_normal(n)
    A, R, V = random.standard_normal((3, n))
    return Batch(np.zeros((n, 1)), action, old, A, R), mean, s, V


def test_the_gradient_of_the_loss_is_that_of_finite_differences() -> None:
    b, m, s, V = batch()
    weights = (0.2, 0.5, 0.01)
    found = loss(b, m, s, V, *weights)
    assert 0.2 < found.clipped < 0.9
    random = np.random.default_rng(3)
    dm, ds, dV = (random.standard_normal(x.shape) for x in (m, s, V))
    h = 1e-6
    plus = loss(b, m + h * dm, s + h * ds, V + h * dV, *weights).value
    minus = loss(b, m - h * dm, s - h * ds, V - h * dV, *weights).value
    slope = (found.mean * dm).sum() + found.deviation @ ds + found.critic @ dV
    assert slope == pytest.approx((plus - minus) / (2 * h), rel=1e-6)


def test_what_is_clipped_has_no_gradient() -> None:
    b, m, s, V = batch()
    r = np.exp(log_density(b.action, m, s) - b.log_density)
    found = loss(b, m, s, V, 0.2, 0.5, 0.01)
    held = ((r > 1.2) & (b.advantage > 0)) | ((r < 0.8) & (b.advantage < 0))
    assert 5 < held.sum() < 35
    assert (found.mean[held] == 0).all() and (abs(found.mean[~held]).min(axis=1) > 0).all()


def test_the_density_is_that_of_a_normal_distribution() -> None:
    from scipy.stats import norm

    a, m, s = np.array([0.3, -1.0]), np.array([0.1, 0.2]), np.array([0.5, 1.5])
    assert log_density(a, m, s) == pytest.approx(norm(m, s).logpdf(a).sum())


def test_the_critic_is_linear_in_its_last_layer() -> None:
    critic, o = Critic((5, 8, 1), seed=1), np.random.default_rng(0).standard_normal((7, 5))
    critic.weights[-1] *= 1e4
    assert abs(critic(o)).max() > 1.5
    h = critic.layers(o)
    g = critic.gradient(h[:-1], critic.transposed(h, np.ones((7, 1)))[0])
    d = np.random.default_rng(1).standard_normal(len(g))
    values = []
    for sign in (1, -1):
        moved = Critic((5, 8, 1))
        moved.parameters[:] = critic.parameters + sign * 1e-6 * d
        values.append(moved(o).sum())
    assert g @ d == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-6)


class Points:
    """Points on a line that are pushed and shall come to 0.5; outside of [-2, 2] they fall."""

    observation_size = action_size = 1
    time, count = 0, 16

    def __init__(self) -> None:
        self.steps = SimpleNamespace(time_forward=0.0)
        self.random = np.random.default_rng(0)
        self.x, self.age = self._begin(self.count), np.zeros(self.count)

    def _begin(self, n: int) -> Any:
        return self.random.uniform(-1, 1, n)

    def observe(self) -> Any:
        return self.x[:, None].copy()

    def step(self, action: Any) -> Outcome:
        self.x = self.x + 0.3 * np.clip(action[:, 0], -1, 1)
        self.age += 1
        cost, fell, last = (self.x - 0.5) ** 2, abs(self.x) > 2, self.observe()
        over = self.age >= 20
        self.x[fell | over] = self._begin(int((fell | over).sum()))
        self.age[fell | over] = 0
        return Outcome(self.observe(), cost, {"place": cost}, fell, over & ~fell, last)


def test_a_tiny_task_is_learned() -> None:
    settings = PPOSettings(rate=5e-3, reward_scale=0.3, hidden=(16,))
    ppo = PPO(Points(), 60 * 32 * 16, settings)  # type: ignore[arg-type]
    rows = [ppo.update() for _ in range(ppo.updates)]
    assert ppo.finished and ppo.steps == 60 * 32 * 16
    assert rows[0]["cost"] > 0.3 and np.mean([row["cost"] for row in rows[-5:]]) < 0.1
    x = np.linspace(-1, 1.5, 11)[:, None]
    for _ in range(20):
        x = x + 0.3 * ppo.policy(x)
    assert abs(x - 0.5).max() < 0.15
    assert sum(row["falls"] for row in rows[-5:]) == 0
    assert 0.2 <= ppo.deviation[0] < 0.7


def trotting(seed: int = 1) -> PPO:
    e = LocomotionEnvironment(locomotion_task("trot"), 2, seed=seed)
    return PPO(e, 80, SMALL, seed=seed)


def test_a_restored_run_goes_on_bit_by_bit() -> None:
    first, second = trotting(), trotting()
    for _ in range(4):
        first.update()
    second.restore({k: v.copy() for k, v in first.arrays().items()}, first.counters())
    for _ in range(4):
        assert first.update() == second.update()
    for name, array in first.arrays().items():
        assert np.array_equal(array, second.arrays()[name]), name


def test_chunks_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One chunk gives the gradient of many but for rounding, one thread that of two exactly."""
    first = trotting()
    batch, _ = first._walk()
    whole, share = first._gradient(batch, ThreadPoolExecutor(1))
    monkeypatch.setattr("cito.solvers.learning.ppo.CHUNK", 5)
    parts, same = first._gradient(batch, ThreadPoolExecutor(1))
    assert abs(whole - parts).max() < 1e-5 * abs(whole).max() and same == pytest.approx(share)
    one, two = trotting(), trotting()
    two.threads = 2
    for _ in range(2):
        assert one.update() == two.update()
    assert np.array_equal(one.policy.parameters, two.policy.parameters)


def test_deviations_stay_within_their_bounds() -> None:
    ppo = trotting()
    ppo._step(np.full(len(ppo.adam.mean), 1e6))
    ppo.deviation[:] = 0.2
    ppo._step(np.full(len(ppo.adam.mean), 1e6))
    assert (ppo.deviation == 0.2).all()


@pytest.mark.parametrize("where", ("parameters", "state"))
def test_numbers_that_are_none_are_named(where: str) -> None:
    ppo = trotting()
    if where == "state":
        ppo.environment.state[1, 3] = np.nan
    else:
        ppo.critic.parameters[2] = np.inf
    with pytest.raises(NotFinite, match=f"the {where} of (environment 1|critic 0), entry"):
        ppo.update()


def test_misuse_is_told() -> None:
    with pytest.raises(ValueError, match="`deviation` must be within"):
        PPOSettings(deviation=0.1)
    with pytest.raises(ValueError, match=r"`decay` must be in \[0, 1\), got 1.0"):
        PPOSettings(decay=1.0)
