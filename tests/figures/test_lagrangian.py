"""The figure of learned dynamics, from measures made up: what is drawn is what was measured."""

from pathlib import Path

import numpy as np
import pytest

from cito import figures
from cito.benchmarks import lagrangian as benchmark
from cito.benchmarks import lagrangian_control as control
from cito.figures import lagrangian, runs


def test_the_figure_shows_what_the_benchmark_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def model_row(data: str, kind: str, seed: int, size: object) -> dict[str, float]:
        assert size is benchmark.QUICK
        error = 10.0 ** -(len(kind) % 7) * (1 + seed)
        return {name: error for name in lagrangian.MEASURED} | {"valid_time": 1.0 + len(kind) / 9}

    def attempts(task: str, seed: int, size: object) -> list[control.Attempt]:
        times = np.linspace(0, 8, 401)
        states = np.zeros((401, 4))
        states[:, 1] = np.pi * (1 - np.exp(-times * (1 + seed)))
        return [control.Attempt({"name": f"{task}/{m}"}, times, states) for m in ("mpc", "energy")]

    monkeypatch.setattr(benchmark, "model_row", model_row)
    monkeypatch.setattr(control, "attempts", attempts)
    monkeypatch.setattr(benchmark, "QUICK_SEEDS", 3)
    picture, saved = figures.make("lagrangian", tmp_path, quick=True)
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    run = runs.load(saved)
    assert run.settings["seeds"] == 3
    np.testing.assert_allclose(run.arrays["uniform/network/torque_error"], [1, 2, 3])
    assert run.arrays["furuta/energy/angles"].shape == (3, 401)
    assert set(lagrangian.LOOKS) == set(benchmark.KINDS)
