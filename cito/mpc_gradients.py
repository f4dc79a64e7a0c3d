"""The contact gradients of a receding-horizon controller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cito.dynamics.gradients import Exact, FullCone, Gradient
from cito.dynamics.robot import Robot
from cito.problems.problem import Problem
from cito.solvers.adaptive import typical_speed
from cito.solvers.search import Iterate

WIDTH = 1.65  # of 1, 1.25, 1.65 and 2 the best on the base poses of a Go2 [-]


def default_gradients(problem: Problem, iterate: Iterate) -> tuple[Gradient, ...]:
    """One wide full-cone kernel, about as wide as the energy of a step of free fall:

        rho = WIDTH m (g h)^2 / number of feet      of a robot,
        rho_i = v_ref^2 / A_NN,i              of any other system, v_ref the speed of its contacts

    No narrower one after it while the robot moves: where the wide kernel sees a way that no hard
    rollout of this update confirms, the exact gradient would settle in the nearest local optimum (a
    robot that leans instead of stepping), and the next update would find it there.
    """
    dynamics = problem.dynamics
    free_velocity = dynamics.linearize(iterate.rollout).free_velocity
    if free_velocity.size == 0:
        return (Exact(),)
    robot = getattr(dynamics, "system", None)
    feet = getattr(robot, "feet", ())
    if isinstance(robot, Robot) and feet and robot.system.gravity > 0:
        tree = robot.system
        return (FullCone(WIDTH * tree.mass * (tree.gravity * dynamics.time_step) ** 2 / len(feet)),)
    return (FullCone(1.0, relative=True, v_ref=typical_speed(free_velocity)),)


def as_gradients(given: Gradient | Sequence[Gradient] | None) -> tuple[Gradient, ...]:
    """One, several or no gradients as a tuple.

    Raises:
        ValueError: something else is among them.
    """
    if given is None:
        return ()
    several = tuple(given) if isinstance(given, Iterable) else (given,)
    if not several or not all(isinstance(gradient, Gradient) for gradient in several):
        raise ValueError(f"`gradient` must be one or several contact gradients, got {given!r:.80}")
    return several
