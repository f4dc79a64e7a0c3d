"""Gradients of windows by finite differences; a few updates lower the cost; runs continue."""

from dataclasses import replace

import numpy as np
import pytest

from cito.dynamics.gradients import GRADIENTS, Bundled, Exact, Randomized
from cito.problems.locomotion import LocomotionEnvironment, NotFinite, locomotion_task
from cito.solvers.learning.bptt import BPTT, BPTTSettings
from cito.solvers.learning.policy import Policy
from cito.solvers.learning.terminal_critic import TerminalCritic
from cito.solvers.learning.window import Clock, differentiate, simulate

SMALL = BPTTSettings(window=8, hidden=(16,))


@pytest.mark.parametrize("valued", [False, True])
def test_the_gradient_of_a_window_is_that_of_finite_differences(valued: bool) -> None:
    """Under latency and with a history of observations; robots stand, so that no mode changes.
    With a critic its value of the last observation is added, but for who began anew there."""
    task = locomotion_task("trot", history=3, command_interval=0.05).with_randomization(
        latency=(0.0, 0.02), motor_strength=(0.9, 1.1)
    )
    T = 5

    def fresh() -> LocomotionEnvironment:
        e = LocomotionEnvironment(task, 3, seed=2)
        e.age[0] = task.episode_steps - 3  # an episode ends within the window
        e.age[1] = task.episode_steps - T  # and one with it
        return e

    policy = Policy((fresh().observation_size, 10, 12), seed=1)
    clock, e = Clock(), fresh()
    window = simulate(e, policy, T, clock)
    assert window.fresh[:T, 0].any() and window.fresh[T].tolist() == [False, True, False]
    critic = TerminalCritic((e.observation_size, 7, 1), 0.9, 1e-3, 0.95, 10.0)
    beyond = critic.slope(e.observe(), T) if valued else None
    result = differentiate(e, policy, window, 0.9, Exact(), clock, beyond)
    weight = 0.9 ** np.arange(T)
    direction = np.random.default_rng(0).standard_normal(len(policy.parameters))

    def loss(s: float) -> float:
        moved = Policy(policy.sizes, seed=1)
        moved.parameters += s * direction
        e = fresh()
        total = e.cost(*simulate(e, moved, T, clock).stacked()).total
        value = critic.network(e.observe())[[0, 2], 0].sum() / 3 * 0.9**T / (1 - 0.9**T)
        return float(weight @ total.mean(axis=1) / weight.sum() + valued * value)

    eps = 1e-5
    slope = (loss(eps) - loss(-eps)) / (2 * eps)
    assert result.gradient @ direction == pytest.approx(slope, rel=1e-6)
    assert clock.seconds > 0


@pytest.mark.parametrize("name", GRADIENTS)
def test_every_gradient_by_name_gives_one(name: str) -> None:
    few = {"randomized": Randomized(samples=4), "bundled": Bundled(samples=2)}
    gradient = few.get(name, GRADIENTS[name]())
    e = LocomotionEnvironment(locomotion_task("trot"), 2)
    b = BPTT(e, 100, BPTTSettings(window=3, hidden=(8,), gradient=gradient))
    assert 0 < b.update()["gradient_norm"] < 1e6


def test_the_cost_drops() -> None:
    e = LocomotionEnvironment(locomotion_task("trot"), 16, threads=2)
    b = BPTT(e, 24 * 16 * 32, BPTTSettings(hidden=(64, 32)))
    costs = [b.update()["cost"] for _ in range(b.updates)]
    assert b.finished and b.steps == 24 * 16 * 32
    assert np.mean(costs[-8:]) < 0.8 * np.mean(costs[:8])


@pytest.mark.parametrize("critic", [False, True])
def test_a_restored_run_goes_on_bit_by_bit(critic: bool) -> None:
    def run() -> BPTT:
        e = LocomotionEnvironment(locomotion_task("pace"), 2, seed=1)
        return BPTT(e, 200, replace(SMALL, critic=critic), seed=1)

    first, second = run(), run()
    for _ in range(5):
        first.update()
    second.restore({k: v.copy() for k, v in first.arrays().items()}, first.counters())
    for _ in range(5):
        assert first.update() == second.update()
    assert np.array_equal(first.policy.parameters, second.policy.parameters)


def test_misuse_is_told() -> None:
    with pytest.raises(ValueError, match=r"`discount` must be in \(0, 1\], got 1.5"):
        BPTTSettings(discount=1.5)
    with pytest.raises(ValueError, match="`discount` must be below 1 with a critic"):
        BPTTSettings(discount=1.0, critic=True)
    with pytest.raises(ValueError, match="`window` must"):
        BPTTSettings(window=0)


def test_parameters_that_are_no_numbers_are_named() -> None:
    b = BPTT(LocomotionEnvironment(locomotion_task("trot"), 2), 100, SMALL)
    b.policy.parameters[7] = np.nan
    with pytest.raises(NotFinite, match="the parameters of policy 0, entry 7, is nan at control"):
        b.update()
