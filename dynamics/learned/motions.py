"""What a model of dynamics is learned from: samples of q, v, a and tau, and of momenta.

A file is an .npz with the arrays `q`, `v`, `a`, `tau` (N, n), or a .csv whose header names columns
q0, q1, ..., v0, ..., a0, ..., tau0, ...; momenta `p` and their rates `pdot` where Hamiltonians are
to be learned from it. Other arrays and columns are ignored.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cito.dynamics.files import replacing
from cito.dynamics.types import Array, as_array, freeze

NEEDED = ("q", "v", "a", "tau")
MOMENTA = ("p", "pdot")


@dataclass(frozen=True, eq=False, repr=False)
class Motions:
    """Samples, of one motion or of many, in any order.

    Args:
        q, v, a: coordinates, rates and accelerations, (N, n) [rad or m, per s, per s^2].
        tau: generalized forces of the motors, (N, n) [N m or N].
        p, pdot: momenta M v and their rates, (N, n), or None.

    Raises:
        ValueError: shapes that do not fit, no samples, NaN.
    """

    q: Array
    v: Array
    a: Array
    tau: Array
    p: Array | None = None
    pdot: Array | None = None

    def __post_init__(self) -> None:
        q = as_array("q", self.q, (None, None))
        if q.size == 0:
            raise ValueError(f"`q` must hold samples (N, n), got shape {q.shape}")
        if (self.p is None) != (self.pdot is None):
            raise ValueError("`p` and `pdot` must be given together")
        for name in (*NEEDED, *MOMENTA):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, as_array(name, value, q.shape))
        freeze(self)

    def __len__(self) -> int:
        return len(self.q)

    def __repr__(self) -> str:
        momenta = "" if self.p is None else ", with momenta"
        return f"<Motions: {len(self)} samples, n {self.q.shape[1]}{momenta}>"

    @property
    def n(self) -> int:
        """Degrees of freedom."""
        return int(self.q.shape[1])

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays that there are, by name."""
        found = {name: getattr(self, name) for name in (*NEEDED, *MOMENTA)}
        return {name: value for name, value in found.items() if value is not None}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write an .npz without pickle, whole or not at all."""
        path = Path(path)
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **self.arrays)
        return path


def joined(motions: Sequence[Motions]) -> Motions:
    """All samples of some motions; momenta where all have them."""
    if not motions:
        raise ValueError("`motions` must not be empty")
    names = set.intersection(*(set(m.arrays) for m in motions))
    return Motions(**{name: np.concatenate([m.arrays[name] for m in motions]) for name in names})


def load_motions(path: str | os.PathLike[str]) -> Motions:
    """The samples in an .npz or .csv file; see the module.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: another kind of file, a damaged one, or one without q, v, a and tau.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    readers = {".npz": _read_npz, ".csv": _read_csv}
    if path.suffix.lower() not in readers:
        raise ValueError(f"`path` must be an .npz or a .csv, got {path}")
    arrays = readers[path.suffix.lower()](path)
    missing = [name for name in NEEDED if name not in arrays]
    if missing:
        raise ValueError(f"{path} must hold q, v, a and tau: {', '.join(missing)} is missing")
    try:
        return Motions(**arrays)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _read_npz(path: Path) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in (*NEEDED, *MOMENTA) if name in file}
    except Exception as error:  # the readers of archives raise many kinds, all for one reason
        told = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{path} is no readable .npz: {told}") from error


def _read_csv(path: Path) -> dict[str, Array]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    columns = {name.strip(): k for k, name in enumerate(header)}
    arrays = {}
    for name in (*NEEDED, *MOMENTA):
        chosen: list[int] = []
        while f"{name}{len(chosen)}" in columns:
            chosen.append(columns[f"{name}{len(chosen)}"])
        if chosen:
            try:
                values = [[float(row[k]) for k in chosen] for row in rows if row]
            except (ValueError, IndexError) as error:
                raise ValueError(f"{path} must hold numbers under {name}0, ...: {error}") from error
            arrays[name] = np.array(values).reshape(-1, len(chosen))
    return arrays
