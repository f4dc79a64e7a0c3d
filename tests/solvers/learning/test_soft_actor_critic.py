"""The library's learner with a memory of states and a critic that can be climbed."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cito.problems.episodic import episodic_task

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from cito.solvers.learning.soft_actor_critic import soft_actor_critic  # noqa: E402

SETTINGS = {
    "learning_rate": 1e-3, "buffer_size": 200, "learning_starts": 20, "batch_size": 8,
    "policy_kwargs": {"net_arch": [8, 8]},
}  # fmt: skip


def learner(policy: bool = False, neighbours: int = 0, steps: int = 40):  # type: ignore[no-untyped-def]
    torch.manual_seed(0)
    model, _ = soft_actor_critic(
        episodic_task("links-2"), 0, policy_enhancement=policy, neighbours=neighbours, radius=0.05,
        settings=SETTINGS,
    )  # fmt: skip
    return model.learn(steps) if steps else model


def weights(model) -> list[np.ndarray]:  # type: ignore[no-untyped-def, type-arg]
    return [value.numpy().copy() for value in model.policy.state_dict().values()]


def test_climbing_along_the_critic_itself_is_what_the_library_does() -> None:
    plain, climbed = learner(), learner(steps=0)

    def slope(actions):  # type: ignore[no-untyped-def]
        a = torch.tensor(actions, dtype=torch.float32, requires_grad=True)
        o = torch.from_numpy(climbed.task.observe(climbed.replay_buffer.drawn).astype(np.float32))
        with torch.enable_grad():
            Q = torch.cat([q(torch.cat([o, a], dim=1)) for q in climbed.critic.q_networks], dim=1)
            return torch.autograd.grad(Q.min(dim=1).values.sum(), a)[0].numpy()

    climbed.task = episodic_task("links-2")
    climbed.critic.direction = slope
    torch.manual_seed(0)
    first = learner(steps=0)  # as many random numbers as the plain one had drawn before it learned
    climbed.policy.load_state_dict(first.policy.state_dict())
    climbed.learn(40)
    for one, other in zip(weights(plain), weights(climbed)):
        assert_allclose(one, other, atol=1e-5)
    assert any(np.abs(a - b).max() > 1e-3 for a, b in zip(weights(first), weights(plain)))


@pytest.mark.parametrize("neighbours", (0, 3))
def test_a_batch_has_the_states_of_its_observations(neighbours: int) -> None:
    model = learner(neighbours=neighbours)
    memory, task = model.replay_buffer, episodic_task("links-2")
    batch = memory.sample(16)
    assert len(batch.rewards) == len(memory.drawn) == 16 * (1 + neighbours)
    assert_array_equal(batch.observations, task.observe(memory.drawn).astype(np.float32))
    step = task.step(memory.drawn, batch.actions.double().numpy())
    assert_allclose(batch.next_observations, task.observe(step.state), atol=1e-2)
    rewards = task.reward(step.state, batch.actions.double().numpy()).value
    assert_allclose(batch.rewards[:, 0], rewards, atol=1e-2)
    assert_allclose(batch.next_observations[:16], task.observe(step.state)[:16], atol=1e-5)


def test_what_the_simulator_adds_changes_what_is_learned() -> None:
    found = [weights(learner(*given)) for given in ((False, 0), (True, 0), (False, 2), (True, 2))]
    for i, one in enumerate(found):
        assert all(np.isfinite(part).all() for part in one)
        for other in found[:i]:
            assert any(np.abs(a - b).max() > 1e-4 for a, b in zip(one, other))


def test_without_the_library_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.delitem(sys.modules, "cito.solvers.learning.soft_actor_critic")
    with pytest.raises(ImportError, match=r"pip install '.\[rl\]'"):
        import cito.solvers.learning.soft_actor_critic  # noqa: F401
