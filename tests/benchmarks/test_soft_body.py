"""The benchmark and the figure of soft bodies, from trainings of a few steps."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from cito import figures  # noqa: E402
from cito.benchmarks import soft_body, soft_body_solves  # noqa: E402
from cito.dynamics.soft import block, held_end  # noqa: E402
from cito.figures import runs  # noqa: E402


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps a training, small bodies, one task."""
    tasks = ("bending-bar",)
    mesh = block((1.0, 0.2), (6, 1)).quadratic()
    bar = replace(soft_body.shape_task("bending-bar"), mesh=mesh, bones=held_end(mesh))
    monkeypatch.setattr(soft_body, "shape_task", lambda name: bar)
    monkeypatch.setattr(soft_body, "QUICK_STEPS", dict.fromkeys(tasks, 2))
    monkeypatch.setattr(soft_body, "SHAPE_TASKS", dict.fromkeys(tasks))
    small = {2: ((1.0, 0.2), (8, 2)), 3: ((1.0, 0.2, 0.2), (4, 1, 1))}
    monkeypatch.setattr(soft_body_solves, "LARGE", small)


def test_rows_and_summary(short: None) -> None:
    rows = soft_body.run(quick=True)
    assert len(rows) == soft_body.total(quick=True) == 6
    assert all({"name", "seed"} <= row.keys() for row in rows)
    summary = soft_body.summarize(rows)
    assert summary["largest_derivative_error"] < soft_body.BARS["derivative_error"]
    assert summary["siren_trainings"] == 1 and summary["siren_better_than_decoder"][1] == 1
    solves = [row for row in rows if row["name"].startswith("solve")]
    assert [row["vertices"] for row in solves] == [85, 81]
    assert all(row["residual"] <= 1e-4 and row["warm_iterations"] >= 1 for row in solves)
    siren, decoder = (row for row in rows if "field" in row)
    assert siren["converged"] and siren["refined_elements"] == 4 * siren["elements"]
    assert decoder["refined_error"] is None
    assert 0.8 * siren["parameters"] < decoder["parameters"] <= siren["parameters"]
    derivatives, times, fields = soft_body.tables(rows)
    assert [len(cells) for _, cells in (derivatives, times, fields)] == [2, 2, 2]
    assert "not possible" in fields[1][1]
    for headers, cells in (derivatives, times, fields):
        assert all(len(row) == len(headers) for row in cells)


def test_the_figure_is_drawn_from_its_run(short: None, tmp_path: Path) -> None:
    picture, run = figures.make("soft-body", tmp_path, quick=True)
    assert picture.read_bytes().startswith(b"\x89PNG")
    saved = runs.load(run)
    assert saved.arrays["bending-bar/shapes"].shape == saved.arrays["bending-bar/targets"].shape
    assert len(saved.arrays["bending-bar/siren/history"]) == 2
