"""DDP: optima that are known, every way to stop, and what must not depend on units or sides."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from cito.dynamics import (
    ContactDynamics,
    Dynamics,
    Exact,
    FullCone,
    Linearization,
    LinearSystem,
    Rollout,
    Signorini,
    Transition,
    _native,
    point_mass,
)
from cito.problems import ControlCost, Problem, StateCost, make
from cito.problems.objective import Objective
from cito.solvers import Adaptive, DDPSettings, Solution, Status, solve_ddp
from tests.reference import step as twin
from tests.reference.riccati import Model, bounded_qp, dense_optimum
from tests.reference.systems import contact_free, exploding_spring

# Proven optima of the planar tasks.
OPTIMA = {"lift-off": 5.907067651, "traverse": 27.679550592, "friction-braking": 1.052528605}


# ------------------------------------------------------------------------- linear and quadratic


def linear_quadratic(seed: int = 0, N: int = 12, limit: float | None = None) -> Problem:
    """Masses, springs and dampers to be brought to a target."""
    rng = np.random.default_rng(seed)
    dynamics = ContactDynamics(contact_free(3, 2, seed), 0.1)
    return Problem(
        "linear-quadratic",
        dynamics,
        rng.standard_normal(6),
        N,
        (
            StateCost(rng.uniform(0.1, 1, 6), rng.standard_normal((N + 1, 6)), knots="all"),
            ControlCost(rng.uniform(0.1, 1, 2), rng.standard_normal(2)),
        ),
        control_lower=None if limit is None else np.array([-limit, -np.inf]),
        control_upper=None if limit is None else np.array([limit, 1.5 * limit]),
    )


def optimum(problem: Problem) -> tuple[np.ndarray, float]:
    """Controls and cost of a linear-quadratic problem from one dense (bounded) QP."""
    dynamics, J, N = problem.dynamics, Objective(problem), problem.horizon
    rollout = dynamics.rollout(problem.start, np.zeros((N, dynamics.nu)))
    f_x, f_u = dynamics.linearize(rollout).with_gradient(Exact())
    l_x, l_u, l_xx, l_uu, _ = J.expansion(rollout.states, rollout.controls)
    l_ux, gaps = np.zeros((N, dynamics.nu, dynamics.ndx)), np.zeros((N, dynamics.ndx))
    limits = [
        None if bound is None else np.tile(bound, (N, 1))
        for bound in (problem.control_lower, problem.control_upper)
    ]
    _, U, change = dense_optimum(Model(f_x, f_u, l_x, l_u, l_xx, l_uu, l_ux, gaps), *limits)
    return U, float(J.value(rollout.states, rollout.controls)) + change


def moves(solution: Solution) -> int:
    """How many iterations changed the cost by more than rounding."""
    costs = np.array([entry["cost"] for entry in solution.history])
    return int(np.sum(np.abs(np.diff(costs)) > 1e-12 * np.abs(costs[1:])))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gradient", [Exact(), Adaptive()])
def test_linear_quadratic_problem_takes_one_iteration(seed, gradient):
    problem = linear_quadratic(seed)
    solution = solve_ddp(problem, gradient)
    U, cost = optimum(problem)
    assert solution.status is Status.CONVERGED
    assert moves(solution) == 1
    assert solution.cost == pytest.approx(cost, rel=1e-12)
    np.testing.assert_allclose(solution.controls, U, atol=1e-9)


def test_multiple_shooting_takes_one_iteration_too():
    problem = linear_quadratic()
    guess = np.random.default_rng(1).standard_normal((13, 6))
    solution = solve_ddp(problem, Exact(), initial_states=guess)
    U, cost = optimum(problem)
    assert (solution.status, moves(solution)) == (Status.CONVERGED, 1)
    assert solution.cost == pytest.approx(cost, rel=1e-12)
    np.testing.assert_allclose(solution.controls, U, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_control_limits_are_respected_and_optimal(seed):
    problem = linear_quadratic(seed, limit=0.4)
    solution = solve_ddp(problem, Exact())
    U, cost = optimum(problem)
    assert solution.status is Status.CONVERGED
    assert (solution.controls >= problem.control_lower).all()
    assert (solution.controls <= problem.control_upper).all()
    held = (U == problem.control_lower) | (U == problem.control_upper)
    assert held.any() and not held.all()
    assert cost > optimum(linear_quadratic(seed))[1] + 1e-3
    assert solution.cost == pytest.approx(cost, rel=1e-8)
    np.testing.assert_allclose(solution.controls, U, atol=1e-4)


def test_initial_controls_outside_the_limits_are_clipped():
    problem = linear_quadratic(limit=0.4)
    start = solve_ddp(
        problem, Exact(), DDPSettings(max_iterations=0), initial_controls=np.full((12, 2), 9.0)
    )
    np.testing.assert_array_equal(start.controls, np.tile(problem.control_upper, (12, 1)))
    assert solve_ddp(problem, Exact(), initial_controls=np.full((12, 2), 9.0)).cost == (
        pytest.approx(optimum(problem)[1], rel=1e-8)
    )


# ----------------------------------------------------------------------------------- planar tasks


@pytest.fixture(scope="module")
def planar() -> Callable[[str, object], Solution]:
    """Solutions of the planar tasks, each found once."""
    found: dict[tuple[str, object], Solution] = {}

    def solve(name: str, gradient) -> Solution:
        if (name, gradient) not in found:
            found[name, gradient] = solve_ddp(make(name), gradient)
        return found[name, gradient]

    return solve


CASES = [
    (name, gradient)
    for name in OPTIMA
    for gradient in (Exact(), Signorini(0.1), FullCone(0.1), FullCone(1.0), Adaptive())
]


@pytest.mark.parametrize(
    ("name", "gradient", "cost", "status"),
    [
        ("lift-off", Exact(), 50.0, Status.NO_GRADIENT),
        ("traverse", Exact(), 200.0, Status.NO_GRADIENT),
        ("friction-braking", Exact(), 2.796675, Status.CONVERGED),
        ("traverse", Signorini(0.1), 200.0, None),
        ("friction-braking", Signorini(0.1), 2.796675, None),
    ],
)
def test_gradients_without_the_event_stay_where_they_are(planar, name, gradient, cost, status):
    solution = planar(name, gradient)
    assert solution.cost == pytest.approx(cost, rel=1e-6)
    assert status is None or solution.status is status


@pytest.mark.parametrize(
    ("name", "gradient", "ratio"),
    [
        ("lift-off", Signorini(0.1), 1.001),
        ("lift-off", FullCone(0.1), 1.0005),
        ("traverse", FullCone(0.03), 1.0015),
        ("friction-braking", FullCone(1.0), 1.08),
        ("lift-off", Adaptive(), 1.001),
        ("traverse", Adaptive(), 1.001),
        ("friction-braking", Adaptive(), 1.001),
    ],
)
def test_gradients_that_see_the_event_come_near_the_optimum(planar, name, gradient, ratio):
    cost = planar(name, gradient).cost
    assert OPTIMA[name] * (1 - 1e-8) <= cost <= ratio * OPTIMA[name]


@pytest.mark.parametrize(("name", "gradient"), CASES)
def test_best_iterate_is_never_lost(planar, name, gradient):
    solution = planar(name, gradient)
    costs = [entry["cost"] for entry in solution.history]
    assert solution.cost == min(costs)
    assert [entry["best"] for entry in solution.history] == list(np.minimum.accumulate(costs))
    steps = np.diff([entry["iteration"] for entry in solution.history])
    assert (steps >= 0).all() and solution.history[-1]["iteration"] <= solution.iterations


@pytest.mark.parametrize(("name", "gradient"), CASES[::2])
def test_cost_is_that_of_the_controls_in_an_independent_world(planar, name, gradient):
    problem, solution = make(name), planar(name, gradient)
    dynamics = problem.dynamics
    X = twin.rollout(
        dynamics.system, dynamics.time_step, dynamics.friction, problem.start, solution.controls
    )
    np.testing.assert_allclose(X, solution.states, atol=1e-8)
    Q, R, Q_f = (np.array(problem.parameters[f"{w}_weight"]) for w in WEIGHTS)
    dx = X - problem.parameters["target"]
    J = np.sum(dx[:-1] ** 2 * Q) + np.sum(solution.controls**2 * R) + np.sum(dx[-1] ** 2 * Q_f)
    assert solution.cost == pytest.approx(J / 2, rel=1e-8)
    assert solution.contact_residual <= 1e-9


WEIGHTS = ("state", "control", "terminal")


@pytest.mark.parametrize("gradient", [FullCone(0.1), Adaptive()])
def test_mirrored_task_has_the_mirrored_solution(planar, gradient):
    for name, mirror in (
        ("traverse", {"target": (-1, 0, 0, 0)}),
        ("friction-braking", {"start": (0, 0.2, -1, 0)}),
    ):
        there, back = planar(name, gradient), solve_ddp(make(name, **mirror), gradient)
        assert back.cost == pytest.approx(there.cost, rel=1e-12)
        np.testing.assert_allclose(back.controls, there.controls * [-1, 1], atol=1e-9)


@pytest.mark.parametrize("name", OPTIMA)
@pytest.mark.parametrize(("grams", "millimetres"), [(1e3, 1e3), (1e-3, 1.0)])
def test_default_knows_no_units(planar, name, grams, millimetres):
    p = make(name).parameters
    length, force = millimetres, grams * millimetres
    scaled = make(
        name,
        mass=grams,
        gravity=length * p["gravity"],
        start=length * np.array(p["start"]),
        target=length * np.array(p["target"]),
        state_weight=np.array(p["state_weight"]) / length**2,
        terminal_weight=np.array(p["terminal_weight"]) / length**2,
        control_weight=np.array(p["control_weight"]) / force**2,
    )
    assert solve_ddp(scaled).cost == pytest.approx(planar(name, Adaptive()).cost, rel=1e-6)


@pytest.mark.parametrize("name", OPTIMA)
def test_multiple_shooting_from_a_straight_line_ends_in_a_rollout(name):
    problem = make(name)
    target = np.array(problem.parameters["target"], dtype=float)
    line = problem.start + np.linspace(0, 1, 31)[:, None] * (target - problem.start)
    solution = solve_ddp(problem, initial_states=line)
    assert_rollout(problem, solution)
    assert solution.cost <= 1.05 * OPTIMA[name]


def assert_rollout(problem: Problem, solution: Solution) -> None:
    rollout = problem.dynamics.rollout(problem.start, solution.controls)
    np.testing.assert_allclose(solution.states, rollout.states, atol=1e-9)
    cost = float(Objective(problem).value(rollout.states, rollout.controls))
    assert solution.cost == pytest.approx(cost, rel=1e-9)


def test_guess_whose_gaps_were_never_closed_is_rolled_out():
    problem = make("lift-off")
    guess = np.random.default_rng(0).standard_normal((31, 4))
    solution = solve_ddp(problem, settings=DDPSettings(max_iterations=0), initial_states=guess)
    assert solution.status is Status.MAX_ITERATIONS
    assert_rollout(problem, solution)
    assert solution.cost == pytest.approx(50.0)


def test_same_call_gives_the_same_bits():
    first, second = (solve_ddp(make("friction-braking"), FullCone(1.0)) for _ in range(2))
    assert first.cost == second.cost and np.array_equal(first.controls, second.controls)
    assert len(first.history) == len(second.history)


def test_threads_give_the_same_bits():
    one = make("traverse")
    two = Problem(
        one.name,
        ContactDynamics(point_mass(2), 0.05, 0.8, threads=2),
        one.start,
        one.horizon,
        one.costs,
    )
    first, second = solve_ddp(one, FullCone(0.1)), solve_ddp(two, FullCone(0.1))
    assert np.array_equal(first.controls, second.controls)


# ---------------------------------------------------------------------------------- ways to stop


def explosive() -> Problem:
    """A spring that pushes apart so hard that the free motion overflows."""
    system = exploding_spring(1e60)
    costs = (StateCost([1, 1], [0, 0], knots="all"), ControlCost([1]))
    return Problem("explosive", ContactDynamics(system, 1.0), [1.0, 0.0], 8, costs)


def test_stops_where_the_gradient_is_blind():
    solution = solve_ddp(make("lift-off"), Exact())
    assert (solution.status, solution.iterations) == (Status.NO_GRADIENT, 1)
    assert len(solution.history) == 1
    assert "full-cone" in solution.status.value and not solution.converged


def test_start_at_the_optimum_is_converged():
    problem = linear_quadratic()
    U, cost = optimum(problem)
    solution = solve_ddp(problem, Exact(), initial_controls=U)
    assert solution.status is Status.CONVERGED and solution.iterations == 1
    assert solution.cost == pytest.approx(cost, rel=1e-12)
    # Nothing to be done at all: at the target, at rest, without weight.
    resting = make("friction-braking", start=(0, 0.2, 0, 0))
    assert solve_ddp(resting, FullCone(0.1)).status is Status.CONVERGED


def test_stalls_where_the_relaxed_model_is_off():
    solution = solve_ddp(make("traverse"), FullCone(0.3))
    assert solution.status is Status.STALLED and not solution.converged
    assert solution.cost < 200


def test_stops_at_the_limit_of_iterations():
    for limit in (0, 2):
        solution = solve_ddp(make("traverse"), FullCone(0.1), DDPSettings(max_iterations=limit))
        assert (solution.status, solution.iterations) == (Status.MAX_ITERATIONS, limit)
        assert_rollout(make("traverse"), solution)


def test_stops_at_the_time_limit():
    def dawdle(entry) -> None:
        time.sleep(0.02)

    solution = solve_ddp(make("traverse"), settings=DDPSettings(time_limit=0.01), callback=dawdle)
    assert solution.status is Status.TIME_LIMIT and not solution.converged
    assert 0.01 < solution.solve_time < 1
    assert_rollout(make("traverse"), solution)


def test_diverged_start_is_finite_and_says_so():
    problem = explosive()
    for arguments in ({}, {"initial_states": np.full((9, 2), 1e300)}):
        solution = solve_ddp(problem, **arguments)
        assert solution.status is Status.DIVERGED and not solution.converged
        assert solution.cost == np.inf
        assert np.isfinite(solution.states).all() and np.isfinite(solution.controls).all()


def test_a_diverged_start_keeps_the_control_limits():
    solution = solve_ddp(replace(explosive(), control_lower=0.5, control_upper=1.0))
    assert solution.status is Status.DIVERGED
    assert (solution.controls == 0.5).all()


@pytest.mark.parametrize("gradient", [Exact(), Adaptive()])
def test_stops_where_a_control_has_neither_weight_nor_effect(gradient):
    system = contact_free(3, 2)
    idle = LinearSystem(**{**vars(system), "actuation": np.eye(3, 2) * [1, 0]})
    costs = (StateCost(np.ones(6), np.ones(6), knots="all"), ControlCost([1.0, 0.0]))
    problem = Problem("idle", ContactDynamics(idle, 0.05), np.zeros(6), 5, costs)
    solution = solve_ddp(problem, gradient)
    assert solution.status is Status.NOT_POSITIVE_DEFINITE and not solution.converged
    assert_rollout(problem, solution)


@pytest.mark.parametrize("stop_at", [1, 3])
def test_interrupt_returns_the_best_so_far(stop_at):
    seen = []

    def interrupt(entry) -> None:
        seen.append(dict(entry))
        if entry["iteration"] == stop_at:
            raise KeyboardInterrupt

    problem = make("traverse")
    solution = solve_ddp(problem, FullCone(0.1), callback=interrupt)
    assert (solution.status, solution.iterations) == (Status.INTERRUPTED, stop_at)
    assert [entry["iteration"] for entry in seen] == list(range(1, stop_at + 1))
    assert solution.history[1:] == tuple(seen)
    assert solution.cost == min(200.0, *(entry["cost"] for entry in seen))
    assert_rollout(problem, solution)


def test_history_tells_what_was_done():
    solution = solve_ddp(make("traverse"), FullCone(0.1, 0.2))
    first = solution.history[0]
    assert (first["iteration"], first["cost"], first["merit"]) == (0, 200.0, 200.0)
    for entry in solution.history[1:]:
        assert entry["gradient"] == "full-cone" and (entry["rho"], entry["delta"]) == (0.1, 0.2)
        assert 0 < entry["alpha"] <= 1 and entry["regularization"] >= 0
        assert entry["expected"] <= 0 and entry["phase"] in ("descend", "uphill")
    assert solution.task == "traverse" and solution.parameters["friction"] == 0.8
    assert (solution.solver, solution.gradient) == ("ddp", "full-cone")
    assert solution.solve_time > 0 and solution.time_step == 0.05


def test_better_start_is_kept():
    """Started at the optimum, the answer is no worse, whatever the gradient believes."""
    best = solve_ddp(make("traverse"))
    for gradient in (Exact(), Signorini(1.0), FullCone(3.0)):
        again = solve_ddp(make("traverse"), gradient, initial_controls=best.controls)
        assert again.cost <= best.cost


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("gradient", lambda p: solve_ddp(p, "full-cone")),
        ("initial_controls", lambda p: solve_ddp(p, initial_controls=np.zeros((31, 2)))),
        ("initial_controls", lambda p: solve_ddp(p, initial_controls=np.full((30, 2), np.nan))),
        ("initial_states", lambda p: solve_ddp(p, initial_states=np.zeros((30, 4)))),
        ("initial_states", lambda p: solve_ddp(p, initial_states=np.full((31, 4), np.inf))),
        ("max_iterations", lambda p: DDPSettings(max_iterations=-1)),
        ("max_iterations", lambda p: DDPSettings(max_iterations=1.5)),
        ("tolerance", lambda p: DDPSettings(tolerance=0)),
        ("monotone", lambda p: DDPSettings(monotone=1)),
        ("time_limit", lambda p: DDPSettings(time_limit=0)),
        ("time_limit", lambda p: DDPSettings(time_limit=np.nan)),
        ("ladder", lambda p: Adaptive(ladder=(0.1, -1))),
        ("offsets", lambda p: Adaptive(offsets=(-1,))),
        ("v_ref", lambda p: Adaptive(v_ref=0)),
    ],
)
def test_misuse_is_one_clear_error(argument, call):
    with pytest.raises(ValueError, match=f"`{argument}`"):
        call(make("lift-off"))


# ------------------------------------------------------------- a world without contact, in Python


class Pendulum(Dynamics):
    """theta'' = u - sin theta, semi-implicit Euler, in plain numpy."""

    nx, ndx, nu, n, nc, time_step = 2, 2, 1, 0, 0, 0.1

    def __init__(self) -> None:
        self.manifold = _native.euclidean_space(1, 1)

    def step(self, x, u):
        v = x[1] + self.time_step * (u[0] - np.sin(x[0]))
        return np.array([x[0] + self.time_step * v, v])

    def rollout(
        self,
        start,
        controls,
        *,
        states=None,
        feedforward=None,
        feedback=None,
        alphas=None,
        lower=None,
        upper=None,
        gaps=None,
        impulses=None,
    ):
        sizes = [1.0] if alphas is None else alphas
        X, U = (
            np.zeros((len(sizes), len(controls) + 1, 2)),
            np.zeros((len(sizes), len(controls), 1)),
        )
        for i, alpha in enumerate(sizes):
            X[i, 0] = start
            for k, u in enumerate(controls):
                if feedback is not None:
                    u = u + alpha * feedforward[k] + feedback[k] @ (X[i, k] - states[k])
                U[i, k] = np.clip(u, lower, upper) if lower is not None else u
                X[i, k + 1] = self.step(X[i, k], U[i, k])
        empty = np.zeros((*U.shape[:2], 0))
        rollout = Rollout(X, U, empty, empty, empty.astype(np.int32), np.zeros(len(sizes)))
        return Rollout(*(a[0] for a in rollout)) if alphas is None else rollout

    def linearize(self, rollout):
        h, theta = self.time_step, rollout.states[:-1, 0]
        one, zero = np.ones_like(theta), np.zeros_like(theta)
        v_x = np.stack([-h * np.cos(theta), one], -1)
        f_x = np.stack([np.stack([one, zero], -1) + h * v_x, v_x], 1)
        f_u = np.tile([[h * h], [h]], (len(theta), 1, 1))
        return Fixed(Transition(f_x, f_u))

    def difference(self, x0, x1):
        return x1 - x0

    def integrate(self, x, dx):
        return x + dx


class Fixed(Linearization):
    """A linearization without contact: the same under every gradient."""

    def __init__(self, transition: Transition) -> None:
        self._transition = transition

    @property
    def free_velocity(self):
        return np.zeros((len(self._transition.f_x), 0))

    def with_gradient(self, gradient):
        return self._transition


@pytest.mark.parametrize("gradient", [Exact(), Adaptive()])
@pytest.mark.parametrize("limit", [None, 0.6])
def test_any_dynamics_is_solved_by_the_same_loop(gradient, limit):
    """A pendulum swings up; at the end no bounded gradient step of the whole horizon is left."""
    costs = (StateCost([100, 10], [np.pi, 0], knots="terminal"), ControlCost([0.1]))
    limits = {} if limit is None else {"control_lower": -limit, "control_upper": limit}
    problem = Problem("swing-up", Pendulum(), np.zeros(2), 60, costs, **limits)
    solution = solve_ddp(problem, gradient, DDPSettings(max_iterations=500))
    assert solution.status in (Status.CONVERGED, Status.STALLED)
    assert abs(solution.states[-1, 0] - np.pi) < 0.2
    rollout = problem.dynamics.rollout(problem.start, solution.controls)
    f_x, f_u = problem.dynamics.linearize(rollout).with_gradient(Exact())
    l_x, l_u, *_ = Objective(problem).expansion(rollout.states, rollout.controls)
    slope, V_x = np.zeros(60), l_x[-1]
    for k in reversed(range(60)):
        slope[k] = (l_u[k] + f_u[k].T @ V_x)[0]
        V_x = l_x[k] + f_x[k].T @ V_x
    bound = np.inf if limit is None else limit
    u = solution.controls[:, 0]
    step, _ = bounded_qp(np.eye(60), slope, -bound - u, bound - u)
    assert np.abs(step).max() < 1e-3
    if limit is not None:
        assert np.abs(u).max() == limit
