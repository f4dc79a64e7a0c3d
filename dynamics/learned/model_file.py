"""Models by name, and as files: one .npz of plain arrays and one JSON text, without pickle."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from cito.dynamics.files import replacing
from cito.dynamics.learned.hamiltonian import BlackBoxHamiltonian, StructuredHamiltonian
from cito.dynamics.learned.lagrangian import BlackBoxLagrangian, StructuredLagrangian
from cito.dynamics.learned.model import Model
from cito.dynamics.learned.motions import Motions
from cito.dynamics.learned.plain import PlainNetwork
from cito.dynamics.learned.shape import Scales, Shape
from cito.dynamics.types import Array

KINDS: dict[str, type[Model]] = {
    kind.kind: kind
    for kind in (
        StructuredLagrangian,
        BlackBoxLagrangian,
        StructuredHamiltonian,
        BlackBoxHamiltonian,
        PlainNetwork,
    )
}
FORMAT = "cito learned model"
ABOUT = "about"  # the member of the .npz that holds the JSON text


def new_model(
    kind: str, motions: Motions, periodic: Sequence[bool], seed: int = 0, **shape: Any
) -> Model:
    """An untrained model for these samples.

    Args:
        kind: "lagrangian-structured", "lagrangian-black-box", "hamiltonian-structured",
            "hamiltonian-black-box" or "network".
        motions: whose spread makes the model's numbers free of units.
        periodic: see `Shape`.
        seed: of the weights.
        shape: other fields of `Shape`.

    Raises:
        ValueError: an unknown kind, or a shape that does not fit the samples.
    """
    if kind not in KINDS:
        raise ValueError(f"`kind` must be one of {', '.join(KINDS)}, got {kind!r:.80}")
    if not isinstance(motions, Motions):
        raise ValueError(f"`motions` must be Motions, got {type(motions).__name__}")
    if len(periodic) != motions.n:
        raise ValueError(f"`periodic` must have {motions.n} entries, got {len(periodic)}")
    model = KINDS[kind](Shape(tuple(periodic), **shape), Scales.of(motions), seed)
    model.batch(motions)  # refuses samples that the model cannot learn from
    return model


def save_model(model: Model, path: str | os.PathLike[str]) -> Path:
    """Write a model, whole or not at all."""
    return write_archive(path, {"format": FORMAT} | model_facts(model), model_arrays(model))


def load_model(path: str | os.PathLike[str]) -> Model:
    """The model that `save_model`, or a checkpoint of its training, put at `path`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, or is no model.
    """
    about, arrays = read_archive(path)
    return restored(path, about, arrays)


def model_facts(model: Model) -> dict[str, Any]:
    """What is not an array."""
    return {"kind": model.kind, "shape": asdict(model.shape), "seed": model.seed}


def model_arrays(model: Model) -> dict[str, Array]:
    """Weights and scales by name."""
    weights = {f"weights/{name}": value for name, value in model.weights.items()}
    return weights | {f"scales/{name}": value for name, value in asdict(model.scales).items()}


def restored(
    path: str | os.PathLike[str], about: Mapping[str, Any], arrays: Mapping[str, Array]
) -> Model:
    """The model of an archive's contents."""
    try:
        groups: dict[str, dict[str, Array]] = {"weights": {}, "scales": {}}
        for name, value in arrays.items():
            group, _, rest = name.partition("/")
            groups.get(group, {})[rest] = value
        kind = KINDS[about["kind"]]
        model = kind(Shape(**about["shape"]), Scales(**groups["scales"]), about["seed"])
        model.set_weights(groups["weights"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged or no learned model: {error}") from error
    return model


def write_archive(
    path: str | os.PathLike[str], about: Mapping[str, Any], arrays: Mapping[str, Any]
) -> Path:
    """Write arrays and a JSON text under a temporary name, then rename."""
    path = Path(path)
    with replacing(path) as temporary, temporary.open("wb") as file:
        text = np.array(json.dumps(about, allow_nan=False))
        np.savez(file, allow_pickle=False, **{ABOUT: text}, **arrays)
    return path


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """JSON text and arrays of an archive.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, or is no such archive.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is damaged or no learned model: it is no .npz")
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file[ABOUT][()]))
            arrays = {name: file[name] for name in file if name != ABOUT}
    except Exception as error:  # the readers of archives raise many kinds, all for one reason
        told = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{path} is damaged or no learned model: {told}") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ValueError(f"{path} is no learned model: it does not say that it is one")
    return about, arrays
