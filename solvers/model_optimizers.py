"""The two optimizers that learned models are trained by, with all of their state as arrays.

    Descent      AdamW on mini-batches: quick, and indifferent to where it starts
    Refinement   L-BFGS with a line search on a fixed set of samples: the last orders of magnitude

PyTorch's own; here is what batches they see, and how to store them so that they go on as if they
had never stopped.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.learned.model import Batch, Model
from cito.dynamics.learned.network import torch
from cito.dynamics.types import Array

BETAS, EPSILON = (0.9, 0.999), 1e-10  # of AdamW
LAST_RATE = 1e-3  # of the first
ITERATIONS, EVALUATIONS = 20, 40  # of L-BFGS in a round, and how often it may ask for the loss
HISTORY = 50  # pairs that L-BFGS remembers
MOMENTS = ("step", "exp_avg", "exp_avg_sq")
SCALARS = ("func_evals", "n_iter", "t", "prev_loss")
TENSORS = ("d", "H_diag", "prev_flat_grad")
LISTS = ("old_dirs", "old_stps", "ro")


class Descent:
    """AdamW whose rate falls from `rate` to `rate / 1000` along half a cosine."""

    def __init__(
        self, model: Model, samples: Batch, steps: int, batch: int, rate: float, decay: float,
        seed: int,
    ) -> None:  # fmt: skip
        self._model, self._samples = model, samples
        self._steps, self._size, self._first = steps, min(batch, len(samples.q)), rate
        self._rng = np.random.default_rng(seed)
        self._order = np.zeros(0, dtype=np.int64)  # what is left of this epoch
        self._adam = torch.optim.AdamW(
            model.parameters, lr=rate, betas=BETAS, eps=EPSILON, weight_decay=decay, fused=True
        )

    def advance(self, step: int) -> float:
        """One mini-batch; the loss before it."""
        part = step / self._steps
        fall = LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * part))
        for group in self._adam.param_groups:
            group["lr"] = self._first * fall
        self._adam.zero_grad()
        loss = self._model.loss(self._batch())
        loss.backward()
        self._adam.step()
        return float(loss.detach())

    def _batch(self) -> Batch:
        """The next samples of a permutation of all, drawn anew when it is used up."""
        if len(self._order) < self._size:
            self._order = self._rng.permutation(len(self._samples.q))
        rows, self._order = self._order[: self._size], self._order[self._size :]
        return picked(self._samples, rows)

    def state(self) -> dict[str, Any]:
        """Arrays by name."""
        arrays: dict[str, Any] = {
            "order": self._order,
            "random": np.array(json.dumps(self._rng.bit_generator.state)),
        }
        for i, moments in self._adam.state_dict()["state"].items():
            arrays |= {f"{i}/{name}": moments[name].numpy().copy() for name in MOMENTS}
        return arrays

    def restore(self, arrays: dict[str, Array]) -> None:
        """The inverse of `state`."""
        self._order = arrays["order"].astype(np.int64)
        self._rng.bit_generator.state = json.loads(str(arrays["random"]))
        state = self._adam.state_dict()
        # A weight that nothing depends on, such as the constant of a potential, has no moments.
        known = [i for i in range(len(self._model.parameters)) if f"{i}/step" in arrays]
        state["state"] = {
            i: {name: torch.from_numpy(arrays[f"{i}/{name}"].copy()) for name in MOMENTS}
            for i in known
        }
        self._adam.load_state_dict(state)


class Refinement:
    """L-BFGS on the first `samples` samples of a random order."""

    def __init__(self, model: Model, samples: Batch, count: int, seed: int) -> None:
        self._model = model
        rows = np.random.default_rng(seed).permutation(len(samples.q))[:count]
        self._samples = picked(samples, np.sort(rows))
        self._lbfgs = torch.optim.LBFGS(
            model.parameters, lr=1.0, max_iter=ITERATIONS, max_eval=EVALUATIONS,
            history_size=HISTORY, tolerance_grad=0.0, tolerance_change=0.0,
            line_search_fn="strong_wolfe",
        )  # fmt: skip

    def advance(self, step: int) -> float:
        """One round of iterations; the loss before it."""

        def loss() -> Any:
            self._lbfgs.zero_grad()
            value = self._model.loss(self._samples)
            value.backward()
            return value.detach()

        return float(self._lbfgs.step(loss))

    def state(self) -> dict[str, Any]:
        """Arrays by name."""
        state: dict[str, Any] = self._lbfgs.state_dict()["state"].get(0, {})
        arrays: dict[str, Any] = {k: np.array(float(state[k])) for k in SCALARS if k in state}
        arrays |= {k: state[k].numpy().copy() for k in TENSORS if k in state}
        return arrays | {k: torch.stack(state[k]).numpy() for k in LISTS if state.get(k)}

    def restore(self, arrays: dict[str, Array]) -> None:
        """The inverse of `state`."""
        if "d" not in arrays:
            return
        state: dict[str, Any] = {k: float(arrays[k]) for k in SCALARS}
        state |= {k: int(state[k]) for k in ("func_evals", "n_iter")}
        state |= {k: torch.from_numpy(arrays[k].copy()) for k in TENSORS}
        for k in LISTS:
            state[k] = list(torch.from_numpy(arrays[k].copy())) if k in arrays else []
        whole = self._lbfgs.state_dict()
        self._lbfgs.load_state_dict({**whole, "state": {0: state}})


def picked(samples: Batch, rows: NDArray[np.int64]) -> Batch:
    """Some of the samples."""
    chosen = torch.from_numpy(rows)
    return Batch(*(None if x is None else x[chosen] for x in samples))
