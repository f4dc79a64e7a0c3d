"""Hopping: a planar leg on a boom shall come to rest upright some way further on.

The boom keeps the body from pitching. q = (x, z, hip, knee): position of the hip [m], angle of the
thigh from straight down and of the shank from the thigh [rad], about y; u = torques at hip and
knee [N m]. The foot is a point; every segment is a uniform rod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.types import Array, as_array, positive, whole_number
from cito.problems.costs import quadratic_task_costs
from cito.problems.problem import MAX_HORIZON, Problem
from cito.problems.registry import task

if TYPE_CHECKING:
    from cito.dynamics.symbolic import SymbolicSystem

THIGH_MASS, SHANK_MASS = 0.25, 0.15  # [kg]
SEGMENT_LENGTH = 0.2  # of thigh and shank [m]
ROTOR_INERTIA = 0.005  # of hip and knee drive, at the joint [kg m^2]
TORQUE_LIMIT = 10.0  # of hip and knee [N m]
CROUCH = 0.6  # angle of the thigh from straight down when standing; the shank mirrors it [rad]
STANDING = (0.0, 2 * SEGMENT_LENGTH * np.cos(CROUCH), -CROUCH, 2 * CROUCH)


def hopper(mass: float = 2.0, gravity: float = 9.81) -> SymbolicSystem:
    """The leg.

    Args:
        mass: of the body that the hip carries [kg].
        gravity: >= 0 [m/s^2].
    """
    import casadi as ca

    from cito.dynamics.symbolic import Contact, SymbolicSystem

    m = positive("mass", mass)
    g = positive("gravity", gravity, allow_zero=True)
    q, v, u = ca.SX.sym("q", 4), ca.SX.sym("v", 4), ca.SX.sym("u", 2)

    def down(angle: Any) -> Any:
        return -ca.vertcat(ca.sin(angle), ca.cos(angle))

    hip, thigh, shank = q[:2], q[2], q[2] + q[3]
    knee = hip + SEGMENT_LENGTH * down(thigh)
    foot = knee + SEGMENT_LENGTH * down(shank)

    def energies(mass: float, point: Any) -> tuple[Any, Any]:
        velocity = ca.jtimes(point, q, v)
        return 0.5 * mass * ca.sumsqr(velocity), mass * g * point[1]

    bodies = ((m, hip), (THIGH_MASS, (hip + knee) / 2), (SHANK_MASS, (knee + foot) / 2))
    T, V = (sum(parts) for parts in zip(*(energies(*body) for body in bodies)))
    for rod, rate in ((THIGH_MASS, v[2]), (SHANK_MASS, v[2] + v[3])):
        T += 0.5 * rod * SEGMENT_LENGTH**2 / 12 * rate**2
    T += 0.5 * ROTOR_INERTIA * (v[2] ** 2 + v[3] ** 2)
    return SymbolicSystem(
        q,
        v,
        u,
        kinetic=T,
        potential=V,
        actuation=[[0, 0], [0, 0], [1, 0], [0, 1]],
        contacts=[Contact(point=foot, name="foot")],
        names=("x", "z", "hip", "knee"),
    )


@task("hop", "a planar leg with two motors shall move forward and come to rest upright")
def hop(
    friction: float = 0.8,
    time_step: float = 0.02,
    horizon: int = 40,
    mass: float = 2.0,
    gravity: float = 9.81,
    start: ArrayLike = (*STANDING, 0.0, 0.0, 0.0, 0.0),
    target: ArrayLike = (0.3, *STANDING[1:], 0.0, 0.0, 0.0, 0.0),
    state_weight: ArrayLike = (10.0, 1.0, 0.1, 0.1, 0.01, 0.01, 0.001, 0.001),
    control_weight: ArrayLike = (1e-3, 1e-3),
    terminal_weight: ArrayLike = (500.0, 500.0, 50.0, 50.0, 5.0, 5.0, 0.5, 0.5),
) -> Problem:
    """Further than the leg reaches, so that the foot must leave its place."""
    parameters = dict(locals())
    N = whole_number("horizon", horizon, 1, MAX_HORIZON)
    system = hopper(mass, gravity)
    x0 = as_array("start", start, (8,))
    dynamics = ContactDynamics(system, time_step=time_step, friction=friction)
    return Problem(
        name="hop",
        dynamics=dynamics,
        start=x0,
        horizon=N,
        costs=quadratic_task_costs(dynamics, target, state_weight, control_weight, terminal_weight),
        control_lower=np.full(2, -TORQUE_LIMIT),
        control_upper=np.full(2, TORQUE_LIMIT),
        initial_controls=np.tile(holding_torques(system, x0[:4]), (N, 1)),
        parameters=parameters,
    )


def holding_torques(system: SymbolicSystem, q: Array) -> Array:
    """Controls that hold still at q while the ground carries the weight: c = B u + J' f."""
    _, c, Bt, Jt, _ = (m.full() for m in system.terms_function(system.nominal, q, np.zeros(len(q))))
    u_and_f: Array = np.linalg.lstsq(np.hstack([Bt.T, Jt]), c.ravel(), rcond=None)[0]
    return u_and_f[: system.nu]
