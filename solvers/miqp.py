"""The global optimum of a planar problem with linear dynamics, with its proof.

    condense     eliminate the states: a mixed-integer program in controls, impulses, modes
    incumbent    the best rollout known bounds every quantity (big M)
    solve        branch and bound through cvxpy, or a solver of that name
    polish       modes held: the optimum to rounding
    simulate     the hard law decides what the controls really do, and what that costs

The cost returned is that of the rollout; `bound` is below every trajectory's cost.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from cito.dynamics.base import Rollout
from cito.dynamics.types import Array, as_array, duration, positive
from cito.problems.objective import Objective
from cito.problems.problem import Problem, as_problem
from cito.solvers.miqp_bounds import big_m, relaxed_cost
from cito.solvers.miqp_branch_and_bound import BranchAndBound, Callback
from cito.solvers.miqp_convexify import Products
from cito.solvers.miqp_model import Binaries, CondensedProgram, Statement, condense, state
from cito.solvers.miqp_polish import polish
from cito.solvers.solution import Solution, Status

# Other solvers of the same statement, and the module each comes in.
OTHERS = {"gurobi": "gurobipy", "cplex": "cplex", "scip": "pyscipopt"}

FOREVER = 1e9  # a time limit that every one of them takes [s]


class Candidate(NamedTuple):
    """A hard rollout and its cost."""

    rollout: Rollout
    cost: float


class Outcome(NamedTuple):
    """What a solver says: modes (or None), a lower bound (or None), nodes, status, message."""

    binaries: Binaries | None
    bound: float | None
    nodes: int | None
    status: Status
    message: str


def reference(
    problem: Problem,
    solver: str = "daqp",
    *,
    gap: float = 1e-7,
    time_limit: float = 120.0,
    controls: ArrayLike | None = None,
    callback: Callback | None = None,
) -> Solution:
    """The optimum of `problem` over all contact modes, with a proven lower bound.

    Args:
        problem: of a planar `LinearSystem`, with quadratic costs.
        solver: "daqp" (own branch and bound over DAQP), or "gurobi", "cplex", "scip".
        gap: relative gap between cost and bound at which the proof is complete.
        time_limit: wall clock [s].
        controls: (N, nu), known to be good, if any are; a start and a bound, not a restriction.
        callback: called while the own search runs, with nodes, cost and bound.

    Returns:
        The hard rollout of the best controls, with `bound`, `gap` and `nodes`. Its status is
        OPTIMAL, GAP_OPEN, INTERRUPTED or SOLVER_FAILED (bound 0 where the solver told none).

    Raises:
        ValueError: a problem that cannot be stated this way, arguments out of range, a solver that
            is unknown or not installed.
    """
    started = time.perf_counter()
    problem = as_problem(problem)
    _check_solver(solver)
    gap = positive("gap", gap)
    deadline = started + duration("time_limit", time_limit)

    # The matrices are small: threads of the linear algebra would only wait for each other.
    with threadpool_limits(limits=1, user_api="blas"):
        best, outcome, history = _solve(problem, solver, gap, deadline, controls, callback)
    return _solution(problem, best, outcome, gap, history, time.perf_counter() - started)


def _solve(
    problem: Problem,
    solver: str,
    gap: float,
    deadline: float,
    controls: ArrayLike | None,
    callback: Callback | None,
) -> tuple[Candidate, Outcome, dict[str, Any]]:
    program = condense(problem)
    simulate = _simulator(problem)
    incumbent = _best_start(problem, simulate, controls)
    statement = state(program, big_m(program, incumbent.cost))
    if solver == "daqp":
        outcome = _search(statement, program, simulate, incumbent, gap, deadline, callback)
    else:
        absolute_gap = gap * max(relaxed_cost(program), 1e-9)
        constant = program.objective.constant
        outcome = _ask(solver, statement, constant, absolute_gap, deadline)

    best = incumbent
    history: dict[str, Any] = {}
    if outcome.binaries is not None:
        polished = polish(program, outcome.binaries)
        if polished is not None:
            history["polished_cost"] = program.objective(polished)
            best = min(simulate(polished), incumbent, key=lambda candidate: candidate.cost)
    outcome = _without_contradiction(outcome, best.cost)
    history["message"] = outcome.message
    return best, outcome, history


def _simulator(problem: Problem) -> Callable[[Array], Candidate]:
    """Roll out the controls in z and price them."""
    N, nu, dynamics = problem.horizon, problem.dynamics.nu, problem.dynamics
    objective = Objective(problem)

    def simulate(z: Array) -> Candidate:
        U = np.ascontiguousarray(z[: N * nu]).reshape(N, nu)
        rollout = dynamics.rollout(
            problem.start, U, lower=problem.control_lower, upper=problem.control_upper
        )
        return Candidate(rollout, float(objective.value(rollout.states, rollout.controls)))

    return simulate


def _best_start(
    problem: Problem, simulate: Callable[[Array], Candidate], controls: ArrayLike | None
) -> Candidate:
    N, nu = problem.horizon, problem.dynamics.nu
    assert problem.initial_controls is not None
    guesses = [np.zeros((N, nu)), problem.initial_controls]
    if controls is not None:
        guesses.append(as_array("controls", controls, (N, nu)))
    return min((simulate(U.ravel()) for U in guesses), key=lambda candidate: candidate.cost)


def _search(
    statement: Statement,
    program: CondensedProgram,
    simulate: Callable[[Array], Candidate],
    incumbent: Candidate,
    gap: float,
    deadline: float,
    callback: Callback | None,
) -> Outcome:
    """Branch and bound; nodes are rounded to the modes of their controls' hard rollout."""
    solver = BranchAndBound(
        gap=gap,
        deadline=deadline,
        rounding=lambda z: program.binaries_of(simulate(z).rollout),
        guesses=[program.binaries_of(incumbent.rollout)],
        products=Products(*program.products()),
        callback=callback,
    )
    try:
        with warnings.catch_warnings():
            # That a limit was reached is told by the status.
            warnings.simplefilter("ignore", UserWarning)
            statement.problem.solve(solver=solver)
    except KeyboardInterrupt:  # while cvxpy was compiling
        pass
    search = solver.search
    if search is None:
        return Outcome(None, None, 0, Status.INTERRUPTED, "interrupted")
    if search.interrupted:
        status = Status.INTERRUPTED
    elif search.closed:
        status = Status.OPTIMAL if search.binaries is not None else Status.INFEASIBLE
    else:
        status = Status.GAP_OPEN
    bound = search.bound if np.isfinite(search.bound) else None
    return Outcome(search.binaries, bound, search.count, status, statement.problem.status)


def _ask(name: str, statement: Statement, constant: float, gap: float, deadline: float) -> Outcome:
    """Another solver through cvxpy, which hides the constant of J from it: `gap` is absolute."""
    seconds = min(max(deadline - time.perf_counter(), 1e-3), FOREVER)
    options = _options(gap, seconds)[name]
    problem = statement.problem
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # the status tells that a limit was reached
            problem.solve(solver=name.upper(), **options)
    except KeyboardInterrupt:
        return Outcome(None, None, None, Status.INTERRUPTED, "interrupted")
    except Exception as error:  # whatever a foreign solver raises: licence, size, numbers
        return Outcome(None, None, None, Status.SOLVER_FAILED, f"{name}: {error}")
    c = None if statement.c is None else statement.c.value
    if statement.z.value is None:
        status = Status.INFEASIBLE if problem.status == cp.INFEASIBLE else Status.GAP_OPEN
        return Outcome(None, None, None, status, str(problem.status))
    optimal = problem.status == cp.OPTIMAL
    bound, nodes = float(problem.value) - gap if optimal else None, None
    if name == "gurobi":
        model = problem.solver_stats.extra_stats
        bound, nodes = float(model.ObjBound) + constant, int(model.NodeCount)
    binaries = np.zeros(0, np.int8) if c is None else np.asarray(c > 0.5, dtype=np.int8)
    status = Status.OPTIMAL if optimal else Status.GAP_OPEN
    return Outcome(binaries, bound, nodes, status, str(problem.status))


def _options(gap: float, seconds: float) -> dict[str, dict[str, Any]]:
    """Each solver's words for an absolute gap, a time limit and one thread."""
    return {
        "gurobi": {"MIPGap": 0.0, "MIPGapAbs": gap, "TimeLimit": seconds, "Threads": 1},
        "cplex": {
            "cplex_params": {
                "mip.tolerances.mipgap": 0.0,
                "mip.tolerances.absmipgap": gap,
                "timelimit": seconds,
                "threads": 1,
                # Its presolve has been seen to cut off the optimum of such dense programs.
                "preprocessing.presolve": 0,
            }
        },
        "scip": {"scip_params": {"limits/gap": 0.0, "limits/absgap": gap, "limits/time": seconds}},
    }


def _without_contradiction(outcome: Outcome, cost: float) -> Outcome:
    """A bound above the cost of a real trajectory is none: then the solver has failed."""
    if outcome.bound is None or outcome.bound <= cost * (1 + 1e-6) + 1e-9:
        return outcome
    message = f"the solver's bound {outcome.bound:.6g} is above the cost {cost:.6g} of a trajectory"
    return outcome._replace(bound=None, status=Status.SOLVER_FAILED, message=message)


def _solution(
    problem: Problem,
    best: Candidate,
    outcome: Outcome,
    gap: float,
    history: Mapping[str, Any],
    seconds: float,
) -> Solution:
    rollout, cost = best
    # Costs are sums of squares: without a better bound there is still 0.
    bound = min(max(outcome.bound or 0.0, 0.0), cost)
    open_gap = (cost - bound) / max(abs(cost), 1e-12)
    status = outcome.status
    if status is Status.OPTIMAL and open_gap > 2 * gap:
        status = Status.GAP_OPEN
    return Solution.of_rollout(
        problem,
        rollout,
        cost,
        solver="miqp",
        gradient="",
        status=status,
        iterations=outcome.nodes or 0,
        solve_time=seconds,
        history=(history,),
        bound=bound,
        gap=open_gap,
        nodes=outcome.nodes,
    )


def _check_solver(solver: str) -> None:
    if solver != "daqp" and solver not in OTHERS:
        raise ValueError(f"`solver` must be daqp, {', '.join(OTHERS)}, got {solver!r}")
    if solver in OTHERS and find_spec(OTHERS[solver]) is None:
        raise ValueError(
            f"`solver` {solver!r} is not installed: pip install {OTHERS[solver]}, or use 'daqp'"
        )
