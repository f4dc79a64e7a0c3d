"""A plan is read between its knots, on the manifold, and laid on another time grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cito
from cito.plan import Hold, Plan
from cito.problems.spring import spring_damper


def spring_plan(N=10, h=0.1, start_time=2.0, **limits):
    """The mass on its spring, pushed by 1, 2, 3, ... N."""
    dynamics = cito.ContactDynamics(spring_damper(), h)
    controls = np.arange(1.0, N + 1)[:, None]
    rollout = dynamics.rollout([0.5, 0.0], controls)
    feedback = -np.arange(N)[:, None, None] * np.ones((N, 1, 2))
    empty = np.zeros((N, 0))
    return Plan(
        dynamics,
        start_time,
        rollout.states,
        controls,
        feedback,
        empty,
        np.zeros((N, 0), np.int32),
        0.0,
        **limits,
    )


def test_controls_are_held_and_states_interpolated_between_knots():
    plan = spring_plan()
    assert plan.end_time == pytest.approx(3.0)
    assert plan.control(2.0) == 1.0 and plan.control(2.0999) == 1.0 and plan.control(2.1) == 2.0
    assert plan.control(0.0) == 1.0 and plan.control(9.0) == 10.0  # the ends are held
    np.testing.assert_array_equal(plan.state(2.3), plan.states[3])
    middle = (plan.states[3] + plan.states[4]) / 2
    np.testing.assert_allclose(plan.state(2.35), middle, rtol=1e-9)
    np.testing.assert_array_equal(plan.state(50.0), plan.states[-1])


def test_feedback_acts_on_the_deviation_and_limits_hold():
    plan = spring_plan(lower=np.array([-5.0]), upper=np.array([4.0]))
    x = plan.state(2.25) + [0.1, 0.2]
    assert plan.control(2.25, x) == pytest.approx(3.0 - 2 * 0.3)
    assert plan.control(2.25, x - 10) == 4.0
    assert plan.control(2.25, x + 10) == -5.0


def test_feedback_compares_a_state_to_where_the_plan_was_when_it_was_measured():
    plan = spring_plan()
    np.testing.assert_allclose(plan.control(2.35, plan.state(2.32), 2.32), plan.control(2.35))
    assert abs(plan.control(2.35, plan.state(2.32)) - plan.control(2.35)) > 1e-3


@pytest.mark.parametrize("elapsed", [0.0, 0.1, 0.24, 0.25, 0.9, 1.0, 7.0])
def test_a_shifted_plan_does_the_same_at_the_same_time(elapsed):
    """Each new step does on average what the old plan does meanwhile."""
    plan = spring_plan()
    states, controls, feedback, _ = plan.shifted(2.0 + elapsed)
    for k in range(10):
        begin = 2.0 + elapsed + k * 0.1
        times = begin + np.linspace(5e-4, 0.0995, 100)
        np.testing.assert_allclose(states[k], plan.state(begin), atol=1e-6)
        mean = np.mean([plan.control(t) for t in times], axis=0)
        np.testing.assert_allclose(controls[k], mean, atol=1e-9)
        gains = np.mean([plan.gains(t) for t in times], axis=0)
        np.testing.assert_allclose(feedback[k], gains, atol=1e-9)


def test_many_short_shifts_go_as_far_as_a_long_one():
    """Updates of a fraction of a step, each of which begins with the plan before: taking the first
    of two overlapped controls would leave the plan where it was."""
    plan, ramp = spring_plan(N=40), np.arange(1.0, 41.0)
    for _ in range(20):
        t = plan.start_time + 0.04
        states, controls, feedback, impulses = plan.shifted(t)
        plan = replace(plan, start_time=t, states=states, controls=controls, feedback=feedback)
    np.testing.assert_allclose(plan.controls[:25, 0], ramp[8:33], atol=1e-3)


def test_beyond_its_end_a_plan_holds():
    hold = Hold(np.array([7.0, 8.0]), np.array([9.0]), np.array([[1.0, 2.0]]))
    states, controls, feedback, _ = spring_plan().shifted(2.75, hold)
    np.testing.assert_allclose(controls[:, 0], [8.5, 9.5, 10] + [9] * 7)
    np.testing.assert_array_equal(states[3:], np.tile(hold.state, (8, 1)))
    np.testing.assert_array_equal(feedback[3:], np.tile(hold.gains, (7, 1, 1)))


def test_states_of_a_free_body_are_interpolated_by_turning():
    robot = cito.load_robot("go2")
    dynamics = cito.ContactDynamics(robot, 0.02)
    x0 = np.append(robot.stance, np.zeros(18))
    dx = np.zeros(36)
    dx[3:6] = [0.4, -0.8, 1.2]
    x1 = dynamics.integrate(x0, dx)
    plan = Plan(
        dynamics,
        0.0,
        np.array([x0, x1]),
        np.zeros((1, 12)),
        np.zeros((1, 12, 36)),
        np.zeros((1, dynamics.n)),
        np.zeros((1, dynamics.nc), np.int32),
        0.0,
    )
    between = plan.state(0.005)
    assert np.linalg.norm(between[3:7]) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(dynamics.difference(x0, between), dx / 4, atol=1e-12)


def test_a_time_before_the_plan_is_refused():
    with pytest.raises(ValueError, match=r"`t` must not be before the plan's start 2, got 1.5"):
        spring_plan().shifted(1.5)


@pytest.mark.parametrize("t", [float("nan"), float("inf"), "a", None])
def test_a_time_that_is_none_is_refused(t):
    with pytest.raises(ValueError, match="`t` must"):
        spring_plan().shifted(t)


def test_however_late_a_plan_is_asked_for_its_end_is_held():
    states, controls, *_ = spring_plan().shifted(1e300)
    assert (controls == 10.0).all() and (states == states[-1]).all()
    with pytest.raises(ValueError, match="`hold` must be a Hold or None, got 3"):
        spring_plan().shifted(2.0, hold=3)
