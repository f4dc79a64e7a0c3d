"""Soft actor-critic runs from beginning to end, with the simulator's derivatives or without.

    summary = train_sac(SacConfig("links-3", "policy"), "runs/links-3")

    sac      the library's learner as it is
    policy   its actor climbs by the simulator's derivatives   (policy_ascent.py)
    sample   each transition of a batch brings neighbours      (neighbours.py)
    both     both

What a run costs is counted in control steps of its environment. Every so many of them the policy
without its noise is tried on episodes of its own, the same for all runs of a task, and the run is
saved: arrays and JSON, see run_folder.py. Saved are networks, optimizers, the memory and every
random state, so that a run that was killed goes on bit by bit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

try:
    import torch
except ImportError as error:
    raise ImportError(
        "SAC needs Stable-Baselines3: pip install '.[rl]' in cito's folder"
    ) from error

from cito.dynamics.types import Array, positive, whole_number
from cito.problems.episodic import EpisodicTask, episodic_task
from cito.problems.locomotion.finite import NotFinite
from cito.solvers.learning import sac_check, sac_state
from cito.solvers.learning.interrupt import deferred_interrupt
from cito.solvers.learning.run_folder import CHECKPOINT, LARGEST_SEED, Checkpoint, RunFolder
from cito.solvers.learning.soft_actor_critic import soft_actor_critic, temperature
from cito.solvers.torch_threads import one_thread

METHODS = {"sac": (False, False), "policy": (True, False), "sample": (False, True)}
METHODS["both"] = (True, True)
NAMES = tuple("sac" if method == "sac" else f"sac-{method}" for method in METHODS)
EPISODES, EPISODES_SEED = 16, 20_000  # to judge a policy by
TAIL = 3  # judgements whose mean is the final return


@dataclass(frozen=True)
class SacConfig:
    """What a run is asked; all methods learn with the same settings.

    Args:
        task: see `cito.problems.episodic.EPISODIC`.
        method: sac, policy, sample or both.
        steps: control steps.
        seed: of everything random.
        judged: steps between judgements of the policy.
        warm_up: steps with random actions before the first update.
        every: steps for each update of the networks.
        rate, batch, width: learning rate, transitions in a batch, neurons of two hidden layers.
        discount: gamma.
        blend: of the critics into their targets at each update.
        temperature: alpha at the beginning; it is learned.
        neighbours, radius: of the sample enhancement: how many of each transition, and how far
            from it in every coordinate [rad, m, rad/s, m/s].
    """

    task: str
    method: str = "policy"
    steps: int = 2000
    seed: int = 0
    judged: int = 100
    warm_up: int = 300
    every: int = 1
    rate: float = 2e-3
    batch: int = 128
    width: int = 64
    discount: float = 0.98
    blend: float = 0.02
    temperature: float = 0.05
    neighbours: int = 3
    radius: float = 0.05

    def __post_init__(self) -> None:
        episodic_task(self.task)
        if self.method not in METHODS:
            raise ValueError(f"`method` must be one of {', '.join(METHODS)}, got {self.method!r}")
        for name, least in (
            ("steps", 1), ("judged", 1), ("warm_up", 1), ("every", 1), ("batch", 1),
            ("width", 1), ("neighbours", 1),
        ):  # fmt: skip
            whole_number(name, getattr(self, name), least)
        whole_number("seed", self.seed, 0, LARGEST_SEED)
        for name in ("rate", "discount", "blend", "temperature", "radius"):
            positive(name, getattr(self, name))
        for name in ("discount", "blend"):
            if getattr(self, name) > 1:
                raise ValueError(f"`{name}` must be at most 1, got {getattr(self, name):g}")
        if self.judged % self.every:
            raise ValueError(
                f"`judged` must be a multiple of `every`, {self.every}, got {self.judged}"
            )

    def settings(self) -> dict[str, Any]:
        """As the library calls them."""
        return {
            "learning_rate": self.rate,
            "buffer_size": self.steps + self.judged,
            "learning_starts": self.warm_up,
            "batch_size": self.batch,
            "tau": self.blend,
            "gamma": self.discount,
            "train_freq": self.every,
            "gradient_steps": 1,
            "ent_coef": f"auto_{self.temperature}",
            "policy_kwargs": {
                "net_arch": [self.width, self.width],
                "optimizer_kwargs": {"fused": True},
            },
        }


class SacLearner:
    """A run at some control step. PyTorch's generator, which it draws from, is the caller's."""

    def __init__(self, config: SacConfig) -> None:
        self.config, self.task = config, episodic_task(config.task)
        torch.manual_seed(config.seed)
        by_policy, by_samples = METHODS[config.method]
        self.model, self.environment = soft_actor_critic(
            self.task,
            config.seed,
            policy_enhancement=by_policy,
            neighbours=config.neighbours if by_samples else 0,
            radius=config.radius,
            settings=config.settings(),
        )

    @property
    def steps(self) -> int:
        """Control steps so far."""
        return int(self.model.num_timesteps)

    @property
    def finished(self) -> bool:
        """Whether all of them were made."""
        return self.steps >= self.config.steps

    def act(self, observation: Array) -> Array:
        """Actions (B, nu) of the policy, without noise."""
        with torch.no_grad():
            o = torch.from_numpy(observation.astype(np.float32))
            action: Array = self.model.actor(o, deterministic=True).double().numpy()
        return action

    def update(self) -> dict[str, float]:
        """The control steps up to the next judgement.

        Raises:
            NotFinite: a weight, a state or the return is not.
        """
        try:
            self.model.learn(self.config.judged, reset_num_timesteps=False)
        except ValueError:  # what PyTorch says of a distribution whose mean is NaN
            self._check_weights()
            raise
        self._check_weights()
        found = judged_return(self.task, self.act)
        if not np.isfinite(found):
            raise NotFinite(f"the return is {found} at step {self.steps}")
        return {"steps": self.steps, "return": found, "temperature": temperature(self.model)}

    def _check_weights(self) -> None:
        for name, value in self.model.policy.state_dict().items():
            if not bool(torch.isfinite(value).all()):
                raise NotFinite(f"a weight of {name} is no finite number at step {self.steps}")

    def arrays(self) -> dict[str, Array]:
        """All that is to be saved."""
        return sac_state.arrays(self.model)

    def counters(self) -> dict[str, Any]:
        """Numbers that go with it, as JSON can say them."""
        own = sac_state.counters(self.model)
        updates = self.steps // self.config.judged
        return own | {"updates": updates, "environment": self.environment.counters()}

    def check(self, checkpoint: Checkpoint) -> None:
        """Whether it can be of this run.

        Raises:
            ValueError: says what is missing or otherwise than it has to be.
        """
        like = self.counters() | {"seconds": 0.0}
        sac_check.check(self.model, like, checkpoint, self.config.judged)

    def restore(self, arrays: Mapping[str, Array], counters: Mapping[str, Any]) -> None:
        """Continue from there, bit by bit; they have been checked."""
        sac_state.restore(self.model, arrays, counters)
        self.environment.restore(counters["environment"])


def judged_return(task: EpisodicTask, act: Callable[[Array], Array]) -> float:
    """Mean return of episodes, without discount; the same starts for everybody."""
    x = task.starts(EPISODES, np.random.default_rng(EPISODES_SEED))
    total, up = np.zeros(EPISODES), np.ones(EPISODES, bool)
    for _ in range(task.episode_steps):
        action = act(task.observe(x))[up]
        x[up] = task.step(x[up], action).state
        total[up] += task.reward(x[up], action).value
        up[up] = ~task.fallen(x[up])
        if not up.any():
            break
    return float(total.mean())


def train_sac(
    config: SacConfig,
    out: str | os.PathLike[str],
    resume: bool = False,
    told: Callable[[Mapping[str, float]], None] | None = None,
) -> dict[str, Any]:
    """Run, or go on with, a training.

    Args:
        config: what is asked; where a run is resumed, it must be what that was asked.
        out: folder of the run.
        resume: whether to go on from its checkpoint.
        told: called with each judgement: steps, return, temperature.

    Returns:
        steps, seconds, final_return (mean of the last three judgements), and what was asked.

    Raises:
        ValueError: the folder is not new, or holds another run.
        NotFinite: a number was none; the last checkpoint is kept.
        KeyboardInterrupt: after the judgement that was under way has been saved.
    """
    folder, start = RunFolder(out), time.perf_counter()
    with one_thread(), torch.random.fork_rng(devices=[]), deferred_interrupt() as interrupted:
        learner = SacLearner(config)
        before = _open(folder, config, learner, resume)
        while not learner.finished:
            row = learner.update()
            seconds = before + time.perf_counter() - start
            folder.append(row | {"seconds": seconds})
            folder.save(learner.arrays(), learner.counters() | {"seconds": seconds})
            if told is not None:
                told(row)
            if interrupted:
                raise KeyboardInterrupt
    rows = folder.metrics()
    summary: dict[str, Any] = {
        "steps": learner.steps,
        "seconds": rows[-1]["seconds"],
        "final_return": float(np.mean([row["return"] for row in rows[-TAIL:]])),
    }
    summary |= {name: value for name, value in asdict(config).items() if name not in summary}
    folder.finish(summary)
    return summary


def _open(folder: RunFolder, config: SacConfig, learner: SacLearner, resume: bool) -> float:
    """Begin a run or restore the learner; seconds that were spent before."""
    if not resume:
        folder.create(asdict(config))
        return 0.0
    was, asked = asdict(folder.asked(SacConfig, NAMES)), asdict(config)
    for name in asked:
        if was[name] != asked[name]:
            raise ValueError(
                f"`{name}` must be {was[name]!r} as in the run in {folder.path}, "
                f"got {asked[name]!r}"
            )
    checkpoint = folder.checkpoint()
    if checkpoint is None:
        folder.cut(0)
        return 0.0
    try:
        learner.check(checkpoint)
    except ValueError as error:
        raise ValueError(f"{folder.path / CHECKPOINT} is damaged: {error}") from error
    folder.cut(int(checkpoint.counters["updates"]), ("return", "seconds"))
    learner.restore(checkpoint.arrays, checkpoint.counters)
    return float(checkpoint.counters["seconds"])
