"""Back-propagation through time: policies from the gradients of a simulator.

Windows of H control steps follow each other; each gives one gradient, clipped in norm, and one step
of Adam with a rate that falls linearly. The state is carried from window to window, its gradient is
not; what comes after a window may be valued by a critic, see `terminal_critic`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cito.dynamics.gradients import FullCone, Gradient
from cito.dynamics.types import Array, positive, whole_number
from cito.problems.locomotion import LocomotionEnvironment, LocomotionTask
from cito.problems.locomotion.finite import check_finite
from cito.solvers.learning.adam import Adam, clip_norm
from cito.solvers.learning.policy import Policy
from cito.solvers.learning.terminal_critic import TerminalCritic
from cito.solvers.learning.window import Clock, Window, differentiate, simulate

FLAGS = ("fell", "ended")  # of a step


@dataclass(frozen=True)
class BPTTSettings:
    """How a policy is learned.

    Args:
        window: H, control steps of one gradient.
        discount: of costs within a window.
        rate, final_rate: of Adam, at the start and at the end.
        betas: of Adam.
        clip: largest norm of a gradient.
        hidden: sizes of the policy's hidden layers.
        gradient: of contacts.
        critic: whether a critic values what comes after a window.
        critic_rate: of its Adam.
        decay: lambda of the returns that it learns.
        fall_cost: of a control step, for ever after a fall, to the critic.
    """

    window: int = 16
    discount: float = 0.99
    rate: float = 8e-3
    final_rate: float = 8e-5
    betas: tuple[float, float] = (0.7, 0.95)
    clip: float = 1.0
    hidden: tuple[int, ...] = (256, 128)
    gradient: Gradient = field(default_factory=lambda: FullCone(0.05))
    critic: bool = False
    critic_rate: float = 2e-3
    decay: float = 0.95
    fall_cost: float = 10.0

    def __post_init__(self) -> None:
        whole_number("window", self.window, 1)
        for name in ("rate", "final_rate", "clip", "critic_rate", "fall_cost"):
            positive(name, getattr(self, name))
        for name in ("discount", "decay"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"`{name}` must be in (0, 1], got {getattr(self, name)}")
        if self.critic and self.discount == 1:
            raise ValueError("`discount` must be below 1 with a critic")


def default_settings(task: LocomotionTask, gradient: Gradient) -> BPTTSettings:
    """Settings that suit a task: a gait that is not given takes longer windows to be found, and
    smaller steps."""
    if task.gait is None:
        return BPTTSettings(window=24, rate=5e-3, final_rate=8e-5, gradient=gradient)
    return BPTTSettings(gradient=gradient)


class BPTT:
    """A policy in training.

    Args:
        environment: robots that it learns with.
        steps: control steps in all, of all robots together: they set how fast the rate falls.
        settings: how it learns.
        seed: of the first weights.
    """

    def __init__(
        self,
        environment: LocomotionEnvironment,
        steps: int,
        settings: BPTTSettings | None = None,
        seed: int = 0,
    ) -> None:
        self.environment = environment
        self.settings = s = BPTTSettings() if settings is None else settings
        sizes = (environment.observation_size, *s.hidden, environment.action_size)
        self.policy = Policy(sizes, seed)
        self.adam = Adam(len(self.policy.parameters), s.betas)
        self.critic: TerminalCritic | None = None
        if s.critic:
            valued = (*sizes[:-1], 1)
            own = (s.discount, s.critic_rate, s.decay, s.fall_cost, seed)
            self.critic = TerminalCritic(valued, *own)
        self.updates = max(1, round(steps / (s.window * environment.count)))
        self.done = 0
        self.clock = Clock()

    @property
    def finished(self) -> bool:
        """Whether all updates have been made."""
        return self.done >= self.updates

    @property
    def steps(self) -> int:
        """Control steps so far, of all robots together."""
        return self.done * self.settings.window * self.environment.count

    def update(self) -> dict[str, float]:
        """One window and one step of Adam; what is worth knowing of it, by name.

        Raises:
            NotFinite: a state, an observation, a cost or a gradient is not; parameters are as they
                were before.
        """
        s = self.settings
        check_finite("parameters", self.policy.parameters[None], self.environment.time, "policy")
        window = simulate(self.environment, self.policy, s.window, self.clock)
        beyond = None
        if self.critic is not None:
            with self.clock:
                beyond = self.critic.slope(self.environment.observe(), s.window)
        result = differentiate(
            self.environment, self.policy, window, s.discount, s.gradient, self.clock, beyond
        )
        g = result.gradient
        check_finite("gradient of parameters", g[None], self.environment.time, "policy")
        with self.clock:
            norm = clip_norm(g, s.clip)
            done = self.done / max(1, self.updates - 1)
            self.adam.update(self.policy.parameters, g, s.rate + done * (s.final_rate - s.rate))
        self.done += 1
        falls = sum(int(step.fell.sum()) for step in window.steps)
        row = {"steps": self.steps, "cost": result.cost, "falls": falls, "gradient_norm": norm}
        if self.critic is not None:
            with self.clock:
                row["critic_error"] = self._fit(self.critic, window, result.costs)
        return row | {f"cost_{name}": value for name, value in result.terms.items()}

    def _fit(self, critic: TerminalCritic, window: Window, costs: Array) -> float:
        """Let the critic learn from a window; see `TerminalCritic.fit`."""
        fell, ended = (np.stack([getattr(s, name) for s in window.steps]) for name in FLAGS)
        error = critic.fit(window.layers[0], window.last, costs, fell, ended)
        check_finite("parameters", critic.network.parameters[None], self.environment.time, "critic")
        return error

    def times(self) -> dict[str, float]:
        """Seconds by what they were spent on."""
        steps = self.environment.steps
        return {
            "time_simulator": steps.time_forward,
            "time_jacobian": steps.time_transposed,
            "time_network": self.clock.seconds,
        }

    def arrays(self) -> dict[str, Array]:
        """All that training remembers, to be saved beside `counters`."""
        own = {"parameters": self.policy.parameters, "adam_mean": self.adam.mean}
        own |= {"adam_square": self.adam.square, "policy_sizes": np.array(self.policy.sizes, float)}
        own |= {} if self.critic is None else self.critic.arrays()
        return own | {f"environment_{k}": v for k, v in self.environment.arrays().items()}

    def counters(self) -> dict[str, Any]:
        """Numbers that go with `arrays`, as JSON can say them."""
        return {"updates": self.done, "environment": self.environment.counters()}

    def restore(self, arrays: Mapping[str, Array], counters: Mapping[str, Any]) -> None:
        """Continue where `arrays` and `counters` were taken, bit by bit."""
        self.policy.parameters[:] = arrays["parameters"]
        self.adam.mean[:], self.adam.square[:] = arrays["adam_mean"], arrays["adam_square"]
        self.done = self.adam.steps = int(counters["updates"])
        if self.critic is not None:
            self.critic.restore(arrays, self.done)
        prefix = "environment_"
        own = {k.removeprefix(prefix): np.asarray(v) for k, v in arrays.items() if k[:12] == prefix}
        self.environment.restore(own, counters["environment"])
