"""A problem checks what it is given: every argument, one clear sentence."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from cito.dynamics import ContactDynamics, point_mass
from cito.problems import ControlCost, Problem, ResidualCost, StateCost, make

DYNAMICS = ContactDynamics(point_mass(2), 0.05)
N = 4
GOOD = {
    "name": "test",
    "dynamics": DYNAMICS,
    "start": np.zeros(4),
    "horizon": N,
    "costs": (StateCost(np.ones(4), np.zeros(4)), ControlCost(np.ones(2))),
}


def state_cost(weight=(1, 1, 1, 1), reference=(0, 0, 0, 0)) -> tuple:
    return (StateCost(weight, reference), ControlCost(np.ones(2)))


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("`start` must have shape", {"start": np.zeros(3)}),
        ("`start` must be finite", {"start": [0, 0, np.nan, 0]}),
        ("`start` must be an array of numbers", {"start": "rest"}),
        ("`horizon` must be a whole number", {"horizon": 0}),
        ("`horizon` must be a whole number", {"horizon": 2.5}),
        ("`horizon` must be a whole number", {"horizon": np.inf}),
        ("`horizon` must be a whole number", {"horizon": None}),
        ("`horizon` must be <= 1000000", {"horizon": 2**31}),
        ("`dynamics` must be a Dynamics, .* got NoneType", {"dynamics": None}),
        ("`costs` must be a sequence of cost terms, got None", {"costs": None}),
        ("`control_lower` must be below", {"control_lower": [0, np.inf]}),
        ("`control_upper` must be above", {"control_upper": -np.inf}),
        ("`costs` must weigh the controls", {"costs": ()}),
        ("`costs` must weigh the controls", {"costs": state_cost()[:1]}),
        ("`costs` must weigh the controls", {"costs": (ControlCost(np.zeros(2)),)}),
        (r"`costs\[0\]` must be a cost term", {"costs": ("cheap",)}),
        (r"`costs\[0\].weight` must have shape", {"costs": state_cost(weight=np.ones(3))}),
        (r"`costs\[0\].reference` must have", {"costs": state_cost(reference=np.zeros(3))}),
        (r"`costs\[0\].reference` must have", {"costs": state_cost(reference=np.zeros((N, 4)))}),
        (r"`costs\[0\].weight` must have shape", {"costs": (ControlCost(np.ones(3)),)}),
        (
            r"`costs\[1\].reference` must have shape \(2,\) or \(4, 2\), got \(5, 2\)",
            {"costs": (*state_cost()[:1], ControlCost(np.ones(2), np.zeros((N + 1, 2))))},
        ),
        ("`control_lower` must have shape", {"control_lower": np.zeros(3)}),
        ("`control_lower` must be finite", {"control_lower": [np.nan, 0]}),
        ("`control_lower` must be an array of numbers", {"control_lower": "low"}),
        ("`control_upper` must have shape", {"control_upper": np.zeros((2, 2))}),
        ("`control_upper` must be an array of numbers", {"control_upper": "high"}),
        (
            "`control_lower` must not exceed `control_upper`",
            {"control_lower": [0, 1], "control_upper": [1, 0]},
        ),
        ("`initial_controls` must have shape", {"initial_controls": np.zeros((N + 1, 2))}),
        ("`initial_controls` must be finite", {"initial_controls": np.full((N, 2), np.inf)}),
    ],
)
def test_refuses(message, change):
    with pytest.raises(ValueError, match=message):
        Problem(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("`weight` must be >= 0", lambda: StateCost([-1, 0], np.zeros(2))),
        ("`weight` must be finite", lambda: StateCost([np.inf, 0], np.zeros(2))),
        ("`weight` must have shape", lambda: ControlCost(np.ones((2, 2)))),
        ("`reference` must be finite", lambda: StateCost([1, 1], [np.nan, 0])),
        ("`reference` must be finite", lambda: ControlCost([1, 1], [np.nan, 0])),
        ("`knots` must be", lambda: StateCost([1, 1], [0, 0], knots="first")),
        ("`knots` must be", lambda: ResidualCost(print, print, [1], knots="first")),
        ("`weight` must be >= 0", lambda: ResidualCost(print, print, [-1])),
    ],
)
def test_cost_terms_refuse(message, make):
    with pytest.raises(ValueError, match=message):
        make()


def test_fills_in_what_was_left_out():
    problem = Problem(**{**GOOD, "start": [0, 1, 2, 3], "horizon": 4.0})
    assert problem.start.dtype == float and problem.horizon == 4
    assert type(problem.horizon) is int
    assert np.array_equal(problem.initial_controls, np.zeros((N, 2)))
    assert problem.control_lower is None and problem.control_upper is None


def test_limits_may_be_scalars_and_infinite():
    problem = Problem(**GOOD, control_lower=-1.0, control_upper=[np.inf, 2.0])
    assert problem.control_lower.tolist() == [-1.0, -1.0]
    assert problem.control_upper.tolist() == [np.inf, 2.0]


def test_one_cost_term_is_no_sequence():
    message = "`costs` must be a sequence of cost terms, got one ControlCost"
    with pytest.raises(ValueError, match=message):
        Problem(**{**GOOD, "costs": ControlCost([1, 1])})


def test_repr_is_one_line():
    assert repr(make("traverse", horizon=7)) == (
        "<Problem traverse: 7 steps of 0.05 s, nx 4, nu 2, contacts 1; parameters friction, "
        "time_step, horizon, mass, gravity, start, target, state_weight, control_weight, "
        "terminal_weight>"
    )
    assert repr(make("traverse").dynamics) == (
        "<ContactDynamics of LinearSystem: nx 4, nu 2, contacts 1, time step 0.05 s, friction 0.8>"
    )
    system = make("hop").dynamics.system
    assert repr(system) == "<SymbolicSystem: q (x, z, hip, knee), 2 controls, contacts 1>"


def test_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Problem(**GOOD).horizon = 3


def test_a_problem_from_another_start_is_the_same_otherwise():
    problem = make("lift-off")
    x = problem.start + 0.1
    moved = problem.started_at(x)
    np.testing.assert_array_equal(moved.start, x)
    assert moved.costs is problem.costs and moved.horizon == problem.horizon
    assert (problem.start != x).all()
    x[0] = 7.0  # the caller's array is his own
    assert moved.start[0] != 7.0
    with pytest.raises(ValueError, match="read-only"):
        moved.start[0] = 1.0
    with pytest.raises(ValueError, match="`start` must have shape"):
        problem.started_at(np.zeros(3))
