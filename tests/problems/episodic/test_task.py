"""Tasks in episodes: every derivative against finite differences, and what they mean."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cito.dynamics.candidates import ContactPoint
from cito.dynamics.check import finite_difference
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.step_terms import step_terms
from cito.dynamics.tree import TreeSystem
from cito.problems.episodic import EPISODIC, episodic_task
from cito.problems.episodic.links import LINK_LENGTH, LinkPendulum, links
from tests.reference.episodic import B, made, samples

NAMES = ("links-1", "links-3", "links-5", "hopper-run", "float")


@pytest.mark.parametrize("name", NAMES)
def test_the_step_and_its_transpose_have_the_derivative_of_finite_differences(name: str) -> None:
    task = made(name)
    d, (x, a) = task.dynamics, samples(task)
    step = task.step(x, a)
    if name == "hopper-run":
        assert (step.motions.modes[:2] == 0).all() and (step.motions.modes[2:] != 0).all()
    F, G = task.jacobians(step)
    p = np.random.default_rng(1).standard_normal((B, d.ndx))
    by_state, by_action = task.transposed(step, p)
    for k in range(B):
        of_state = finite_difference(
            lambda y, k=k: task.step(y, np.tile(a[k], (len(y), 1))).state,  # type: ignore[misc]
            x[k], integrate=d.integrate, difference=d.difference, tangent=d.ndx, step=1e-5,
        )  # fmt: skip
        of_action = finite_difference(
            lambda y, k=k: task.step(np.tile(x[k], (len(y), 1)), y).state,  # type: ignore[misc]
            a[k], difference=d.difference,
        )  # fmt: skip
        assert np.abs(of_action).max() > 1e-3
        assert_allclose(F[k], of_state, rtol=1e-6, atol=2e-6 * np.abs(of_state).max())
        assert_allclose(G[k], of_action, rtol=1e-6, atol=2e-6 * np.abs(of_action).max())
    assert_allclose(by_state, np.einsum("bij,bi->bj", F, p), rtol=1e-8, atol=1e-8)
    assert_allclose(by_action, np.einsum("bij,bi->bj", G, p), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_observations_and_rewards_have_the_derivative_of_finite_differences(name: str) -> None:
    task = made(name)
    d, (x, a) = task.dynamics, samples(task)
    J, r = task.observation_jacobian(x), task.reward(x, a)
    assert task.observe(x).shape == (B, task.observation_size)
    for k in range(B):
        along = {"integrate": d.integrate, "tangent": d.ndx}
        assert_allclose(J[k], finite_difference(task.observe, x[k], **along), atol=1e-8)  # type: ignore[arg-type]
        by_state = finite_difference(
            lambda y, k=k: task.reward(y, np.tile(a[k], (len(y), 1))).value[:, None],  # type: ignore[misc]
            x[k], **along,  # type: ignore[arg-type]
        )  # fmt: skip
        by_action = finite_difference(
            lambda y, k=k: task.reward(np.tile(x[k], (len(y), 1)), y).value[:, None],  # type: ignore[misc]
            a[k],
        )  # fmt: skip
        assert np.abs(by_state).max() > 1e-3
        assert_allclose(r.state[k], by_state[0], atol=1e-8)
        assert_allclose(r.action[k], by_action[0], atol=1e-8)


def test_the_tip_is_where_the_simulator_has_it() -> None:
    task, bodies = LinkPendulum(3), links(3).bodies
    end = ContactPoint("tip", "link 2", np.array([0.0, 0.0, -LINK_LENGTH]))
    x = np.random.default_rng(0).standard_normal(6)
    terms = step_terms(ContactDynamics(TreeSystem(bodies, [end]), 0.01), x)
    p, J = task.tip(x[None])
    assert_allclose(p[0, 1], terms.phi[0])
    assert_allclose(J[0], terms.J[[0, 2]], atol=1e-12)  # rows along x and z


def test_a_pendulum_that_stands_still_earns_the_most() -> None:
    task = LinkPendulum(2)
    standing, none = np.array([[np.pi, 0, 0, 0]]), np.zeros((1, 2))
    assert_allclose(task.reward(standing, none).value, 0, atol=1e-12)
    assert_allclose(task.reward(np.zeros((1, 4)), none).value, -1)


def test_a_pendulum_that_runs_away_has_lost() -> None:
    task, none = LinkPendulum(2), np.zeros((2, 2))
    x = np.array([[0.0, 0.0, 0.0, 99.9], [0.0, 0.0, 0.0, -100.1]])
    assert task.fallen(x).tolist() == [False, True]
    value = task.reward(x, none).value
    assert value[0] - value[1] == pytest.approx(100, abs=0.1)


def test_a_leg_that_stands_stays_up_and_one_that_is_low_has_fallen() -> None:
    task, random = episodic_task("hopper-run"), np.random.default_rng(0)
    x = task.starts(8, random)
    for _ in range(50):
        x = task.step(x, np.zeros((8, 2))).state
    assert not task.fallen(x).any() and np.abs(x[:, 5]).max() < 0.01
    assert task.fallen(x - 0.2 * np.eye(8)[1]).all()
    first = step_terms(task.dynamics, task.starts(1, random)[0])
    assert first.phi[0] >= -1e-12


def test_tasks_are_known_by_name() -> None:
    assert [episodic_task(name).name for name in EPISODIC] == list(EPISODIC)
    with pytest.raises(ValueError, match="`task` must be one of links-1, .* got 'links-0'"):
        episodic_task("links-0")
    with pytest.raises(ValueError, match="`n` must be"):
        LinkPendulum(0)
