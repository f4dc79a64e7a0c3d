"""An episodic task as a Gymnasium environment.

    environment = EpisodicEnv("links-3")
    observation, info = environment.reset(seed=0)
    observation, reward, fell, timed_out, info = environment.step(action)     # in [-1, 1]

info["state"] (nx,) is the state that the observation is of, and of every step info["before"] that
before it: where derivatives of the step are to be had.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import gymnasium
except ImportError as error:
    raise ImportError(
        "environments need Gymnasium: pip install '.[gymnasium]' in cito's folder"
    ) from error

from cito.dynamics.types import Array
from cito.problems.episodic import EpisodicTask, episodic_task
from cito.problems.locomotion.finite import check_finite

Observation = NDArray[np.float32]


class EpisodicEnv(gymnasium.Env[Any, Any]):
    """One robot on a task.

    Args:
        task: its name, or the task itself.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, task: str | EpisodicTask = "links-3") -> None:
        self.task = task if isinstance(task, EpisodicTask) else episodic_task(task)
        box = gymnasium.spaces.Box
        self.observation_space = box(-np.inf, np.inf, (self.task.observation_size,), np.float32)
        self.action_space = box(-1.0, 1.0, (self.task.dynamics.nu,), np.float32)
        self.state: Array = np.zeros(self.task.dynamics.nx)
        self.age = self.time = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; a seed sets everything that is random."""
        super().reset(seed=seed)
        self.state, self.age = self.task.starts(1, self.np_random)[0], 0
        return self._observe(), {"state": self.state.copy()}

    def step(
        self, action: NDArray[np.floating[Any]]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """One control step.

        Raises:
            NotFinite: the action or the state after the step is no finite number.
        """
        before, a = self.state, np.asarray(action, float)[None]
        check_finite("action", a, self.time)
        a = np.clip(a, -1.0, 1.0)  # as the motors do: what is beyond costs no more, either
        x = self.task.step(before[None], a).state
        check_finite("state", x, self.time)
        self.state, self.age, self.time = x[0], self.age + 1, self.time + 1
        reward = float(self.task.reward(x, a).value[0])
        fell, late = bool(self.task.fallen(x)[0]), self.age >= self.task.episode_steps
        info = {"state": self.state.copy(), "before": before.copy()}
        return self._observe(), reward, fell, late, info

    def counters(self) -> dict[str, Any]:
        """All that `restore` needs to go on bit by bit, as JSON can say it."""
        return {
            "state": self.state.tolist(),
            "age": self.age,
            "time": self.time,
            "random": self.np_random.bit_generator.state,
        }

    def restore(self, counters: Mapping[str, Any]) -> None:
        """Continue from there."""
        self.state = np.array(counters["state"])
        self.age, self.time = int(counters["age"]), int(counters["time"])
        self.np_random.bit_generator.state = counters["random"]

    def _observe(self) -> Observation:
        observation: Observation = self.task.observe(self.state[None])[0].astype(np.float32)
        return observation
