"""The gradient of the cost of a window of control steps with respect to a policy's parameters.

    L = 1/B sum_b sum_t w_t c(x_(t+1), a_t, a_(t-1)),   w_t = gamma^t / sum gamma^t
    a_t = policy(o_t),   o_t = observation(x_t, a_(t-1)),   x_(t+1) = step(x_t, a_t, a_(t-1))

Backward in time, with g_x the gradient with respect to x_(t+1) and g_a with respect to a_t:

    g_x += w_t c_x;   (g_x', g_a') = step' g_x;   g_a += g_a' + w_t c_a;   g_o = policy' g_a
    g_x(t) = g_x' + observation' g_o,   g_a(t-1) = what reaches a_(t-1) by o_t, c and latency

Nothing passes the beginning of an episode, nor of the window. What lies beyond its end may be given
as a gradient with respect to the observation there, o_T.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from cito.dynamics.gradients import Gradient
from cito.dynamics.types import Array
from cito.problems.locomotion import Advance, LocomotionEnvironment
from cito.problems.locomotion.features import Features
from cito.problems.locomotion.finite import NotFinite, check_finite
from cito.solvers.learning.policy import Policy


class Window(NamedTuple):
    """T control steps of B robots: the steps, layers (T, B, .) of the policy, and whether a robot
    began an episode with the step, (T + 1, B); last (T, B, n): observations after each step, before
    episodes began anew; end: features after the window."""

    steps: list[Advance]
    layers: list[Array]
    fresh: Array
    last: Array
    end: Features

    def stacked(self) -> tuple[Array, ...]:
        """State after, action, action before, command and phase of all steps, (T, B, ...)."""
        names = ("state", "action", "before", "command", "phase")
        return tuple(np.stack([getattr(step, name) for step in self.steps]) for name in names)


class WindowGradient(NamedTuple):
    """Gradient (n,) of the parameters; costs (T, B) of the steps; cost: their mean over the window;
    terms: the same by name."""

    gradient: Array
    costs: Array
    cost: float
    terms: dict[str, float]


class Clock:
    """Seconds that the network took."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._start


def simulate(
    environment: LocomotionEnvironment, policy: Policy, length: int, clock: Clock
) -> Window:
    """`length` control steps under the policy."""
    B, steps = environment.count, []
    layers = [np.empty((length, B, size)) for size in policy.sizes]
    fresh = np.zeros((length + 1, B), bool)
    last = np.empty_like(layers[0])
    for t in range(length):
        observation = environment.observe()
        with clock:
            for all_, one in zip(layers, policy.layers(observation)):
                all_[t] = one
        steps.append(environment.advance(layers[-1][t]))
        last[t] = environment.renew(steps[-1])
        fresh[t + 1] = steps[-1].ended
    return Window(steps, layers, fresh, last, environment.seen)


def differentiate(
    environment: LocomotionEnvironment,
    policy: Policy,
    window: Window,
    discount: float,
    gradient: Gradient,
    clock: Clock,
    beyond: Array | None = None,
) -> WindowGradient:
    """The cost of a window and its gradient, under a contact gradient.

    Args:
        environment, policy, window: that were simulated.
        discount: gamma.
        gradient: of contacts.
        clock: for what the network takes.
        beyond: gradient (B, n) of what is added for each robot, with respect to the observation
            after the window.

    Raises:
        NotFinite: a term of the cost or a gradient is not; says which, where and when.
    """
    T, B = len(window.steps), environment.count
    task, first = environment.task, environment.time - T
    cost, c = environment.cost.with_gradient(*window.stacked())
    for name, values in cost.terms.items():
        if not np.isfinite(values).all():
            t, b = np.argwhere(~np.isfinite(values))[0]
            raise NotFinite(
                f"the cost term {name} of environment {b} is {values[t, b]} "
                f"at control step {first + t}"
            )
    weight = discount ** np.arange(T)
    weight = (weight / weight.sum() / B)[:, None, None]
    c_x, c_a, c_before = weight * c.state, weight * c.action, weight * c.before
    deltas = [np.empty((T, B, size)) for size in policy.sizes[1:]]
    g_frames = np.zeros((B, task.history, environment.observer.layout.size))
    g_x, g_a = np.zeros_like(c_x[0]), np.zeros_like(c_a[0])
    if beyond is not None:
        g_frames = beyond.reshape(g_frames.shape) / B
        g_x, g_a, g_frames = _observed(environment, window, T, g_frames)
    for t in reversed(range(T)):
        step = window.steps[t]
        g_x, g_now, g_late = environment.steps.transposed(
            step.step, step.plant, g_x + c_x[t], gradient
        )
        check_finite("gradient of the state", g_x, first + t)
        g_a = g_a + task.action_scale * g_now + c_a[t]
        with clock:
            own, g_o = policy.transposed([h[t] for h in window.layers], g_a)
            for all_, one in zip(deltas, own):
                all_[t] = one
        g_frames = g_frames + g_o.reshape(g_frames.shape)
        from_state, g_a, g_frames = _observed(environment, window, t, g_frames)
        old = ~window.fresh[t][:, None]
        g_x = (g_x + from_state) * old
        g_a += (task.action_scale * g_late + c_before[t]) * old
    with clock:
        result = policy.gradient(window.layers[:-1], deltas)
    terms = {name: float(values.mean()) for name, values in cost.terms.items()}
    return WindowGradient(result, cost.total, float(cost.total.mean()), terms)


def _observed(
    environment: LocomotionEnvironment, window: Window, t: int, g_frames: Array
) -> tuple[Array, Array, Array]:
    """What reaches the state (B, ndx) and the action before it (B, nj) by the frame of step t, and
    the frames (B, history, n) of step t - 1, from a gradient with respect to those of step t."""
    g, fresh = g_frames.copy(), window.fresh[t]
    if fresh.any():  # all frames were the first
        g[fresh, 0] = g[fresh].sum(axis=1)
    seen = window.steps[t].start if t < len(window.steps) else window.end
    from_state, from_action = environment.observer.transposed(seen, g[:, 0])
    g[:, :-1] = g[:, 1:]
    g[:, -1] = 0.0
    for part in (from_state, from_action, g):
        part[fresh] = 0.0
    return from_state, from_action, g
