"""An actuation field that makes a soft body take a sequence of shapes, each with a code of its own.

    min over theta, z_1 .. z_b    1/b sum_k [ |x_k - y_k|^2 / (n size^2) + w |strain(x_k - y_k)|^2 ]
                                    + w_z / b sum_k |z_k|^2
    subject to                    x_k = equilibrium(A(., z_k; theta), bones(z_k; theta))

y_k are target positions of the body's own vertices, strain the differences along the edges of its
mesh over their lengths: without that term the far end of a body outweighs all the rest. Gradients
go through the equilibrium by its adjoint; Adam with a cosine of falling steps does the rest. Codes
begin on a smooth curve, as the shapes are a sequence, so that what lies between two codes means
something.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from cito.dynamics.learned.model_file import FORMAT, read_archive, write_archive
from cito.dynamics.soft.equilibrium import Equilibrium, solve_equilibrium
from cito.dynamics.soft.fields import (
    BoneMotion,
    actuation,
    make_field,
    moved_bone,
    parameter_count,
)
from cito.dynamics.soft.torch_body import torch_equilibrium
from cito.dynamics.types import Array, as_array, whole_number
from cito.problems.soft_bodies import ShapeTask
from cito.solvers.shape_training import (
    Progress,
    ShapeTraining,
    checked_codes,
    edge_ends,
    smooth_codes,
    unit_points,
)
from cito.solvers.torch_threads import one_thread

LAST_RATE = 0.01  # of the first one, at the end

__all__ = ["Progress", "ShapeLearner", "ShapeTraining"]


class ShapeLearner:
    """A field, the codes of a sequence of shapes, and the state of their training.

    Args:
        task: the body, its bones and whether they move; its hidden field is not looked at.
        targets: y, (b, n, d), positions of the vertices of `task.mesh` [m].
        training: settings.

    Raises:
        ValueError: targets of the wrong shape or not finite.
    """

    def __init__(
        self, task: ShapeTask, targets: ArrayLike, training: ShapeTraining | None = None
    ) -> None:
        t = self.training = training or ShapeTraining()
        self.task, mesh = task, task.mesh
        d = mesh.dimension
        self.targets = as_array("targets", targets, (None, len(mesh.vertices), d))
        b = len(self.targets)
        if not b:
            raise ValueError("`targets` must have one shape at least")
        self._body = task.body(0)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(t.seed)
            self.field = make_field(
                t.field, d, t.code, len(mesh.elements), t.width, t.layers, t.omega
            )
            self.bone = None if task.jaw is None else BoneMotion(d, t.code, mesh.size).double()
        self.codes = torch.nn.Parameter(torch.from_numpy(smooth_codes(b, t.code)))
        self._adam = torch.optim.Adam(list(self._parameters().values()), lr=t.rate)
        self.history: list[Progress] = []
        self._start = np.repeat(mesh.vertices[None], b, axis=0)
        self._edges = edge_ends(mesh.neighbours, mesh.vertices)

    @property
    def parameter_count(self) -> int:
        """Numbers of the field; those of codes and bones are the same for every field."""
        return parameter_count(self.field)

    @property
    def step(self) -> int:
        """Steps made."""
        return len(self.history)

    def learn(
        self,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        every: int = 50,
        callback: Callable[[Progress], object] | None = None,
        until: int | None = None,
    ) -> ShapeLearner:
        """Train to the end, or to step `until`.

        Args:
            checkpoint: a file to write every `every` steps and at the end; `load` goes on from it.
            every: see `checkpoint`.
            callback: called with each step's `Progress`.
            until: a number of steps to stop at.

        Raises:
            ArithmeticError: the loss is no longer finite.
        """
        whole_number("every", every, 1)
        last = self.training.steps if until is None else min(until, self.training.steps)
        with one_thread():
            while self.step < last:
                progress = self._advance()
                if callback is not None:
                    callback(progress)
                if checkpoint is not None and (self.step % every == 0 or self.step == last):
                    self.save(checkpoint)
        return self

    def shapes(self, codes: ArrayLike | None = None, level: int = 0) -> Equilibrium:
        """The shapes of codes (b, L), by default those learned, on the refined mesh of a level.

        Raises:
            ValueError: codes of the wrong shape, or a decoder on a mesh that is not its own.
        """
        given = self.codes.detach() if codes is None else checked_codes(codes, self.training.code)
        body = self.task.body(level)
        with torch.no_grad(), one_thread():
            A, held = self._wanted(given, level)
        return solve_equilibrium(
            body, A.numpy(), None if held is None else held.numpy(), tolerance=1e-6
        )

    def error(self, positions: Array, targets: Array) -> float:
        """RMS distance of vertices from their targets over the body's size."""
        distance = ((positions - targets) ** 2).sum(axis=-1)
        return float(np.sqrt(distance.mean())) / self.task.mesh.size

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the training's whole state, or nothing."""
        state = self._adam.state_dict()["state"]
        moments = {
            f"adam/{i}/{name}": value.numpy()
            for i, of in state.items()
            for name, value in of.items()
        }
        arrays = {f"weights/{k}": v.detach().numpy() for k, v in self._parameters().items()}
        others = {
            "start": self._start,
            "targets": self.targets,
            "history": np.array(self.history).reshape(-1, 3),
        }
        about = {"format": FORMAT, "kind": "shapes", "task": self.task.name}
        return write_archive(
            path, {**about, "training": asdict(self.training)}, {**arrays, **moments, **others}
        )

    @classmethod
    def load(cls, task: ShapeTask, path: str | os.PathLike[str]) -> ShapeLearner:
        """The training that `save` wrote, to go on with; its next steps are the same to the bit.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or of another task.
        """
        about, arrays = read_archive(path)
        if about.get("kind") != "shapes" or about.get("task") != task.name:
            raise ValueError(f"{path} is no training of the shapes of {task.name}")
        try:
            learner = cls(task, arrays["targets"], ShapeTraining(**about["training"]))
            learner._restore(arrays)
        except (KeyError, TypeError, RuntimeError, ValueError) as error:
            raise ValueError(f"{path} is damaged or no training of shapes: {error}") from error
        return learner

    # --- one step

    def _advance(self) -> Progress:
        t, b = self.training, len(self.targets)
        part = 0.5 * (1 + math.cos(math.pi * self.step / t.steps))
        self._adam.param_groups[0]["lr"] = t.rate * (LAST_RATE + (1 - LAST_RATE) * part)
        self._adam.zero_grad()
        A, held = self._wanted(self.codes, 0)
        x = torch_equilibrium(self._body, A, held, self._start, tolerance=t.tolerance)
        off = x - torch.from_numpy(self.targets)
        distance = (off**2).sum(dim=-1).mean() / self.task.mesh.size**2
        loss = distance + t.code_weight * (self.codes**2).sum() / b
        if t.strain_weight:
            first, last, lengths = self._edges
            strain = (off[:, last] - off[:, first]) / lengths
            loss = loss + t.strain_weight * (strain**2).sum(dim=-1).mean()
        progress = Progress(self.step, float(loss.detach()), float(distance.detach()) ** 0.5)
        if not math.isfinite(progress.loss):
            raise ArithmeticError(
                f"the loss is not finite after {self.step} steps: lower `rate`, {t.rate:g}"
            )
        loss.backward()
        self._adam.step()
        self._start = x.detach().numpy()
        self.history.append(progress)
        return progress

    def _wanted(self, codes: Tensor, level: int) -> tuple[Tensor, Tensor | None]:
        """A (b, m, d, d) and held (b, k, d) of codes, on the mesh of a level."""
        mesh, bones = self.task.levels[level]
        if self.training.field == "decoder":
            if level:
                raise ValueError(
                    "`level` must be 0 for a decoder: it knows the elements of its own mesh only"
                )
            where = torch.from_numpy(np.array(mesh.point_elements))
        else:
            where = torch.from_numpy(unit_points(self.task.mesh.vertices, mesh.points))
        A = actuation(self.field(where, codes))
        if self.bone is None:
            return A, None
        X = torch.from_numpy(mesh.vertices[bones.vertices])
        hinge = torch.tensor(self.task.hinge, dtype=torch.float64)
        moves = torch.from_numpy(bones.bone == 1)[:, None]
        return A, torch.where(moves, moved_bone(self.bone(codes), X, hinge), X)

    def _parameters(self) -> dict[str, torch.nn.Parameter]:
        modules = {"field": self.field, "bone": self.bone}
        found = {
            f"{name}.{key}": value
            for name, module in modules.items()
            if module is not None
            for key, value in module.named_parameters()
        }
        return {**found, "codes": self.codes}

    def _restore(self, arrays: dict[str, Any]) -> None:
        with torch.no_grad():
            for name, value in self._parameters().items():
                value.copy_(torch.from_numpy(arrays[f"weights/{name}"]))
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in arrays.items():
            if name.startswith("adam/"):
                _, i, key = name.split("/")
                state.setdefault(int(i), {})[key] = torch.from_numpy(value)
        self._adam.load_state_dict({**self._adam.state_dict(), "state": state})
        self._start = arrays["start"]
        self.history = [Progress(int(k), loss, error) for k, loss, error in arrays["history"]]
