"""Stable-Baselines3's soft actor-critic, with what the simulator's derivatives can add to it.

The learner is the library's, untouched. Two of its parts are replaced:

    its memory   by one that keeps the states, too, and adds neighbours to the batches it draws
    its critic   by one that, where the actor asks it for Q(o, a) in order to climb, answers with
                 g' a, g the direction that the simulator tells; its slope in a is g

Whatever asks for Q otherwise, the critic's own training among it, gets Q.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

try:
    import torch
    from gymnasium import spaces
    from stable_baselines3 import SAC
    from stable_baselines3.common.buffers import ReplayBuffer
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.policies import ContinuousCritic
    from stable_baselines3.common.type_aliases import ReplayBufferSamples
    from stable_baselines3.common.vec_env import DummyVecEnv
    from stable_baselines3.sac.policies import SACPolicy
except ImportError as error:
    raise ImportError(
        "SAC needs Stable-Baselines3: pip install '.[rl]' in cito's folder"
    ) from error

from cito.dynamics.types import Array
from cito.problems.episodic import EpisodicTask
from cito.problems.episodic.environment import EpisodicEnv
from cito.solvers.learning.neighbours import Transitions, drawn_neighbours
from cito.solvers.learning.policy_ascent import ascent

KEPT = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts", "states")


class StateReplay(ReplayBuffer):  # type: ignore[misc]
    """A memory of transitions that knows the states behind the observations.

    Args:
        task, seed: of the samples that are drawn.
        neighbours: how many are added for each sample.
        radius: how far from it, in every coordinate.

    `drawn` (B, nx) are the states of the last batch, in its order.
    """

    def __init__(
        self,
        *args: Any,
        task: EpisodicTask,
        seed: int,
        neighbours: int = 0,
        radius: float = 0.0,
        **named: Any,
    ) -> None:
        super().__init__(*args, **named)
        self.task, self.neighbours, self.radius = task, neighbours, radius
        self.random = np.random.default_rng(seed)
        self.states = np.zeros((self.buffer_size, 2, task.dynamics.nx))  # before and after
        self.drawn = np.zeros((0, task.dynamics.nx))

    def add(self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: Any) -> None:
        """One transition of one environment, whose info says the states."""
        self.states[self.pos] = infos[0]["before"], infos[0]["state"]
        super().add(obs, next_obs, action, reward, done, infos)

    def sample(self, batch_size: int, env: Any = None) -> ReplayBufferSamples:
        """`batch_size` transitions, drawn with replacement, and the neighbours of each."""
        rows = self.random.integers(self.size(), size=batch_size)
        self.drawn = self.states[rows, 0]
        over = (self.dones[rows] * (1 - self.timeouts[rows])).astype(np.float32)
        real = (
            self.observations[rows, 0], self.actions[rows, 0], self.next_observations[rows, 0],
            over, self.rewards[rows],
        )  # fmt: skip
        parts = (real, self._near(rows, over)) if self.neighbours else (real,)
        return ReplayBufferSamples(*(torch.from_numpy(np.concatenate(p)) for p in zip(*parts)))

    def _near(self, rows: Any, over: Any) -> tuple[Any, ...]:
        """The neighbours, as the rest of a batch."""
        real = Transitions(
            self.states[rows, 0],
            self.actions[rows, 0].astype(float),
            self.rewards[rows, 0].astype(float),
            self.states[rows, 1],
        )
        near = drawn_neighbours(self.task, real, self.neighbours, self.radius, self.random)
        self.drawn = np.concatenate([self.drawn, near.state])
        o, o_next = self.task.observe(near.state), self.task.observe(near.next)
        many = np.repeat(over, self.neighbours, axis=0)
        own = (o, near.action, o_next, many, near.reward[:, None])
        return tuple(part.astype(np.float32) for part in own)


class ClimbedCritic(ContinuousCritic):  # type: ignore[misc]
    """Q, and for the actor the direction in which it should climb."""

    direction: Callable[[Array], Array] | None = None  # of actions (B, nu)

    def forward(self, obs: torch.Tensor, actions: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Q_i (B, 1) of every network."""
        if self.direction is None or not actions.requires_grad:
            found: tuple[torch.Tensor, ...] = super().forward(obs, actions)
            return found
        g = torch.from_numpy(self.direction(actions.detach().double().numpy()))
        climbed = (g.to(actions.dtype) * actions).sum(dim=1, keepdim=True)
        return (climbed,) * len(self.q_networks)


class ClimbedPolicy(SACPolicy):  # type: ignore[misc]
    """The library's networks, with critics that can be climbed."""

    def make_critic(self, features_extractor: Any = None) -> ClimbedCritic:
        """One of the two pairs of critics."""
        made = self._update_features_extractor(self.critic_kwargs, features_extractor)
        critic: ClimbedCritic = ClimbedCritic(**made).to(self.device)
        return critic


def soft_actor_critic(
    task: EpisodicTask,
    seed: int,
    *,
    policy_enhancement: bool,
    neighbours: int,
    radius: float,
    settings: Mapping[str, Any],
) -> tuple[SAC, EpisodicEnv]:
    """A learner that has not learned yet, and its environment.

    What is random comes from PyTorch's generator, and from those of the environment, its action
    space and the memory, which the seed sets; PyTorch's is the caller's.

    Args:
        task: to be learned.
        seed: see above.
        policy_enhancement: whether the actor climbs by the simulator's derivatives.
        neighbours, radius: of the sample enhancement; none where 0.
        settings: of SAC.
    """
    environment = EpisodicEnv(task)
    memory = {"task": task, "seed": seed, "neighbours": neighbours, "radius": radius}
    model = SAC(
        ClimbedPolicy, DummyVecEnv([lambda: environment]), replay_buffer_class=StateReplay,
        replay_buffer_kwargs=memory, device="cpu", **settings,
    )  # fmt: skip
    assert isinstance(model.action_space, spaces.Box) and model.env is not None
    model.set_logger(Logger(None, []))
    model.action_space.seed(seed)
    model.env.seed(seed)
    if policy_enhancement:
        model.critic.direction = lambda actions: _direction(model, task, actions)
    return model, environment


def _direction(model: SAC, task: EpisodicTask, actions: Array) -> Array:
    """At the states of the batch that is being learned from."""

    def value(o: torch.Tensor) -> torch.Tensor:
        # V(o) = min_i Q_i(o, a') - alpha log pi(a' | o)
        action, log_probability = model.actor.action_log_prob(o)
        Q = torch.cat(model.critic_target(o, action), dim=1).min(dim=1).values
        return Q - temperature(model) * log_probability

    x = model.replay_buffer.drawn
    return ascent(task, value, model.gamma, x, actions, model.num_timesteps).direction


def temperature(model: SAC) -> float:
    """alpha, the weight of the entropy."""
    log_alpha = model.log_ent_coef
    return float(model.ent_coef_tensor if log_alpha is None else log_alpha.detach().exp())
