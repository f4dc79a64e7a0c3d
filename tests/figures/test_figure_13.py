"""The leaning quadruped: going uphill saves the full cone, nothing saves the exact gradient."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cito import figures
from cito.benchmarks.closed_loop import METHODS
from cito.figures import figure_13, runs
from cito.figures.runs import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder: Path = tmp_path_factory.mktemp("figure_13")
    picture, saved = figures.make("13", folder, quick=True)
    assert picture.stat().st_size > 10_000
    return runs.load(saved)


def test_the_robot_leans_on_all_feet(run: Run) -> None:
    position = run.arrays["start"][:3]
    assert 0.03 < -position[1] < 0.3  # far from the target, 0.75 m to the right
    assert (run.arrays["monotone/exact/modes"][0] > 0).all()


def test_monotone_solves_accept_no_step_uphill_and_stay(run: Run) -> None:
    for method in METHODS:
        costs = run.arrays[f"monotone/{method}/costs"]
        assert (np.diff(costs) <= 1e-9 * costs[0]).all()
        assert run.facts[f"monotone/{method}"]["lifted"] == 0


def test_going_uphill_lets_the_full_cone_find_a_step(run: Run) -> None:
    costs = run.arrays["non-monotone/full-cone/costs"]
    assert costs.max() > costs[0] and costs.min() < 0.85 * costs[0]
    assert run.facts["non-monotone/full-cone"]["lifted"] >= 1
    assert run.facts["non-monotone/exact"]["lifted"] == 0
    assert run.facts["non-monotone/exact"]["cost"] > 0.99 * costs[0]


def test_iterations_are_those_asked_for(run: Run) -> None:
    for rule in figure_13.RULES:
        for method in METHODS:
            iterations = run.arrays[f"{rule}/{method}/iterations"]
            assert iterations[0] == 0 and iterations[-1] <= figure_13.QUICK_ITERATIONS
