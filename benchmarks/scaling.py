"""How the step and its Jacobians grow with the robot: cito beside MuJoCo, one thread.

    dof        four legs of 2 to 8 hinges each: 14 to 38 degrees of freedom, 4 contacts
    contacts   a Go2 on 1 to 16 points: 18 degrees of freedom
    robots     hopper, biped, Go2, humanoid

MuJoCo has the same tree, time step and contacts, its own default contact parameters, and
differentiates by forward differences. States are those of `standing`. The contacts of a Go2 on
more than four points and those of the humanoid's flat feet are redundant: how many of them carry a
load is a matter of the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from cito.benchmarks.peer_mujoco import MujocoPeer
from cito.benchmarks.scaling_robots import Standee, go2_on_points, humanoid, legged, shipped
from cito.benchmarks.standing import standing
from cito.benchmarks.timing import interleaved, processor_time
from cito.dynamics.gradients import FullCone

TIME_STEP = 0.002  # [s]
GRADIENT = FullCone(0.1)
JOINTS = (2, 3, 4, 6, 8)
POINTS = (1, 2, 3, 4, 6, 8, 12, 16)
QUICK_JOINTS, QUICK_POINTS = (2, 4, 8), (1, 4, 16)


class Scaled(NamedTuple):
    """Microseconds of one step and of one step with Jacobians."""

    curve: str
    robot: str
    dof: int
    contacts: int
    active: float  # contacts with an impulse in cito, mean
    active_mujoco: float
    cito_step: float
    mujoco_step: float
    cito_jacobian: float
    mujoco_jacobian: float


def standees(quick: bool) -> Iterator[tuple[str, Callable[[], Standee]]]:
    """The curve that each robot belongs to, and how it is made."""
    for joints in QUICK_JOINTS if quick else JOINTS:
        yield "dof", partial(legged, joints)
    for points in QUICK_POINTS if quick else POINTS:
        yield "contacts", partial(go2_on_points, points)
    for name in ("hopper", "biped", "go2"):
        yield "robots", partial(shipped, name)
    yield "robots", humanoid


def measured(quick: bool) -> Iterator[Scaled]:
    """Every robot of every curve."""
    for curve, make in standees(quick):
        yield measure(curve, make(), *((32, 3) if quick else (32, 11)))


def measure(curve: str, robot: Standee, count: int, rounds: int) -> Scaled:
    """Medians over `rounds` rounds of `count` states."""
    work = standing(
        robot.system, robot.stance, TIME_STEP, count, pose=0.02, velocity=0.02, torque=0.3
    )
    dynamics, x, u = work.dynamics, work.states, work.controls
    peer = MujocoPeer(robot.mujoco_model(TIME_STEP), work)
    seconds = interleaved(
        {
            "cito step": processor_time(lambda: dynamics.step(x, u)),
            "MuJoCo step": processor_time(peer.rollouts(1)),
            "cito Jacobian": processor_time(lambda: dynamics.transition(x, u, GRADIENT)),
            "MuJoCo Jacobian": processor_time(lambda: peer.jacobians(False)),
        },
        rounds,
    )
    active = work.active_contacts, peer.active_contacts()
    peer.close()
    medians = (1e6 * float(np.median(times)) / count for times in seconds.values())
    return Scaled(curve, robot.name, dynamics.ndx // 2, dynamics.nc, *active, *medians)
