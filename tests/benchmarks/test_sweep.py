"""Sweeps keep each outcome, go on where they stopped, and run on other backends of joblib."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import joblib
import pytest

from cito.benchmarks.sweep import key, read, sweep

CALLS: list[float] = []


def square(experiment: Any) -> dict[str, Any]:
    CALLS.append(experiment["x"])
    if experiment["x"] == 99:
        raise KeyboardInterrupt
    return {"y": experiment["x"] ** 2, "nothing": float("nan")}


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


def test_outcomes_come_in_order_and_are_kept(tmp_path: Path) -> None:
    seen: list[int] = []
    found = sweep(square, [{"x": x} for x in (3, 1, 2)], tmp_path, 1, lambda: seen.append(1))
    assert [f["y"] for f in found] == [9, 1, 4] and len(seen) == 3
    assert found[0]["nothing"] is None  # as JSON has it
    again = sweep(square, [{"x": x} for x in (1, 2, 3, 4)], tmp_path, 1)
    assert [f["y"] for f in again] == [1, 4, 9, 16] and CALLS == [3, 1, 2, 4]


def test_a_sweep_that_was_stopped_goes_on(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        sweep(square, [{"x": x} for x in (1, 99, 2)], tmp_path, 1)
    assert len(list(tmp_path.iterdir())) == 1
    CALLS.clear()
    sweep(square, [{"x": x} for x in (1, 2)], tmp_path, 1)
    assert CALLS == [2]


def test_a_file_that_is_no_outcome_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / f"{key(square, {'x': 5})}.json"
    sweep(square, [{"x": 5}], tmp_path, 1)
    kept = json.loads(file.read_text())
    assert kept["experiment"] == {"x": 5} and read(file) == kept["outcome"]
    file.write_text('{"outcome"')
    assert sweep(square, [{"x": 5}], tmp_path, 1)[0]["y"] == 25 and CALLS == [5, 5]


def test_names_of_files_depend_on_function_and_experiment() -> None:
    names = {key(square, {"x": 1}), key(square, {"x": 2}), key(sum, {"x": 1})}  # type: ignore[arg-type]
    assert len(names) == 3 and key(square, {"x": (1, 2)}) == key(square, {"x": [1, 2]})


def test_processes_of_this_machine_do_the_same(tmp_path: Path) -> None:
    from tests.benchmarks import test_sweep

    found = sweep(test_sweep.square, [{"x": x} for x in range(5)], tmp_path, 2)
    assert [f["y"] for f in found] == [0, 1, 4, 9, 16] and not CALLS


def test_the_same_sweep_runs_on_a_dask_cluster(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    from tests.benchmarks import test_sweep

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the cluster's own libraries
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
        )
        with cluster, distributed.Client(cluster):
            with joblib.parallel_config(backend="dask"):
                found = sweep(test_sweep.square, [{"x": x} for x in range(6)], tmp_path)
    assert [f["y"] for f in found] == [0, 1, 4, 9, 16, 25] and not CALLS
    assert len(list(tmp_path.iterdir())) == 6
