"""Sample enhancement: what a neighbour claims to be, against what the simulator does there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cito.dynamics.check import finite_difference
from cito.dynamics.types import Array
from cito.problems.episodic import EpisodicTask
from cito.solvers.learning.neighbours import Transitions, drawn_neighbours, neighbours
from tests.reference.episodic import B, made, samples

NAMES = ("links-3", "hopper-run", "float")  # the last with a quaternion in its state


def seen(name: str) -> tuple[EpisodicTask, Transitions]:
    task = made(name)
    x, a = samples(task)
    after = task.step(x, a).state
    return task, Transitions(x, a, task.reward(after, a).value, after)


def moved(task: EpisodicTask, real: Transitions, dx: Array, da: Array) -> Transitions:
    """The transition that the simulator makes near a real one."""
    x, a = task.dynamics.integrate(real.state, dx), real.action + da
    after = task.step(x, a).state
    return Transitions(x, a, task.reward(after, a).value, after)


@pytest.mark.parametrize("name", NAMES)
def test_a_neighbour_moves_as_finite_differences_say(name: str) -> None:
    """What a neighbour is, as a function of how far it is away, has the simulator's slope."""
    task, real = seen(name)
    d, n = task.dynamics, task.dynamics.ndx
    for k in range(B):
        one = Transitions(*(part[k : k + 1] for part in real))

        def of(near, z: Array, one: Transitions = one) -> Array:  # type: ignore[no-untyped-def]
            many = Transitions(*(np.repeat(part, len(z), axis=0) for part in one))
            found = near(task, many, z[:, :n], z[:, n:])
            dx = d.difference(np.broadcast_to(one.next, found.next.shape), found.next)
            return np.hstack([dx, found.reward[:, None]])

        origin = np.zeros(n + d.nu)
        slopes = [
            finite_difference(lambda z, near=near: of(near, z), origin)  # type: ignore[misc]
            for near in (neighbours, moved)
        ]
        assert_allclose(slopes[0], slopes[1], atol=2e-6 * np.abs(slopes[1]).max())


@pytest.mark.parametrize("name", NAMES)
def test_what_a_neighbour_is_wrong_by_is_of_second_order(name: str) -> None:
    task, real = seen(name)
    random = np.random.default_rng(2)
    dx = random.standard_normal((B, task.dynamics.ndx))
    da = random.standard_normal(real.action.shape)
    errors = []
    for size in (1e-3, 1e-4):
        near = neighbours(task, real, size * dx, size * da)
        true = moved(task, real, size * dx, size * da)
        assert_allclose(near.state, true.state)
        off = task.dynamics.difference(true.next, near.next)
        errors.append([np.abs(off).max(), np.abs(near.reward - true.reward).max()])
    assert (np.array(errors[1]) < 0.02 * np.array(errors[0])).all()


def test_neighbours_are_drawn_around_each_sample_and_actions_stay_within_their_limits() -> None:
    task, real = seen("links-3")
    real.action[0] = 1.0
    near = drawn_neighbours(task, real, 5, 0.1, np.random.default_rng(0))
    off = np.abs(near.state.reshape(B, 5, -1) - real.state[:, None])
    assert 0.08 < off.max() <= 0.1
    assert near.action.max() == 1.0 and near.action.reshape(B, 5, -1)[0].min() >= 0.9
    at_limit = near.action == 1.0
    assert at_limit.any() and not at_limit.all()
