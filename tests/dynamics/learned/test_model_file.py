"""Models as files."""

import json

import numpy as np
import pytest

from cito.dynamics.learned.model_file import (
    KINDS,
    load_model,
    new_model,
    read_archive,
    save_model,
    write_archive,
)
from cito.dynamics.learned.motions import Motions


@pytest.fixture(scope="module")
def motions() -> Motions:
    return Motions(*np.random.default_rng(0).standard_normal((6, 20, 2)))


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_model_comes_back_as_it_was(kind: str, motions: Motions, tmp_path) -> None:
    model = new_model(kind, motions, (True, False), seed=4, width=5, depth=1, floor=0.2)
    found = load_model(save_model(model, tmp_path / "model.npz"))
    assert found.shape == model.shape and found.kind == kind and found.seed == 4
    q, v, tau = 0.1 * motions.q, 0.01 * motions.v, motions.tau
    np.testing.assert_array_equal(found.forward(q, v, tau), model.forward(q, v, tau))
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def test_broken_files_are_refused(motions: Motions, tmp_path) -> None:
    path = save_model(new_model("network", motions, (True, True), width=4), tmp_path / "model.npz")
    about, arrays = read_archive(path)
    whole = path.read_bytes()

    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is damaged or no learned model"):
        load_model(path)
    np.savez(path, about=np.array(json.dumps({"format": "other"})))
    with pytest.raises(ValueError, match="does not say that it is one"):
        load_model(path)
    write_archive(path, about, {k: x for k, x in arrays.items() if k != "weights/inverse.0"})
    with pytest.raises(ValueError, match="`weights` must hold 'inverse.0'"):
        load_model(path)
    write_archive(path, about, arrays | {"weights/inverse.0": np.full((4, 8), np.nan)})
    with pytest.raises(ValueError, match="must be finite"):
        load_model(path)
    write_archive(path, about | {"kind": "other"}, arrays)
    with pytest.raises(ValueError, match="is damaged or no learned model"):
        load_model(path)
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "elsewhere.npz")
