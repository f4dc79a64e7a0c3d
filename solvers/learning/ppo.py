"""Proximal policy optimization: policies from returns alone, on the environments of `BPTT`.

Every update lets B robots walk T control steps with random actions about those of the policy, and
then goes through these steps several times in minibatches: see `ppo_loss` and `advantages`. The
settings are those of the comparison that this package follows, where they are published; T, the
unit of actions and what a fall costs are ours.

The networks take nearly all of the time. They are of single precision, and a minibatch goes through
them in chunks that threads share; gradients of chunks are added in their order, so that the number
of threads changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from cito.dynamics.types import Array, positive, whole_number
from cito.problems.locomotion import LocomotionEnvironment
from cito.problems.locomotion.finite import check_finite
from cito.solvers.learning.adam import Adam, clip_norm
from cito.solvers.learning.advantages import advantages
from cito.solvers.learning.critic import Critic
from cito.solvers.learning.policy import Policy
from cito.solvers.learning.ppo_loss import Batch, log_density, loss
from cito.solvers.learning.window import Clock

CHUNK = 512  # steps of a minibatch that go through the networks at once
SINGLE: Any = np.float32  # numbers of the networks and of what goes through them


@dataclass(frozen=True)
class PPOSettings:
    """How a policy is learned. The first ten are published (Table II of the comparison).

    Args:
        rate: of AdamP.
        discount, decay: gamma and lambda of the advantages.
        clip: of the ratio of densities, about one.
        epochs, minibatches: of an update.
        value_weight, entropy_weight: in the loss.
        largest_norm: of a gradient.
        deviation: of actions at the start, in `unit`.
        deviation_bounds: within which it stays.
        horizon: T, control steps of a robot between updates.
        unit: of deviations, in actions.
        fall_cost: cost of a control step for ever after a fall; it has to be more than that of a
            robot that is up, or falling pays.
        reward_scale: rewards are costs times its negative.
        hidden: sizes of the hidden layers of policy and critic.
    """

    rate: float = 5e-4
    discount: float = 0.99
    decay: float = 0.95
    clip: float = 0.2
    epochs: int = 10
    minibatches: int = 2
    value_weight: float = 0.5
    entropy_weight: float = 0.01
    largest_norm: float = 0.5
    deviation: float = 1.0
    deviation_bounds: tuple[float, float] = (0.2, 1.5)
    horizon: int = 32
    unit: float = 0.3
    fall_cost: float = 10.0
    reward_scale: float = 0.02
    hidden: tuple[int, ...] = (256, 128)

    def __post_init__(self) -> None:
        for name in ("epochs", "minibatches", "horizon"):
            whole_number(name, getattr(self, name), 1)
        for name in ("rate", "clip", "largest_norm", "unit", "reward_scale"):
            positive(name, getattr(self, name))
        if not 0 < self.deviation_bounds[0] <= self.deviation <= self.deviation_bounds[1]:
            raise ValueError(
                f"`deviation` must be within {self.deviation_bounds}, got {self.deviation}"
            )
        for name in ("discount", "decay"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be in [0, 1), got {getattr(self, name)}")


class PPO:
    """A policy in training.

    Args:
        environment: robots that it learns with.
        steps: control steps in all, of all robots together.
        settings: how it learns.
        seed: of the first weights, of actions and of minibatches.
        threads: of the networks; the result does not depend on it.
    """

    def __init__(
        self,
        environment: LocomotionEnvironment,
        steps: int,
        settings: PPOSettings | None = None,
        seed: int = 0,
        threads: int = 1,
    ) -> None:
        self.environment = environment
        self.threads = whole_number("threads", threads, 1)
        self.settings = s = PPOSettings() if settings is None else settings
        sizes = (environment.observation_size, *s.hidden)
        self.policy = Policy((*sizes, environment.action_size), seed, single=True)
        self.critic = Critic((*sizes, 1), seed + 1, single=True)
        self.deviation = np.full(environment.action_size, s.deviation, SINGLE)
        self.adam = Adam(sum(map(len, self._parts())), matrices=self._matrices(), single=True)
        self.random = np.random.default_rng([seed, 2])
        self.updates = max(1, round(steps / (s.horizon * environment.count)))
        self.done = 0
        self.clock = Clock()

    @property
    def finished(self) -> bool:
        """Whether all updates have been made."""
        return self.done >= self.updates

    @property
    def steps(self) -> int:
        """Control steps so far, of all robots together."""
        return self.done * self.settings.horizon * self.environment.count

    def update(self) -> dict[str, float]:
        """T control steps and what is learned from them; what is worth knowing of it, by name.

        Raises:
            NotFinite: a state, an observation, a cost or a gradient is not.
        """
        for name, part in zip(("policy", "deviations", "critic"), self._parts()):
            check_finite("parameters", part[None], self.environment.time, name)
        batch, row = self._walk()
        with self.clock:
            row |= self._learn(batch)
        self.done += 1
        return {"steps": self.steps} | row

    def _walk(self) -> tuple[Batch, dict[str, float]]:
        """T control steps of B robots with random actions, as one batch of T B."""
        s, e = self.settings, self.environment
        T, B, deviation = s.horizon, e.count, s.unit * self.deviation
        observation, last = np.empty((2, T, B, e.observation_size), SINGLE)
        action = np.empty((T, B, e.action_size))
        density, cost = np.empty((2, T, B))
        fell, ended = np.zeros((2, T, B), bool)
        terms: dict[str, float] = {}
        for t in range(T):
            observation[t] = e.observe()
            with self.clock:
                mean = self.policy(observation[t])
                noise = self.random.standard_normal(mean.shape)
                action[t] = mean + deviation * noise
                density[t] = log_density(action[t], mean, deviation)
            found = e.step(action[t])
            for name, values in found.terms.items():
                check_finite(f"cost term {name}", values, e.time - 1)
                terms[name] = terms.get(name, 0.0) + float(values.mean()) / T
            cost[t], fell[t], last[t] = found.cost, found.fell, found.last
            ended[t] = found.fell | found.timed_out
        with self.clock:
            value, after = (self.critic(o)[..., 0] for o in (observation, last))
            reward = -s.reward_scale * cost
            lying = -s.reward_scale * s.fall_cost / (1 - s.discount)
            A = advantages(reward, value, np.where(fell, lying, after), ended, s.discount, s.decay)
        parts = (observation, action, density, A, A + value)
        batch = Batch(*(p.reshape(T * B, *p.shape[2:]).astype(SINGLE) for p in parts))
        row = {"cost": float(cost.mean()), "falls": int(fell.sum())}
        return batch, row | {f"cost_{name}": value for name, value in terms.items()}

    def _learn(self, batch: Batch) -> dict[str, float]:
        """Epochs of minibatches, with advantages of mean zero and deviation one."""
        s, n = self.settings, len(batch.action)
        A = batch.advantage
        batch = batch._replace(advantage=(A - A.mean()) / (A.std() + 1e-8))
        norms, clipped = [], []
        with ThreadPoolExecutor(self.threads) as pool:
            for _ in range(s.epochs):
                for rows in np.array_split(self.random.permutation(n), s.minibatches):
                    g, share = self._gradient(batch.rows(rows), pool)
                    check_finite("gradient of parameters", g[None], self.environment.time, "policy")
                    norms.append(clip_norm(g, s.largest_norm))
                    clipped.append(share)
                    self._step(g)
        return {
            "gradient_norm": float(np.mean(norms)),
            "clipped": float(np.mean(clipped)),
            "deviation": float(self.deviation.mean()),
        }

    def _gradient(self, batch: Batch, pool: Executor) -> tuple[Array, float]:
        """Of the loss with respect to all parameters, and the share of steps that were clipped."""
        n = len(batch.action)
        chunks = [batch.rows(slice(k, k + CHUNK)) for k in range(0, n, CHUNK)]
        run = map if self.threads == 1 else pool.map
        total, clipped = np.zeros_like(self.adam.mean), 0.0
        for chunk, (g, share) in zip(chunks, run(self._chunk_gradient, chunks)):
            total += len(chunk.action) / n * g
            clipped += len(chunk.action) / n * share
        return total, clipped

    def _chunk_gradient(self, batch: Batch) -> tuple[Array, float]:
        """The same of a few steps."""
        s = self.settings
        h, k = self.policy.layers(batch.observation), self.critic.layers(batch.observation)
        found = loss(
            batch, h[-1], s.unit * self.deviation, k[-1][:, 0],
            s.clip, s.value_weight, s.entropy_weight,
        )  # fmt: skip
        own = self.policy.gradient(h[:-1], self.policy.deltas(h, found.mean))
        value = self.critic.gradient(k[:-1], self.critic.deltas(k, found.critic[:, None]))
        return np.concatenate([own, s.unit * found.deviation, value]), found.clipped

    def _step(self, g: Array) -> None:
        """One step of AdamP; deviations stay within their bounds."""
        parameters = np.concatenate(self._parts())
        self.adam.update(parameters, g, self.settings.rate)
        ends = np.cumsum([len(part) for part in self._parts()])[:-1]
        for part, new in zip(self._parts(), np.split(parameters, ends)):
            part[:] = new
        np.clip(self.deviation, *self.settings.deviation_bounds, out=self.deviation)

    def _parts(self) -> tuple[Array, Array, Array]:
        """All parameters, in their order."""
        return self.policy.parameters, self.deviation, self.critic.parameters

    def _matrices(self) -> list[tuple[slice, tuple[int, int]]]:
        """Where the weight matrices are among all parameters."""
        found, first = [], 0
        for network in (self.policy, self.critic):
            for i, o in zip(network.sizes[:-1], network.sizes[1:]):
                found.append((slice(first, first + i * o), (i, o)))
                first += (i + 1) * o
            first += len(self.deviation)
        return found

    def times(self) -> dict[str, float]:
        """Seconds by what they were spent on; no Jacobians here."""
        return {
            "time_simulator": self.environment.steps.time_forward,
            "time_jacobian": 0.0,
            "time_network": self.clock.seconds,
        }

    def arrays(self) -> dict[str, Array]:
        """All that training remembers, to be saved beside `counters`."""
        own = {"parameters": self.policy.parameters, "deviation": self.deviation}
        own |= {"critic": self.critic.parameters, "adam_mean": self.adam.mean}
        own |= {"adam_square": self.adam.square, "policy_sizes": np.array(self.policy.sizes, float)}
        return own | {f"environment_{k}": v for k, v in self.environment.arrays().items()}

    def counters(self) -> dict[str, Any]:
        """Numbers that go with `arrays`, as JSON can say them."""
        return {
            "updates": self.done,
            "adam_steps": self.adam.steps,
            "random": self.random.bit_generator.state,
            "environment": self.environment.counters(),
        }

    def restore(self, arrays: Mapping[str, Array], counters: Mapping[str, Any]) -> None:
        """Continue where `arrays` and `counters` were taken, bit by bit."""
        kept = zip(self._parts(), ("parameters", "deviation", "critic"))
        for own, name in [*kept, (self.adam.mean, "adam_mean"), (self.adam.square, "adam_square")]:
            own[:] = arrays[name]
        self.done, self.adam.steps = int(counters["updates"]), int(counters["adam_steps"])
        self.random.bit_generator.state = counters["random"]
        prefix = "environment_"
        own_ = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        self.environment.restore(own_, counters["environment"])
