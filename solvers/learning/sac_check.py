"""Whether a checkpoint can be one of a soft actor-critic's run, before any of it is restored.

A model that has not learned yet knows names, shapes and kinds of all that is saved, but for the
number of transitions, which the counters tell, and for the moments of its optimizers, which have
the shapes of their parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from cito.solvers.learning.run_folder import Checkpoint
from cito.solvers.learning.sac_state import optimizers
from cito.solvers.learning.soft_actor_critic import KEPT

BITS = {"state": 128, "inc": 128, "uinteger": 32, "has_uint32": 1}  # of NumPy's PCG64
BITS_OTHERS = 63
Kind = tuple[tuple[int, ...], np.dtype[Any]]


def check(model: Any, like: Mapping[str, Any], checkpoint: Checkpoint, judged: int) -> None:
    """Look at everything.

    Args:
        model: of the run's settings, as yet untaught.
        like: counters of such a run.
        checkpoint: in question.
        judged: control steps of an update.

    Raises:
        ValueError: says what is missing or otherwise than it has to be.
    """
    arrays, numbers = checkpoint
    _check_numbers("counters", dict(like), numbers)
    _check_counts(model, numbers, judged)
    wanted = _wanted(model, numbers)
    for name in [*wanted, *arrays]:
        if name not in arrays:
            raise ValueError(f"{name} is missing")
        if name not in wanted:
            raise ValueError(f"{name} is not of this run")
        value, (shape, dtype) = arrays[name], wanted[name]
        if value.shape != shape or value.dtype != dtype:
            raise ValueError(
                f"{name} must be {dtype} of shape {shape}, got {value.dtype} of shape {value.shape}"
            )
        if not np.isfinite(value).all():
            raise ValueError(f"{name} must be finite")
    try:
        torch.Generator().set_state(torch.from_numpy(arrays["generator"]))
    except RuntimeError as error:  # only PyTorch can read it
        raise ValueError(f"generator: {error}") from error


def _check_numbers(name: str, like: Any, value: Any) -> None:
    """Whether the value is built as its like is: objects, lists, truth values, texts, counts."""
    if isinstance(like, dict):
        sound, wanted = isinstance(value, dict), "an object"
    elif isinstance(like, list):
        sound = isinstance(value, list) and len(value) == len(like)
        sound = sound and all(type(v) in (int, float) and math.isfinite(v) for v in value)
        wanted = f"{len(like)} finite numbers"
    elif isinstance(like, bool):
        sound, wanted = isinstance(value, bool), "true or false"
    elif isinstance(like, str):
        sound, wanted = value == like, repr(like)
    elif isinstance(like, int):
        bits = BITS.get(name.rpartition(" ")[2], BITS_OTHERS)
        sound, wanted = type(value) is int and 0 <= value < 2**bits, "a whole number >= 0"
        wanted += f" and < 2^{bits}"
    else:
        sound = type(value) in (int, float) and 0 <= value < math.inf
        wanted = "a number >= 0"
    if not sound:
        raise ValueError(f"{name} must be {wanted}, got {value!r:.80}")
    if isinstance(like, dict):
        for key, own in like.items():
            if key not in value:
                raise ValueError(f"{name}: {key} is missing")
            _check_numbers(f"{name} {key}", own, value[key])


def _check_counts(model: Any, numbers: Mapping[str, Any], judged: int) -> None:
    """Whether they agree: a memory that takes the whole run never wraps around."""
    steps, room = numbers["steps"], model.replay_buffer.buffer_size
    if not 0 < steps < room:
        raise ValueError(f"counters steps must be from 1 to {room - 1}, got {steps}")
    if steps % judged:
        raise ValueError(f"counters steps must be a multiple of {judged}, got {steps}")
    every, first = model.train_freq.frequency, model.learning_starts
    alike = {
        "position": steps,
        "full": False,
        "updates": steps // judged,
        "network_updates": max(0, steps // every - first // every),
    }
    for name, wanted in alike.items():
        if numbers[name] != wanted:
            raise ValueError(
                f"counters {name} must be {wanted} after {steps} steps, got {numbers[name]}"
            )


def _wanted(model: Any, numbers: Mapping[str, Any]) -> dict[str, Kind]:
    """Shapes and kinds of all arrays; see sac_state for the names."""
    single = np.dtype(np.float32)
    wanted: dict[str, Kind] = {
        f"policy/{name}": (tuple(value.shape), value.numpy().dtype)
        for name, value in model.policy.state_dict().items()
    }
    if numbers["network_updates"]:
        for name, optimizer in optimizers(model).items():
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            for i, p in enumerate(parameters):
                own = {"step": (), "exp_avg": tuple(p.shape), "exp_avg_sq": tuple(p.shape)}
                wanted |= {f"adam/{name}/{i}/{k}": (shape, single) for k, shape in own.items()}
    for name in KEPT:
        whole = getattr(model.replay_buffer, name)
        wanted[f"replay/{name}"] = ((numbers["position"], *whole.shape[1:]), whole.dtype)
    wanted["log_alpha"] = (tuple(model.log_ent_coef.shape), single)
    wanted["last_observation"] = ((1, *model.observation_space.shape), single)
    wanted["generator"] = (tuple(torch.get_rng_state().shape), np.dtype(np.uint8))
    return wanted
