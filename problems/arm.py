"""Arms that throw and hit balls: the ball is a free body, and nothing is said of its contacts.

`arm-throw`: a ball lies in a bowl of three plates at the end of an arm with seven joints and shall
be at a target at the end of the horizon. When the arm must let go of it is not prescribed: the
ball leaves the bowl once the bowl is slower.

`arm-hit`: a ball lies on a tee, which the arm passes through; an arm with two joints shall strike
the ball so that it arrives at a target at the end of the horizon. The impact is elastic in part.

x = (joints, ball's place [m] and quaternion; their velocities), u = joint torques [N m].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics import _native
from cito.dynamics.candidates import ContactPair, ContactPoint
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.robot_stance import body_poses
from cito.dynamics.shapes import Box, Capsule
from cito.dynamics.tree import Body, TreeSystem
from cito.dynamics.types import Array, as_array, positive, whole_number
from cito.problems.costs import ControlCost, CostTerm, StateCost
from cito.problems.problem import MAX_HORIZON, Problem
from cito.problems.registry import task

# Joint axis, place of the joint on the link before [m], mass [kg], length [m], torque limit [N m].
LINKS = (
    ("base", (0, 0, 1), 0.30, 3.0, 0.10, 90.0),
    ("shoulder", (0, 1, 0), 0.05, 3.0, 0.20, 90.0),
    ("upper-arm", (0, 0, 1), 0.20, 2.5, 0.15, 90.0),
    ("elbow", (0, 1, 0), 0.15, 2.5, 0.20, 90.0),
    ("forearm", (0, 0, 1), 0.20, 1.5, 0.15, 15.0),
    ("wrist", (0, 1, 0), 0.15, 1.0, 0.08, 15.0),
    ("hand", (0, 0, 1), 0.08, 0.4, 0.06, 15.0),
)
LINK_RADIUS, ARMATURE, DAMPING = 0.05, 0.05, 0.2  # [m], [kg m^2], [N m s/rad]
READY = (0.0, -0.3, 0.0, 1.9, 0.0, -1.6, 0.0)  # forearm level, bowl upright [rad]
BALL_RADIUS, BALL_MASS = 0.035, 0.1  # [m], [kg]
TILT = np.radians(40)  # of the three plates of the bowl, in which the ball has one place only
PLATE = (0.10, 0.10, 0.01)  # their size [m]


def rod(mass: float, length: float, radius: float) -> tuple[Array, Array]:
    """Centre of mass (3,) and inertia about it (3, 3) of a cylinder along z from the origin."""
    across = mass * (3 * radius**2 + length**2) / 12
    along = mass * radius**2 / 2
    return np.array([0.0, 0.0, length / 2]), np.diag([across, across, along])


def rotation(axis: int, angle: float) -> Array:
    """About the y (1) or z (2) axis, (3, 3)."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array(
        [[c, 0, s], [0, 1, 0], [-s, 0, c]] if axis == 1 else [[c, -s, 0], [s, c, 0], [0, 0, 1]]
    )


def ball(mass: float, radius: float) -> list[Body]:
    """A solid ball that moves freely; q = (place, quaternion), as of a free joint.

    Its velocities are those of its centre in the world and the angular ones. A free joint has both
    in the body frame, and there explicit steps turn the linear velocity with the spin omega: it
    grows by a factor of about sqrt(1 + (h omega)^2) a step, and a ball that rolls is no wheel but
    an engine. Here it flies on an exact parabola however it spins.
    """
    slides = [
        Body(f"ball {name}", parent, "prismatic", 0.0, axis=axis)
        for name, parent, axis in zip("xyz", (None, "ball x", "ball y"), np.eye(3))
    ]
    inertia = 0.4 * mass * radius**2 * np.eye(3)
    return [*slides, Body("ball", "ball z", "spherical", mass, inertia=inertia)]


def with_ball(
    links: list[Body], ball: list[Body], contacts: Sequence[ContactPoint], gravity: float
) -> TreeSystem:
    """An arm and a ball; motors only in the arm."""
    joints = len(links)
    return TreeSystem([*links, *ball], contacts, np.eye(joints + 6, joints), gravity)


def throwing_arm(gravity: float = 9.81) -> TreeSystem:
    """Seven joints, a bowl on the last link, and a ball."""
    bodies, parent = [], None
    for name, axis, offset, mass, length, _ in LINKS:
        com, inertia = rod(mass, length, LINK_RADIUS)
        bodies.append(
            Body(
                name,
                parent,
                "revolute",
                mass,
                com,
                inertia,
                position=np.array([0.0, 0.0, offset]),
                axis=np.array(axis, float),
                armature=ARMATURE,
                damping=DAMPING,
            )
        )
        parent = name
    seat = np.array([0.0, 0.0, LINKS[-1][4] + BALL_RADIUS])  # of the ball's centre
    plates = {}
    for i in range(3):
        normal = rotation(2, 2 * np.pi * i / 3) @ rotation(1, TILT)  # its z axis
        middle = seat - (BALL_RADIUS + PLATE[2] / 2) * normal[:, 2]
        plates[f"plate {i}"] = Box(PLATE, middle, normal, rounding=PLATE[2] / 4)
    contacts = [
        ContactPair(name, "ball", np.zeros(3), BALL_RADIUS, shape=box, other="hand")
        for name, box in plates.items()
    ]
    return with_ball(bodies, ball(BALL_MASS, BALL_RADIUS), contacts, gravity)


@task("arm-throw", "an arm with seven joints shall throw a ball to a target out of its reach")
def arm_throw(
    friction: float = 0.5,
    time_step: float = 0.02,
    horizon: int = 50,
    gravity: float = 9.81,
    target: ArrayLike = (1.8, 0.5, 0.8),
    state_weight: float = 1e-3,
    control_weight: float = 1e-5,
    terminal_weight: float = 1e4,
) -> Problem:
    """The ball shall be at `target` [m] after the last step; weights are of joint speeds, torques
    and the ball's last position.
    """
    parameters = dict(locals())
    system = throwing_arm(gravity)
    dynamics = ContactDynamics(system, time_step, friction)
    joints = np.array(READY)
    x0 = np.concatenate([joints, ball_in_the_bowl(system, joints), np.zeros(13)])
    N = whole_number("horizon", horizon, 1, MAX_HORIZON)
    limits = np.array([link[5] for link in LINKS])
    return Problem(
        name="arm-throw",
        dynamics=dynamics,
        start=x0,
        horizon=N,
        costs=ball_costs(dynamics, 7, target, state_weight, control_weight, terminal_weight),
        control_lower=-limits,
        control_upper=limits,
        initial_controls=np.tile(holding_torques(dynamics, x0), (N, 1)),
        parameters=parameters,
    )


def ball_in_the_bowl(system: TreeSystem, joints: Array) -> Array:
    """Where the ball (position, quaternion) lies in the bowl."""
    q = np.concatenate([joints, [0, 0, 0, 0, 0, 0, 1.0]])
    hand = body_poses(system.bodies, q)["hand"]
    rest = hand.position + hand.rotation @ [0, 0, LINKS[-1][4] + BALL_RADIUS]
    return np.append(rest, [0, 0, 0, 1.0])


def holding_torques(dynamics: ContactDynamics, x: Array) -> Array:
    """Torques that hold still at x: c = B u + J' f, in the least-squares sense."""
    native = dynamics.manifold
    q, v = x[: native.nq], np.zeros(native.nv)
    _, c, B, J, _ = _native.system_terms(native, None, q, v)
    u_and_f: Array = np.linalg.lstsq(np.hstack([B, J.T]), c, rcond=None)[0]
    return u_and_f[: native.nu]


def ball_costs(
    dynamics: ContactDynamics,
    joints: int,
    target: ArrayLike,
    state_weight: float,
    control_weight: float,
    terminal_weight: float,
) -> tuple[CostTerm, ...]:
    """Joint speeds and torques cost a little all the way, the ball's place at the end a lot."""
    goal = as_array("target", target, (3,))
    native = dynamics.manifold
    reference = np.zeros(dynamics.nx)
    reference[joints : joints + 7] = np.append(goal, [0, 0, 0, 1.0])
    running, final = np.zeros(dynamics.ndx), np.zeros(dynamics.ndx)
    running[native.nv : native.nv + joints] = positive("state_weight", state_weight)
    final[joints : joints + 3] = positive("terminal_weight", terminal_weight)
    effort = np.full(dynamics.nu, positive("control_weight", control_weight))
    return (
        StateCost(running, reference),
        ControlCost(effort),
        StateCost(final, reference, knots="terminal"),
    )


ARM_LENGTH, ARM_MASS, ARM_RADIUS = 0.4, 1.5, 0.04  # of each of the two links [m], [kg], [m]
SHOULDER_HEIGHT, ARM_TORQUE = 1.5, 30.0  # [m], [N m]
HIT_RADIUS, HIT_MASS, GAP = 0.06, 0.15, 0.05  # of the ball [m], [kg]; between it and the arm [m]
TEE, TEE_HEIGHT = (0.06, 0.06, 0.02), 0.9  # what the ball lies on: a plate, its top [m]


def hitting_arm(gravity: float = 9.81) -> TreeSystem:
    """Two joints about y, links that hang down, and a ball in front of the lower one."""
    com, inertia = rod(ARM_MASS, ARM_LENGTH, ARM_RADIUS)
    bodies = [
        Body(
            name,
            parent,
            "revolute",
            ARM_MASS,
            -com,
            inertia,
            position=np.array([0.0, 0.0, place]),
            axis=np.array([0.0, -1.0, 0.0]),  # a positive angle swings forward
            armature=ARMATURE,
            damping=DAMPING,
        )
        for name, parent, place in (
            ("upper", None, SHOULDER_HEIGHT),
            ("lower", "upper", -ARM_LENGTH),
        )
    ]
    lower = Capsule(ARM_RADIUS, (0, 0, 0), (0, 0, -ARM_LENGTH))
    top = Box(TEE, (ARM_RADIUS + GAP + HIT_RADIUS, 0, TEE_HEIGHT - TEE[2] / 2))
    contacts = [
        ContactPoint("ground", "ball", np.zeros(3), HIT_RADIUS),
        ContactPair("tee", "ball", np.zeros(3), HIT_RADIUS, shape=top),
        ContactPair("arm", "ball", np.zeros(3), HIT_RADIUS, shape=lower, other="lower"),
    ]
    return with_ball(bodies, ball(HIT_MASS, HIT_RADIUS), contacts, gravity)


@task("arm-hit", "an arm with two joints shall strike a ball so that it arrives at a target")
def arm_hit(
    friction: float = 0.5,
    restitution: float = 0.5,
    time_step: float = 0.01,
    horizon: int = 70,
    gravity: float = 9.81,
    target: ArrayLike = (1.5, 0.0, 0.6),
    state_weight: float = 1e-3,
    control_weight: float = 1e-4,
    terminal_weight: float = 1e4,
) -> Problem:
    """The ball shall be at `target` [m] after the last step; `restitution` is of the arm [-]."""
    parameters = dict(locals())
    system = hitting_arm(gravity)
    dynamics = ContactDynamics(system, time_step, friction, restitution=[0.0, 0.0, restitution])
    place = (ARM_RADIUS + GAP + HIT_RADIUS, 0.0, TEE_HEIGHT + HIT_RADIUS)
    x0 = np.concatenate([[0.0, 0.0], place, [0, 0, 0, 1.0], np.zeros(8)])
    return Problem(
        name="arm-hit",
        dynamics=dynamics,
        start=x0,
        horizon=whole_number("horizon", horizon, 1, MAX_HORIZON),
        costs=ball_costs(dynamics, 2, target, state_weight, control_weight, terminal_weight),
        control_lower=np.full(2, -ARM_TORQUE),
        control_upper=np.full(2, ARM_TORQUE),
        parameters=parameters,
    )
