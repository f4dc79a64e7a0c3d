"""Direct transcription with complementarity constraints, solved by a homotopy with IPOPT.

    t_0 > t_1 > ... > t_end:   min J  subject to the steps and  a_i b_i <= t  for each pair

each started at the solution of the one before. The last iterate decides the contact modes; with
these held, one smooth program removes the remaining t. The controls are then rolled out under the
hard contact law, and that rollout is what is returned.
"""

from __future__ import annotations

import io
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from typing import Any

import casadi as ca
import numpy as np

from cito.dynamics.base import Rollout
from cito.dynamics.types import Array, duration, positive, whole_number
from cito.problems.objective import Objective
from cito.problems.problem import Problem, as_problem
from cito.solvers.complementarity_model import ComplementarityModel, NonlinearProgram, Trajectory
from cito.solvers.interrupts import noticed_interrupts
from cito.solvers.solution import Solution, Status

# Relaxation of the complementarity products [J], from a loose start to about rounding.
HOMOTOPY = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
WARM_HOMOTOPY = (1e-3, 1e-4, 1e-6, 1e-8)
FOREVER = 1e9  # a time limit that IPOPT takes [s]
STAGE_ITERATIONS = 500  # a stage that has not converged by then still leads to the next
# A rollout this much dearer than the program's own optimum [-] has left the planned trajectory.
COST_MISMATCH = 1e-2

STATUSES = {
    "Solve_Succeeded": Status.CONVERGED,
    "Solved_To_Acceptable_Level": Status.CONVERGED,
    "Maximum_Iterations_Exceeded": Status.MAX_ITERATIONS,
    "Maximum_CpuTime_Exceeded": Status.TIME_LIMIT,
    "Maximum_WallTime_Exceeded": Status.TIME_LIMIT,
    "Infeasible_Problem_Detected": Status.INFEASIBLE,
    "User_Requested_Stop": Status.INTERRUPTED,
}


def solve_complementarity(
    problem: Problem,
    initial: Solution | None = None,
    *,
    max_iterations: int = 4000,
    time_limit: float = 120.0,
    homotopy: Sequence[float] | None = None,
) -> Solution:
    """Solve a planar problem as a nonlinear program with complementarity constraints.

    Args:
        problem: of a planar `LinearSystem` or `SymbolicSystem`, with quadratic costs.
        initial: where to start; the rollout of `problem.initial_controls` by default.
        max_iterations: of IPOPT, for all stages of the homotopy together.
        time_limit: for all stages together [s].
        homotopy: falling relaxations t > 0 of the products [J].

    Returns:
        The hard rollout of the controls found, `solver="mpcc"`; `history` has a row per stage.

    Raises:
        ValueError: a problem that cannot be written down this way, or settings out of range.
    """
    began = time.perf_counter()
    problem = as_problem(problem)
    stages = _stages(homotopy, initial)
    max_iterations = whole_number("max_iterations", max_iterations, 1)
    deadline = began + duration("time_limit", time_limit)
    model = ComplementarityModel(problem)
    guess = _rollout_guess(problem) if initial is None else _solution_guess(problem, model, initial)

    plan, history = _follow_homotopy(model, guess, stages, max_iterations, deadline)
    candidates = [plan]
    left = _left(max_iterations, history)
    if left > 0 and time.perf_counter() < deadline and not _interrupted(history):
        polished, row = _polish(model, plan, left, deadline)
        candidates.append(polished)
        history.append(row)
    return _simulate(problem, guess, candidates, history, began)


def _follow_homotopy(
    model: ComplementarityModel,
    guess: Trajectory,
    stages: Sequence[float],
    max_iterations: int,
    deadline: float,
) -> tuple[Trajectory, list[dict[str, Any]]]:
    """The trajectory at the end of the homotopy, and one row per stage."""
    program = model.relaxed()
    w = model.relaxed_guess(guess)
    history: list[dict[str, Any]] = []
    for t in stages:
        left = _left(max_iterations, history)
        if left == 0:
            history[-1]["message"] = "Maximum_Iterations_Exceeded"
            break
        # Early stages only lead the way, so they are solved loosely.
        options = {"mu_strategy": "adaptive", "tol": min(max(0.1 * t, 1e-9), 1e-3)}
        w_next, row = _solve(program, w, {"p": t}, options, left, deadline)
        history.append({"t": t, **row})
        if not np.isfinite(w_next).all():
            break
        w = w_next
        if STATUSES.get(row["message"]) is Status.TIME_LIMIT or _interrupted(history):
            break
    return model.trajectory(w), history


def _polish(
    model: ComplementarityModel, plan: Trajectory, max_iterations: int, deadline: float
) -> tuple[Trajectory, dict[str, Any]]:
    """The optimum among trajectories with the modes of `plan`."""
    program = model.with_modes(model.modes(plan), plan)
    options = {"mu_init": 1e-8, "tol": 1e-9}  # stay where the plan is
    w, row = _solve(program, model.guess(plan), {}, options, max_iterations, deadline)
    return model.trajectory(w), {"t": 0.0, **row}


def _solve(
    program: NonlinearProgram,
    w: Array,
    parameters: Mapping[str, float],
    options: Mapping[str, Any],
    max_iterations: int,
    deadline: float,
) -> tuple[Array, dict[str, Any]]:
    """IPOPT from w, silent; the variables found and a row for the history."""
    settings: Any = {
        "print_time": False,
        "error_on_fail": False,
        "show_eval_warnings": False,
        "ipopt": {
            "print_level": 0,
            "sb": "yes",
            "max_iter": int(max_iterations),
            "max_wall_time": min(max(deadline - time.perf_counter(), 1e-3), FOREVER),
            "constr_viol_tol": 1e-10,
            "acceptable_constr_viol_tol": 1e-9,
            **options,
        },
    }
    with noticed_interrupts() as interrupts:
        try:
            solver = ca.nlpsol("solver", "ipopt", program.nlp, settings)
            with redirect_stderr(io.StringIO()):  # CasADi warns there of a Ctrl-C
                result = solver(
                    x0=w,
                    lbx=program.lower,
                    ubx=program.upper,
                    lbg=program.g_lower,
                    ubg=program.g_upper,
                    **parameters,
                )
        except KeyboardInterrupt:  # before or after IPOPT's own work
            return w, {"objective": np.inf, "iterations": 0, "message": "User_Requested_Stop"}
    stats = solver.stats()
    return result["x"].full().ravel(), {
        "objective": float(result["f"]),
        "iterations": int(stats["iter_count"]),
        "message": "User_Requested_Stop" if interrupts else str(stats["return_status"]),
    }


def _simulate(
    problem: Problem,
    guess: Trajectory,
    candidates: Sequence[Trajectory],
    history: list[dict[str, Any]],
    began: float,
) -> Solution:
    """The best hard rollout of the candidates' controls; their rows end the history."""
    objective = Objective(problem)

    def simulate(plan: Trajectory) -> tuple[float, Rollout]:
        rollout = _roll_out(problem, plan.controls)
        return float(objective.value(rollout.states, rollout.controls)), rollout

    rollouts = [simulate(plan) for plan in candidates]
    best = int(np.argmin([cost for cost, _ in rollouts]))
    cost, rollout = rollouts[best]
    status = _status(cost, history[best - len(rollouts)])
    if _interrupted(history):
        status = Status.INTERRUPTED
    if status in (Status.SOLVER_FAILED, Status.INTERRUPTED):
        cost, rollout = min((cost, rollout), simulate(guess), key=lambda pair: pair[0])
    return Solution.of_rollout(
        problem,
        rollout,
        cost,
        solver="mpcc",
        gradient="",
        status=status,
        iterations=sum(stage["iterations"] for stage in history),
        solve_time=time.perf_counter() - began,
        history=tuple(history),
    )


def _left(max_iterations: int, history: Sequence[Mapping[str, Any]]) -> int:
    """How many iterations the next stage may take."""
    done: int = sum(stage["iterations"] for stage in history)
    return max(min(int(max_iterations) - done, STAGE_ITERATIONS), 0)


def _interrupted(history: Sequence[Mapping[str, Any]]) -> bool:
    """Whether Ctrl-C was pressed in the last stage."""
    return STATUSES.get(history[-1]["message"]) is Status.INTERRUPTED


def _status(cost: float, row: dict[str, Any]) -> Status:
    """IPOPT's verdict on the stage returned, unless the rollout does not follow its plan."""
    status = STATUSES.get(row["message"], Status.SOLVER_FAILED)
    planned = row["objective"]
    if status.converged and not cost <= planned + COST_MISMATCH * abs(planned) + 1e-6:
        row["message"] = (
            f"the rollout costs {cost:.6g}, but the plan {planned:.6g}: the motion is unstable, "
            "or the contact law has several solutions and the plan chose another"
        )
        return Status.SOLVER_FAILED
    return status


def _stages(homotopy: Sequence[float] | None, initial: Solution | None) -> tuple[float, ...]:
    if homotopy is None:
        return HOMOTOPY if initial is None else WARM_HOMOTOPY
    stages = tuple(positive("homotopy", t) for t in homotopy)
    if not stages or list(stages) != sorted(stages, reverse=True):
        raise ValueError(f"`homotopy` must be falling numbers > 0, got {homotopy!r}")
    return stages


def _roll_out(problem: Problem, controls: Array) -> Rollout:
    """The hard rollout, within the control limits to the last bit."""
    return problem.dynamics.rollout(
        problem.start, controls, lower=problem.control_lower, upper=problem.control_upper
    )


def _rollout_guess(problem: Problem) -> Trajectory:
    assert problem.initial_controls is not None
    rollout = _roll_out(problem, problem.initial_controls)
    return Trajectory(rollout.states, rollout.controls, rollout.impulses, rollout.velocities)


def _solution_guess(problem: Problem, model: ComplementarityModel, initial: Solution) -> Trajectory:
    shapes = [matrix.shape[::-1] for matrix in (model.X, model.U, model.impulses)]
    given = (initial.states, initial.controls, initial.impulses)
    for name, array, shape in zip(("states", "controls", "impulses"), given, shapes):
        if array.shape != shape:
            raise ValueError(f"`initial.{name}` must have shape {shape}, got {array.shape}")
    return model.trajectory(np.concatenate([array.ravel() for array in given]))
