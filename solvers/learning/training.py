"""Training runs from beginning to end: a configuration, a learner, a folder to go on from.

    summary = train(TrainingConfig("trot"), "runs/trot")

A run can be stopped at any time and gone on with. Ctrl-C takes effect after the update that is
under way, and saves; a second one does not wait.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from cito.dynamics.gradients import (
    GRADIENTS,
    Bundled,
    Exact,
    FullCone,
    Gradient,
    Randomized,
    Signorini,
)
from cito.dynamics.types import Array, positive, whole_number
from cito.problems.locomotion import LocomotionEnvironment, LocomotionTask, locomotion_task
from cito.solvers.learning.bptt import BPTT, default_settings
from cito.solvers.learning.event_log import EventLog, writer
from cito.solvers.learning.interrupt import deferred_interrupt
from cito.solvers.learning.policy import Policy
from cito.solvers.learning.ppo import PPO, PPOSettings
from cito.solvers.learning.run_folder import LARGEST_SEED, RunFolder
from cito.solvers.learning.settings import changed

SAVE_EVERY = 10  # updates between checkpoints
TAIL = 10  # updates whose mean is the final cost
STEPS = {"trot": 100_000, "pace": 160_000, "gait-free": 160_000, "gait-free-slippery": 160_000}
RHO = 0.05  # of relaxed contact gradients [J]; 0.001 to 0.5 train alike


class Learner(Protocol):
    """What `train` runs: see `BPTT`."""

    policy: Policy

    @property
    def finished(self) -> bool:
        """Whether all updates have been made."""

    @property
    def steps(self) -> int:
        """Control steps so far, of all robots together."""

    def update(self) -> dict[str, float]:
        """One update; at least steps, cost and falls."""

    def times(self) -> dict[str, float]:
        """Seconds by what they were spent on: simulator, jacobian, network."""

    def arrays(self) -> dict[str, Array]:
        """All that is to be saved."""

    def counters(self) -> dict[str, Any]:
        """Numbers that go with it, as JSON can say them; `updates` among them."""

    def restore(self, arrays: Mapping[str, Array], counters: Mapping[str, Any]) -> None:
        """Continue from there, bit by bit."""


@dataclass(frozen=True)
class TrainingConfig:
    """What a run is asked.

    Args:
        task: trot, pace, gait-free or gait-free-slippery.
        algorithm: bptt or ppo.
        gradient: of contacts, by name; of no use to ppo.
        rho: relaxation of `signorini` and `full-cone` [J].
        envs: robots that learn together.
        steps: control steps of all of them.
        seed: of everything random.
        robot: a name or a path.
        threads: of the simulator, and of PPO's networks; the result does not depend on it.
        settings: of the algorithm that are not its defaults, by the names of `BPTTSettings` or
            `PPOSettings`.
    """

    task: str
    algorithm: str = "bptt"
    gradient: str = "full-cone"
    rho: float = RHO
    envs: int = 16
    steps: int = 100_000
    seed: int = 0
    robot: str = "go2"
    threads: int = 2
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, known in (("algorithm", ALGORITHMS), ("gradient", GRADIENTS)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"`{name}` must be one of {', '.join(known)}, got {getattr(self, name)!r}"
                )
        positive("rho", self.rho)
        for name, least in (("envs", 1), ("steps", 1), ("threads", 1)):
            whole_number(name, getattr(self, name), least)
        whole_number("seed", self.seed, 0, LARGEST_SEED)
        # As JSON will have it: a run is gone on with only under equal settings.
        object.__setattr__(self, "settings", json.loads(json.dumps(dict(self.settings))))

    def locomotion(self) -> LocomotionTask:
        """The task itself."""
        return locomotion_task(self.task, self.robot)

    def contact_gradient(self) -> Gradient:
        """The gradient itself; sampled ones with few samples, of which a window has many."""
        kinds: dict[str, Gradient] = {
            "exact": Exact(),
            "signorini": Signorini(self.rho),
            "full-cone": FullCone(self.rho),
            "randomized": Randomized(samples=16, seed=self.seed),
            "bundled": Bundled(samples=4, seed=self.seed),
        }
        return kinds[self.gradient]


def _bptt(config: TrainingConfig) -> Learner:
    environment = LocomotionEnvironment(
        config.locomotion(), config.envs, config.seed, config.threads
    )
    settings = default_settings(environment.task, config.contact_gradient())
    return BPTT(environment, config.steps, changed(settings, config.settings), config.seed)


def _ppo(config: TrainingConfig) -> Learner:
    environment = LocomotionEnvironment(
        config.locomotion(), config.envs, config.seed, config.threads
    )
    settings = changed(PPOSettings(), config.settings)
    return PPO(environment, config.steps, settings, config.seed, config.threads)


ALGORITHMS: dict[str, Callable[[TrainingConfig], Learner]] = {"bptt": _bptt, "ppo": _ppo}


def train(
    config: TrainingConfig,
    out: str | os.PathLike[str],
    resume: bool = False,
    told: Callable[[Learner, Mapping[str, float]], None] | None = None,
    tensorboard: bool = False,
) -> dict[str, Any]:
    """Run, or go on with, a training.

    Args:
        config: what is asked; where a run is resumed, it must be what that was asked.
        out: folder of the run.
        resume: whether to go on from its checkpoint.
        told: called with the learner and the metrics of each update.
        tensorboard: whether to write the metrics as events, too: see `event_log`.

    Returns:
        steps, wall_time, time_simulator, time_jacobian, time_network [s], falls, final_cost (mean
        of the last ten updates) and what was asked.

    Raises:
        ImportError: tensorboardX is wanted and not installed.
        ValueError: the folder is not new, or holds another run.
        NotFinite: a number was none; the last checkpoint is kept.
        KeyboardInterrupt: after the update that was under way has been saved.
    """
    if tensorboard:
        writer()
    folder = RunFolder(out)
    learner = ALGORITHMS[config.algorithm](config)
    before = _open(folder, config, learner, resume)
    start = time.perf_counter()

    def seconds() -> dict[str, float]:
        own = {"wall_time": time.perf_counter() - start} | learner.times()
        return {name: value + before.get(name, 0.0) for name, value in own.items()}

    def save() -> None:
        folder.save(learner.arrays(), learner.counters() | {"seconds": seconds()})

    # One thread of linear algebra: its sums would otherwise depend on how many there are.
    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        log = stack.enter_context(EventLog(out, learner.steps)) if tensorboard else None
        interrupted = stack.enter_context(deferred_interrupt())
        while not learner.finished:
            row = learner.update()
            timed = row | {"seconds": seconds()["wall_time"]}
            folder.append(timed)
            if log is not None:
                log.write(timed)
            if told is not None:
                told(learner, row)
            updates = learner.counters()["updates"]
            if interrupted or learner.finished or updates % SAVE_EVERY == 0:
                save()
            if interrupted:
                raise KeyboardInterrupt
    rows = folder.metrics()
    summary: dict[str, Any] = {"steps": learner.steps} | seconds()
    summary["falls"] = int(sum(row["falls"] for row in rows))
    summary["final_cost"] = float(np.mean([row["cost"] for row in rows[-TAIL:]]))
    summary |= {k: v for k, v in asdict(config).items() if k not in summary}
    folder.finish(summary)
    return summary


def _open(
    folder: RunFolder, config: TrainingConfig, learner: Learner, resume: bool
) -> dict[str, float]:
    """Begin a run or restore the learner; seconds that were spent before."""
    if not resume:
        folder.create(asdict(config))
        return {}
    was, asked = asdict(folder.asked(TrainingConfig, tuple(ALGORITHMS))), asdict(config)
    for name in asked:
        if name != "threads" and was[name] != asked[name]:
            raise ValueError(
                f"`{name}` must be {was[name]!r} as in the run in {folder.path}, "
                f"got {asked[name]!r}"
            )
    checkpoint = folder.checkpoint()
    if checkpoint is None:
        folder.cut(0)
        return {}
    learner.restore(checkpoint.arrays, checkpoint.counters)
    folder.cut(int(checkpoint.counters["updates"]), ("falls", "cost"))
    return dict(checkpoint.counters["seconds"])


def load_policy(out: str | os.PathLike[str]) -> tuple[TrainingConfig, Policy]:
    """The configuration and the policy of the last checkpoint of a run.

    Raises:
        FileNotFoundError: there is no run, or it has no checkpoint yet.
        ValueError: it is a run of another algorithm, or a file is damaged.
    """
    folder = RunFolder(out)
    config, checkpoint = folder.asked(TrainingConfig, tuple(ALGORITHMS)), folder.checkpoint()
    if checkpoint is None:
        raise FileNotFoundError(f"the run in {folder.path} has no checkpoint yet")
    policy = Policy([int(size) for size in checkpoint.arrays["policy_sizes"]])
    policy.parameters[:] = checkpoint.arrays["parameters"]
    return config, policy
