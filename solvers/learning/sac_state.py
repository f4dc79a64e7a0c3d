"""All that a soft actor-critic of Stable-Baselines3 is, as arrays and JSON, and back.

policy/NAME               weights of actor, critics and their targets
adam/OPTIMIZER/I/NAME     moments and steps of the I-th parameter
log_alpha                 temperature of the entropy
replay/NAME               transitions seen so far
last_observation, generator: where the environment is; PyTorch's random state
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from cito.dynamics.types import Array
from cito.solvers.learning.soft_actor_critic import KEPT


def arrays(model: Any) -> dict[str, Array]:
    """By name; copies."""
    found: dict[str, Any] = {
        f"policy/{name}": value.numpy().copy() for name, value in model.policy.state_dict().items()
    }
    for name, optimizer in optimizers(model).items():
        for i, state in optimizer.state_dict()["state"].items():
            found |= {f"adam/{name}/{i}/{k}": v.numpy().copy() for k, v in state.items()}
    memory = model.replay_buffer
    found |= {f"replay/{name}": getattr(memory, name)[: memory.size()].copy() for name in KEPT}
    found["log_alpha"] = model.log_ent_coef.detach().numpy().copy()
    found["last_observation"] = model._last_obs.copy()
    found["generator"] = torch.get_rng_state().numpy().copy()
    return found


def counters(model: Any) -> dict[str, Any]:
    """Numbers and the states of NumPy's generators."""
    memory = model.replay_buffer
    return {
        "steps": model.num_timesteps,
        "episodes": model._episode_num,
        "network_updates": model._n_updates,
        "position": memory.pos,
        "full": memory.full,
        "memory_random": memory.random.bit_generator.state,
        "action_random": model.action_space.np_random.bit_generator.state,
    }


def restore(model: Any, saved: Mapping[str, Array], numbers: Mapping[str, Any]) -> None:
    """Make a new model what that one was; sets PyTorch's generator, too."""
    weights = {
        name: torch.from_numpy(saved[f"policy/{name}"]) for name in model.policy.state_dict()
    }
    model.policy.load_state_dict(weights)
    for name, optimizer in optimizers(model).items():
        _restore_optimizer(optimizer, f"adam/{name}/", saved)
    with torch.no_grad():
        model.log_ent_coef.copy_(torch.from_numpy(saved["log_alpha"]))
    memory = model.replay_buffer
    for name in KEPT:
        getattr(memory, name)[: len(saved[f"replay/{name}"])] = saved[f"replay/{name}"]
    memory.pos, memory.full = int(numbers["position"]), bool(numbers["full"])
    memory.random.bit_generator.state = numbers["memory_random"]
    model.action_space.np_random.bit_generator.state = numbers["action_random"]
    model.num_timesteps, model._episode_num = int(numbers["steps"]), int(numbers["episodes"])
    model._n_updates = int(numbers["network_updates"])
    model._last_obs = np.array(saved["last_observation"])
    model._last_episode_starts = np.zeros(1, bool)  # off-policy learners do not read it
    torch.set_rng_state(torch.from_numpy(saved["generator"]))


def optimizers(model: Any) -> dict[str, Any]:
    """Of actor, critics and temperature."""
    return {
        "actor": model.actor.optimizer,
        "critic": model.critic.optimizer,
        "temperature": model.ent_coef_optimizer,
    }


def _restore_optimizer(optimizer: Any, prefix: str, saved: Mapping[str, Array]) -> None:
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in saved.items():
        if key.startswith(prefix):
            i, name = key.removeprefix(prefix).split("/")
            state.setdefault(int(i), {})[name] = torch.from_numpy(value)
    optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
