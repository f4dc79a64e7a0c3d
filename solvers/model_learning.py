"""Training of learned models, resumable to the last bit.

    min over weights   mean of the model's loss over the samples

First AdamW on mini-batches, then rounds of L-BFGS (solvers/model_optimizers.py): on these small
networks in double precision the second lowers the error by two to four orders of magnitude in the
time in which the first would lower it by one. A checkpoint holds weights, the optimizer's memory,
random numbers and history: training that was interrupted ends where it would have ended without.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from cito.dynamics.learned.model import Model
from cito.dynamics.learned.model_file import (
    FORMAT,
    model_arrays,
    model_facts,
    read_archive,
    restored,
    write_archive,
)
from cito.dynamics.learned.motions import Motions
from cito.dynamics.types import Array, positive, whole_number
from cito.solvers.model_optimizers import Descent, Refinement
from cito.solvers.torch_threads import one_thread


@dataclass(frozen=True)
class Training:
    """Settings.

    Args:
        steps: mini-batches of AdamW.
        batch: samples in each.
        rate: first learning rate.
        decay: of weights, as of AdamW.
        rounds: of L-BFGS after them, 20 iterations each.
        samples: at most, that L-BFGS sees.
        seed: of the batches.
    """

    steps: int = 300
    batch: int = 128
    rate: float = 1e-2
    decay: float = 0.0
    rounds: int = 50
    samples: int = 4000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("steps", 0), ("batch", 1), ("rounds", 0), ("samples", 1), ("seed", 0)):
            whole_number(name, getattr(self, name), least)
        positive("rate", self.rate)
        positive("decay", self.decay, allow_zero=True)


class Writer(Protocol):
    """What takes numbers as they come, such as TensorBoard's SummaryWriter."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object:
        """One number of one curve."""


class Learned(NamedTuple):
    """What training brought: the model, and the loss before each step or round, (m,)."""

    model: Model
    history: Array


def learn(
    model: Model,
    motions: Motions,
    training: Training | None = None,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 100,
    resume: bool = False,
    writer: Writer | None = None,
    stop: Callable[[int], bool] | None = None,
) -> Learned:
    """Train `model` in place.

    Args:
        model: untrained, or as it is.
        motions: samples.
        training: settings.
        checkpoint: file to write every `every` steps, every round and at the end; `load_model`
            reads it too.
        every: see `checkpoint`.
        resume: go on from `checkpoint` where there is one, made with the same settings.
        writer: takes the curve "loss/<kind>".
        stop: asked after each step or round (how many there were) whether to leave early.

    Raises:
        ValueError: samples that do not fit the model, or a checkpoint of other settings.
        ArithmeticError: the loss is no longer finite.
    """
    training = training or Training()
    whole_number("every", every, 1)
    if resume and checkpoint is None:
        raise ValueError("`checkpoint` must be given with `resume`")
    path = None if checkpoint is None else Path(checkpoint)
    with one_thread():
        run = _Run(model, motions, training)
        if resume and path is not None and path.is_file():
            run.load(path)
        while not run.done:
            loss = run.advance()
            if writer is not None:
                writer.add_scalar(f"loss/{model.kind}", loss, run.step)
            left = stop is not None and stop(run.step)
            if path is not None and (run.due(every) or left):
                run.save(path)
            if left:
                break
    return Learned(model, np.array(run.history))


def tensorboard(folder: str | os.PathLike[str]) -> Any:
    """A writer for TensorBoard; to be closed, or used with `with`.

    Raises:
        ImportError: TensorBoard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError("this needs TensorBoard: pip install tensorboard") from error
    return SummaryWriter(str(folder))


class _Run:
    """Optimizers and history of one training, at some step."""

    def __init__(self, model: Model, motions: Motions, training: Training) -> None:
        self.model, self.training = model, training
        samples, t = model.batch(motions), training
        self._count = len(motions)
        self._descent = Descent(model, samples, t.steps, t.batch, t.rate, t.decay, t.seed)
        self._refinement = Refinement(model, samples, t.samples, t.seed)
        self.history: list[float] = []

    @property
    def step(self) -> int:
        """Steps and rounds that there were."""
        return len(self.history)

    @property
    def done(self) -> bool:
        """Whether all of them are made."""
        return self.step >= self.training.steps + self.training.rounds

    def due(self, every: int) -> bool:
        """Whether it is time for a checkpoint."""
        return self.done or self.step >= self.training.steps or self.step % every == 0

    def advance(self) -> float:
        """The next step or round; the loss before it."""
        phase = self._phase(self.step)
        loss = phase.advance(self.step)
        self.history.append(loss)
        if not math.isfinite(loss):
            raise ArithmeticError(
                f"the loss of {self.model.kind} is not finite after {self.step - 1} steps: "
                f"lower `rate`, {self.training.rate:g}"
            )
        return loss

    def _phase(self, step: int) -> Descent | Refinement:
        return self._descent if step < self.training.steps else self._refinement

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        about = {
            "format": FORMAT,
            **model_facts(self.model),
            "training": asdict(self.training),
            "samples": self._count,
        }
        state = {f"state/{k}": x for k, x in self._phase(self.step).state().items()}
        history = {"history": np.array(self.history)}
        write_archive(path, about, {**model_arrays(self.model), **state, **history})

    def load(self, path: Path) -> None:
        """Go on from a checkpoint."""
        about, arrays = read_archive(path)
        self._check(path, about)
        self.model.set_weights(restored(path, about, arrays).weights)
        self.history = [float(x) for x in arrays["history"]]
        state = {k[6:]: x for k, x in arrays.items() if k.startswith("state/")}
        self._phase(self.step).restore(state)

    def _check(self, path: Path, about: Mapping[str, Any]) -> None:
        wanted = {
            **json.loads(json.dumps(model_facts(self.model))),
            "training": asdict(self.training),
            "samples": self._count,
        }
        for name, value in wanted.items():
            if about.get(name) != value:
                raise ValueError(
                    f"`checkpoint`: {path} is of another training: {name} {about.get(name)!r:.80} "
                    f"instead of {value!r:.80}"
                )
