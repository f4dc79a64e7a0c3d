"""The three planar reference tasks: a point mass over flat ground, solved from zero control.

    J = 1/2 sum_k (x_k - x_g)' Q (x_k - x_g) + 1/2 sum_k u_k' R u_k
        + 1/2 (x_N - x_g)' Q_f (x_N - x_g)

x = (p_x, p_z, v_x, v_z), u = force on the mass. Each needs a contact event that the derivative
within the current mode does not see: lifting off, sliding, and pressing down to brake.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.linear import point_mass
from cito.problems.costs import quadratic_task_costs
from cito.problems.problem import Problem
from cito.problems.registry import task


@task("lift-off", "a point mass rests on the ground and shall hover half a metre above it")
def lift_off(
    friction: float = 0.8,
    time_step: float = 0.05,
    horizon: int = 30,
    mass: float = 1.0,
    gravity: float = 9.81,
    start: ArrayLike = (0.0, 0.0, 0.0, 0.0),
    target: ArrayLike = (0.0, 0.5, 0.0, 0.0),
    state_weight: ArrayLike = (1.0, 10.0, 0.1, 0.1),
    control_weight: ArrayLike = (1e-3, 1e-3),
    terminal_weight: ArrayLike = (100.0, 100.0, 10.0, 10.0),
) -> Problem:
    """Needs a contact that opens."""
    return point_mass_problem("lift-off", **locals())


@task("traverse", "a point mass rests on the ground and shall come to rest a metre further on")
def traverse(
    friction: float = 0.8,
    time_step: float = 0.05,
    horizon: int = 30,
    mass: float = 1.0,
    gravity: float = 9.81,
    start: ArrayLike = (0.0, 0.0, 0.0, 0.0),
    target: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    state_weight: ArrayLike = (10.0, 1.0, 0.1, 0.1),
    control_weight: ArrayLike = (1e-2, 1e-2),
    terminal_weight: ArrayLike = (100.0, 100.0, 10.0, 10.0),
) -> Problem:
    """Needs a sticking contact that starts to slide."""
    return point_mass_problem("traverse", **locals())


@task(
    "friction-braking",
    "a drifting mass shall stop and return to its start; pressing on the ground brakes it",
)
def friction_braking(
    friction: float = 0.8,
    time_step: float = 0.05,
    horizon: int = 30,
    mass: float = 1.0,
    gravity: float = 0.0,
    start: ArrayLike = (0.0, 0.2, 1.0, 0.0),
    target: ArrayLike = (0.0, 0.2, 0.0, 0.0),
    state_weight: ArrayLike = (1.0, 1.0, 0.1, 0.1),
    control_weight: ArrayLike = (1e-1, 1e-3),
    terminal_weight: ArrayLike = (100.0, 100.0, 10.0, 10.0),
) -> Problem:
    """Needs a contact that closes, for the sake of its friction."""
    return point_mass_problem("friction-braking", **locals())


def point_mass_problem(
    name: str,
    *,
    friction: float,
    time_step: float,
    horizon: int,
    mass: float,
    gravity: float,
    start: ArrayLike,
    target: ArrayLike,
    state_weight: ArrayLike,
    control_weight: ArrayLike,
    terminal_weight: ArrayLike,
) -> Problem:
    """The planar point mass with diagonal weights Q, R, Q_f (see the module's docstring)."""
    parameters = {key: value for key, value in locals().items() if key != "name"}
    system = point_mass(2, mass=mass, gravity=gravity)
    dynamics = ContactDynamics(system, time_step=time_step, friction=friction)
    return Problem(
        name=name,
        dynamics=dynamics,
        start=start,  # type: ignore[arg-type]
        horizon=horizon,
        costs=quadratic_task_costs(dynamics, target, state_weight, control_weight, terminal_weight),
        parameters=parameters,
    )
