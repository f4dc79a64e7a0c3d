"""Tasks of legged robots. No task says which foot is on the ground when: that is for the solver.

Each takes `robot`: "go2", "hopper", "biped", or the path of an MJCF or URDF file. Lengths in the
weights are in units of the base's height H when the robot stands, speeds of sqrt(g H), torques of
the robot's limits, so that one set of weights serves robots of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, as_vector, positive, whole_number
from cito.problems.costs import CostTerm
from cito.problems.legged import joint_limit_costs
from cito.problems.problem import MAX_HORIZON, Problem
from cito.problems.registry import task
from cito.problems.robot_costs import (
    BasePose,
    BaseVelocity,
    FootSlip,
    JointVelocity,
    Posture,
    Torque,
)
from cito.problems.robot_parts import Parts
from cito.problems.robots import load_robot
from cito.problems.standing import (
    at_rest,
    balanced,
    base_pose,
    base_velocity,
    holding_controls,
    lowered,
)


class Legged(NamedTuple):
    """A robot that stands: dynamics, configuration (nq,), base there (3,) [m], angles (nj,)."""

    robot: Robot
    dynamics: ContactDynamics
    stance: Array
    base: Array
    angles: Array

    @classmethod
    def standing(cls, robot: str, time_step: float, friction: float) -> Legged:
        """The robot by name or file, in balance."""
        loaded = load_robot(robot)
        dynamics = ContactDynamics(loaded, time_step=time_step, friction=friction)
        stance = balanced(dynamics, loaded.stance)
        angles = stance[Parts.of_system("robot", loaded).joints("robot", None).q]
        return cls(loaded, dynamics, stance, base_pose(dynamics, stance).position, angles)

    @property
    def speed(self) -> float:
        """sqrt(g H), what speeds are measured by [m/s]."""
        return float(np.sqrt(max(self.robot.system.gravity, 1.0) * self.base[2]))

    @property
    def torques(self) -> Array:
        """What torques are measured by: the limits, or m g H where there is none, (nu,) [N m]."""
        weight = self.robot.system.mass * max(self.robot.system.gravity, 1.0)
        limits = self.robot.torque_limits
        return np.where(np.isfinite(limits), limits, weight * self.base[2])

    def effort(self, horizon: int) -> tuple[CostTerm, ...]:
        """What moving costs: torque, joint speed, slip, angles that stray, limits."""
        share = 1 / horizon
        return (
            Torque(10 * share / self.torques**2),
            JointVelocity(0.05 * share, knots="all"),
            Posture(self.angles, 2.5 * share),
            FootSlip(5 / self.speed**2),
            *joint_limit_costs(self.robot),
        )

    def at_the_end(self, position: Array) -> tuple[CostTerm, ...]:
        """What not to stand upright, and still, at `position` costs at the last knot."""
        return (
            BasePose(
                position,
                position_weight=40 / self.base[2] ** 2,
                orientation_weight=20,
                knots="terminal",
            ),
            BaseVelocity(linear_weight=4 / self.speed**2, angular_weight=0.1, knots="terminal"),
            Posture(self.angles, 5, knots="terminal"),
        )

    def problem(
        self,
        name: str,
        horizon: int,
        costs: Sequence[CostTerm],
        parameters: dict[str, object],
        start: Array | None = None,
        costs_at: Callable[[float], tuple[CostTerm, ...]] | None = None,
    ) -> Problem:
        """The task with the robot's torque limits, guessed to hold still where it starts."""
        x0 = at_rest(self.robot, self.stance) if start is None else start
        N = whole_number("horizon", horizon, 1, MAX_HORIZON)
        limits = self.robot.torque_limits
        return Problem(
            name=name,
            dynamics=self.dynamics,
            start=x0,
            horizon=N,
            costs=tuple(costs),
            control_lower=-limits,
            control_upper=limits,
            initial_controls=holding_controls(self.dynamics, x0, N),
            parameters=parameters,
            costs_at=costs_at,
        )


@dataclass(frozen=True, eq=False)
class OnceAt:
    """Costs of which some are due at one time: seen from later, at an earlier knot, then no more.

    Args:
        before, after: terms that stay, first and last in order.
        momentary: terms that are due at `knot` as it is seen from time 0.
        horizon: N; time_step: h [s].
    """

    before: tuple[CostTerm, ...]
    momentary: tuple[BasePose | BaseVelocity, ...]
    after: tuple[CostTerm, ...]
    knot: int
    horizon: int
    time_step: float

    @cached_property
    def first(self) -> tuple[CostTerm, ...]:
        """Seen from time 0."""
        return (*self.before, *self.momentary, *self.after)

    @cached_property
    def _past(self) -> tuple[CostTerm, ...]:
        return (*self.before, *self.after)

    def __call__(self, t: float) -> tuple[CostTerm, ...]:
        """The terms seen from time t [s]."""
        k = self.knot - round(t / self.time_step)
        if k == self.knot:
            return self.first
        if k < 0:
            return self._past
        moved = (replace(term, knots=(k,)) for term in self.momentary)
        return (*self.before, *moved, *self.after)


@task("jump", "a legged robot shall be a given height higher halfway, and stand in the end")
def jump(
    robot: str = "go2",
    height: float = 0.3,
    distance: float = 0.0,
    friction: float = 0.8,
    time_step: float = 0.02,
    horizon: int = 50,
) -> Problem:
    """At the top of the jump, halfway, the base does not rise any more."""
    parameters = dict(locals())
    legged = Legged.standing(robot, time_step, friction)
    top = int(whole_number("horizon", horizon, 2, MAX_HORIZON)) // 2
    rise = np.array([distance / 2, 0.0, positive("height", height, allow_zero=True)])
    apex = (
        BasePose(
            legged.base + rise,
            position_weight=np.array([0, 0, 200]) / legged.base[2] ** 2,
            orientation_weight=20,
            knots=(top,),
        ),
        BaseVelocity(
            linear_weight=np.array([0, 0, 20]) / legged.speed**2, frame="world", knots=(top,)
        ),
    )
    end = legged.at_the_end(legged.base + np.array([distance, 0.0, 0.0]))
    costs = OnceAt(legged.effort(horizon), apex, end, top, int(horizon), time_step)
    return legged.problem("jump", horizon, costs.first, parameters, costs_at=costs)


@task("leap", "a legged robot shall stand some way further on, too soon to walk there")
def leap(
    robot: str = "go2",
    distance: float = 0.5,
    friction: float = 0.8,
    time_step: float = 0.02,
    horizon: int = 40,
) -> Problem:
    """Nothing says that it shall leave the ground."""
    parameters = dict(locals())
    legged = Legged.standing(robot, time_step, friction)
    end = legged.at_the_end(legged.base + np.array([distance, 0.0, 0.0]))
    return legged.problem("leap", horizon, (*legged.effort(horizon), *end), parameters)


@task("stand-up", "a legged robot shall rise from a crouch and stand")
def stand_up(
    robot: str = "go2",
    start_height: float = 0.4,
    friction: float = 0.8,
    time_step: float = 0.02,
    horizon: int = 40,
) -> Problem:
    """`start_height` is that of the base, as a share of its height when it stands."""
    parameters = dict(locals())
    legged = Legged.standing(robot, time_step, friction)
    share = positive("start_height", start_height)
    drop = (1 - share) * legged.base[2]
    start = at_rest(legged.robot, lowered(legged.dynamics, legged.stance, drop))
    end = legged.at_the_end(legged.base)
    costs = (*legged.effort(horizon), *end)
    return legged.problem("stand-up", horizon, costs, parameters, start)


@task("stand", "a legged robot shall stand again after a push")
def stand(
    robot: str = "go2",
    push: Sequence[float] = (0.0, 0.5, 0.0),
    friction: float = 0.8,
    time_step: float = 0.02,
    horizon: int = 40,
) -> Problem:
    """`push`: velocity of the base at the start, in the world [m/s]."""
    parameters = dict(locals())
    legged = Legged.standing(robot, time_step, friction)
    start = at_rest(legged.robot, legged.stance)
    moving = base_velocity(legged.dynamics, legged.stance, as_vector("push", push, 3))
    start[legged.robot.native.nq :] = moving
    costs = (*legged.effort(horizon), *legged.at_the_end(legged.base))
    return legged.problem("stand", horizon, costs, parameters, start)
