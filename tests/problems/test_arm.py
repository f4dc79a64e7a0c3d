"""The arms hold still, throw and hit; the ball's contacts are found."""

from __future__ import annotations

import numpy as np
import pytest

import cito
from cito.problems.arm import BALL_MASS, TILT, arm_hit, arm_throw


def miss(problem, states):
    """Distance of the ball from its target at the end [m]."""
    joints = problem.dynamics.nu
    ball = states[-1, joints : joints + 3]
    return np.linalg.norm(ball - np.asarray(problem.parameters["target"]))


def test_the_throwing_arm_holds_still_and_carries_the_ball():
    problem = arm_throw()
    motion = problem.dynamics.rollout(problem.start, problem.initial_controls)
    np.testing.assert_allclose(motion.states, np.tile(problem.start, (51, 1)), atol=1e-7)
    assert (motion.modes == 2).all()  # the ball sticks to all three plates
    share = BALL_MASS * 9.81 * problem.dynamics.time_step / 3 / np.cos(TILT)
    normal = motion.impulses[:, 2::3]
    assert (normal > 0.3 * share).all() and (normal < 1.1 * share).all()


def test_the_exact_gradient_does_not_see_the_ball_and_a_relaxed_one_hits_it():
    problem = arm_hit()
    blind = cito.solve(problem, cito.Exact())
    assert blind.status.name == "NO_GRADIENT"
    solution = cito.solve(problem, cito.FullCone(0.03), max_iterations=40)
    struck = solution.modes[:, 2] != 0
    assert struck.any() and not struck[0]
    assert solution.cost < 0.5 * blind.cost


@pytest.mark.parametrize("task", [arm_throw, arm_hit])
def test_a_ball_that_spins_flies_on_a_parabola(task):
    problem = task()
    dynamics, joints = problem.dynamics, problem.dynamics.nu
    nq, h, N = dynamics.manifold.nq, dynamics.time_step, 20
    x = problem.start.copy()
    x[joints : joints + 3] = [3.0, -1.0, 4.0]
    v, spin = np.array([2.0, 1.0, 3.0]), np.array([40.0, -30.0, 60.0])
    x[nq + joints :] = np.append(v, spin)
    motion = dynamics.rollout(x, np.zeros((N, joints)))
    k = np.arange(N + 1)[:, None]
    fall = np.array([0, 0, -9.81]) * h**2 * k * (k + 1) / 2
    place = motion.states[:, joints : joints + 3]
    np.testing.assert_allclose(place, x[joints : joints + 3] + k * h * v + fall, atol=1e-12)
    np.testing.assert_allclose(motion.states[-1, -3:], spin, atol=1e-12)


def test_a_ball_that_rolls_keeps_its_speed():
    problem = arm_hit()
    dynamics, speed, radius = problem.dynamics, 3.0, 0.06
    x = problem.start.copy()
    x[2:5] = [2.0, 0.0, radius]
    x[11], x[15] = speed, speed / radius  # along x, about y
    motion = dynamics.rollout(x, np.zeros((70, 2)))
    np.testing.assert_allclose(motion.states[:, 11], speed, rtol=1e-9)
    np.testing.assert_allclose(motion.states[:, 4], radius, rtol=1e-9)


def test_the_impact_is_elastic_in_part():
    problem = arm_hit(restitution=0.5)
    controls = np.tile([20.0, 10.0], (problem.horizon, 1))
    motion = problem.dynamics.rollout(problem.start, controls)
    k = int(np.flatnonzero(motion.modes[:, 2])[0])
    dead = arm_hit(restitution=0.0)
    still = dead.dynamics.rollout(motion.states[k], controls[k:][:1])
    gained = motion.states[k + 1] - motion.states[k]
    without = still.states[1] - motion.states[k]
    ball = problem.dynamics.manifold.nq + 2  # its velocity along x
    assert gained[ball] > 1.2 * without[ball] > 0


@pytest.mark.parametrize("task", [arm_throw, arm_hit])
def test_bad_parameters_are_refused(task):
    with pytest.raises(ValueError, match=r"`target` must have shape \(3,\)"):
        task(target=(1.0, 2.0))
    with pytest.raises(ValueError, match="`terminal_weight` must be > 0"):
        task(terminal_weight=0.0)
