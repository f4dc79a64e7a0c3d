"""The planar comparison: its rows, and how the command shows them."""

import json
from pathlib import Path
from typing import Any

import pytest

from cito import figures
from cito.benchmarks import BENCHMARKS, planar
from cito.cli import main


@pytest.fixture(autouse=True)
def one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planar, "TASKS", ("lift-off",))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planar, "TASKS", ("lift-off",))
        return planar.run(quick=True)


def test_every_method_is_compared_with_the_proven_optimum(rows: list[dict[str, Any]]) -> None:
    assert [row["gradient"] or row["solver"] for row in rows] == [
        "miqp", "exact", "signorini", "full-cone", "randomized", "bundled", "adaptive",
    ]  # fmt: skip
    best = rows[0]
    assert best["status"] == "optimal" and best["cost"] == pytest.approx(5.907067651, abs=1e-8)
    for row in rows:
        assert row["optimum"] == best["cost"]
        assert row["ratio"] == pytest.approx(row["cost"] / best["cost"])
        assert row["ratio"] >= 1 - 1e-7
        assert row["contact_residual"] < 1e-9


def test_the_gradients_differ_as_they_should(rows: list[dict[str, Any]]) -> None:
    ratio = {row["gradient"]: row["ratio"] for row in rows}
    assert ratio["exact"] > 8
    assert ratio["signorini"] < 1.001 and ratio["full-cone"] < 1.001
    assert ratio["adaptive"] < 1 + 1e-6


def test_the_table_has_a_cell_for_every_column(rows: list[dict[str, Any]]) -> None:
    [(headers, cells)] = planar.tables(rows)
    assert {len(row) for row in cells} == {len(headers)}
    assert cells[3][1] == "full-cone 0.1 J" and cells[3][4] == "30s"
    assert cells[5][1] == "bundled 0.1 m, threshold 0"
    assert len(rows) == planar.total(quick=True)


def test_the_command_prints_rows_and_draws_the_figure(
    rows: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(planar, "rows", lambda quick: iter(rows if quick else []))
    drawn = tmp_path / "figure_1.png"
    monkeypatch.setattr(figures, "make", lambda name, out, quick, fresh: [out / "figure_1.png"])
    assert main(["bench", "planar", "--quick", "--out", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert told["files"] == [str(drawn)]
    assert told["rows"] == json.loads(json.dumps(rows))
    assert main(["bench", "planar", "--quick", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "adaptive" in out and str(drawn) in out


def test_what_was_done_before_ctrl_c_is_printed(
    rows: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def interrupted(quick: bool) -> Any:
        yield rows[0]
        raise KeyboardInterrupt

    monkeypatch.setattr(planar, "rows", interrupted)
    assert main(["bench", "planar", "--out", str(tmp_path), "--json"]) == 130
    assert json.loads(capsys.readouterr().out) == {
        "rows": [json.loads(json.dumps(rows[0]))],
        "files": [],
    }


def test_rows_are_printed_as_they_come_where_no_terminal_sees_them(
    rows: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    seen = []

    def interrupted(quick: bool) -> Any:
        for row in rows[:2]:
            yield row
            seen.append(capsys.readouterr().out)
        raise KeyboardInterrupt

    monkeypatch.setattr(planar, "rows", interrupted)
    assert main(["bench", "planar", "--out", str(tmp_path)]) == 130
    assert "cost / optimum" in seen[0] and "miqp" in seen[0] and "exact" not in seen[0]
    assert "cost / optimum" not in seen[1] and "exact" in seen[1]
    assert capsys.readouterr().out == ""
    assert len(planar.WIDTHS) == len(planar.COLUMNS)


def test_the_table_of_an_iteration_fits_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("cito.cli_output.PIPE_WIDTH", 80)
    assert main(["bench", "ddp", "--quick", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:2] == ["friction-braking", "exact"] for line in lines)
    assert max(map(len, lines)) <= 80


def test_every_benchmark_in_the_list_can_be_run() -> None:
    from importlib import import_module

    for name in BENCHMARKS.values():
        assert callable(import_module(name).run)
