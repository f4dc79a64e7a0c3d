"""The random suite: what is counted as solved, and that a stopped run goes on where it stopped."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import cito
from cito import api
from cito.benchmarks import random_suite, random_suite_optima
from cito.benchmarks.random_suite_optima import Optimum
from cito.cli import main

SEEDS = range(3, 6)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Two methods of two iterations each, known optima, and a record of the seeds solved."""
    solved: list[int] = []

    def solve(problem: cito.Problem, gradient: Any) -> cito.Solution:
        solved.append(int(problem.name.split("-")[1]))
        return api.solve(problem, gradient, max_iterations=2)

    methods = {name: partial(solve, gradient=name) for name in ("exact", "full-cone")}
    monkeypatch.setattr(random_suite, "METHODS", methods)
    optimum = Optimum(cost=2.0, bound=1.0, gap=0.5, proven=True, nodes=1, seconds=0.0)
    monkeypatch.setattr(random_suite_optima, "load", lambda: dict.fromkeys(range(3, 5), optimum))
    monkeypatch.setattr(
        random_suite_optima,
        "prove",
        lambda seed: Optimum(cost=2.0, bound=1.0, gap=0.5, proven=False, nodes=1, seconds=0.0),
    )
    return solved


def test_rows_hold_every_seed_and_method() -> None:
    rows = list(random_suite.rows(False, seeds=SEEDS))
    assert len(rows) == random_suite.total(False, seeds=SEEDS) == 6
    assert [(row["seed"], row["method"]) for row in rows[:2]] == [(3, "exact"), (3, "full-cone")]


def test_an_unproven_optimum_is_judged_by_its_bound() -> None:
    *_, row = random_suite.rows(False, seeds=SEEDS)
    assert row["seed"] == 5 and not row["proven"]
    assert row["ratio"] == row["cost"] / 1.0


def test_the_summary_counts_what_is_close() -> None:
    ratios = [1.0, 1.0005, 1.002, 1.3, float("inf")]
    rows = [
        {"method": "m", "seed": seed, "ratio": ratio, "solve_time": 0.1 * seed, "proven": seed != 2}
        for seed, ratio in enumerate(ratios)
    ]
    [entry] = random_suite.summarize(rows)
    assert entry["within_0.1_percent"] == pytest.approx(40)
    assert entry["within_0.5_percent"] == pytest.approx(60)
    assert (entry["median_ratio"], entry["worst_ratio"]) == (1.002, float("inf"))
    assert entry["median_time"] == pytest.approx(0.2)
    assert entry["failures"] == {3: 1.3, 4: float("inf")}
    _, failures, unproven = random_suite.tables(rows)
    assert failures[1] == [["m", "3 (1.3), 4 (inf)"]] and unproven[1] == [["2"]]


def test_a_stopped_run_goes_on_where_it_stopped(small: list[int], tmp_path: Path) -> None:
    whole = list(random_suite.rows(False, seeds=SEEDS))
    small.clear()
    stopped = random_suite.rows(False, seeds=SEEDS, folder=tmp_path)
    for _ in range(3):  # into the second seed
        next(stopped)
    stopped.close()
    assert small == [3, 3, 4]
    resumed = list(random_suite.rows(False, seeds=SEEDS, folder=tmp_path))
    assert small == [3, 3, 4, 4, 4, 5, 5]
    for a, b in zip(whole, resumed, strict=True):
        assert a["cost"] == b["cost"] and a["seed"] == b["seed"]
    assert list(tmp_path.iterdir()) == []  # complete: nothing is kept


def test_an_interrupted_solve_stops_the_run_and_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solution = cito.solve(cito.make("lift-off"), max_iterations=0)
    interrupted = replace(solution, status=cito.Status.INTERRUPTED)
    monkeypatch.setitem(random_suite.METHODS, "full-cone", partial(lambda problem: interrupted))
    with pytest.raises(KeyboardInterrupt):
        list(random_suite.rows(False, seeds=SEEDS, folder=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_rows_of_other_settings_are_not_used(
    small: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = random_suite.rows(False, seeds=SEEDS, folder=tmp_path)
    for _ in range(3):
        next(stopped)
    monkeypatch.setattr(random_suite, "generator_hash", lambda: "another")
    small.clear()
    next(random_suite.rows(False, seeds=SEEDS, folder=tmp_path))
    assert small == [3]


def test_a_damaged_partial_file_is_ignored(small: list[int], tmp_path: Path) -> None:
    (tmp_path / random_suite.PARTIAL).write_text('{"rows": [')
    assert len(list(random_suite.rows(False, seeds=SEEDS, folder=tmp_path))) == 6


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = ["bench", "random", "--seeds", "3:5", "--out", str(tmp_path)]
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert len(told["rows"]) == 4
    assert [entry["method"] for entry in told["summary"]] == ["exact", "full-cone"]
    assert main(command) == 0
    assert "within 0.1 %" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["3", "5:3", "a:b", "-1:3", "1:", "2:2"])
def test_wrong_seeds_are_misuse(
    text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["bench", "random", f"--seeds={text}", "--out", str(tmp_path)]) == 2
    assert "--seeds must be A:B with whole numbers A < B" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{}", "[]", "3", '{"settings": {}}'])
def test_a_foreign_partial_file_is_no_start(tmp_path: Path, text: str) -> None:
    (tmp_path / random_suite.PARTIAL).write_text(text)
    assert len(list(random_suite.rows(False, seeds=SEEDS, folder=tmp_path))) == 6
