"""Pushing a box along the ground: the step, and the proven optimum of the task."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import ContactDynamics
from cito.problems import make
from cito.problems.push_box import PUSHER_MASS, pusher_and_box
from cito.solvers import Status, solve_ddp
from cito.solvers.miqp import reference

OPTIMUM = 4.351620689  # Gurobi finds the same


def test_pusher_pushes_and_does_not_pull():
    h = 0.05
    dynamics = ContactDynamics(pusher_and_box(mass=1.0), h, friction=0.5)
    touching = np.zeros(6)
    pushed = dynamics.step(touching, [20.0])
    # Both move on together; friction takes mu m g from the push.
    v = h * (20.0 - 0.5 * 9.81) / (1.0 + PUSHER_MASS)
    np.testing.assert_allclose(pushed.state[3:], [v, v, 0.0], atol=1e-12)
    assert pushed.modes.tolist() == [2, 1]
    pulled = dynamics.step(touching, [-20.0])
    np.testing.assert_allclose(pulled.state[4:], 0.0, atol=1e-12)
    assert pulled.state[3] == pytest.approx(-20.0 * h / PUSHER_MASS)
    # Too weak a push: the box sticks, and so does the pusher against it.
    held = dynamics.step(touching, [4.0])
    np.testing.assert_allclose(held.state, 0.0, atol=1e-12)


def test_reference_proves_the_optimum():
    problem = make("push-box-planar")
    assert problem.parameters["friction"] == 0.5
    solution = reference(problem)
    assert solution.status is Status.OPTIMAL and solution.gap <= 1e-7
    assert solution.cost == pytest.approx(OPTIMUM, rel=1e-8)
    assert solution.cost == pytest.approx(solution.history[0]["polished_cost"], rel=1e-9)
    # It approaches, pushes, lets the box slide to rest close to the target.
    box = solution.states[:, [1, 4]]
    np.testing.assert_allclose(box[-1], [0.3, 0.0], atol=0.03)
    assert solution.modes[0].tolist() == [0, 2] and (solution.modes[:, 1] == 1).sum() >= 5
    assert solve_ddp(problem).cost >= solution.bound


def test_misuse():
    with pytest.raises(ValueError, match="`mass` must be > 0"):
        make("push-box-planar", mass=0.0)
    with pytest.raises(ValueError, match="`start` must have shape"):
        make("push-box-planar", start=(0.0, 0.0))
