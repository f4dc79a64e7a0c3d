"""Control and inverse problems by gradient, against a search without derivatives (CMA-ES).

    throw, hit       the torques of every step, so that a ball is at a target at the end
    friction         of a box that slides to rest, from its recorded motion
    link mass        of an arm that swings under known torques, from its recorded motion

Both methods start from the same guess and minimize the same cost on the same simulator, one thread,
processor seconds. A run ends when the error is within the tolerance; CMA-ES also at its time limit,
and then `ratio` is what the limit allows to say: a lower bound. Each row is the median over seeds,
which perturb the guess of the controls or the noise of the recording, and select the samples of
CMA-ES.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from cito import api
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Exact, FullCone, Gradient
from cito.dynamics.linear import point_mass
from cito.dynamics.parameters import Parameter
from cito.dynamics.types import Array
from cito.problems.arm import LINKS, throwing_arm
from cito.problems.objective import Objective
from cito.problems.problem import Problem
from cito.solvers.identification import Misfit, Recording, cut, identify
from cito.solvers.solution import Solution

TASKS = ("arm-throw", "arm-hit")
KERNELS: tuple[Gradient, ...] = (FullCone(0.03), FullCone(0.3), Exact())  # rho in joules
STRETCH, ROUNDS = 20, 3  # DDP iterations under each at a time; how often all of them come
REACHED = 0.01  # distance of the ball from its target [m], relative error of a parameter
LIMIT, QUICK_LIMIT = 60.0, 20.0  # of CMA-ES [s]
SIGMA = 0.1  # step of CMA-ES relative to the torque limits, or to a logarithm of 1
SEED, SEEDS, QUICK_SEEDS = 1, 3, 1  # the first seed, and how many
SHAKE = 1e-3  # standard deviation of the guess, relative to the torque limits
TRUE_FRICTION, GUESSED_FRICTION = 0.35, 1.0
HEAVIER = np.log(1.3)  # the link is 30 % heavier than the guess says
WINDOW = 25  # steps of a recording that are simulated at a stretch
NOISE = 1e-3  # standard deviation of recorded positions and velocities [m, rad, m/s, rad/s]


class Run(NamedTuple):
    """What a method did: error reached, evaluations (iterations of DDP, costs of CMA-ES), processor
    seconds, history of (seconds, error), and the states of the motion that it found, if any.
    """

    error: float
    evaluations: int
    seconds: float
    history: list[tuple[float, float]]
    states: Array | None = None


@dataclass(frozen=True)
class Demonstration:
    """A problem with two ways to solve it.

    Args:
        name: of the problem.
        parameters: number of unknowns.
        unit: of the error.
        by_gradient: the run of cito's method.
        without: the run of CMA-ES, given its time limit [s].
    """

    name: str
    parameters: int
    unit: str
    by_gradient: Callable[[], Run]
    without: Callable[[float], Run]


def rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Two rows for each problem."""
    limit, seeds = (QUICK_LIMIT, QUICK_SEEDS) if quick else (LIMIT, SEEDS)
    for same in zip(*(demonstrations(SEED + i) for i in range(seeds))):
        ours = [demonstration.by_gradient() for demonstration in same]
        yield _row(same[0], "gradient", ours, ours)
        theirs = [demonstration.without(limit) for demonstration in same]
        yield _row(same[0], "CMA-ES", theirs, ours)


def run(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    return list(rows(quick))


def total(quick: bool) -> int:
    """How many rows there will be."""
    return 2 * len(demonstrations())


def demonstrations(seed: int = SEED) -> list[Demonstration]:
    """The four problems, at one seed."""
    controls = [
        Demonstration(
            name=name,
            parameters=problem.horizon * problem.dynamics.nu,
            unit="m",
            by_gradient=partial(steer, name, seed),
            without=partial(steer_without_gradient, name, seed),
        )
        for name in TASKS
        for problem in [posed(name, seed)]
    ]
    inverse = [
        Demonstration(
            name, 1, "relative", partial(estimate, name, seed), partial(guess, name, seed)
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
    """DDP under one kernel after the other, each from the best motion of the ones before, until
    the ball arrives; where a few rounds of one order do not get there, another from the guess.
    """
    problem, began = posed(name, seed), time.process_time()
    iterations, history, nearest = 0, [], (np.inf, np.zeros(0))
    for order in permutations(KERNELS):
        best: Solution | None = None
        for gradient in order * ROUNDS:
            start = None if best is None else best.controls
            solution = api.solve(problem, gradient, max_iterations=STRETCH, initial_controls=start)
            best = solution if best is None or solution.cost < best.cost else best
            iterations += solution.iterations
            error = float(distance(problem, best.states))
            if error < nearest[0]:
                nearest = error, best.states
            history.append((time.process_time() - began, nearest[0]))
            if error <= REACHED:
                return Run(error, iterations, history[-1][0], history, best.states)
    return Run(nearest[0], iterations, history[-1][0], history, nearest[1])


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

    return evolve((problem.initial_controls / scale).ravel(), evaluate, limit, seed, bound=1.0)


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
    history = [((i + 1) * share, error) for i, error in enumerate(errors)]
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

    return evolve(np.append(misfit.start, 0.0), evaluate, limit, seed)


# --------------------------------------------------------------------------------- CMA-ES
def evolve(
    start: Array,
    evaluate: Callable[[Array], tuple[Array, Array]],
    limit: float,
    seed: int = SEED,
    bound: float | None = None,
) -> Run:
    """CMA-ES until the best candidate's error is within the tolerance, or the limit.

    Args:
        start: first mean, (n,).
        evaluate: candidates (m, n) -> costs (m,), errors (m,).
        limit: processor seconds.
        seed: of its samples.
        bound: of every entry's size, None: free.
    """
    import cma  # optional: the extra `baselines`

    options = {
        "verbose": -9,
        "seed": seed,
        "bounds": [None, None] if bound is None else [-bound, bound],
    }
    search = cma.CMAEvolutionStrategy(start, SIGMA, options)
    began, evaluations, best = time.process_time(), 0, (np.inf, np.inf)
    history: list[tuple[float, float]] = []
    with threadpool_limits(limits=1):  # more threads only spin, and their time would count
        while True:
            candidates = search.ask()
            costs, errors = evaluate(np.array(candidates))
            search.tell(candidates, costs.tolist())
            evaluations += len(candidates)
            i = int(np.argmin(costs))
            best = min(best, (float(costs[i]), float(errors[i])))
            seconds = time.process_time() - began
            history.append((seconds, best[1]))
            if best[1] <= REACHED or seconds > limit or search.stop():
                return Run(best[1], evaluations, seconds, history)


def _row(
    demonstration: Demonstration, method: str, runs: list[Run], ours: list[Run]
) -> dict[str, Any]:
    seconds = float(np.median([run.seconds for run in runs]))
    return {
        "name": demonstration.name,
        "method": method,
        "parameters": demonstration.parameters,
        "error": float(np.median([run.error for run in runs])),
        "unit": demonstration.unit,
        "reached": f"{sum(run.error <= REACHED for run in runs)} of {len(runs)}",
        "evaluations": int(np.median([run.evaluations for run in runs])),
        "seconds": seconds,
        "ratio": seconds / float(np.median([run.seconds for run in ours])),
    }
