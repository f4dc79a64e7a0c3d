"""The batch of robots: steps and their transpose, episodes, and what is told of a NaN."""

from dataclasses import replace

import numpy as np
import pytest

from cito.dynamics.gradients import Exact
from cito.problems.locomotion import LocomotionEnvironment, NotFinite, locomotion_task
from cito.problems.locomotion.episodes import draw_commands

RANDOM = {
    "base_mass": (0.8, 1.2),
    "motor_strength": (0.8, 1.1),
    "latency": (0.0, 0.02),
    "push": 0.5,
    "push_interval": 0.2,
    "observation_noise": {"joints": 0.01},
}


def varied(count: int = 4, seed: int = 0) -> LocomotionEnvironment:
    task = locomotion_task("trot", history=2, command_interval=0.3).with_randomization(**RANDOM)
    return LocomotionEnvironment(task, count, seed)


def test_the_transposed_step_is_the_derivative_of_a_step() -> None:
    """With the exact gradient, in flight and on the ground, under latency and weak motors."""
    e, random = varied(8), np.random.default_rng(3)
    for _ in range(5):
        e.step(random.uniform(-0.3, 0.3, (8, 12)))
    x, impulse = e.state.copy(), e.impulse.copy()
    a, before, g = *random.uniform(-0.3, 0.3, (2, 8, 12)), random.standard_normal((8, 36))
    q, d = e.task.nominal, e.steps.dynamics
    plant = e.plant._replace(lag=np.arange(8.0) % 3)
    step = e.steps(x, q + a, q + before, plant, impulse)
    gradients = e.steps.transposed(step, plant, g, Exact())
    dx, da, db = random.standard_normal((8, 36)), *random.standard_normal((2, 8, 12))

    def moved(s: float) -> np.ndarray:
        start = d.integrate(x, s * dx)
        end = e.steps(start, q + a + s * da, q + before + s * db, plant, impulse).state
        return (g * d.difference(step.state, end)).sum(-1)

    eps = 1e-7
    slope = (moved(eps) - moved(-eps)) / (2 * eps)
    told = sum((h * dh).sum(-1) for h, dh in zip(gradients, (dx, da, db)))
    assert np.allclose(told, slope, rtol=1e-4, atol=1e-4)


def test_motors_hold_their_limits() -> None:
    e = LocomotionEnvironment(locomotion_task("trot", kp=1e4), 2)
    a = e.advance(np.ones((2, 12)))
    torques = a.step.substeps[0].torques[:, 0]
    assert (abs(torques) <= e.task.robot.torque_limits).all()
    assert (abs(torques) == e.task.robot.torque_limits).any()
    assert not a.step.substeps[0].free.all()


def test_a_restored_batch_goes_on_bit_by_bit() -> None:
    actions = np.random.default_rng(0).uniform(-1, 1, (60, 4, 12))
    first, second = varied(seed=5), varied(seed=6)
    for a in actions[:30]:
        first.step(a)
    second.restore({k: v.copy() for k, v in first.arrays().items()}, first.counters())
    for a in actions[30:]:
        one, two = first.step(a), second.step(a)
        assert np.array_equal(one.observation, two.observation)
        assert np.array_equal(one.cost, two.cost)
    assert first.falls == second.falls > 0


def test_robots_that_fall_begin_again() -> None:
    e = LocomotionEnvironment(locomotion_task("trot"), 3)
    lying = e.state.copy()
    lying[1, 2] = 0.05
    e.put(np.ones(3, bool), lying, np.zeros((3, 3)), np.zeros(3))
    outcome = e.step(np.zeros((3, 12)))
    assert outcome.fell.tolist() == [False, True, False]
    assert e.state[1, 2] > 0.2 and e.age.tolist() == [1, 0, 1]
    assert not np.array_equal(outcome.last[1], outcome.observation[1])
    assert np.array_equal(outcome.last[0], outcome.observation[0])


def test_a_knee_on_the_ground_is_a_fall() -> None:
    e = LocomotionEnvironment(locomotion_task("trot"), 1, automatic=False)
    x = e.state.copy()
    x[0, 2:7], x[0, 7:19] = [0.2, 0, 0, 0, 1], np.tile([0, 0.1, -2.5], 4)
    e.put(np.ones(1, bool), x, np.zeros((1, 3)), np.zeros(1))
    assert e.step(np.zeros((1, 12))).fell[0]


def test_episodes_end_in_time() -> None:
    e = LocomotionEnvironment(locomotion_task("trot", episode=0.06), 2)
    timed_out = [e.step(np.zeros((2, 12))).timed_out.all() for _ in range(3)]
    assert timed_out == [False, False, True]
    assert e.falls == 0


def test_friction_of_the_slippery_task() -> None:
    e = LocomotionEnvironment(locomotion_task("gait-free-slippery"), 50)
    assert e.plant.friction.min() >= 0.2 and e.plant.friction.max() <= 0.4
    assert (e.plant.friction == e.plant.friction[:, :1]).all()


@pytest.mark.parametrize("term", ["state", "observation", "action"])
def test_what_is_no_number_is_named(term: str) -> None:
    e, action = LocomotionEnvironment(locomotion_task("trot"), 4), np.zeros((4, 12))
    e.step(action)
    {"state": e.state, "observation": e.frames, "action": action}[term][2, ..., 3] = np.nan
    named = "observation velocity" if term == "observation" else term
    with pytest.raises(
        NotFinite, match=rf"the {named} of environment 2, .* is nan at control step 1"
    ):
        e.step(action)


def test_a_wrong_task_is_refused() -> None:
    with pytest.raises(ValueError, match="`name` must be one of trot"):
        locomotion_task("gallop")
    with pytest.raises(ValueError, match="`weights` must be named"):
        locomotion_task("trot", weights={"speed": 1.0})
    with pytest.raises(ValueError, match="`latency` must be at most one control step"):
        locomotion_task("trot").with_randomization(latency=(0.0, 0.1))
    with pytest.raises(ValueError, match="`observation_noise` must name"):
        task = locomotion_task("trot").with_randomization(observation_noise={"smell": 1.0})
        LocomotionEnvironment(replace(task), 1)


def test_robots_learn_beyond_the_range_of_commands() -> None:
    task = locomotion_task("gait-free", command_margin=0.2, stand_share=0.0)
    command = draw_commands(task, 4000, np.random.default_rng(0))
    low, high = np.array(task.command_low), np.array(task.command_high)
    assert np.allclose(command.min(axis=0), low - 0.2, atol=0.01)
    assert np.allclose(command.max(axis=0), high + 0.2, atol=0.01)
    with pytest.raises(ValueError, match="`command_margin` must"):
        locomotion_task("gait-free", command_margin=-0.1)
