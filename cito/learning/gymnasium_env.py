"""The locomotion tasks as Gymnasium environments, for learners of your own.

    import cito.learning.gymnasium_env                      # registers cito/trot, cito/pace, ...
    e = gymnasium.make("cito/trot", seed=0)
    e = gymnasium.make_vec("cito/trot", num_envs=64)        # one simulator for all of them
    e = gymnasium.make("cito/links-3")                      # and the episodic tasks, one by one

Actions are in [-1, 1], observations those of `LocomotionEnvironment`, rewards the negative running
cost, less FALL_COST with a fall. An episode is `terminated` by a fall and `truncated` when its time
is up. The vector environment begins a new episode within the step that ends one; what was observed
last is in info["final_obs"].
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from cito.dynamics.robot import Robot
from cito.dynamics.types import Array
from cito.problems.episodic import EPISODIC
from cito.problems.locomotion import LocomotionEnvironment, LocomotionTask, locomotion_task
from cito.problems.locomotion.environment import Outcome
from cito.problems.locomotion.task import SUMMARIES

FALL_COST = 1000.0  # of a fall: what a robot that does not know how to walk pays in 2 to 3 s


def _posed(task: str | LocomotionTask, robot: str | Robot) -> LocomotionTask:
    return task if isinstance(task, LocomotionTask) else locomotion_task(task, robot)


def _observations(environment: LocomotionEnvironment) -> spaces.Box:
    return spaces.Box(-np.inf, np.inf, (environment.observation_size,), np.float64)


def _actions(environment: LocomotionEnvironment) -> spaces.Box:
    return spaces.Box(-1.0, 1.0, (environment.action_size,), np.float32)


def _rewards(outcome: Outcome) -> Array:
    return -outcome.cost - FALL_COST * outcome.fell


class LocomotionEnv(gymnasium.Env[Any, Any]):
    """One robot on a task.

    Args:
        task: its name, or the task itself.
        robot: see `locomotion_task`; of no use where the task itself is given.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, task: str | LocomotionTask = "trot", robot: str | Robot = "go2") -> None:
        self.environment = LocomotionEnvironment(_posed(task, robot), 1)
        self.observation_space = _observations(self.environment)
        self.action_space = _actions(self.environment)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode; a seed sets everything that is random."""
        super().reset(seed=seed)
        _begin(self.environment, np.ones(1, bool), seed)
        return self.environment.observe()[0], {}

    def step(self, action: NDArray[np.float32]) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One control step; info holds the terms of the cost by name."""
        found = self.environment.step(np.asarray(action, float)[None])
        info = {name: float(values[0]) for name, values in found.terms.items()}
        reward, fell = float(_rewards(found)[0]), bool(found.fell[0])
        return found.last[0], reward, fell, bool(found.timed_out[0]), info


class LocomotionVectorEnv(VectorEnv[Any, Any, Any]):
    """Robots on a task, in one simulator.

    Args:
        num_envs: how many.
        task, robot: see `LocomotionEnv`.
        threads: of the simulator.
    """

    def __init__(
        self,
        num_envs: int = 1,
        task: str | LocomotionTask = "trot",
        robot: str | Robot = "go2",
        threads: int = 1,
    ) -> None:
        self.environment = e = LocomotionEnvironment(_posed(task, robot), num_envs, threads=threads)
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}
        self.single_observation_space, self.single_action_space = _observations(e), _actions(e)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin episodes, of all robots or of those of options["reset_mask"] (B,).

        One seed sets everything that is random in all of them; of a list the first is taken.
        """
        chosen = seed[0] if isinstance(seed, list) else seed
        which = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        super().reset(seed=chosen)
        _begin(self.environment, np.asarray(which, bool), chosen)
        return self.environment.observe(), {}

    def step(self, actions: NDArray[np.float32]) -> tuple[Array, Array, Any, Any, dict[str, Any]]:
        """One control step of all; info holds the terms of the cost (B,) by name."""
        found = self.environment.step(np.asarray(actions, float))
        over = found.fell | found.timed_out
        info: dict[str, Any] = dict(found.terms)
        if over.any():
            final = np.full(self.num_envs, None, dtype=object)
            for i in np.flatnonzero(over):
                final[i] = found.last[i]
            info |= {"final_obs": final, "_final_obs": over}
        return found.observation, _rewards(found), found.fell, found.timed_out, info


def _begin(environment: LocomotionEnvironment, which: NDArray[np.bool_], seed: int | None) -> None:
    """New episodes, from a seed where there is one."""
    if seed is not None:
        environment.random = np.random.default_rng(seed)
    environment.begin(which)


def register() -> None:
    """Make the tasks known to Gymnasium as cito/NAME."""
    for name in SUMMARIES:
        if f"cito/{name}" not in gymnasium.registry:
            gymnasium.register(
                f"cito/{name}",
                entry_point="cito.learning.gymnasium_env:LocomotionEnv",
                vector_entry_point="cito.learning.gymnasium_env:LocomotionVectorEnv",
                kwargs={"task": name},
            )
    for name in EPISODIC:
        if f"cito/{name}" not in gymnasium.registry:
            gymnasium.register(
                f"cito/{name}",
                entry_point="cito.problems.episodic.environment:EpisodicEnv",
                kwargs={"task": name},
            )


register()
