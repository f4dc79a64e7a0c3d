"""A pole on a cart, and Furuta's pendulum on a turning arm: both shall swing up and stay up.

    cart-pole   q = (cart [m], pole [rad]),  u = force on the cart [N]
    furuta      q = (arm [rad], pendulum [rad]),  u = torque on the arm [N m]

The pole hangs at zero and stands at pi. Only the first joint is driven; there is no friction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.base import Dynamics
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.tree import Body, TreeSystem
from cito.dynamics.types import Array, as_array, positive, whole_number
from cito.problems.arm import rod
from cito.problems.costs import quadratic_task_costs
from cito.problems.problem import MAX_HORIZON, Problem
from cito.problems.registry import task

FORCE_LIMIT, TORQUE_LIMIT = 15.0, 0.3  # of the cart [N] and of the arm [N m]
POLE_RADIUS = 0.01  # [m]


def cart_pole(
    cart: float = 1.0, mass: float = 0.2, length: float = 0.6, gravity: float = 9.81
) -> TreeSystem:
    """A cart on a rail along x and a uniform pole.

    Args:
        cart, mass: of the cart and of the pole [kg].
        length: of the pole [m].
        gravity: >= 0 [m/s^2].
    """
    m, l = positive("mass", mass), positive("length", length)
    com, inertia = rod(m, l, POLE_RADIUS)
    return TreeSystem(
        [
            Body("cart", None, "prismatic", positive("cart", cart), axis=np.array([1.0, 0.0, 0.0])),
            Body("pole", "cart", "revolute", m, -com, inertia, axis=np.array([0.0, -1.0, 0.0])),
        ],
        actuation=np.array([[1.0], [0.0]]),
        gravity=positive("gravity", gravity, allow_zero=True),
    )


def furuta(
    arm: float = 0.2, mass: float = 0.1, length: float = 0.3, gravity: float = 9.81
) -> TreeSystem:
    """An arm that turns about the vertical, and a pendulum that swings about the arm's axis.

    Args:
        arm: its length [m]; it weighs 0.2 kg.
        mass, length: of the pendulum [kg], [m].
        gravity: >= 0 [m/s^2].
    """
    m, l, r = positive("mass", mass), positive("length", length), positive("arm", arm)
    com, inertia = rod(m, l, POLE_RADIUS)
    arm_com, arm_inertia = rod(0.2, r, POLE_RADIUS)
    along_x = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])  # z becomes x
    return TreeSystem(
        [
            Body(
                "arm",
                None,
                "revolute",
                0.2,
                along_x @ arm_com,
                along_x @ arm_inertia @ along_x.T,
                axis=np.array([0.0, 0.0, 1.0]),
            ),
            Body(
                "pendulum",
                "arm",
                "revolute",
                m,
                -com,
                inertia,
                position=np.array([r, 0.0, 0.0]),
                axis=np.array([1.0, 0.0, 0.0]),
            ),
        ],
        actuation=np.array([[1.0], [0.0]]),
        gravity=positive("gravity", gravity, allow_zero=True),
    )


@task("cart-pole", "a pole that hangs from a cart shall swing up and stay up")
def cart_pole_task(
    time_step: float = 0.02,
    horizon: int = 80,
    cart: float = 1.0,
    mass: float = 0.2,
    length: float = 0.6,
    gravity: float = 9.81,
    force_limit: float = FORCE_LIMIT,
    start: ArrayLike = (0.0, 0.0, 0.0, 0.0),
    target: ArrayLike = (0.0, np.pi, 0.0, 0.0),
    state_weight: ArrayLike = (1.0, 1.0, 0.05, 0.02),
    control_weight: ArrayLike = (2e-3,),
    terminal_weight: ArrayLike = (200.0, 500.0, 20.0, 20.0),
) -> Problem:
    """x = (cart [m], pole [rad], their rates), u = force [N]; the pole stands at pi."""
    parameters = dict(locals())
    dynamics = ContactDynamics(cart_pole(cart, mass, length, gravity), time_step)
    limit = positive("force_limit", force_limit)
    return swing_up(
        "cart-pole", dynamics, limit, horizon, start, target,
        (state_weight, control_weight, terminal_weight), parameters,
    )  # fmt: skip


@task("furuta", "a pendulum on an arm that turns about the vertical shall swing up and stay up")
def furuta_task(
    time_step: float = 0.01,
    horizon: int = 100,
    arm: float = 0.2,
    mass: float = 0.1,
    length: float = 0.3,
    gravity: float = 9.81,
    torque_limit: float = TORQUE_LIMIT,
    start: ArrayLike = (0.0, 0.0, 0.0, 0.0),
    target: ArrayLike = (0.0, np.pi, 0.0, 0.0),
    state_weight: ArrayLike = (0.5, 1.0, 0.01, 0.005),
    control_weight: ArrayLike = (1.0,),
    terminal_weight: ArrayLike = (100.0, 500.0, 5.0, 5.0),
) -> Problem:
    """x = (arm, pendulum [rad], their rates), u = torque [N m]; the pendulum stands at pi."""
    parameters = dict(locals())
    dynamics = ContactDynamics(furuta(arm, mass, length, gravity), time_step)
    limit = positive("torque_limit", torque_limit)
    return swing_up(
        "furuta", dynamics, limit, horizon, start, target,
        (state_weight, control_weight, terminal_weight), parameters,
    )  # fmt: skip


def swing_up(
    name: str,
    dynamics: Dynamics,
    limit: float,
    horizon: int,
    start: ArrayLike,
    target: ArrayLike,
    weights: tuple[ArrayLike, ArrayLike, ArrayLike],
    parameters: Mapping[str, Any],
) -> Problem:
    """The problem on any dynamics of x = (driven joint, pole; their rates), learned ones too.

    Args:
        limit: of the one control, either way.
        weights: of the state while running, of the control, of the last state.
    """
    state, control, terminal = weights
    N = whole_number("horizon", horizon, 1, MAX_HORIZON)
    return Problem(
        name=name,
        dynamics=dynamics,
        start=as_array("start", start, (4,)),
        horizon=N,
        costs=quadratic_task_costs(dynamics, target, state, control, terminal),
        control_lower=np.full(1, -limit),
        control_upper=np.full(1, limit),
        initial_controls=nudge(N, limit),
        parameters=parameters,
    )


def nudge(horizon: int, limit: float) -> Array:
    """Controls (N, 1) to start from: hanging still under no force, nothing has a slope."""
    first: Array = np.zeros((horizon, 1))
    first[: max(horizon // 10, 1)] = 0.1 * limit
    return first
