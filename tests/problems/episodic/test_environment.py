"""Episodic tasks as Gymnasium environments."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.testing import assert_array_equal

import cito.learning.gymnasium_env  # noqa: F401  registers the tasks
from cito.problems.episodic.environment import EpisodicEnv
from cito.problems.locomotion import NotFinite


@pytest.mark.parametrize("name", ["links-2", "hopper-run"])
def test_it_is_an_environment_as_gymnasium_wants_it(name: str) -> None:
    with pytest.warns(UserWarning, match="infinity"):  # of observations, which have no bounds
        check_env(EpisodicEnv(name), skip_render_check=True)
    assert gymnasium.make(f"cito/{name}").unwrapped.task.name == name  # type: ignore[attr-defined]


def test_it_goes_on_from_what_it_saved() -> None:
    one, other = EpisodicEnv("links-3"), EpisodicEnv("links-3")
    one.reset(seed=1)
    other.reset(seed=2)
    for _ in range(5):
        one.step(np.full(3, 0.3))
    other.restore(json.loads(json.dumps(one.counters())))
    assert_array_equal(one.step(np.full(3, -0.2))[0], other.step(np.full(3, -0.2))[0])
    assert_array_equal(one.reset()[0], other.reset()[0])


def test_an_episode_ends_with_its_time_and_with_a_fall() -> None:
    hanging = EpisodicEnv("links-1")
    hanging.reset(seed=0)
    ends = [hanging.step(np.zeros(1))[2:4] for _ in range(100)]
    assert ends == [(False, False)] * 99 + [(False, True)]
    leg = EpisodicEnv("hopper-run")
    leg.reset(seed=0)
    leg.state[1:4] = 0.15, -1.3, 2.6  # folded
    _, _, fell, _, info = leg.step(np.zeros(2))
    assert fell and info["before"][1] == 0.15


def test_what_is_no_number_is_refused() -> None:
    environment = EpisodicEnv("links-2")
    environment.reset(seed=0)
    with pytest.raises(NotFinite, match="action of environment 0, entry 1, is nan"):
        environment.step(np.array([0.0, np.nan]))
