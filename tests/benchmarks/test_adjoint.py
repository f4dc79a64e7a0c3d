"""The benchmark of long gradients: every implementation of the arm is the same arm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cito.benchmarks import adjoint, adjoint_arm, adjoint_methods
from cito.figures import adjoint as figure
from cito.figures import runs

METHODS = [name for name in adjoint_methods.METHODS if name != "cito, contact"]


@pytest.mark.parametrize("name", METHODS[1:])
def test_every_method_finds_the_same_gradient(name: str) -> None:
    if adjoint._missing(name):
        pytest.skip(adjoint._missing(name))
    steps = 30
    wanted = adjoint_methods.cito(steps)()
    assert wanted.shape == (steps, 7) and np.abs(wanted).max() > 1e-3
    gradient = adjoint_methods.METHODS[name](steps)()
    np.testing.assert_allclose(gradient, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


def test_the_arm_with_contact_meets_every_mode() -> None:
    start, U = adjoint_arm.motion(1500)
    rollout = adjoint_arm.arm(ground=True).rollout(start, U)
    assert set(np.unique(rollout.modes)) == {0, 1, 2} and rollout.residual < 1e-9
    assert np.isfinite(adjoint_methods.METHODS["cito, contact"](1500)()).all()


def test_a_method_is_measured_in_its_own_process() -> None:
    row, gradient = adjoint.measure("cito, checkpoints", 400)
    assert row["name"] == "cito, checkpoints" and row["steps"] == 400
    assert 1e-7 < row["seconds_per_step"] < 1e-2 and 4096 <= row["peak_bytes"] < 50e6
    np.testing.assert_array_equal(gradient, adjoint_methods.cito(400)())


def made_up(name: str, steps: int, seconds: float, peak: float) -> adjoint.Row:
    row = {"name": name, "steps": steps, "seconds_per_step": seconds, "peak_bytes": peak}
    ours = {"seconds_per_step": 1e-6, "peak_bytes": 100}
    return adjoint._compared(row, np.full(2, 1 + 1e-9), ours, np.ones(2))


def test_summary_and_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"name": "jax", "steps": 500, "note": "skipped: jax is not installed"},
        *(made_up("cito", n, 1e-6, 100) for n in (100, 500)),
        *(made_up("torch", n, 5e-3, 2e4) for n in (100, 500)),
        made_up("casadi", 500, 2e-5, 300),
    ]
    summary = adjoint.summarize(rows)
    assert summary["best_autodiff"] == "casadi" and summary["time_ratio"] == pytest.approx(20)
    assert summary["memory_ratio"] == 200 and summary["gradient_error"] == pytest.approx(1e-9)
    [(headers, cells)] = adjoint.tables(rows)
    assert all(len(line) == len(headers) == len(adjoint.WIDTHS) for line in cells)

    monkeypatch.setattr(adjoint, "run", lambda quick: rows)
    picture, run = figure.make(tmp_path, quick=True)
    assert picture.read_bytes().startswith(b"\x89PNG")
    np.testing.assert_array_equal(runs.load(run).arrays["torch/steps"], [100, 500])


def test_a_method_that_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match="nobody failed over 10 steps: KeyError: 'nobody'"):
        adjoint.measure("nobody", 10)
