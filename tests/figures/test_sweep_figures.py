"""Figures 12 and 14: what is run, that it is kept, and how it is counted."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from cito.benchmarks.closed_loop import METHODS
from cito.benchmarks.sweep import sweep
from cito.figures import figure_12, figure_14, sweeps
from cito.figures.sweeps import Table

BRIEF = {"ticks": 3, "iterations": 1, "methods": ["exact", "full-cone"]}


def brief(module: Any, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Settings of a run of a second."""
    made = {**module.settings(True), **BRIEF, **changes}
    monkeypatch.setattr(module, "settings", lambda quick: made)


def test_full_settings_are_the_published_ranges() -> None:
    made = figure_12.settings(False)
    assert made["ticks"] == 400 and made["directions"] == 8
    found = list(figure_12.targets(made))
    distances = [np.linalg.norm(p["target"]) for group, _, p in found if group == "translation"]
    assert len(distances) == 40 and set(np.round(distances, 5)) == {0.2, 0.4, 0.75, 1.2, 1.6}
    for group, radius, largest in (("yaw", 0.1, 3.1), ("pitch", 0.3, 1.2)):
        amounts = [(amount, p) for g, amount, p in found if g == group]
        assert max(amount for amount, _ in amounts) == largest
        assert all(np.linalg.norm(p["target"]) <= radius + 1e-5 for _, p in amounts)
        assert len({tuple(p["target"]) for _, p in amounts}) == figure_12.OFFSETS
    pulls = [e for _, e in figure_14.experiments(figure_14.settings(False))]
    assert len(pulls) == 5 * 8 * 10 * len(METHODS)
    assert {round(float(np.linalg.norm(e.pull))) for e in pulls} == {40, 80, 120, 160, 200}


def test_figure_12_keeps_a_row_for_each_run(tmp_path: Path, monkeypatch) -> None:
    brief(figure_12, monkeypatch, distances=[0.4], yaws=[0.8], pitches=[], offsets=1)
    with joblib.parallel_config(backend="sequential"):
        figure_12.compute(tmp_path / "run.npz", True)
    table = Table.load(tmp_path / "run.npz")
    assert table.columns["method"].tolist() == 3 * ["exact", "full-cone"]
    assert (table.numbers("ticks") == 3).all() and (table.numbers("objective_mean") > 0).all()
    with open(tmp_path / "run.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6 and float(rows[5]["amount"]) == 0.8 and rows[5]["group"] == "yaw"
    assert {p.name for p in tmp_path.iterdir()} == {"run.npz", "run.csv"}
    monkeypatch.setattr(figure_12, "GROUPS", {"translation": "", "yaw": ""} | {"pitch": ""})
    picture = figure_12.draw(tmp_path / "run.npz", tmp_path / "run.png")
    assert picture.stat().st_size > 10_000


def test_what_was_run_before_an_interrupt_is_not_run_again(tmp_path, monkeypatch) -> None:
    brief(figure_14, monkeypatch, levels=[80.0], directions=2, perturbed=1)
    made = figure_14.settings(True)
    first = [e.as_dict() for _, e in figure_14.experiments(made)][:2]
    sweep(figure_14.outcome, first, tmp_path / "run.parts", 1)
    ran: list[int] = []

    def counting(function, experiments, folder, advance):
        ran.append(sum(1 for _ in folder.iterdir()))
        return sweep(function, experiments, folder, 1, advance)

    monkeypatch.setattr(sweeps, "sweep", counting)
    figure_14.compute(tmp_path / "run.npz", True)
    table = Table.load(tmp_path / "run.npz")
    assert ran == [2] and len(table.columns["method"]) == 4
    assert figure_14.survival(table, "full-cone").tolist() == [[1.0], [1.0]]
    assert figure_14.draw(tmp_path / "run.npz", tmp_path / "run.png").stat().st_size > 10_000


def test_a_level_is_resisted_only_with_all_below_it() -> None:
    levels = np.array([40.0, 80.0, 120.0])
    share = np.array([[1, 1, 1], [1, 0.9, 0.8], [1, 0.8, 1], [0.5, 1, 1]])
    assert figure_14.resisted(share, levels).tolist() == [120, 80, 40, 0]
