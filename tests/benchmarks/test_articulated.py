"""The benchmark of articulated robots: all kinds of work of all mechanisms, and what they are."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from cito.benchmarks import BENCHMARKS, SUMMARIES, articulated
from cito.cli import main
from cito.dynamics.gradients import FullCone

NAMES = ("hopper", "biped", "go2", "humanoid", "arm")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return articulated.run(True)


def test_rows_are_complete(rows: list[dict[str, Any]]) -> None:
    assert {row["name"] for row in rows} == set(NAMES)
    assert len({(row["name"], row["what"]) for row in rows}) == len(rows) == 7 * 4 + 4
    for row in rows:
        assert 0 < row["least_us"] <= row["median_us"] < 1e6
        assert row["dof"] > 0 and (row["contacts"] > 0) == (row["name"] != "arm")


def test_table_has_a_line_for_each_work(rows: list[dict[str, Any]]) -> None:
    [(headers, lines)] = articulated.tables(rows)
    assert [line[0] for line in lines][:3] == ["terms", "free flight", "hard step"]
    assert len(headers) == 6 and all(len(line) == 6 for line in lines)
    assert [line[5] for line in lines if "cone" in line[0] or "flight" in line[0]] == [""] * 3


@pytest.mark.parametrize("robot", [name for name in NAMES if name != "arm"])
def test_free_flight_touches_nothing_and_the_step_does(robot: str) -> None:
    mechanism = next(m for m in articulated.mechanisms(3) if m.name == robot)
    works = articulated.works(mechanism)
    flown: Any = works["free flight"]()
    stepped: Any = works["hard step"]()
    assert not flown.impulse.any() and (stepped.impulse.max(axis=1) > 0).all()
    assert stepped.residual.max() < 1e-9


def test_the_adjoint_is_the_transpose_of_the_jacobians() -> None:
    mechanism = next(m for m in articulated.mechanisms(3) if m.name == "go2")
    works = articulated.works(mechanism)
    gradient: Any = works["full-cone adjoint"]()
    f_x, f_u = mechanism.dynamics.transition(
        mechanism.states, mechanism.controls, FullCone(articulated.RHO)
    )
    g = np.random.default_rng(1).standard_normal((3, mechanism.dynamics.ndx))
    np.testing.assert_allclose(gradient.state, np.einsum("kij,ki->kj", f_x, g), atol=1e-9)
    np.testing.assert_allclose(gradient.control, np.einsum("kij,ki->kj", f_u, g), atol=1e-9)


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert BENCHMARKS["articulated"] == "cito.benchmarks.articulated" and SUMMARIES["articulated"]
    assert main(["bench", "articulated", "--quick", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert {"name", "what", "median_us"} <= set(out["rows"][0])
