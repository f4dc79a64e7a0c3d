"""What was checked stays as it was; problems travel between processes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from cito.dynamics.candidates import ContactPoint
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.linear import point_mass
from cito.dynamics.tree import Body, TreeSystem
from cito.problems.costs import ControlCost, StateCost
from cito.problems.problem import Problem
from cito.problems.registry import make
from cito.solvers.ddp import solve_ddp


def test_arrays_are_copies_and_read_only() -> None:
    weight, lower = np.ones(2), np.full(2, -1.0)
    dynamics = ContactDynamics(point_mass(2), 0.05)
    problem = Problem("p", dynamics, np.zeros(4), 3, [ControlCost(weight)], control_lower=lower)
    weight[0] = lower[0] = np.nan
    assert np.array_equal(problem.costs[0].weight, [1, 1])
    assert np.array_equal(problem.control_lower, [-1, -1])
    for array in (problem.start, problem.costs[0].weight, dynamics.system.mass_matrix):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 5
    assert not StateCost([1.0], [0.0]).reference.flags.writeable


@pytest.mark.parametrize("name", ["friction", "time_step", "theta", "system", "threads"])
def test_dynamics_can_not_be_changed_behind_its_native_model(name: str) -> None:
    dynamics = ContactDynamics(point_mass(2), 0.05)
    with pytest.raises(AttributeError, match=f"`{name}`"):
        setattr(dynamics, name, 1.0)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_a_problem_survives_pickle_and_copy(duplicate) -> None:  # noqa: ANN001
    problem = make("traverse", friction=0.5)
    again = duplicate(problem)
    assert solve_ddp(again).cost == solve_ddp(problem).cost


def test_a_tree_survives_pickle() -> None:
    tree = TreeSystem(
        [Body("base", None, "free", 1.0, inertia=0.01 * np.eye(3))],
        [ContactPoint("foot", "base", np.array([0.0, 0.0, -0.1]))],
    )
    dynamics = ContactDynamics(tree, 0.01)
    again = pickle.loads(pickle.dumps(dynamics))
    x = np.array([0.0, 0, 0.09, 0, 0, 0, 1, 0.3, 0, -1, 0, 0, 0])
    assert np.array_equal(again.step(x, []).state, dynamics.step(x, []).state)
