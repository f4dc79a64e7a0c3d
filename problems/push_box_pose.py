"""Pushing a box to a pose: a round finger shoves and tips a box in a vertical plane.

q = (x, z, pitch, p_x, p_z): middle of the box [m], its angle about y [rad], middle of the finger
[m]; u = force on the finger [N]. The box has weight, the finger is carried by what drives it.
Every corner of the box may touch the ground, and so may the finger; the finger may touch the box
on any side. Its distance is that to a rectangle, which is smooth round the corners because the
finger is round; the contact normal turns with both bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.types import positive
from cito.problems.costs import quadratic_task_costs
from cito.problems.problem import Problem
from cito.problems.registry import task

if TYPE_CHECKING:
    from cito.dynamics.symbolic import Contact, SymbolicSystem

HALF_WIDTH, HALF_HEIGHT = 0.15, 0.1  # of the box [m]
FINGER_MASS, FINGER_RADIUS = 0.2, 0.02  # [kg], [m]
TOUCHING = -HALF_WIDTH - FINGER_RADIUS  # p_x - x of a finger on the left face [m]
APPROACHING = (0, HALF_HEIGHT, 0, TOUCHING - 0.05, HALF_HEIGHT)  # q: 5 cm away


def box_and_finger(mass: float = 1.0, gravity: float = 9.81) -> SymbolicSystem:
    """A uniform box of `mass` [kg] and a finger; `gravity` >= 0 pulls at the box [m/s^2]."""
    import casadi as ca

    from cito.dynamics.symbolic import Contact, SymbolicSystem

    m = positive("mass", mass)
    g = positive("gravity", gravity, allow_zero=True)
    q, v, u = ca.SX.sym("q", 5), ca.SX.sym("v", 5), ca.SX.sym("u", 2)
    box, pitch, finger = q[:2], q[2], q[3:]
    inertia = m / 3 * (HALF_WIDTH**2 + HALF_HEIGHT**2)
    R = ca.blockcat([[ca.cos(pitch), ca.sin(pitch)], [-ca.sin(pitch), ca.cos(pitch)]])
    corners = [
        Contact(point=box + R @ ca.SX([x, z]), name=name)
        for name, x, z in (
            ("bottom left", -HALF_WIDTH, -HALF_HEIGHT),
            ("bottom right", HALF_WIDTH, -HALF_HEIGHT),
            ("top left", -HALF_WIDTH, HALF_HEIGHT),
            ("top right", HALF_WIDTH, HALF_HEIGHT),
        )
    ]
    ground = Contact(point=finger, gap=finger[1] - FINGER_RADIUS, name="finger on ground")
    return SymbolicSystem(
        q,
        v,
        u,
        kinetic=0.5 * (m * ca.sumsqr(v[:2]) + inertia * v[2] ** 2 + FINGER_MASS * ca.sumsqr(v[3:])),
        potential=m * g * q[1],
        actuation=[[0, 0], [0, 0], [0, 0], [1, 0], [0, 1]],
        contacts=[*corners, ground, finger_on_box(q, v, R)],
        names=("x", "z", "pitch", "finger x", "finger z"),
    )


def finger_on_box(q: Any, v: Any, R: Any) -> Contact:
    """Contact between the finger and the rectangle; R (2, 2) turns box to world coordinates."""
    import casadi as ca

    from cito.dynamics.symbolic import Contact

    box, finger = q[:2], q[3:]
    # Distance of the finger's middle from a rectangle: beyond a corner, or to the nearest face.
    beyond = ca.fabs(R.T @ (finger - box)) - ca.SX([HALF_WIDTH, HALF_HEIGHT])
    outside = ca.sqrt(ca.sumsqr(ca.fmax(beyond, 0)) + 1e-18)  # differentiable at 0
    distance = outside + ca.fmin(ca.fmax(beyond[0], beyond[1]), 0)
    normal = ca.gradient(distance, q)[3:]
    arm = finger - distance * normal - box  # from the middle of the box to the touching point
    box_velocity = v[:2] + v[2] * ca.vertcat(arm[1], -arm[0])
    return Contact(
        gap=distance - FINGER_RADIUS,
        normal=normal,
        velocity=v[3:] - box_velocity,
        name="finger on box",
    )


@task("push-box", "a finger shall push a box along the ground to a pose and leave it at rest")
def push_box(
    friction: float = 0.5,
    time_step: float = 0.025,
    horizon: int = 40,
    mass: float = 1.0,
    gravity: float = 9.81,
    start: ArrayLike = (*APPROACHING, 0, 0, 0, 0, 0),
    target: ArrayLike = (0.4, HALF_HEIGHT, 0, 0.4 + TOUCHING, HALF_HEIGHT, 0, 0, 0, 0, 0),
    state_weight: ArrayLike = (1, 1, 1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.01, 0.01),
    control_weight: ArrayLike = (1e-3, 1e-3),
    terminal_weight: ArrayLike = (500, 500, 100, 1, 1, 10, 10, 1, 1, 1),
) -> Problem:
    """From zero control: the finger has to find the box first."""
    return box_problem("push-box", **locals())


@task("tip-box", "a finger shall tip a box over onto its side and leave it at rest")
def tip_box(
    friction: float = 0.8,
    time_step: float = 0.025,
    horizon: int = 40,
    mass: float = 1.0,
    gravity: float = 9.81,
    start: ArrayLike = (*APPROACHING, 0, 0, 0, 0, 0),
    target: ArrayLike = (0.25, HALF_WIDTH, np.pi / 2, 0.13, 2 * HALF_HEIGHT, 0, 0, 0, 0, 0),
    state_weight: ArrayLike = (1, 1, 1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.01, 0.01),
    control_weight: ArrayLike = (1e-3, 1e-3),
    terminal_weight: ArrayLike = (500, 500, 100, 1, 1, 10, 10, 1, 1, 1),
) -> Problem:
    """The corner that the box turns on has to stick while the finger slides along its face."""
    return box_problem("tip-box", **locals())


def box_problem(
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
    """Box and finger with diagonal weights on x - target and on u."""
    parameters = {key: value for key, value in locals().items() if key != "name"}
    system = box_and_finger(mass, gravity)
    dynamics = ContactDynamics(system, time_step=time_step, friction=friction)
    return Problem(
        name=name,
        dynamics=dynamics,
        start=start,  # type: ignore[arg-type]
        horizon=horizon,
        costs=quadratic_task_costs(dynamics, target, state_weight, control_weight, terminal_weight),
        parameters=parameters,
    )
