"""The hopper stands, flies and hops."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.problems.hop import (
    SEGMENT_LENGTH,
    SHANK_MASS,
    STANDING,
    THIGH_MASS,
    TORQUE_LIMIT,
    holding_torques,
    hop,
    hopper,
)
from cito.solvers.ddp import DDPSettings, solve_ddp

TOTAL_MASS = 2.0 + THIGH_MASS + SHANK_MASS


def test_the_initial_guess_stands_still():
    problem = hop()
    rollout = problem.dynamics.rollout(problem.start, problem.initial_controls)
    np.testing.assert_allclose(rollout.states, np.tile(problem.start, (41, 1)), atol=1e-9)
    assert (rollout.modes == 2).all()
    weight = TOTAL_MASS * 9.81 * problem.dynamics.time_step
    np.testing.assert_allclose(rollout.impulses, np.tile([0, weight], (40, 1)), atol=1e-9)
    assert (np.abs(problem.initial_controls) < TORQUE_LIMIT).all()


def test_holding_torques_follow_the_pose_and_vanish_without_gravity():
    q = np.array([0.1, 0.3, -0.4, 0.9])
    assert np.abs(holding_torques(hopper(), q)).max() > 0.5
    np.testing.assert_allclose(holding_torques(hopper(gravity=0.0), q), 0, atol=1e-12)


def test_the_foot_touches_the_ground_when_standing_and_lies_under_the_hip():
    q, system = np.array(STANDING), hopper()
    *_, phi = _native.system_terms(system.native, None, q, np.zeros(4))
    np.testing.assert_allclose(phi, 0, atol=1e-15)
    J = _native.system_terms(system.native, None, q, np.zeros(4))[3]
    # Turning the thigh moves a foot under the hip sideways only, by minus the height.
    np.testing.assert_allclose(J[:, 2], [-STANDING[1], 0], atol=1e-15)


def test_momentum_in_flight_changes_by_weight_alone():
    """M's first two rows times v are the momentum; torques and swing cannot change it."""
    system = hopper()
    start = np.array([*STANDING, 0.4, 1.0, 2.0, -3.0]) + [0, 1.0, 0, 0, 0, 0, 0, 0]
    dynamics = ContactDynamics(system, time_step=1e-4)
    rollout = dynamics.rollout(start, np.tile([3.0, -2.0], (1000, 1)))
    assert (rollout.modes == 0).all()

    def momentum(x):
        M = _native.system_terms(system.native, None, x[:4].copy(), x[4:].copy())[0]
        return (M @ x[4:])[:2]

    change = momentum(rollout.states[-1]) - momentum(rollout.states[0])
    np.testing.assert_allclose(change, [0, -TOTAL_MASS * 9.81 * 0.1], atol=5e-3)


def test_the_target_is_out_of_the_reach_of_a_foot_that_stays():
    problem = hop()
    target = np.array(problem.parameters["target"])
    assert np.hypot(target[0], target[1]) > 2 * SEGMENT_LENGTH


def test_ddp_hops_to_the_target_from_standing():
    problem = hop()
    solution = solve_ddp(problem, settings=DDPSettings(max_iterations=100))
    assert solution.cost < 4.5, "a tenth of the cost of standing still"
    assert (solution.modes == 0).any(), "the foot leaves the ground"
    assert (np.abs(solution.controls) <= TORQUE_LIMIT).all()
    np.testing.assert_allclose(
        solution.states[-1, :4], np.array(problem.parameters["target"])[:4], atol=0.05
    )


@pytest.mark.parametrize("wrong", [{"mass": 0.0}, {"gravity": -1.0}, {"start": np.zeros(7)}])
def test_misuse(wrong):
    with pytest.raises(ValueError, match=f"`{next(iter(wrong))}` must"):
        hop(**wrong)
