"""Gymnasium's own checks, the same steps alone and in a batch, and a library that learns."""

from typing import Any

import numpy as np
import pytest

from cito.problems.locomotion import LocomotionEnvironment, locomotion_task

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from cito.learning.gymnasium_env import (  # noqa: E402
    FALL_COST,
    LocomotionEnv,
    LocomotionVectorEnv,
)

ALONE = "ignore:.*(minimum|maximum) value is -?infinity.*"  # observations have no bounds


@pytest.mark.filterwarnings(ALONE)
@pytest.mark.parametrize("name", ("trot", "pace", "gait-free", "gait-free-slippery"))
def test_every_task_passes_the_check(name: str) -> None:
    e = gymnasium.make(f"cito/{name}")
    check_env(e.unwrapped, skip_render_check=True)
    assert e.observation_space.shape == (49 if name in ("trot", "pace") else 47,)


def test_a_vector_environment_is_what_gymnasium_wants() -> None:
    e = gymnasium.make_vec("cito/trot", num_envs=3, vectorization_mode="vector_entry_point")
    assert isinstance(e.unwrapped, LocomotionVectorEnv)
    assert e.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.SAME_STEP
    first, _ = e.reset(seed=4)
    assert first in e.observation_space and first.shape == (3, 49)
    again, _ = e.reset(seed=4)
    assert np.array_equal(first, again)
    other, _ = e.reset(seed=5)
    assert not np.array_equal(first, other)
    o, r, terminated, truncated, info = e.step(e.action_space.sample())
    assert o in e.observation_space and r.shape == terminated.shape == truncated.shape == (3,)
    assert terminated.dtype == truncated.dtype == bool and info["height"].shape == (3,)
    before = o.copy()
    o, _ = e.reset(options={"reset_mask": np.array([False, True, False])})
    assert np.array_equal(o[[0, 2]], before[[0, 2]]) and not np.array_equal(o[1], before[1])


def test_a_robot_alone_is_one_of_a_batch() -> None:
    """The same seed, actions, observations and costs as the environment behind."""
    e, behind = LocomotionEnv("trot"), LocomotionEnvironment(locomotion_task("trot"), 1)
    behind.random = np.random.default_rng(7)
    behind.begin(np.ones(1, bool))
    o, _ = e.reset(seed=7)
    assert np.array_equal(o, behind.observe()[0])
    random = np.random.default_rng(0)
    for _ in range(20):
        action = random.uniform(-0.3, 0.3, 12)
        o, reward, terminated, *_ = e.step(action)
        found = behind.step(action[None])
        assert np.array_equal(o, found.last[0])
        assert reward == -found.cost[0] - FALL_COST * terminated


def fall(e: Any) -> tuple[Any, ...]:
    """Step until something has fallen."""
    for _ in range(500):
        out: tuple[Any, ...] = e.step(np.ones(e.action_space.shape, np.float32))
        if np.any(out[2]):
            return out
    raise AssertionError("nothing fell")


def test_a_fall_ends_an_episode_and_costs() -> None:
    e = LocomotionEnv("trot")
    e.reset(seed=0)
    _, reward, terminated, truncated, _ = fall(e)
    assert terminated and not truncated and reward < -FALL_COST
    v = LocomotionVectorEnv(4, "trot")
    v.reset(seed=0)
    o, reward, terminated, _, info = fall(v)
    assert (reward[terminated] < -FALL_COST).all() and (reward[~terminated] > -FALL_COST).all()
    assert np.array_equal(info["_final_obs"], terminated)
    i = np.flatnonzero(terminated)[0]
    assert info["final_obs"][i].shape == o[i].shape and (info["final_obs"][i] != o[i]).any()


def test_time_is_up() -> None:
    e = LocomotionEnv(locomotion_task("gait-free", episode=0.2, stand_share=1.0))
    e.reset(seed=1)
    ends = [e.step(np.zeros(12, np.float32))[2:4] for _ in range(10)]
    assert ends == [(False, False)] * 9 + [(False, True)]


@pytest.mark.filterwarnings("ignore")  # of the library and of what it imports
def test_stable_baselines_learns_a_few_steps() -> None:
    library = pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
    from stable_baselines3.common.env_checker import check_env as check

    e = gymnasium.make("cito/trot")
    check(e)
    model = library.PPO("MlpPolicy", e, n_steps=64, batch_size=32, n_epochs=2, seed=0, device="cpu")
    before = [p.detach().clone() for p in model.policy.parameters()]
    model.learn(128)
    assert model.num_timesteps == 128
    assert any((a != b).any() for a, b in zip(before, model.policy.parameters()))
    o, _ = e.reset(seed=0)
    assert model.predict(o, deterministic=True)[0] in e.action_space
