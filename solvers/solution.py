"""What a solver returns: plain arrays, a cost, and a status that is a sentence."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.base import Rollout
from cito.dynamics.types import Array
from cito.problems.problem import Problem


class Status(Enum):
    """Why a solver stopped. The value is the sentence a user reads."""

    CONVERGED = "Converged: within its tolerance, the solver sees no further way to lower the cost."
    STALLED = (
        "Stopped where no step tried lowers the cost of the hard rollout; the best iterate is "
        "returned. With a fixed gradient try `adaptive`; else another initial guess."
    )
    NO_GRADIENT = (
        "Stopped at the initial guess: this gradient sees no way to lower the cost from there. "
        "Try gradient `adaptive` or `full-cone`."
    )
    MAX_ITERATIONS = (
        "Stopped at the limit of iterations; the best iterate is returned. Allow more iterations."
    )
    TIME_LIMIT = "Stopped at the time limit; the best iterate is returned. Allow more time."
    DIVERGED = (
        "The initial rollout is not finite. Try another start or initial controls, a smaller time "
        "step, or a finite guess of the states (`initial_states`)."
    )
    NOT_POSITIVE_DEFINITE = (
        "No step could be formed: the Hessian in the controls is not positive definite, or no "
        "longer finite. Give every control a positive weight."
    )
    OPTIMAL = "Optimal: the gap between the incumbent and the proven bound is closed."
    GAP_OPEN = (
        "Stopped with a gap left between the incumbent and the proven bound; both are returned. "
        "Allow more time."
    )
    INFEASIBLE = (
        "No feasible point was found. Check the start and the control limits; else another initial "
        "guess."
    )
    SOLVER_FAILED = (
        "The underlying solver failed; its message is in `history`. Try another initial guess or "
        "another solver."
    )
    SATISFIED = "Stopped at the first iterate that is good enough for `until`."
    INTERRUPTED = "Interrupted; the best iterate so far is returned."

    @property
    def converged(self) -> bool:
        """Whether the solver reached what it was asked for."""
        return self in (Status.CONVERGED, Status.OPTIMAL)


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """A trajectory of the hard contact law and how it was found.

    Args:
        task: name of the problem.
        parameters: the task parameters, JSON-able.
        solver: "ddp", "miqp" or "mpcc".
        gradient: name of the contact gradient, "" where none was used.
        states (N+1, nx), controls (N, nu), impulses (N, n) [N s], modes (N, nc).
        cost: of the hard rollout of `controls`.
        contact_residual: largest scaled residual of the contact law over the knots.
        solve_time: wall clock [s].
        iterations: linearizations of DDP (one may accept no step, or try several), IPOPT's of the
            complementarity program, nodes of the reference.
        history: of DDP one mapping per accepted iterate: `iteration`, `cost`, `best` (cost so
            far), `merit` (cost and open gaps), `phase`, and of a step also `gradient`, `rho`,
            `delta`, `alpha`, `regularization`, `expected`, `holding`. `phase` is "start";
            "descend", a step that lowers the merit; "uphill", a full step of a fixed gradient
            that does not; or "excursion", a full relaxed step of `adaptive`, wherever it leads.
            Of the complementarity program one mapping per stage; of the reference one in all.
        bound, gap, nodes: of the mixed-integer reference; gap is relative to |cost|.
    """

    task: str
    solver: str
    gradient: str
    states: Array
    controls: Array
    impulses: Array
    modes: NDArray[np.int32]
    cost: float
    status: Status
    iterations: int
    solve_time: float
    contact_residual: float
    time_step: float
    parameters: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[Mapping[str, Any], ...] = ()
    bound: float | None = None
    gap: float | None = None
    nodes: int | None = None

    @classmethod
    def of_rollout(cls, problem: Problem, rollout: Rollout, cost: float, **found: Any) -> Solution:
        """A rollout of `problem` at its cost; `found` are the remaining fields, on the search."""
        return cls(
            task=problem.name,
            parameters=problem.parameters,
            time_step=problem.dynamics.time_step,
            states=rollout.states,
            controls=rollout.controls,
            impulses=rollout.impulses,
            modes=rollout.modes,
            contact_residual=float(np.max(rollout.residual)),
            cost=cost,
            **found,
        )

    @property
    def converged(self) -> bool:
        """Whether the solver reached what it was asked for."""
        return self.status.converged

    def __repr__(self) -> str:
        how = f"{self.solver}, {self.gradient}" if self.gradient else self.solver
        return f"<Solution of {self.task} ({how}): cost {self.cost:.9g}, {self.status.name}>"

    def mode_strings(self) -> list[str]:
        """One string per contact with a letter per step: s(eparating), l (sliding), c(lamping)."""
        letters = np.array(["s", "l", "c"])
        return ["".join(row) for row in letters[self.modes].T]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything to one .npz of plain arrays and JSON; `cito.load` reads it.

        Raises:
            FileNotFoundError: the folder does not exist.
            ValueError: `parameters` or `history` hold what JSON cannot say.
        """
        from cito.solvers.solution_file import write_solution

        return write_solution(self, path)
