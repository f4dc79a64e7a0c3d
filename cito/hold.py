"""What a robot falls back on beyond the end of a plan, so that it does not fall there."""

from __future__ import annotations

from dataclasses import replace

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Exact
from cito.dynamics.robot import Robot
from cito.mpc import MPC
from cito.plan import Hold, joint_hold
from cito.problems.moving_base import MovingBase
from cito.problems.problem import Problem
from cito.problems.standing import at_rest, holding_controls

FEET_THAT_STAND = 3  # on so many a robot stands by stiff joints alone
ITERATIONS = 10  # in which the gains of standing are found


def hold_of(problem: Problem, robot: Robot) -> Hold:
    """Stiff joints for a robot on three feet or more, else the gains of standing."""
    feet = {contact.body for contact in robot.contacts[: len(robot.feet)]}
    if len(feet) >= FEET_THAT_STAND:
        return joint_hold(problem, robot)
    return standing_hold(problem, robot)


def standing_hold(problem: Problem, robot: Robot) -> Hold:
    """The first gains of the problem posed at rest, under the exact gradient: the linear regulator
    of the stance, its contacts held.

    Stiff joints do not keep a biped up, and stiff ones of light links shake at the time steps of a
    plan.
    """
    x0 = at_rest(robot)
    assert isinstance(problem.dynamics, ContactDynamics)
    guess = holding_controls(problem.dynamics, x0, problem.horizon)
    moving = problem.costs_at
    costs = moving.standing() if isinstance(moving, MovingBase) else problem.seen_from(0.0).costs
    still = replace(problem, costs=costs, costs_at=None, start=x0, initial_controls=guess)
    plan = MPC(still, first_iterations=ITERATIONS, gradient=Exact()).update(0.0, x0)
    return Hold(plan.states[0], plan.controls[0], plan.feedback[0])
