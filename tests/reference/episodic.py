"""Tasks in episodes to test with, and transitions of them away from where modes change."""

import numpy as np

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Exact
from cito.dynamics.tree import Body, TreeSystem
from cito.dynamics.types import Array
from cito.problems.episodic import EpisodicTask, Reward, episodic_task
from cito.problems.hop import STANDING

B = 4


class FloatingBody(EpisodicTask):
    """A body that floats, with a quaternion in its state, and two steps in a control step."""

    def __init__(self) -> None:
        body = Body("body", None, "free", 2.0, inertia=np.diag([0.1, 0.2, 0.3]))
        system = TreeSystem([body], actuation=np.eye(6))
        super().__init__("float", ContactDynamics(system, 0.05), 3.0, 0.5, 6, substeps=2)

    def starts(self, count: int, random: np.random.Generator) -> Array:
        origin = np.zeros((count, 13))
        origin[:, 6] = 1.0
        return self.dynamics.integrate(origin, random.standard_normal((count, 12)))

    def observe(self, x: Array) -> Array:
        return x[:, 7:]

    def observation_jacobian(self, x: Array) -> Array:
        return np.broadcast_to(np.eye(12)[6:], (len(x), 6, 12))

    def reward(self, x: Array, action: Array) -> Reward:
        slope = np.zeros((len(x), 12))
        slope[:, 6:] = np.cos(x[:, 7:])
        return Reward(np.sin(x[:, 7:]).sum(axis=1) + action.sum(axis=1), slope, 0 * action + 1.0)


def made(name: str) -> EpisodicTask:
    """The task, with the gradient that is the derivative of its step."""
    task = FloatingBody() if name == "float" else episodic_task(name)
    task.gradient = Exact()
    return task


def samples(task: EpisodicTask) -> tuple[Array, Array]:
    random = np.random.default_rng(0)
    x, a = task.starts(B, random), random.uniform(-0.5, 0.5, (B, task.dynamics.nu))
    if task.name == "hopper-run":
        x[:2, 1] += 0.1  # in the air; the others stand, and push themselves into the ground
        x[2:, 1], x[2:, 5] = STANDING[1], -0.3
        x[2:, 2:4], a[2:] = STANDING[2:], 0.1 * a[2:]
    elif task.name != "float":
        x += random.standard_normal(x.shape)
    return x, a
