"""A planar contact problem as a nonlinear program, with the contact law as constraints.

Trajectory and impulses lambda_k = (lambda_T, lambda_N) are variables, every step is a constraint:

    M (v+ - v) - h (B u - c) - J' lambda = 0,    q+ - q - h v+ = 0,    sigma = J v+ + e_N phi/h

with M, c, B, J, phi at (q, v). The contact law enters in one of two ways:

* relaxed: lambda_T = b+ - b-, s bounds the slip speed, and the product of each pair is at most t,

      0 <= lambda_N  _|_  sigma_N >= 0              0 <= b+  _|_  s + sigma_T >= 0
      0 <= s  _|_  mu lambda_N - b+ - b- >= 0       0 <= b-  _|_  s - sigma_T >= 0

* with known modes: bounds on lambda, sigma and the edges mu lambda_N -+ lambda_T of the cone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cito.dynamics.types import Array
from cito.problems.problem import Problem
from cito.solvers.transcription import (
    check_problem,
    objective,
    step_function,
    terms_function,
)

SEPARATING, SLIDING, CLAMPING = 0, 1, 2


class Trajectory(NamedTuple):
    """states (N+1, nx), controls (N, nu), impulses (N, n) and contact velocities (N, n)."""

    states: Array
    controls: Array
    impulses: Array
    velocities: Array


class Bounded(NamedTuple):
    """lower <= expression <= upper, entry by entry (scalars hold for all of them)."""

    expression: Any
    lower: ArrayLike
    upper: ArrayLike


class NonlinearProgram(NamedTuple):
    """min f(w) over lower <= w <= upper with g_lower <= g(w) <= g_upper; CasADi's `nlp`."""

    nlp: Mapping[str, Any]
    lower: Array
    upper: Array
    g_lower: Array
    g_upper: Array


class ComplementarityModel:
    """The nonlinear programs of a problem.

    Args:
        problem: of a planar `LinearSystem` or `SymbolicSystem` with quadratic costs.

    Raises:
        ValueError: it is not.
    """

    def __init__(self, problem: Problem) -> None:
        dynamics = check_problem(problem)
        self.problem, self.dynamics = problem, dynamics
        dims, N = np.array(dynamics.system.contact_dims, dtype=int), problem.horizon
        self.normals = list(map(int, np.cumsum(dims) - 1))
        self.frictional = [i for i, d in enumerate(dims) if d == 2]
        self.tangents = [self.normals[i] - 1 for i in self.frictional]
        self.friction = dynamics.friction[self.frictional]

        self.X, self.U = ca.MX.sym("x", dynamics.nx, N + 1), ca.MX.sym("u", dynamics.nu, N)
        self.impulses = ca.MX.sym("lambda", dynamics.n, N)
        step = step_function(dynamics).map(N)
        self.defects, self.velocities = step(self.X[:, :-1], self.U, self.X[:, 1:], self.impulses)
        self.objective = objective(problem, self.X, self.U)

    def relaxed(self) -> NonlinearProgram:
        """The program over (X, U, lambda, b+, b-, s and the right-hand sides); parameter t."""
        N, f = self.problem.horizon, len(self.frictional)
        t = ca.MX.sym("t")
        sigma_N = ca.MX.sym("sigma_N", len(self.normals), N)
        names = ("b_plus", "b_minus", "s", "s_plus", "s_minus", "cone")
        b_plus, b_minus, s, s_plus, s_minus, cone = (ca.MX.sym(name, f, N) for name in names)
        lambda_N, lambda_T, sigma_T = self._split()
        friction_limit = self._friction_limit()

        no_pull = np.full(self.impulses.shape, -np.inf)
        no_pull[self.normals] = 0
        slacks = [sigma_N, b_plus, b_minus, s, s_plus, s_minus, cone]
        variables = [
            *self._trajectory(),
            Bounded(self.impulses, no_pull, np.inf),
            *(Bounded(slack, 0, np.inf) for slack in slacks),
        ]
        equalities = [
            self.defects,
            sigma_N - self.velocities[self.normals, :],
            lambda_T - (b_plus - b_minus),
            s_plus - (s + sigma_T),
            s_minus - (s - sigma_T),
            cone - (friction_limit - b_plus - b_minus),
        ]
        products = [lambda_N * sigma_N, b_plus * s_plus, b_minus * s_minus, s * cone]
        constraints = [
            *(Bounded(equality, 0, 0) for equality in equalities),
            *(Bounded(product - t, -np.inf, 0) for product in products),
        ]
        return _assemble(self.objective, variables, constraints, t)

    def with_modes(self, modes: NDArray[np.int32], plan: Trajectory) -> NonlinearProgram:
        """The smooth program over (X, U, lambda) in which every contact keeps its mode.

        Args:
            modes: (N, nc).
            plan: tells which way each sliding contact slides.
        """
        # Slip and friction are opposite; where one of them is nearly zero the other decides.
        slip = plan.velocities * self._impulse_scale() - plan.impulses
        lambda_N, lambda_T, sigma_T = self._split()
        sigma_N = self.velocities[self.normals, :]
        touching = modes.T != SEPARATING
        grip, forward = modes.T[self.frictional], slip.T[self.tangents] > 0
        slides, sticks, free = grip == SLIDING, grip == CLAMPING, grip == SEPARATING

        normal_impulse = np.where(touching, np.inf, 0)
        impulse_upper = np.full(self.impulses.shape, np.inf)
        impulse_upper[self.normals] = normal_impulse
        impulse_upper[self.tangents] = normal_impulse[self.frictional]
        impulse_lower = -impulse_upper
        impulse_lower[self.normals] = 0
        limit = self._friction_limit()
        constraints = [
            Bounded(self.defects, 0, 0),
            Bounded(sigma_N, 0, np.where(touching, 0, np.inf)),
            # Friction is antiparallel to slip: forward slip needs lambda_T = -mu lambda_N.
            Bounded(
                sigma_T,
                np.where(sticks | (slides & forward), 0, -np.inf),
                np.where(sticks | (slides & ~forward), 0, np.inf),
            ),
            Bounded(
                limit + lambda_T,
                np.where(free, -np.inf, 0),
                np.where(slides & forward, 0, np.inf),
            ),
            Bounded(
                limit - lambda_T,
                np.where(free, -np.inf, 0),
                np.where(slides & ~forward, 0, np.inf),
            ),
        ]
        variables = [*self._trajectory(), Bounded(self.impulses, impulse_lower, impulse_upper)]
        return _assemble(self.objective, variables, constraints, ca.MX(0, 1))

    def relaxed_guess(self, guess: Trajectory) -> Array:
        """The variables of `relaxed` at a trajectory."""
        lambda_T, sigma_T = guess.impulses.T[self.tangents], guess.velocities.T[self.tangents]
        lambda_N, sigma_N = guess.impulses.T[self.normals], guess.velocities.T[self.normals]
        b_plus, b_minus, s = lambda_T.clip(min=0), (-lambda_T).clip(min=0), abs(sigma_T)
        cone = self.friction[:, None] * lambda_N[self.frictional] - abs(lambda_T)
        slacks = [sigma_N, b_plus, b_minus, s, s + sigma_T, s - sigma_T, cone]
        return np.concatenate([self.guess(guess), *(slack.ravel("F") for slack in slacks)])

    def guess(self, guess: Trajectory) -> Array:
        """The variables of `with_modes` at a trajectory."""
        return np.concatenate(
            [guess.states.ravel(), guess.controls.ravel(), guess.impulses.ravel()]
        )

    def trajectory(self, w: Array) -> Trajectory:
        """What a solution w of either program says."""
        shapes = [matrix.shape[::-1] for matrix in (self.X, self.U, self.impulses)]
        ends = np.cumsum([rows * columns for rows, columns in shapes])
        X, U, impulses = (
            part.reshape(shape) for part, shape in zip(np.split(w[: ends[-1]], ends[:-1]), shapes)
        )
        velocities = ca.Function("velocities", [self.X, self.U, self.impulses], [self.velocities])
        return Trajectory(X, U, impulses, velocities(X.T, U.T, impulses.T).full().T)

    def modes(self, trajectory: Trajectory) -> NDArray[np.int32]:
        """The mode (N, nc) closest to each contact of an almost complementary trajectory."""
        impulses, velocities = trajectory.impulses, trajectory.velocities
        touching = impulses[:, self.normals] > velocities[:, self.normals] * self._impulse_scale()
        modes = np.where(touching, CLAMPING, SEPARATING).astype(np.int32)
        lambda_T, sigma_T = impulses[:, self.tangents], velocities[:, self.tangents]
        margin = self.friction * impulses[:, self.normals][:, self.frictional] - abs(lambda_T)
        slides = abs(sigma_T) * self._impulse_scale() > margin
        held = modes[:, self.frictional]
        modes[:, self.frictional] = np.where((held != SEPARATING) & slides, SLIDING, held)
        return modes

    def _impulse_scale(self) -> float:
        """Typical impulse per contact velocity [kg], to compare the two sides of a pair."""
        q, v = np.split(self.problem.start, 2)
        M = terms_function(self.dynamics)(q, v)[0].full()
        return float(np.median(np.diag(M)))

    def _split(self) -> tuple[Any, Any, Any]:
        """lambda_N (nc, N), lambda_T and sigma_T (nf, N)."""
        return (
            self.impulses[self.normals, :],
            self.impulses[self.tangents, :],
            self.velocities[self.tangents, :],
        )

    def _friction_limit(self) -> Any:
        """mu lambda_N of the frictional contacts, (nf, N)."""
        rows = [self.normals[i] for i in self.frictional]
        return ca.repmat(ca.DM(self.friction), 1, self.problem.horizon) * self.impulses[rows, :]

    def _trajectory(self) -> list[Bounded]:
        """States with x_0 given, and controls within their limits."""
        problem, free = self.problem, np.full(self.X.shape, np.inf)
        lower, upper = -free, free.copy()
        lower[:, 0] = upper[:, 0] = problem.start
        u_lower = -np.inf if problem.control_lower is None else problem.control_lower[:, None]
        u_upper = np.inf if problem.control_upper is None else problem.control_upper[:, None]
        return [Bounded(self.X, lower, upper), Bounded(self.U, u_lower, u_upper)]


def _assemble(
    f: Any, variables: Sequence[Bounded], constraints: Sequence[Bounded], parameter: Any
) -> NonlinearProgram:
    def stack(entries: Sequence[Bounded]) -> Any:
        return ca.vertcat(*(ca.vec(entry.expression) for entry in entries))

    def bounds(entries: Sequence[Bounded], side: str) -> Array:
        parts = [
            np.broadcast_to(getattr(entry, side), entry.expression.shape).ravel("F")
            for entry in entries
        ]
        return np.concatenate(parts).astype(np.float64)

    nlp = {"x": stack(variables), "p": parameter, "f": f, "g": stack(constraints)}
    return NonlinearProgram(
        nlp,
        bounds(variables, "lower"),
        bounds(variables, "upper"),
        bounds(constraints, "lower"),
        bounds(constraints, "upper"),
    )
