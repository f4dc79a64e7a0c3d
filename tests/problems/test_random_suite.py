"""The random suite draws what it says, and its cached optima belong to it."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from cito.benchmarks import random_suite_optima
from cito.benchmarks.random_suite_optima import load, prove, save
from cito.problems.planar import friction_braking, lift_off, traverse
from cito.problems.random_suite import (
    REPORT_SEEDS,
    TUNING_SEEDS,
    generator_hash,
    random_problem,
)
from cito.problems.registry import Task
from cito.solvers import solve_ddp

SEEDS = (*TUNING_SEEDS, *REPORT_SEEDS)


@pytest.fixture(scope="module")
def drawn():
    return [random_problem(seed).parameters for seed in SEEDS]


def test_distribution(drawn):
    def values(name, index=None):
        column = [p[name] if index is None else p[name][index] for p in drawn]
        return np.array(column)

    assert set(values("gravity")) == {0.0, 9.81} and 0.7 < (values("gravity") > 0).mean() < 0.9
    assert 0.2 <= values("friction").min() < 0.25 and 1.15 < values("friction").max() <= 1.2
    assert set(values("time_step")) == {0.03, 0.05, 0.08}
    assert set(values("horizon")) == set(range(15, 31))
    height, above = values("start", 1), values("target", 1)
    assert set(values("start", 0)) == set(values("start", 3)) == {0.0}
    assert 0.5 < (height == 0).mean() < 0.7 and 0.05 <= height[height > 0].min()
    assert height.max() <= 0.4 and above.max() <= 0.6 and 0.1 <= above[above > 0].min()
    assert 0.5 < (above > 0).mean() < 0.7
    for column in (values("start", 2), values("target", 0)):
        assert -1.5 <= column.min() < -1.3 and 1.3 < column.max() <= 1.5
    assert not values("target", 2).any() and not values("target", 3).any()


def test_weights_lie_within_a_factor_of_five_of_a_task(drawn):
    models = [Task("", "", build).parameters for build in (lift_off, traverse, friction_braking)]
    names = ("state_weight", "control_weight", "terminal_weight")
    used = set()
    for parameters in drawn:
        factors = [
            np.concatenate([parameters[name] / np.array(model[name]) for name in names])
            for model in models
        ]
        fits = [bool((f >= 0.2).all() and (f <= 5).all()) for f in factors]
        assert any(fits)
        used |= {i for i, fit in enumerate(fits) if fit}
    assert used == {0, 1, 2}


def test_same_seed_same_problem():
    first, again, other = random_problem(5), random_problem(5), random_problem(6)
    assert first.parameters.keys() == again.parameters.keys()
    for name, value in first.parameters.items():
        np.testing.assert_array_equal(value, again.parameters[name])
    assert first.parameters["friction"] != other.parameters["friction"]
    for wrong in (-1, 0.5):
        with pytest.raises(ValueError, match="`seed` must be a whole number >= 0"):
            random_problem(wrong)


def test_cached_optima():
    optima = load()
    assert set(optima) == set(SEEDS)
    for seeds in (TUNING_SEEDS, REPORT_SEEDS):
        assert sum(not optima[seed].proven for seed in seeds) <= 5
    for optimum in optima.values():
        assert 0 < optimum.bound <= optimum.cost and optimum.nodes > 0
        assert (optimum.gap <= 1e-7) == optimum.proven
        assert optimum.gap == pytest.approx((optimum.cost - optimum.bound) / optimum.cost, abs=1e-9)


@pytest.mark.parametrize("seed", [0, 5, 1002])
def test_cached_optimum_is_proven_again(seed):
    cached, found = load()[seed], prove(seed)
    assert found.proven and found.cost == pytest.approx(cached.cost, rel=2e-7)


@pytest.mark.parametrize("seed", [11, 42, 1050, 1077])
def test_nothing_beats_the_cached_bound(seed):
    assert solve_ddp(random_problem(seed)).cost >= load()[seed].bound


def test_cache_is_saved_whole_and_refused_from_another_generator(tmp_path):
    file = tmp_path / "optima.json"
    some = dict(list(load().items())[:3])
    save(some, file)
    assert load(file) == some and not list(tmp_path.glob("*.tmp"))
    content = json.loads(file.read_text())
    assert content["generator"] == generator_hash()
    content["generator"] = "another"
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="belongs to another generator"):
        load(file)


def test_main_proves_what_is_missing(tmp_path, monkeypatch, capsys):
    file = tmp_path / "optima.json"
    known = load()
    save({0: known[0]}, file)
    monkeypatch.setattr(random_suite_optima, "TUNING_SEEDS", range(2))
    monkeypatch.setattr(random_suite_optima, "REPORT_SEEDS", range(0))
    monkeypatch.setattr("sys.argv", ["optima", "--file", str(file)])
    random_suite_optima.main()
    found = load(file)
    assert set(found) == {0, 1} and found[0] == known[0]
    assert dataclasses.astuple(found[1])[0] == pytest.approx(known[1].cost, rel=2e-7)
    assert capsys.readouterr().out.startswith("1 Optimum(")
