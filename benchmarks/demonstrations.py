"""Control and inverse problems by gradient, against a search without derivatives (CMA-ES).

    throw, hit       the torques of every step, so that a ball is at a target at the end
    friction         of a box that slides to rest, from its recorded motion
    link mass        of an arm that swings under known torques, from its recorded motion

Both methods start from the same guess and minimize the same cost on the same simulator, one thread,
processor seconds. What counts is when the first motion (or parameter) was found whose error is
within a tolerance: the balls' are 1 cm, which some sample of CMA-ES meets by luck long before its
mean does, and 1 mm. CMA-ES ends at its time limit, too, and then `ratio` is what the limit allows
to say: a lower bound. Each row is the median over seeds, which perturb the guess of the controls or
the noise of the recording, and select the samples of CMA-ES.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from cito import api
from cito.benchmarks.evolution import Run, evolve
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import FullCone
from cito.dynamics.linear import point_mass
from cito.dynamics.parameters import Parameter
from cito.dynamics.types import Array
from cito.problems.arm import LINKS, throwing_arm
from cito.problems.objective import Objective
from cito.problems.problem import Problem
from cito.solvers.identification import Misfit, Recording, cut, identify
from cito.solvers.portfolio import Portfolio

TASKS = ("arm-throw", "arm-hit")
MAX_ITERATIONS = 2000  # of DDP
REACHED, FINE = 0.01, 0.001  # distance of the ball from its target [m]; first: relative error, too
LIMIT, QUICK_LIMIT = 60.0, 20.0  # of CMA-ES [s]
SEED, SEEDS, QUICK_SEEDS = 1, 5, 1  # the first seed, and how many
SHAKE = 1e-3  # standard deviation of the guess, relative to the torque limits
TRUE_FRICTION, GUESSED_FRICTION = 0.35, 1.0
HEAVIER = np.log(1.3)  # the link is 30 % heavier than the guess says
WINDOW = 25  # steps of a recording that are simulated at a stretch
NOISE = 1e-3  # standard deviation of recorded positions and velocities [m, rad, m/s, rad/s]


@dataclass(frozen=True)
class Demonstration:
    """A problem with two ways to solve it.

    Args:
        name: of the problem.
        parameters: number of unknowns.
        unit: of the error.
        tolerances: of the error.
        by_gradient: the run of cito's method.
        without: the run of CMA-ES, given its time limit [s].
    """

    name: str
    parameters: int
    unit: str
    tolerances: tuple[float, ...]
    by_gradient: Callable[[], Run]
    without: Callable[[float], Run]


def rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Two rows for each problem and tolerance."""
    limit, seeds = (QUICK_LIMIT, QUICK_SEEDS) if quick else (LIMIT, SEEDS)
    for same in zip(*(demonstrations(SEED + i) for i in range(seeds))):
        ours = [demonstration.by_gradient() for demonstration in same]
        theirs = [demonstration.without(limit) for demonstration in same]
        for tolerance in same[0].tolerances:
            yield _row(same[0], "gradient", tolerance, ours, ours)
            yield _row(same[0], "CMA-ES", tolerance, theirs, ours)


def run(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    return list(rows(quick))


def total(quick: bool) -> int:
    """How many rows there will be."""
    return 2 * sum(len(demonstration.tolerances) for demonstration in demonstrations())


def demonstrations(seed: int = SEED) -> list[Demonstration]:
    """The four problems, at one seed."""
    controls = [
        Demonstration(
            name=name,
            parameters=problem.horizon * problem.dynamics.nu,
            unit="m",
            tolerances=(REACHED, FINE),
            by_gradient=partial(steer, name, seed),
            without=partial(steer_without_gradient, name, seed),
        )
        for name in TASKS
        for problem in [posed(name, seed)]
    ]
    inverse = [
        Demonstration(
            name,
            1,
            "relative",
            (REACHED,),
            partial(estimate, name, seed),
            partial(guess, name, seed),
        )
        for name in ("friction", "link-mass")
    ]
    return controls + inverse


@cache
def posed(name: str, seed: int = SEED) -> Problem:
    """The problem of a task at its defaults; other seeds than the first shake the guess."""
    problem = api.make(name)
    U = problem.initial_controls
    assert U is not None and problem.control_upper is not None  # as these tasks have them
    shake = SHAKE * (seed != SEED) * np.random.default_rng(seed).standard_normal(U.shape)
    return replace(problem, initial_controls=U + shake * problem.control_upper)


def distance(problem: Problem, states: Array) -> Array:
    """Of the ball from its target at the end of trajectories (..., N+1, nx), (...) [m]."""
    joints = problem.dynamics.nu
    ball = states[..., -1, joints : joints + 3]
    d: Array = np.linalg.norm(ball - np.asarray(problem.parameters["target"]), axis=-1)
    return d


# ------------------------------------------------------------------------------- control
def steer(name: str, seed: int = SEED) -> Run:
    """DDP with a portfolio of gradients at its defaults, until the ball arrives."""
    problem, began = posed(name, seed), time.process_time()
    history: list[tuple[float, float, int]] = []
    iteration = [0]

    def count(record: Mapping[str, Any]) -> None:
        iteration[0] = record["iteration"]

    def arrived(states: Array, controls: Array) -> bool:
        least = min([float(distance(problem, states)), *(error for _, error, _ in history[-1:])])
        history.append((time.process_time() - began, least, iteration[0]))
        return least <= FINE

    solution = api.solve(
        problem, Portfolio(), max_iterations=MAX_ITERATIONS, until=arrived, callback=count
    )
    seconds, error = time.process_time() - began, float(distance(problem, solution.states))
    return Run(error, solution.iterations, seconds, history, solution.states)


def steer_without_gradient(name: str, seed: int, limit: float) -> Run:
    """CMA-ES over the torques of all steps, in units of their limits."""
    problem = posed(name, seed)
    objective, scale = Objective(problem), problem.control_upper
    assert problem.initial_controls is not None and scale is not None
    shape = problem.initial_controls.shape

    def evaluate(x: Array) -> tuple[Array, Array]:
        U = x.reshape(-1, *shape) * scale
        motion = problem.dynamics.rollout(problem.start, U)
        J = objective.value(motion.states, motion.controls)
        return J, distance(problem, motion.states)

    start = (problem.initial_controls / scale).ravel()
    return evolve(start, evaluate, limit, seed, bound=1.0, tolerance=FINE)


# ------------------------------------------------------------------------- identification
@cache
def recorded(name: str, seed: int = SEED) -> tuple[ContactDynamics, Recording]:
    """Dynamics with a wrong parameter, and a noisy recording of the true motion."""
    rng = np.random.default_rng(seed)
    if name == "friction":
        system = point_mass(3)
        truth = ContactDynamics(system, 0.01, TRUE_FRICTION)
        guess = ContactDynamics(system, 0.01, GUESSED_FRICTION)
        start, controls = np.array([0, 0, 0, 2.0, 1.0, 0]), np.zeros((100, 3))
    else:
        arm = throwing_arm()
        parameters = [Parameter.mass("elbow")]
        chain = type(arm)(arm.bodies[: len(LINKS)], gravity=arm.gravity, parameters=parameters)
        truth = ContactDynamics(chain, 0.01, theta=[HEAVIER])
        guess = ContactDynamics(chain, 0.01)
        t = 0.01 * np.arange(200)[:, None]
        waves = np.sin(2 * np.pi * (t * np.arange(1, 8) / 4 + np.arange(7) / 7))
        controls = 0.05 * np.array([link[-1] for link in LINKS]) * waves
        start = np.zeros(14)
    states = truth.rollout(start, controls).states
    return guess, Recording(states + NOISE * rng.standard_normal(states.shape), controls)


def relative_error(name: str, z: Array) -> float:
    """Of the estimated coefficient or mass, given the logarithm z of it or of its scale."""
    truth = np.log(TRUE_FRICTION) if name == "friction" else HEAVIER
    return float(abs(np.exp(z[0] - truth) - 1))


def estimate(name: str, seed: int = SEED) -> Run:
    """L-BFGS with the gradient of a transposed rollout."""
    began = time.process_time()
    dynamics, recording = recorded(name, seed)
    found = identify(dynamics, recording, theta=name != "friction", window=WINDOW)
    seconds = time.process_time() - began
    share = seconds / found.evaluations
    errors = [relative_error(name, z) for z, _ in found.history]
    own = np.log(found.friction[:1]) if name == "friction" else found.theta
    least = np.minimum.accumulate(errors)
    history = [((i + 1) * share, float(error), i + 1) for i, error in enumerate(least)]
    return Run(relative_error(name, own), found.evaluations, seconds, history)


def guess(name: str, seed: int, limit: float) -> Run:
    """CMA-ES on the same misfit; a second unknown without effect, since it takes no single one."""
    dynamics, recording = recorded(name, seed)
    misfit = Misfit(
        dynamics, cut(dynamics, recording, WINDOW), "shared", name != "friction", 1.0, FullCone()
    )

    def evaluate(x: Array) -> tuple[Array, Array]:
        J = np.array([misfit.value(z[:1]) for z in x])
        return J, np.array([relative_error(name, z) for z in x])

    return evolve(np.append(misfit.start, 0.0), evaluate, limit, seed, tolerance=REACHED)


def _row(
    demonstration: Demonstration, method: str, tolerance: float, runs: list[Run], ours: list[Run]
) -> dict[str, Any]:
    runs, ours = ([run.within(tolerance) for run in some] for some in (runs, ours))
    seconds = float(np.median([run.seconds for run in runs]))
    return {
        "name": demonstration.name,
        "method": method,
        "parameters": demonstration.parameters,
        "within": tolerance,
        "error": float(np.median([run.error for run in runs])),
        "unit": demonstration.unit,
        "reached": f"{sum(run.error <= tolerance for run in runs)} of {len(runs)}",
        "evaluations": int(np.median([run.evaluations for run in runs])),
        "seconds": seconds,
        "ratio": seconds / float(np.median([run.seconds for run in ours])),
    }
