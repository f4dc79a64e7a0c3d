"""Policy enhancement: which way an action should go, by the simulator's derivatives.

A soft actor-critic moves the action a = pi(o(x)) along the critic's slope, dQ/da. But Q is what the
step and the value of where it leads make of a, and the step can be differentiated:

    Q(x, a) = r(x+, a) + gamma V(x+),   x+ = step(x, a)
    dQ/da   = r_a + f_a' ( r_x + gamma o_x' dV/do ),
    V(o)    = min_i Q_i(o, a') - alpha log pi(a' | o),   a' drawn from pi(o)

with the target critics Q_i; V is differentiated through a', too, and is zero where x+ has fallen.
The critics learn from real transitions as ever. The step from x under the policy's own action is
the simulator's: it is asked once for each state of a batch, which a plain learner does not do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from cito.dynamics.types import Array
from cito.problems.episodic import EpisodicTask
from cito.problems.locomotion.finite import check_finite

SoftValue = Callable[[torch.Tensor], torch.Tensor]  # V (B,) of observations (B, n)


class Ascent(NamedTuple):
    """value (B,) of r + gamma V(x+), direction (B, nu): its gradient by the action."""

    value: Array
    direction: Array


def value_gradient(value: SoftValue, observation: Array) -> tuple[Array, Array]:
    """V (B,) and dV/do (B, n) at observations (B, n)."""
    o = torch.tensor(observation, dtype=torch.float32, requires_grad=True)
    V = value(o)
    (slope,) = torch.autograd.grad(V.sum(), o)
    return V.detach().double().numpy(), slope.double().numpy()


def ascent(
    task: EpisodicTask, value: SoftValue, discount: float, x: Array, action: Array, time: int = 0
) -> Ascent:
    """What an action is worth, and which way it should go.

    Args:
        task: its step and reward are differentiated.
        value: V.
        discount: gamma.
        x, action: (B, nx), (B, nu).
        time: control steps so far, for the message.

    Raises:
        NotFinite: a direction is not.
    """
    step = task.step(x, action)
    r = task.reward(step.state, action)
    V, slope = value_gradient(value, task.observe(step.state))
    goes_on = discount * ~task.fallen(step.state)
    V_x = np.einsum("bij,bi->bj", task.observation_jacobian(step.state), slope)
    _, by_step = task.transposed(step, r.state + goes_on[:, None] * V_x)
    direction = r.action + by_step
    check_finite("direction of the policy", direction, time, "sample")
    return Ascent(r.value + goes_on * V, direction)
