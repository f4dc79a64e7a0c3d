"""The planar reference tasks are what their description says."""

from __future__ import annotations

import numpy as np
import pytest

from cito.problems import make
from cito.problems.objective import Objective

TASKS = {
    "lift-off": (9.81, [0, 0, 0, 0], [0, 0.5, 0, 0], [1, 10, 0.1, 0.1], [1e-3, 1e-3]),
    "traverse": (9.81, [0, 0, 0, 0], [1, 0, 0, 0], [10, 1, 0.1, 0.1], [1e-2, 1e-2]),
    "friction-braking": (0.0, [0, 0.2, 1, 0], [0, 0.2, 0, 0], [1, 1, 0.1, 0.1], [1e-1, 1e-3]),
}
Q_F = np.array([100, 100, 10, 10.0])


@pytest.mark.parametrize("name", TASKS)
def test_cost_is_the_written_one(name):
    gravity, start, target, Q, R = TASKS[name]
    problem = make(name)
    assert problem.horizon == 30 and problem.dynamics.time_step == 0.05
    assert problem.dynamics.friction.tolist() == [0.8]
    assert problem.start.tolist() == start
    assert problem.control_lower is None and problem.control_upper is None
    assert not problem.initial_controls.any()
    rng = np.random.default_rng(0)
    X, U = rng.standard_normal((31, 4)), rng.standard_normal((30, 2))
    dx = X - target
    J = 0.5 * (np.sum(dx[:-1] ** 2 * Q) + np.sum(U**2 * R) + np.sum(dx[-1] ** 2 * Q_F))
    assert float(Objective(problem).value(X, U)) == pytest.approx(J, rel=1e-13)


@pytest.mark.parametrize("name", TASKS)
def test_world_is_a_kilogram_under_the_tasks_gravity(name):
    gravity = TASKS[name][0]
    step = make(name).dynamics.step([0, 10.0, 0, 0], [2.0, 3.0])
    np.testing.assert_allclose(step.state[2:], 0.05 * np.array([2.0, 3.0 - gravity]))


@pytest.mark.parametrize(
    ("name", "cost"), [("lift-off", 50.0), ("traverse", 200.0), ("friction-braking", None)]
)
def test_cost_of_doing_nothing(name, cost):
    """At rest on the ground the cost is that of the distance; hovering, that of the drift."""
    problem = make(name)
    rollout = problem.dynamics.rollout(problem.start, problem.initial_controls)
    if cost is None:
        p = 0.05 * np.arange(31)
        running = 0.5 * np.sum(p[:-1] ** 2 + 0.1)
        cost = running + 0.5 * (100 * p[-1] ** 2 + 10)
    else:
        problem_target = problem.parameters["target"]
        Q = np.array(TASKS[name][3])
        offset = np.array(problem_target) ** 2
        cost = 15 * float(Q @ offset) + 0.5 * float(Q_F @ offset)
    assert float(Objective(problem).value(rollout.states, rollout.controls)) == pytest.approx(cost)


def test_parameters_are_recorded_and_change_the_problem():
    problem = make(
        "traverse",
        friction=0.3,
        time_step=0.02,
        horizon=12,
        mass=2.0,
        gravity=1.6,
        start=[0.1, 0, 0, 0],
        target=[0.5, 0, 0, 0],
        state_weight=[1, 1, 1, 1],
        control_weight=[2, 2],
        terminal_weight=[3, 3, 3, 3],
    )
    assert problem.name == "traverse"
    assert problem.parameters["mass"] == 2.0 and problem.parameters["horizon"] == 12
    assert set(problem.parameters) == {
        "friction", "time_step", "horizon", "mass", "gravity", "start", "target",
        "state_weight", "control_weight", "terminal_weight",
    }  # fmt: skip
    assert problem.dynamics.friction.tolist() == [0.3] and problem.dynamics.time_step == 0.02
    step = problem.dynamics.step([0, 10.0, 0, 0], [0, 0])
    np.testing.assert_allclose(step.state[3], -0.02 * 1.6)
    heavy = problem.dynamics.step([0, 10.0, 0, 0], [2.0, 0])
    np.testing.assert_allclose(heavy.state[2], 0.02)
    weights = [term.weight.tolist() for term in problem.costs]
    assert weights == [[1] * 4, [2] * 2, [3] * 4]
