"""The controller shifts, improves, falls back and repeats itself; it knows no clock of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cito
from cito.mpc import MPC, UpdateStatus
from cito.plan import joint_hold


def run(controller, ticks, period=None, disturb=None):
    """Closed loop on the problem's own dynamics; returns states and plans."""
    dynamics = controller.dynamics
    h = dynamics.time_step
    x, states, plans = controller.start.copy(), [controller.start], []
    for k in range(ticks):
        t = k * h
        if period is None or k % period == 0:
            plans.append(controller.update(t, x))
        x = dynamics.step(x, plans[-1].control(t, x)).state
        if disturb is not None:
            x = disturb(k, x)
        states.append(x)
    return np.array(states), plans


def hopping(horizon=20, **options):
    problem = cito.make("hop", horizon=horizon)
    controller = MPC(problem, **options)
    controller.start = problem.start
    return controller


def test_a_leg_hops_to_its_target_and_stays():
    controller = hopping()
    states, plans = run(controller, 80)
    modes = np.concatenate([plan.modes[:1, 0] for plan in plans])
    assert (modes == 0).any() and (modes == 2).any()  # it left the ground and stood
    np.testing.assert_allclose(states[-1][:2], [0.3, 0.3301], atol=0.02)
    assert plans[-1].cost < 0.05 * plans[0].cost


def test_without_a_disturbance_the_shifted_plan_predicts_what_comes():
    controller = hopping(iterations=1)
    x = controller.start
    plan = controller.update(0.0, x)
    for k in range(3):
        x = controller.dynamics.step(x, plan.control(0.02 * k, x)).state
        np.testing.assert_allclose(x, plan.states[k + 1], atol=1e-9)
    controller.update(0.06, x)
    assert controller.last.warm_cost < np.inf


def test_a_push_is_answered():
    def push(k, x):
        return x + np.array([0, 0, 0, 0, 0.5 if k == 20 else 0.0, 0, 0, 0])

    states, _ = run(hopping(), 100, disturb=push)
    np.testing.assert_allclose(states[-1][0], 0.3, atol=0.03)


def test_at_rest_the_plan_costs_as_little_as_that_of_the_exact_gradient():
    ends = {}
    for gradient in (None, cito.Exact(), cito.FullCone(0.3)):
        problem = cito.make("base-pose", target=(0, 0, 0), horizon=10)
        hold = joint_hold(problem, problem.dynamics.system)
        controller = MPC(problem, gradient=gradient, hold=hold)
        controller.start = problem.start
        ends[gradient] = run(controller, 50)[1][-1].cost
        assert controller.last.gradient == (
            "full-cone" if ends.get(cito.FullCone(0.3)) else "exact"
        )
    exact, wide, polished = ends[cito.Exact()], ends[cito.FullCone(0.3)], ends[None]
    assert polished == pytest.approx(exact, rel=1e-3) and polished < wide


def test_equal_calls_return_equal_plans_and_reset_forgets():
    first, second = hopping(), hopping()
    a, plans = run(first, 10)
    b, _ = run(second, 10)
    np.testing.assert_array_equal(a, b)
    first.reset()
    again = first.update(0.0, first.start)
    np.testing.assert_array_equal(again.controls, plans[0].controls)


def test_a_plan_outlives_many_control_periods():
    states, plans = run(hopping(iterations=4), 100, period=4)
    assert len(plans) == 25
    np.testing.assert_allclose(states[-1][0], 0.3, atol=0.03)


def test_the_budget_is_kept_with_the_clock_that_is_given():
    ticks = iter(range(10_000))
    controller = hopping(iterations=50, first_iterations=8, budget=3.5, clock=lambda: next(ticks))
    controller.update(0.0, controller.start)
    assert controller.last.iterations == 8  # nothing goes on meanwhile
    controller.update(0.02, controller.start)
    assert controller.last.iterations == 4


def test_a_spent_budget_leaves_one_iteration():
    """Where the shift alone takes all of it: a plan that is only shifted never sees what moves."""
    ticks = iter(range(10_000))
    spent = hopping(first_iterations=1, budget=0.5, clock=lambda: next(ticks))
    spent.update(0.0, spent.start)
    spent.update(0.02, spent.start)
    assert spent.last.iterations == 1 and spent.last.status is UpdateStatus.IMPROVED
    assert spent.last.cost < spent.last.warm_cost


def test_a_delay_is_predicted_away():
    """Controls that apply 30 ms late: the plan starts there, from the state expected then."""
    controller = hopping(delay=0.03)
    x = controller.start
    plan = controller.update(0.0, x)
    assert plan.start_time == pytest.approx(0.03)
    x = controller.dynamics.step(x, plan.control(0.0, x)).state
    late = controller.update(0.02, x)
    assert late.start_time == pytest.approx(0.05)
    expected = controller.dynamics.step(x, plan.control(0.02, x)).state
    half = controller.dynamics.step(expected, plan.control(0.04, expected)).state
    middle = expected + 0.5 * (half - expected)
    np.testing.assert_allclose(late.states[0], middle, atol=1e-12)


def test_moving_targets_are_functions_of_time():
    base = cito.make("hop", horizon=20)
    near = cito.make("hop", horizon=20, target=(0.1, *base.parameters["target"][1:]))
    near = replace(near, dynamics=base.dynamics)
    controller = MPC(lambda t: near if t < 0.5 else base)
    controller.start = base.start
    states, _ = run(controller, 110)
    np.testing.assert_allclose(states[-1][0], 0.3, atol=0.03)


def test_where_nothing_finite_comes_out_the_old_plan_stays():
    controller = hopping()
    plan = controller.update(0.0, controller.start)
    wild = controller.start.copy()
    wild[4:] = 1e200
    with np.errstate(all="ignore"):
        assert controller.update(0.02, wild) is plan
    assert controller.last.status is UpdateStatus.FAILED
    fresh = hopping()
    with np.errstate(all="ignore"), pytest.raises(ArithmeticError, match="no finite trajectory"):
        fresh.update(0.0, wild)


def test_going_uphill_finds_the_first_step_of_a_robot_that_leans():
    """The first plan for 0.4 m ahead: without it all feet stay, with it one lifts off."""
    problem = cito.make("base-pose-c3", target=(0.4, 0, 0))
    found = {}
    for steps in (0, 4):
        controller = MPC(problem, gradient=cito.FullCone(0.4), uphill_steps=steps)
        plan = controller.update(0.0, problem.start)
        assert controller.last.cost == plan.cost <= controller.last.warm_cost
        found[steps] = plan
    assert (found[0].modes > 0).all() and (found[4].modes == 0).any()
    assert found[4].cost < 0.98 * found[0].cost


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"uphill_steps": -1}, "`uphill_steps` must be a whole number >= 0, got -1"),
        ({"iterations": 0}, "`iterations` must be a whole number >= 1, got 0"),
        ({"delay": -0.1}, "`delay` must be >= 0, got -0.1"),
        ({"budget": 0.0}, "`budget` must be > 0, got 0"),
        ({"delay": 1e9}, "`delay` must be within a plan of"),
        ({"gradient": "exact"}, "`gradient` must be one or several contact gradients"),
        ({"gradient": cito.Exact}, "`gradient` must be one or several contact gradients"),
        ({"gradient": cito.Portfolio()}, "`gradient` must be one or several contact gradients"),
        ({"gradient": ()}, "`gradient` must be one or several contact gradients"),
        ({"hold": 3}, "`hold` must be a Hold or None, got 3"),
        ({"clock": None}, "`clock` must be a function that returns seconds, got None"),
    ],
)
def test_impossible_settings_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        hopping(**options)


def test_states_that_are_none_are_refused():
    controller = hopping()
    with pytest.raises(ValueError, match=r"`x` must have shape \(8,\)"):
        controller.update(0.0, np.zeros(7))
    with pytest.raises(ValueError, match="`x` must be finite"):
        controller.update(0.0, np.full(8, np.nan))
    with pytest.raises(ValueError, match="`t` must be finite"):
        controller.update(np.inf, np.zeros(8))
