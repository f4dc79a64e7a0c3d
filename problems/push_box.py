"""Pushing a box along the ground, everything along two axes: linear, so it has a proven optimum.

q = (p_x, x, z): face of the pusher, near side and underside of the box [m]; u = force that drives
the pusher along x [N]. The pusher can push and cannot pull: the box stops by friction with the
ground, so the last push has to be the right one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.linear import LinearSystem
from cito.dynamics.types import positive
from cito.problems.costs import quadratic_task_costs
from cito.problems.problem import Problem
from cito.problems.registry import task

PUSHER_MASS = 0.5  # [kg]


def pusher_and_box(mass: float = 1.0, gravity: float = 9.81) -> LinearSystem:
    """A box of `mass` [kg] on the ground and a pusher on a rail beside it.

    Contacts: the pusher's face with the box, without friction, and the box with the ground.
    """
    m = positive("mass", mass)
    g = positive("gravity", gravity, allow_zero=True)
    between, along, up = np.array([-1.0, 1.0, 0.0]), np.eye(3)[1], np.eye(3)[2]
    return LinearSystem(
        mass_matrix=np.diag([PUSHER_MASS, m, m]),
        actuation=np.eye(3, 1),
        bias=m * g * up,
        contact_jacobian=np.array([between, along, up]),
        contact_dims=(1, 2),
        gap_jacobian=np.array([between, up]),
        gap_offset=np.zeros(2),
        names=("p_x", "x", "z"),
    )


@task(
    "push-box-planar", "a pusher a few centimetres from a box shall shove it to a target, at rest"
)
def push_box_planar(
    friction: float = 0.5,
    time_step: float = 0.05,
    horizon: int = 25,
    mass: float = 1.0,
    gravity: float = 9.81,
    start: ArrayLike = (-0.05, 0.0, 0.0, 0.0, 0.0, 0.0),
    target: ArrayLike = (0.0, 0.3, 0.0, 0.0, 0.0, 0.0),
    state_weight: ArrayLike = (0.0, 10.0, 1.0, 0.01, 0.1, 0.1),
    control_weight: ArrayLike = (1e-2,),
    terminal_weight: ArrayLike = (0.0, 100.0, 100.0, 0.1, 10.0, 10.0),
) -> Problem:
    """Needs a contact between two bodies, and friction to end the motion."""
    parameters = dict(locals())
    dynamics = ContactDynamics(pusher_and_box(mass, gravity), time_step, friction)
    return Problem(
        name="push-box-planar",
        dynamics=dynamics,
        start=start,  # type: ignore[arg-type]
        horizon=horizon,
        costs=quadratic_task_costs(dynamics, target, state_weight, control_weight, terminal_weight),
        parameters=parameters,
    )
