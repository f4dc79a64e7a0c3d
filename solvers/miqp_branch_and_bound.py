"""Best-first branch and bound over the nodes of a mixed-integer quadratic program.

    take the open node with the lowest bound and explore below it:
        relax            pruned where the bound reaches the incumbent
        round            the minimizer's controls: a better incumbent, perhaps
        branch           on the binary whose two demands are violated most
    where more than EXPLORED nodes leave it open:
        sharpen          an objective bent for this node, then its two children are taken up anew

`BranchAndBound` packages it as a solver that cvxpy takes like any other.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import cvxpy.settings as s
import numpy as np
from cvxpy.reductions.solution import Solution as CvxpySolution
from cvxpy.reductions.solution import failure_solution
from cvxpy.reductions.solvers.qp_solvers.qp_solver import QpSolver

from cito.dynamics.types import Array
from cito.solvers.miqp_convexify import Products
from cito.solvers.miqp_model import Quadratic
from cito.solvers.miqp_nodes import OPEN, Decisions, Nodes, Program, Relaxation, WorkingSet

Rounding = Callable[[Array], Decisions]  # z -> a guess of all binaries
Callback = Callable[[Mapping[str, Any]], None]

COMPLEMENTARY = 1e-12  # products of violations below this are rounding
PROGRESS_EVERY = 0.2  # [s]
# Nodes below a node before it is sharpened, which takes about as long.
EXPLORED = 700
# A sharper bound is worth starting over if it closes this part of the node's gap.
WORTH_IT = 0.1


class _Node(NamedTuple):
    """An open node: its parent's bound, when it was made, and where its relaxation starts."""

    bound: float
    order: int
    decisions: Decisions
    working_set: WorkingSet
    sharp: Relaxation | None


@dataclass
class Search:
    """A search and what it has found so far.

    Args:
        program: what is minimized.
        gap: relative gap at which the proof is complete.
        deadline: of `time.perf_counter`.
        rounding: guesses all binaries from the minimizer of a node.
        guesses: binaries to start with.
        products: never positive at feasible points; they sharpen the bounds.
        callback: told how far the search is.
    """

    program: Program
    gap: float = 1e-7
    deadline: float = np.inf
    rounding: Rounding | None = None
    guesses: Sequence[Decisions] = ()
    products: Products | None = None
    callback: Callback | None = None

    z: Array | None = None
    binaries: Decisions | None = None
    cost: float = np.inf
    bound: float = -np.inf
    count: int = 0
    interrupted: bool = False
    _tried: set[bytes] = field(default_factory=set)
    _made: int = 0
    _told: float = 0.0

    @property
    def closed(self) -> bool:
        """Whether the gap is closed, or nothing feasible exists."""
        return self.bound >= self.cutoff

    @property
    def cutoff(self) -> float:
        """Nodes bounded above this cannot improve the incumbent by more than the gap."""
        if self.cost == np.inf:
            return np.inf
        return self.cost - max(0.9 * self.gap * abs(self.cost), 1e-12)

    def run(self) -> Search:
        """Search until the gap is closed, the deadline has come, or Ctrl-C."""
        try:
            self._run()
        except KeyboardInterrupt:
            self.interrupted = True
        return self

    def _run(self) -> None:
        self._nodes = Nodes(self.program, self.products)
        for guess in self.guesses:
            self._try(guess)
        root = np.full(self._nodes.binaries, OPEN, dtype=np.int8)
        node = _Node(-np.inf, 0, root, self._nodes.root(), self._nodes.sharpen(root, self.deadline))
        open_nodes = [node]
        while open_nodes:
            self.bound = open_nodes[0].bound
            if self.bound >= self.cutoff:
                break
            if time.perf_counter() > self.deadline:
                return
            node = heapq.heappop(open_nodes)
            rest = self._explore(node)
            if rest and time.perf_counter() < self.deadline:
                rest = self._sharpen(node, rest)
            for left in rest:
                heapq.heappush(open_nodes, left)
        # What was pruned was above the cutoff of its time, which only fell since: that is proven.
        self.bound = self.cutoff

    def _explore(self, node: _Node) -> list[_Node]:
        """Search below one node, best first; what is open after EXPLORED nodes."""
        heap, enough = [node], self.count + EXPLORED
        while heap and heap[0].bound < self.cutoff and self.count < enough:
            if time.perf_counter() > self.deadline:
                break
            self._tell()
            below: _Node | None = heapq.heappop(heap)
            while below is not None:  # dive, without looking back at the heap
                children = self._branch(below)
                below = children[0] if children else None
                for child in children[1:]:
                    heapq.heappush(heap, child)
        return [left for left in heap if left.bound < self.cutoff]

    def _sharpen(self, node: _Node, rest: list[_Node]) -> list[_Node]:
        """A node's children under a relaxation of its own; `rest` where it helps too little."""
        sharp = self._nodes.sharpen(node.decisions, self.deadline)
        if sharp is None:
            return rest
        lowest = min(left.bound for left in rest)
        children = self._branch(node._replace(sharp=sharp))
        if not children:
            return []
        gain = children[0].bound - lowest
        return children if gain >= WORTH_IT * (self.cutoff - lowest) else rest

    def _branch(self, node: _Node) -> list[_Node]:
        """Relax a node; its children, the more promising one first, or none where it is closed."""
        self.count += 1
        nodes, decisions = self._nodes, node.decisions
        relaxed = nodes.relax(decisions, node.working_set, self.cutoff, node.sharp)
        bound = max(node.bound, relaxed.bound)
        if bound >= self.cutoff:
            return []
        if self.rounding is not None:
            self._try(self.rounding(relaxed.z))
        undecided = decisions == OPEN
        zero, one = nodes.distances(relaxed.z)
        score = np.where(undecided, zero * one, -1.0)
        if not undecided.any() or score.max() <= COMPLEMENTARY:
            self._try(np.where(undecided, zero > one, decisions).astype(np.int8))
        if not undecided.any() or bound >= self.cutoff:
            return []
        # Where nothing is violated any open binary will do: the farthest from a tie.
        j = int(np.argmax(score if score.max() > COMPLEMENTARY else score + zero + one))
        near = int(zero[j] > one[j])
        children = []
        for value in (near, 1 - near):
            decided = decisions.copy()
            decided[j] = value
            self._made += 1
            start = relaxed.working_set
            children.append(_Node(bound, self._made, decided, start, node.sharp))
        return children

    def _tell(self) -> None:
        now = time.perf_counter()
        if self.callback is not None and now - self._told > PROGRESS_EVERY:
            self._told = now
            self.callback({"nodes": self.count, "cost": self.cost, "bound": self.bound})

    def _try(self, binaries: Decisions) -> None:
        """Make these binaries the incumbent if they are better."""
        key = binaries.tobytes()
        if key in self._tried:
            return
        self._tried.add(key)
        z, cost = self._nodes.complete(binaries)
        if cost < self.cost:
            self.z, self.binaries, self.cost = z, binaries.copy(), cost


class BranchAndBound(QpSolver):  # type: ignore[misc]  # cvxpy has no types
    """The search as a cvxpy solver; after `problem.solve(solver=this)` read `search`.

    Args: as of `Search`.
    """

    MIP_CAPABLE = True

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._settings = settings
        self.search: Search | None = None

    def name(self) -> str:
        """What cvxpy calls it."""
        return "CITO_BRANCH_AND_BOUND"

    def import_solver(self) -> None:
        """Nothing to import: DAQP is a dependency."""

    def cite(self, data: Mapping[str, Any]) -> str:
        """Nothing but the solver of the nodes has been published."""
        return "D. Arnstrom, A. Bemporad, D. Axehill: DAQP, IEEE TAC 67(8), 2022"

    def solve_via_data(
        self,
        data: Mapping[str, Any],
        warm_start: bool,
        verbose: bool,
        solver_opts: Mapping[str, Any],
        solver_cache: Any = None,
    ) -> tuple[Search, Array | None]:
        """Run the search on cvxpy's standard form  1/2 x'P x + q'x,  F x <= g."""
        if data["n_eq"] or len(data[s.INT_IDX]):
            raise ValueError("`problem` must have no equalities and no integers but binaries")
        x = np.zeros(data["n_var"])
        binary = np.zeros(len(x), dtype=bool)
        binary[data[s.BOOL_IDX]] = True
        P, q, F = data[s.P].toarray(), data[s.Q], data[s.F].toarray()
        if P[binary].any() or q[binary].any():
            raise ValueError("`problem` must have no binaries in its objective")
        P = np.triu(P) + np.triu(P, 1).T
        offset = float(data.get("offset", 0.0))
        objective = Quadratic(P[np.ix_(~binary, ~binary)], q[~binary], offset)
        program = Program(objective, F[:, ~binary], F[:, binary], data[s.G])
        self.search = Search(program, **self._settings).run()
        if self.search.z is None or self.search.binaries is None:
            return self.search, None
        x[~binary], x[binary] = self.search.z, self.search.binaries
        return self.search, x

    def apply(self, problem: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """cvxpy's standard form, with the constant of the objective."""
        data, inverse_data = super().apply(problem)
        data["offset"] = float(inverse_data[s.OFFSET])
        return data, inverse_data

    def invert(
        self, solution: tuple[Search, Array | None], inverse_data: Mapping[str, Any]
    ) -> CvxpySolution:
        """The search's result as cvxpy wants it."""
        search, x = solution
        attributes = {s.EXTRA_STATS: search}
        if x is None:
            status = s.INFEASIBLE if search.closed else s.INFEASIBLE_INACCURATE
            return failure_solution(status, attributes)
        status = s.OPTIMAL if search.closed else s.USER_LIMIT
        return CvxpySolution(status, search.cost, {self.VAR_ID: x}, None, attributes)
