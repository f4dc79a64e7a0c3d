"""A mass on a spring and a damper: the smallest system that a force can steer.

    m dv/dt + k q + c v = u,     J = 1/2 sum_k (x_k - x_g)' Q (x_k - x_g) + 1/2 sum_k R u_k^2
                                     + 1/2 (x_N - x_g)' Q_f (x_N - x_g)

x = (position [m], velocity [m/s]), u = force [N]. Nothing touches anything: the problem is linear
and quadratic, so that DDP solves it in one iteration and every gradient can be checked by hand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.linear import LinearSystem
from cito.dynamics.types import as_array, positive, whole_number
from cito.problems.costs import quadratic_task_costs
from cito.problems.problem import MAX_HORIZON, Problem
from cito.problems.registry import task


def spring_damper(mass: float = 1.0, stiffness: float = 15.0, damping: float = 0.5) -> LinearSystem:
    """The mass, driven by a force.

    Args:
        mass: m [kg].
        stiffness: k >= 0 [N/m].
        damping: c >= 0 [N s/m].
    """
    m = positive("mass", mass)
    k = positive("stiffness", stiffness, allow_zero=True)
    c = positive("damping", damping, allow_zero=True)
    return LinearSystem(
        mass_matrix=np.array([[m]]),
        stiffness=np.array([[k]]),
        damping=np.array([[c]]),
        actuation=np.ones((1, 1)),
        bias=np.zeros(1),
        contact_jacobian=np.zeros((0, 1)),
        contact_dims=(),
        gap_jacobian=np.zeros((0, 1)),
        gap_offset=np.zeros(0),
        names=("position",),
    )


@task("mass-spring-damper", "a mass on a spring and a damper shall come to rest at a target")
def mass_spring_damper(
    time_step: float = 0.01,
    horizon: int = 50,
    mass: float = 1.0,
    stiffness: float = 15.0,
    damping: float = 0.5,
    start: ArrayLike = (1.0, 0.0),
    target: ArrayLike = (0.0, 0.0),
    state_weight: ArrayLike = (1.0, 0.0),
    control_weight: ArrayLike = (1e-4,),
    terminal_weight: ArrayLike = (100.0, 10.0),
) -> Problem:
    """The first example: no contact, one unknown force for each of 50 steps."""
    parameters = dict(locals())
    dynamics = ContactDynamics(spring_damper(mass, stiffness, damping), time_step)
    return Problem(
        name="mass-spring-damper",
        dynamics=dynamics,
        start=as_array("start", start, (2,)),
        horizon=whole_number("horizon", horizon, 1, MAX_HORIZON),
        costs=quadratic_task_costs(dynamics, target, state_weight, control_weight, terminal_weight),
        parameters=parameters,
    )
