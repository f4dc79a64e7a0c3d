"""Nodes of the search: a mixed-integer quadratic program with some of its binaries decided.

    min 1/2 z'Hz + f'z + J_0    s.t.  F z + C c <= g,  c binary, at most one binary in a row

While a binary is open its rows hold for the better of its two values. What is left is a convex
program in z whose rows never change but for their right-hand sides, so that DAQP factorizes once.
"""

from __future__ import annotations

from typing import NamedTuple

import daqp
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from cito.dynamics.types import Array
from cito.solvers.miqp_convexify import Products, bend
from cito.solvers.miqp_model import Quadratic

OPEN = -1  # a binary that is not decided
INFINITE = 1e30  # what DAQP takes for infinity
SAME = 1e-9  # limits closer than this are an equality
# Flags of DAQP's working set.
INACTIVE, UPPER, LOWER, EQUALITY = 0, 1, 3, 5

Decisions = NDArray[np.int8]  # (nb,): 0, 1 or OPEN
WorkingSet = NDArray[np.int8]  # (constraints,): DAQP flags, where a child's solve starts


class Program(NamedTuple):
    """objective J(z); F (r, nz), C (r, nb), g (r,)."""

    objective: Quadratic
    F: Array
    C: Array
    g: Array


class Relaxed(NamedTuple):
    """Minimizer z (nz,), a lower bound that holds whatever DAQP's tolerances, the working set.

    An infeasible node, or one above the cutoff, has the bound infinity.
    """

    z: Array
    bound: float
    working_set: WorkingSet


class Nodes:
    """Solves the relaxation at any node of one program.

    Args:
        program: the program.
        products: further products that are never positive at feasible points.
    """

    def __init__(self, program: Program, products: Products | None = None) -> None:
        _check(program)
        self.binaries = program.C.shape[1]
        self._collect_rows(program)
        lower, upper = self.limits(np.full(self.binaries, OPEN, dtype=np.int8))
        self._exact = Relaxation(program.objective, self._A, lower, upper)
        self._products = self._find_products()
        if products is not None:
            self._products = Products(*map(np.vstack, zip(self._products, products)))

    def sharpen(self, decisions: Decisions, deadline: float = np.inf) -> Relaxation | None:
        """An objective bent to charge for violated binaries, for this node and those below it."""
        if not len(self._products.left):
            return None
        inequalities = self._inequalities(decisions)
        objective = bend(self._exact.objective, self._products, inequalities, deadline)
        if objective is None:
            return None
        return Relaxation(objective, self._A, *self.limits(decisions))

    def root(self) -> WorkingSet:
        """The empty working set."""
        return np.full(len(self._lower), INACTIVE, dtype=np.int8)

    def relax(
        self, decisions: Decisions, start: WorkingSet, cutoff: float, sharp: Relaxation | None
    ) -> Relaxed:
        """The bound of a node and the minimizer to branch on.

        `sharp` was made for this node or one above: its bent objective bounds better. Where its
        minimizer violates no open binary, and so is useless for branching, the exact objective
        takes over.
        """
        lower, upper = self.limits(decisions)
        if sharp is None:
            return self._exact.solve(lower, upper, start, cutoff)
        bent = sharp.solve(lower, upper, start, cutoff)
        if bent.bound == np.inf or self.violation(bent.z, decisions).max() > SAME:
            return bent
        exact = self._exact.solve(lower, upper, bent.working_set, cutoff)
        return exact._replace(bound=max(exact.bound, bent.bound))

    def complete(self, decisions: Decisions) -> tuple[Array, float]:
        """Minimizer and cost with all binaries decided; the cost is infinite where infeasible."""
        lower, upper = self.limits(decisions)
        z, bound, _ = self._exact.solve(lower, upper, self.root(), np.inf)
        return z, (np.inf if bound == np.inf else self._exact.objective(z))

    def distances(self, z: Array) -> Array:
        """How far z is from what each binary demands at 0 and at 1, (2, nb), >= 0."""
        rows = self._forms[self._form_of] @ z
        excess = np.where(self._is_upper, rows - self._tight, self._tight - rows)
        distance = np.zeros((2, self.binaries))
        np.maximum.at(distance, (self._value, self._binary), excess * self._unit)
        return distance

    def violation(self, z: Array, decisions: Decisions) -> Array:
        """Product of both distances for open binaries, 0 for decided ones, (nb,)."""
        if not self.binaries:
            return np.zeros(1)
        zero, one = self.distances(z)
        return np.asarray(zero * one * (decisions == OPEN))

    def limits(self, decisions: Decisions) -> tuple[Array, Array]:
        """Lower and upper limits of all constraints at a node."""
        lower, upper = self._lower.copy(), self._upper.copy()
        on = decisions[self._binary] == self._value
        top, bottom = on & self._is_upper, on & ~self._is_upper
        np.minimum.at(upper, self._at[top], self._tight[top])
        np.maximum.at(lower, self._at[bottom], self._tight[bottom])
        # The same limit, reached through two rows, may differ in the last digit.
        close = np.abs(upper - lower) <= SAME * (1 + np.abs(lower))
        upper[close] = lower[close]
        return lower, upper

    def _collect_rows(self, program: Program) -> None:
        """Rows with the same linear form a'z, up to a factor, become one two-sided constraint."""
        F, C, g = program.F, program.C, program.g
        nz = F.shape[1]
        pivot = F[np.arange(len(F)), np.abs(F).argmax(axis=1)]
        scaled = F / pivot[:, None]
        _, first, form = np.unique(
            np.round(scaled, 11), axis=0, return_index=True, return_inverse=True
        )
        forms, form = scaled[first], form.ravel()
        # DAQP wants bounds on variables first, the rest as rows.
        single = (forms != 0).sum(axis=1) == 1
        position = np.where(single, forms.argmax(axis=1), nz + np.cumsum(~single) - 1)
        self._A = np.ascontiguousarray(forms[~single])
        self._forms = forms

        wide = np.column_stack([C, np.zeros(len(C))])
        binary = np.abs(wide).argmax(axis=1)
        coefficient = wide[np.arange(len(C)), binary]
        plain = coefficient == 0
        value = (coefficient > 0).astype(np.int8)  # of the binary, where it makes the row tight
        loose = (g - np.minimum(coefficient, 0)) / pivot
        tight = (g - np.maximum(coefficient, 0)) / pivot
        at, up = position[form], pivot > 0
        size = nz + len(self._A)
        self._plain_lower, self._plain_upper = np.full(size, -INFINITE), np.full(size, INFINITE)
        np.minimum.at(self._plain_upper, at[plain & up], tight[plain & up])
        np.maximum.at(self._plain_lower, at[plain & ~up], tight[plain & ~up])
        self._lower, self._upper = self._plain_lower.copy(), self._plain_upper.copy()
        np.minimum.at(self._upper, at[~plain & up], loose[~plain & up])
        np.maximum.at(self._lower, at[~plain & ~up], loose[~plain & ~up])

        self._binary, self._value = binary[~plain], value[~plain]
        self._form_of, self._at = form[~plain], at[~plain]
        self._is_upper, self._tight = up[~plain], tight[~plain]
        self._unit = np.abs(pivot[~plain])

    def _find_products(self) -> Products:
        """(row tight at 0)(row tight at 1) <= 0, wherever one of the two is never negative."""
        left, right = [], []
        sign = np.where(self._is_upper, 1.0, -1.0) * self._unit
        rows = sign[:, None] * np.column_stack([self._forms[self._form_of], -self._tight])
        lower, upper = self._plain_lower[self._at], self._plain_upper[self._at]
        never_negative = np.where(
            self._is_upper, lower >= self._tight - SAME, upper <= self._tight + SAME
        )
        for i in np.flatnonzero(self._value == 0):
            for j in np.flatnonzero((self._value == 1) & (self._binary == self._binary[i])):
                if never_negative[i] or never_negative[j]:
                    left.append(rows[i])
                    right.append(rows[j])
        shape = (len(left), rows.shape[1])
        return Products(np.reshape(left, shape), np.reshape(right, shape))

    def _inequalities(self, decisions: Decisions) -> Array:
        """Rows (a, a_0) with a'z + a_0 <= 0 that hold below a node: plain ones and decided ones."""
        lower, upper = self.limits(decisions)
        forms = np.vstack([np.eye(self._A.shape[1]), self._A])
        # Of an open binary's rows only the loose side is left, which is of no help.
        top = (upper < self._upper) | (self._plain_upper < INFINITE)
        bottom = (lower > self._lower) | (self._plain_lower > -INFINITE)
        return np.vstack(
            [
                np.column_stack([forms[top], -upper[top]]),
                np.column_stack([-forms[bottom], lower[bottom]]),
            ]
        )


class Relaxation:
    """One strictly convex objective over constraints of which only the limits change."""

    def __init__(self, objective: Quadratic, A: Array, lower: Array, upper: Array) -> None:
        self.objective = objective
        H, f, constant = objective
        self._model = daqp.Model()
        sense = np.full(len(lower), INACTIVE, dtype=np.int32)
        self._model.setup(H, f, A, upper, lower, sense)
        L = np.linalg.cholesky(H)
        self._k = solve_triangular(L, f, lower=True)
        self._K = solve_triangular(L, np.vstack([np.eye(len(f)), A]).T, lower=True)
        # DAQP bounds f(x) + 1/2 f' H^-1 f.
        self._shift = float(0.5 * self._k @ self._k) - constant

    def solve(self, lower: Array, upper: Array, start: WorkingSet, cutoff: float) -> Relaxed:
        """The relaxation; where it exceeds `cutoff` DAQP stops early and the bound is infinite."""
        if (lower > upper).any():
            return Relaxed(np.zeros(len(self._k)), np.inf, start)
        flags = np.where(lower == upper, EQUALITY, start).astype(np.int32)
        z, multipliers, flag = self._run(lower, upper, flags, cutoff)
        if flag < -1:  # lost in rounding: once more from an empty working set
            flags = np.where(lower == upper, EQUALITY, INACTIVE).astype(np.int32)
            z, multipliers, flag = self._run(lower, upper, flags, cutoff)
        bound = np.inf if flag == -1 else self._dual(multipliers, lower, upper)
        working_set = np.where(multipliers > 0, UPPER, np.where(multipliers < 0, LOWER, INACTIVE))
        return Relaxed(z, bound, working_set.astype(np.int8))

    def _run(
        self, lower: Array, upper: Array, flags: NDArray[np.int32], cutoff: float
    ) -> tuple[Array, Array, int]:
        limit = min(cutoff + self._shift, INFINITE)
        self._model.settings = {"fval_bound": limit, "primal_tol": 1e-9, "iter_limit": 2000}
        self._model.update(bupper=upper, blower=lower, sense=flags)
        z, _, flag, info = self._model.solve()
        multipliers = np.asarray(info["lam"])
        on_upper, on_lower = multipliers > 0, multipliers < 0
        unbounded = (on_upper & (upper >= INFINITE)) | (on_lower & (lower <= -INFINITE))
        return np.asarray(z), np.where(unbounded, 0.0, multipliers), int(flag)

    def _dual(self, multipliers: Array, lower: Array, upper: Array) -> float:
        """The dual objective: a lower bound at any multipliers, optimal or not.

        J_0 - 1/2 |L^-1 (f + A'y)|^2 - y+' upper + y-' lower
        """
        residual = self._k + self._K @ multipliers
        held = np.where(multipliers > 0, upper, np.where(multipliers < 0, lower, 0.0))
        return float(self.objective.constant - 0.5 * residual @ residual - multipliers @ held)


def _check(program: Program) -> None:
    if ((program.C != 0).sum(axis=1) > 1).any():
        raise ValueError("`program` must have at most one binary in each row")
    if (np.abs(program.F).max(axis=1, initial=0) == 0).any():
        raise ValueError("`program` must have no row without a continuous variable")
