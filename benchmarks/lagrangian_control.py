"""Learned models in charge: swing-up and balance of the true systems, and known contact geometry.

    mpc       DDP in a receding horizon on the learned f_x, f_u
    energy    energy control and a linear-quadratic regulator, both on learned terms

The controller knows the learned system and the task's costs and limits, nothing of the true one. Every
seed draws its own samples, weights and start. A swing-up succeeds if the pole stays within 0.2 rad of
the top for the whole last second.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from cito.benchmarks.lagrangian_measures import torque_errors
from cito.dynamics.candidates import ContactPoint
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Exact
from cito.dynamics.learned.lagrangian import StructuredLagrangian
from cito.dynamics.learned.model_file import new_model
from cito.dynamics.learned.system import LearnedSystem
from cito.dynamics.symbolic import Contact
from cito.dynamics.tree import TreeSystem
from cito.dynamics.types import Array
from cito.problems.model_data import SYSTEMS, uniform_motions
from cito.problems.problem import Problem
from cito.problems.registry import make
from cito.problems.two_link_arm import LENGTH, two_link_arm
from cito.solvers.energy_control import EnergyControl, EnergyGains
from cito.solvers.model_learning import Training, learn

TOP, HOLD = 0.2, 1.0  # how close to the top [rad], and for how long at the end [s]
DURATION, FINER = 5.0, 10  # [s]; steps of the true system in one of the controller
TILT = 0.05  # largest first angle [rad]
GAINS = {
    "cart-pole": EnergyGains(100.0, 8.0, 4.0, value=100.0),
    "furuta": EnergyGains(1e5, 20.0, 5.0, control=20.0, value=500.0),
}
FIRST_ITERATIONS = 100  # of DDP before the motion starts

SHOULDER, FRICTION = 0.8, 0.5  # height over the floor [m], of the arm's tip [-]
FALL, FALL_STEP = 1.0, 0.005  # [s]
LIFTED = (1.4, 0.3, 0.0, 0.0)  # where it is let go

Controller = Callable[[float, Array], Array]


@dataclass(frozen=True)
class Size:
    """How much is learned of: samples, width of the networks, training."""

    samples: int
    width: int
    training: Training


class Attempt(NamedTuple):
    """A row of the benchmark, and the motion behind it: times (N+1,), states (N+1, 4)."""

    row: dict[str, Any]
    times: Array
    states: Array


@cache
def trained(system: str, seed: int, size: Size) -> StructuredLagrangian:
    """A structured Lagrangian of uniform samples of `system`."""
    modelled = SYSTEMS[system]
    motions = uniform_motions(system, size.samples, seed)
    model = new_model(
        "lagrangian-structured", motions, modelled.periodic, seed=seed, width=size.width
    )
    learn(model, motions, replace(size.training, seed=seed))
    assert isinstance(model, StructuredLagrangian)
    return model


def attempts(task: str, seed: int, size: Size) -> Iterator[Attempt]:
    """Swing-ups of the true system by both methods."""
    model, tree = trained(task, seed, size), SYSTEMS[task].tree
    system = LearnedSystem(model, tree.actuation, names=tree.names)
    errors = torque_errors(model, tree, uniform_motions(task, 500, 10_000 + seed))
    error = errors["torque_error"]
    problem = make(task)
    learned = replace(problem, dynamics=ContactDynamics(system, problem.dynamics.time_step))
    tilt = np.random.default_rng(seed).uniform(-TILT, TILT)
    for method, control in (
        ("mpc", predictive(learned)),
        ("energy", energetic(learned, model, GAINS[task])),
    ):
        times, states = driven(tree, problem.dynamics.time_step, control, tilt)
        tilts = np.abs(states[:, 1] % (2 * np.pi) - np.pi)
        late = times >= DURATION - HOLD
        up = np.flatnonzero(tilts >= TOP)
        row = {
            "name": f"{task}/{method}",
            "seed": seed,
            "success": bool(tilts[late].max() < TOP),
            "up_after": float(times[min(up[-1] + 1, len(times) - 1)]),  # and never down again
            "last_tilt": float(tilts[late].max()),
            "reach": float(np.abs(states[:, 0]).max()),
            "model_torque_error": error,
        }
        yield Attempt(row, times, states)


def predictive(problem: Problem) -> Controller:
    """Model predictive control of `problem`, which is on the learned system."""
    from cito.mpc import MPC

    mpc = MPC(problem, gradient=Exact(), first_iterations=FIRST_ITERATIONS)
    return lambda t, x: mpc.update(t, x).control(t, x)


def energetic(problem: Problem, model: StructuredLagrangian, gains: EnergyGains) -> Controller:
    """Energy control on the learned terms."""
    dynamics, limits = problem.dynamics, problem.control_upper
    assert isinstance(dynamics, ContactDynamics) and limits is not None
    control = EnergyControl(dynamics, model.potential, gains, float(limits[0]))
    return lambda t, x: control.control(x)


def driven(
    tree: TreeSystem, time_step: float, control: Controller, tilt: float
) -> tuple[Array, Array]:
    """The true system under a control that is held for a step of the controller."""
    true = ContactDynamics(tree, time_step / FINER)
    x, states = np.array([0.0, tilt, 0.0, 0.0]), []
    times: Array = time_step * np.arange(round(DURATION / time_step) + 1.0)
    for t in times:
        states.append(x)
        u = control(float(t), x)
        x = true.rollout(x, np.tile(u, (FINER, 1))).states[-1]
    return times, np.array(states)


def fall(seed: int, size: Size) -> dict[str, Any]:
    """An arm that falls on the floor: masses and forces learned, contact known."""
    model = trained("two-link-arm", seed, size)
    learned = ContactDynamics(LearnedSystem(model, contacts=tip), FALL_STEP, friction=FRICTION)
    true = ContactDynamics(arm_over_the_floor(), FALL_STEP, friction=FRICTION)
    controls = np.zeros((round(FALL / FALL_STEP), 2))
    found, right = (d.rollout(np.array(LIFTED), controls) for d in (learned, true))
    touched = np.flatnonzero(right.modes[:, 0] > 0)
    return {
        "name": "two-link-arm/floor",
        "seed": seed,
        "position_error": float(np.abs(found.states - right.states)[:, :2].max()),
        "same_modes": float((found.modes == right.modes).mean()),
        "touches_after": float(FALL_STEP * touched[0]) if len(touched) else float("inf"),
        "contact_residual": float(found.residual),
    }


def tip(q: Any) -> list[Contact]:
    """The end of the arm over a floor below its shoulder."""
    angle, (l1, l2) = q[0] + q[1], LENGTH
    x = l1 * ca.sin(q[0]) + l2 * ca.sin(angle)
    z = SHOULDER - l1 * ca.cos(q[0]) - l2 * ca.cos(angle)
    return [Contact(point=ca.vertcat(x, z), name="tip")]


def arm_over_the_floor() -> TreeSystem:
    """The true arm with the same contact."""
    upper, lower = two_link_arm().bodies
    raised = replace(upper, position=np.array([0.0, 0.0, SHOULDER]))
    end = ContactPoint("tip", "lower", np.array([0.0, 0.0, -LENGTH[1]]), 0.0)
    return TreeSystem([raised, lower], [end])
