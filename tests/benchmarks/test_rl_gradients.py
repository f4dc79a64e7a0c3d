"""What the benchmark counts, and one tiny run of it."""

import json
from pathlib import Path

import joblib
import numpy as np
import pytest

from cito.benchmarks import rl_gradients
from cito.benchmarks.rl_gradients import Size, measured, samples_to, summarize, tables
from cito.cli import main

STEPS = np.arange(100.0, 700.0, 100.0)


def test_samples_are_counted_where_three_judgements_in_a_row_are_good_enough() -> None:
    returns = np.array([-9.0, -3.0, -3.0, -3.0, -1.0, -1.0])
    assert samples_to(-3.0, STEPS, returns) == 400
    assert samples_to(-2.0, STEPS, returns) == 600
    assert samples_to(-1.0, STEPS, returns) == np.inf
    assert samples_to(-99.0, STEPS, returns) == 300


def outcome(returns: list[float]) -> dict[str, object]:
    return {
        "steps": STEPS.tolist(), "returns": returns, "final_return": float(np.mean(returns[-3:])),
        "simulated": 600, "seconds": 1.0,
    }  # fmt: skip


def test_medians_are_over_seeds_and_never_is_beyond_every_number() -> None:
    slow, fast = [-9.0, -9.0, -9.0, -3.0, -3.0, -3.0], [-3.0] * 6
    configs = [
        {"task": "links-1", "method": method, "seed": seed}
        for method in ("sac", "policy", "sample")
        for seed in range(3)
    ]
    found = [*[outcome(slow)] * 3, *[outcome(fast)] * 2, outcome(slow), *[outcome([-9.0] * 6)] * 3]
    rows = list(measured(configs, found))
    assert rows[0]["baseline_return"] == -3 and rows[0]["samples"] == 600
    summary = summarize(rows)
    assert summary["links-1/sac"]["of_baseline"] == 1
    assert summary["links-1/policy"] == {
        "final_return": -3, "samples": 300, "of_baseline": 0.5, "of_all": 0.5, "simulated": 600,
        "seconds": 1, "seeds": 3,
    }  # fmt: skip
    assert summary["links-1/sample"]["samples"] is None
    assert summary["links-1/sample"]["of_baseline"] is None
    [(headers, cells)] = tables(rows)
    assert cells[1] == ["links-1/policy", "-3.0", "300", "0.50", "0.50", "600", "1"]
    assert cells[2][2:5] == ["never", "", ""] and len(headers) == 7


def test_a_run_is_made_once_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("stable_baselines3")
    small = {"steps": 60, "judged": 20, "warm_up": 20, "batch": 4, "width": 4}
    monkeypatch.setattr(rl_gradients, "QUICK", Size(("links-1",), 1, small))
    monkeypatch.setattr(rl_gradients, "METHODS", ("sac", "policy"))
    found = []
    for _ in range(2):
        with joblib.parallel_config(backend="sequential"):
            command = ["bench", "rl-gradients", "--quick", "--json", "--out", str(tmp_path)]
            assert main(command) == 0
        found.append(json.loads(capsys.readouterr().out))
    rows = found[0]["rows"]
    assert [row["name"] for row in rows] == ["links-1/sac", "links-1/policy"]
    assert [row["simulated"] for row in rows] == [60, 60 + 40 * 4]
    assert rl_gradients.total(True) == 2 and found[0]["summary"]["links-1/policy"]["seeds"] == 1
    assert found[0] == found[1]  # seconds, too: read, not run
