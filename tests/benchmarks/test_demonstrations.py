"""Gradients find motions and parameters; the search without them minimizes the same cost."""

from __future__ import annotations

import numpy as np
import pytest

from cito.benchmarks import demonstrations as d


@pytest.mark.parametrize("name", ["friction", "link-mass"])
def test_parameters_are_recovered_within_a_percent(name):
    run = d.estimate(name)
    assert run.error < 0.01
    assert run.history[0][1] > 0.2  # the guess was wrong
    assert run.evaluations < 30


@pytest.mark.parametrize("name", d.TASKS)
def test_the_ball_is_steered_to_within_a_centimetre_of_its_target(name):
    run, problem = d.steer(name), d.posed(name)
    assert d.distance(problem, problem.start[None]) > 1.0
    assert run.error < d.REACHED
    assert run.error == pytest.approx(float(d.distance(problem, run.states)))
    coarse = run.within(d.REACHED)
    assert coarse.error < d.REACHED
    assert 0 < coarse.seconds <= run.history[-1][0] <= run.seconds
    assert 0 < coarse.evaluations <= run.evaluations


def test_the_search_without_gradients_minimizes_the_same_cost():
    pytest.importorskip("cma")
    run = d.guess("friction", 1, limit=30.0)
    assert run.error < d.REACHED and run.evaluations > 5


def test_cma_stops_at_its_limit_and_keeps_the_best():
    pytest.importorskip("cma")

    def evaluate(x):
        return (x**2).sum(axis=1) + 1.0, np.full(len(x), 7.0)

    run = d.evolve(np.ones(4), evaluate, limit=0.05)
    assert run.error == 7.0 and run.seconds >= 0.05 or run.evaluations > 0


def test_rows_tell_the_ratio_of_the_median_times():
    problem = d.Demonstration(
        "x", 3, "m", (0.01,), lambda: d.Run(0.001, 4, 2.0, []), lambda t: d.Run(0.5, 900, t, [])
    )
    ours = [d.Run(0.001, 4, seconds, []) for seconds in (1.0, 2.0, 9.0)]
    row = d._row(problem, "CMA-ES", 0.01, [problem.without(30.0)], ours)
    assert row["ratio"] == 15.0 and row["reached"] == "0 of 1" and row["parameters"] == 3


def test_a_run_is_cut_at_its_first_error_within_the_tolerance():
    history = [(1.0, 0.5, 10), (2.0, 0.009, 20), (3.0, 0.0005, 30)]
    run = d.Run(0.0005, 30, 3.5, history)
    assert run.within(0.01) == d.Run(0.009, 20, 2.0, history[:2])
    assert run.within(0.001) == d.Run(0.0005, 30, 3.0, history)
    assert run.within(1e-6) is run


@pytest.mark.parametrize("name", d.TASKS)
def test_other_seeds_start_elsewhere_nearby(name):
    first, again, other = d.posed(name), d.api.make(name), d.posed(name, 2)
    assert (first.initial_controls == again.initial_controls).all()
    off = np.abs(other.initial_controls - first.initial_controls) / first.control_upper
    assert 0 < off.max() < 0.01
