"""Closed loops as plain data: equal ones are equal, pulls pull, falls are seen."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cito import make
from cito.benchmarks.closed_loop import METHODS, Experiment, Watch, outcome
from cito.problems.legged import pose_errors

NEAR = {"target": [0.05, 0.0, 0.0], "horizon": 6}


def brief(method: str = "full-cone", **changes):
    return Experiment("base-pose-c3", NEAR, method, ticks=6, iterations=1, **changes)


def test_an_outcome_is_a_function_of_its_experiment_and_json():
    given = json.loads(json.dumps(brief().as_dict()))
    first, again = outcome(given), outcome(given)
    for found in (first, again):
        assert found.pop("cpu") > 0
    assert first == again and json.loads(json.dumps(first)) == first
    assert first["ticks"] == 6 and first["fell"] is None and first["failed"] == 0
    assert 0 < first["objective_mean"] < 10 and first["position_error"] < 0.06


def test_every_method_is_a_gradient_of_the_controller():
    costs = {m: outcome(brief(m).as_dict())["objective_mean"] for m in METHODS}
    assert all(0 < cost < 10 for cost in costs.values())
    assert costs["exact"] != costs["full-cone"] != costs["signorini"]


def test_the_controller_does_not_know_of_the_pull():
    still = outcome(brief().as_dict())
    pulled = outcome(brief(pull=[0.0, 300.0, 0.0], pull_time=[0.05, 0.1]).as_dict())
    assert pulled["position_error"] > still["position_error"] + 0.02


def test_a_run_ends_with_the_fall_where_it_is_asked_to():
    struck = brief(pull=[0.0, 0.0, -4000.0], pull_time=[0.0, 1.0], until_fall=True)
    found = outcome(struck.as_dict())
    assert found["fell"] is not None and found["ticks"] < 6
    assert found["fell"] == pytest.approx(found["ticks"] * 0.025)


def test_only_what_is_no_foot_counts_as_touching():
    problem = make("base-pose-c3")
    watch, x = Watch(problem.dynamics.system), problem.start.copy()
    assert not watch.touches(x)
    x[2] = 0.0565  # the trunk's lower side is 57 mm below the base's origin
    assert watch.touches(x)
    x[2] = 0.3
    x[3:7] = [np.sin(np.pi / 2), 0, 0, np.cos(np.pi / 2)]  # on its back in the air
    assert not watch.touches(x)


def test_errors_are_measured_from_the_target_pose():
    problem = make("base-pose-c3", target=(0.3, 0.0, 0.0), yaw=0.2)
    errors = pose_errors(problem, problem.start)
    assert errors["position_error"] == pytest.approx(0.3)
    assert errors["orientation_error"] == pytest.approx(0.2)
    assert np.isnan(pose_errors(make("hop"), None)["position_error"])
    moving = make("base-pose", target=(0.3, 0.0, 0.0))  # its reference goes there at a speed
    assert pose_errors(moving, moving.start)["position_error"] == pytest.approx(0.0, abs=1e-9)
    assert pose_errors(moving, moving.start, 5.0)["position_error"] == pytest.approx(0.3)
