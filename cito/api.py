"""The public functions: which tasks there are, how a problem is made and how it is solved."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from numpy.typing import ArrayLike

from cito.dynamics.gradients import GRADIENTS, Gradient
from cito.dynamics.types import Array
from cito.problems.problem import Problem, as_problem
from cito.problems.registry import make
from cito.problems.registry import tasks as registered_tasks
from cito.solvers.adaptive import Adaptive
from cito.solvers.ddp import Strategy, solve_ddp
from cito.solvers.descent import DDPSettings
from cito.solvers.portfolio import Portfolio
from cito.solvers.solution import Solution

__all__ = ["SOLVERS", "gradient_named", "make", "solve", "tasks"]

SOLVERS = {
    "ddp": "differential dynamic programming over hard contact, with a contact gradient",
    "mpcc": "nonlinear program with complementarity constraints (IPOPT); planar tasks with "
    "quadratic costs",
    "miqp": "proven optimum by branch and bound over the contact modes; planar linear tasks with "
    "quadratic costs",
}
STRATEGIES: dict[str, type[Strategy]] = {kind.name: kind for kind in (Adaptive, Portfolio)}
Callback = Callable[[Mapping[str, Any]], None]


def tasks() -> list[str]:
    """Names of the registered tasks, as `make` takes them."""
    return list(registered_tasks())


def solve(
    problem: Problem,
    gradient: Gradient | Strategy | str | None = None,
    *,
    solver: str = "ddp",
    max_iterations: int | None = None,
    tolerance: float | None = None,
    time_limit: float | None = None,
    monotone: bool | None = None,
    until: Callable[[Array, Array], bool] | None = None,
    initial_controls: ArrayLike | None = None,
    initial_states: ArrayLike | None = None,
    callback: Callback | None = None,
) -> Solution:
    """Solve `problem`; what stopped the solver is in the solution's `status`.

    Args:
        problem: as `make` returns it, or your own.
        gradient: contact gradient of "ddp", `Portfolio()` of several, or the name of one;
            `Adaptive()` by default.
        solver: "ddp", "mpcc" or "miqp".
        max_iterations: of "ddp" and "mpcc", in total.
        tolerance: of "ddp", relative decrease of the cost at which to stop [-].
        time_limit: wall clock [s].
        monotone: of "ddp", whether only steps that lower the cost are accepted (they need not be).
        until: of "ddp", a function of states (N+1, nx) and controls (N, nu) that says whether they
            are good enough to stop.
        initial_controls: of "ddp", (N, nu); the problem's own by default.
        initial_states: of "ddp", (N+1, nx); starts multiple shooting.
        callback: of "ddp" and "miqp", called with each entry of the history.

    Raises:
        ValueError: an argument that is wrong, or that the solver does not take. Never because no
            solution was found.
    """
    as_problem(problem)
    if callback is not None and not callable(callback):
        raise ValueError(f"`callback` must be a function of one mapping, got {callback!r:.80}")
    given = {
        name: value
        for name, value in {
            "gradient": gradient,
            "max_iterations": max_iterations,
            "tolerance": tolerance,
            "time_limit": time_limit,
            "monotone": monotone,
            "until": until,
            "initial_controls": initial_controls,
            "initial_states": initial_states,
            "callback": callback,
        }.items()
        if value is not None
    }
    known_name("solver", solver, SOLVERS)
    return {"ddp": _solve_ddp, "mpcc": _solve_mpcc, "miqp": _solve_miqp}[solver](problem, given)


def gradient_named(name: str, **numbers: float) -> Gradient | Strategy:
    """The contact gradient called `name` with some of its numbers set.

    Raises:
        ValueError: there is no such gradient, or it has no such number.
    """
    kinds: dict[str, Any] = {**GRADIENTS, **STRATEGIES}
    known_name("gradient", name, kinds)
    settable = [] if name in STRATEGIES else [field.name for field in fields(kinds[name])]
    for number in numbers:
        if number not in settable:
            takes = f"it takes {', '.join(settable)}" if settable else "it takes none"
            raise ValueError(f"`{number}` is not a number of gradient {name!r}: {takes}")
    chosen: Gradient | Strategy = kinds[name](**numbers)
    return chosen


def known_name(argument: str, name: str, known: Iterable[str]) -> None:
    """Check that `name` is one of the `known`.

    Raises:
        ValueError: it is not; names the closest ones.
    """
    known = list(known)
    if name not in known:
        close = difflib.get_close_matches(str(name), known, n=2)
        hint = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(known)}"
        raise ValueError(f"unknown {argument} {name!r}: {hint}")


def _solve_ddp(problem: Problem, given: dict[str, Any]) -> Solution:
    gradient: Gradient | Strategy | str | None = given.pop("gradient", None)
    if isinstance(gradient, str):
        gradient = gradient_named(gradient)
    if gradient is not None and not isinstance(gradient, Gradient | Strategy):
        raise ValueError(
            f"`gradient` must be a gradient or the name of one, got {type(gradient).__name__}"
        )
    limits = ("max_iterations", "tolerance", "time_limit", "monotone", "until")
    settings = DDPSettings(**{name: given.pop(name) for name in limits if name in given})
    return solve_ddp(problem, gradient, settings, **given)


def _solve_mpcc(problem: Problem, given: dict[str, Any]) -> Solution:
    from cito.solvers.complementarity import solve_complementarity

    _only("mpcc", given, ("max_iterations", "time_limit"))
    return solve_complementarity(problem, **given)


def _solve_miqp(problem: Problem, given: dict[str, Any]) -> Solution:
    from cito.solvers.miqp import reference

    _only("miqp", given, ("time_limit", "callback"))
    return reference(problem, **given)


def _only(solver: str, given: Mapping[str, Any], takes: tuple[str, ...]) -> None:
    for name in given:
        if name not in takes:
            raise ValueError(
                f"`{name}` is not an argument of solver {solver!r}: it takes {' and '.join(takes)}"
            )
