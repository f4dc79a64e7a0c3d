"""Costs: J = sum over terms, and over the knots where a term is active, of 1/2 || r ||^2_W.

A cost is a tuple of terms. A term knows a residual r over the whole horizon and its Jacobians;
Hessians are Gauss-Newton. Terms that the native core knows (`NativeCost`: those here and those on
the motion of robots, problems/robot_costs.py) are summed there; `ResidualCost` brings any other
residual, as Python functions or as a CasADi expression. There is no factor h: weights are per knot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cito.dynamics.base import Dynamics
from cito.dynamics.types import Array, IntArray, as_array, freeze, whole_number

# "running" (k = 0..N-1), "terminal" (k = N), "all", or the numbers of the knots
Knots = Literal["running", "terminal", "all"] | Sequence[int]


class NativeTerm(NamedTuple):
    """A term as the native core holds it; see CostKind in dynamics/native/core.hpp.

    kind; weight (nw,); reference (1, width) or a row for each knot; where: numbers of entries, of
    bodies or of contacts; parameters.
    """

    kind: str
    weight: Array
    reference: Array
    where: IntArray = np.zeros(0, dtype=np.int32)
    parameters: Array = np.zeros(0)


class NativeCost(ABC):
    """A term that the native core evaluates."""

    knots: Knots = "running"
    in_controls = False  # whether r depends on u, and so has no knot N

    @abstractmethod
    def native(self, name: str, dynamics: Dynamics, horizon: int) -> NativeTerm:
        """The term for these dynamics.

        Args:
            name: what the caller calls the term; it opens every error message.
            dynamics: of the problem.
            horizon: N.

        Raises:
            ValueError: the term does not fit the dynamics or the horizon.
        """

    @property
    def weighs_controls(self) -> bool:
        """Whether some control costs something wherever it is."""
        return False


@dataclass(frozen=True, eq=False)
class StateCost(NativeCost):
    """1/2 (x (-) x_ref)' diag(weight) (x (-) x_ref).

    Args:
        weight: (ndx,), >= 0, in units of 1 / x^2.
        reference: x_ref, (nx,) or one for each knot, (N+1, nx).
        knots: "running" (k = 0..N-1), "terminal" (k = N), "all", or the numbers of the knots.
    """

    weight: Array
    reference: Array
    knots: Knots = "running"

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", checked_weight("weight", self.weight))
        object.__setattr__(self, "reference", as_array("reference", self.reference))
        object.__setattr__(self, "knots", checked_knots(self.knots))
        freeze(self)

    def native(self, name: str, dynamics: Dynamics, horizon: int) -> NativeTerm:
        """See `NativeCost.native`."""
        weight = as_array(f"{name}.weight", self.weight, (dynamics.ndx,))
        rows = knot_rows(f"{name}.reference", self.reference, dynamics.nx, horizon + 1)
        return NativeTerm("state", weight, rows)


@dataclass(frozen=True, eq=False)
class ControlCost(NativeCost):
    """1/2 (u - u_ref)' diag(weight) (u - u_ref) over k = 0..N-1.

    Args:
        weight: (nu,), >= 0, in units of 1 / u^2.
        reference: u_ref, (nu,) or one for each knot, (N, nu); zero by default.
    """

    weight: Array
    reference: Array | None = None
    in_controls = True

    def __post_init__(self) -> None:
        weight = checked_weight("weight", self.weight)
        object.__setattr__(self, "weight", weight)
        reference = np.zeros(len(weight)) if self.reference is None else self.reference
        object.__setattr__(self, "reference", as_array("reference", reference))
        freeze(self)

    @property
    def weighs_controls(self) -> bool:
        """Whether any weight is positive."""
        return bool((self.weight > 0).any())

    def native(self, name: str, dynamics: Dynamics, horizon: int) -> NativeTerm:
        """See `NativeCost.native`."""
        weight = as_array(f"{name}.weight", self.weight, (dynamics.nu,))
        assert self.reference is not None
        rows = knot_rows(f"{name}.reference", self.reference, dynamics.nu, horizon)
        return NativeTerm("control", weight, rows)


class ResidualJacobians(NamedTuple):
    """Jacobians of a residual: r_x (N+1, nr, ndx), r_u (N+1, nr, nu); row N of r_u is ignored."""

    state: Array
    control: Array


@dataclass(frozen=True, eq=False)
class ResidualCost:
    """1/2 sum_k || r(x_k, u_k) ||^2_diag(weight) with a residual of the user's.

    Args:
        residual: (X (..., N+1, nx), U (..., N+1, nu)) -> r (..., N+1, nr); the last control row
            is zero, so that running and terminal knots share one function.
        jacobians: (X (N+1, nx), U (N+1, nu)) -> ResidualJacobians, in the tangent space of x;
            None: central differences of `residual`, slow: 2 (ndx + nu) evaluations a time.
        weight: (nr,), >= 0.
        knots: where the term is active.
    """

    residual: Callable[[Array, Array], Array]
    jacobians: Callable[[Array, Array], ResidualJacobians] | None
    weight: Array
    knots: Knots = "running"

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", checked_weight("weight", self.weight))
        object.__setattr__(self, "knots", checked_knots(self.knots))
        freeze(self)

    @classmethod
    def from_casadi(
        cls, x: Any, u: Any, expression: Any, weight: ArrayLike, knots: Knots = "running"
    ) -> ResidualCost:
        """The cost of a residual r(x, u) that is a CasADi expression, with its Jacobians.

        Args:
            x, u: symbols (SX or MX), (nx,) and (nu,), of a system with nx = ndx.
            expression: r, (nr,); u is zero at the last knot.
            weight: (nr,), >= 0.
            knots: where the term is active.

        Raises:
            ValueError: other symbols in `expression`, or a weight that does not fit it.
        """
        from cito.problems.casadi_residual import CasadiResidual

        residual = CasadiResidual(x, u, expression)

        def jacobians(X: Array, U: Array) -> ResidualJacobians:
            return ResidualJacobians(*residual.jacobians(X, U))

        return cls(residual, jacobians, checked_weight("weight", weight, residual.size), knots)


CostTerm = NativeCost | ResidualCost


def quadratic_task_costs(
    dynamics: Dynamics,
    target: ArrayLike,
    state_weight: ArrayLike,
    control_weight: ArrayLike,
    terminal_weight: ArrayLike,
) -> tuple[CostTerm, ...]:
    """Diagonal weights on x - target while running and at the end, and on u.

    Raises:
        ValueError: a shape or sign that does not fit; names the parameter.
    """
    x_ref = as_array("target", target, (dynamics.nx,))
    Q = checked_weight("state_weight", state_weight, dynamics.ndx)
    R = checked_weight("control_weight", control_weight, dynamics.nu)
    Q_f = checked_weight("terminal_weight", terminal_weight, dynamics.ndx)
    return StateCost(Q, x_ref), ControlCost(R), StateCost(Q_f, x_ref, knots="terminal")


def active_knots(knots: Knots, horizon: int) -> NDArray[np.bool_]:
    """Mask (N+1,) of the knots at which a term is active.

    Raises:
        ValueError: a number that is no knot of the horizon.
    """
    mask = np.zeros(horizon + 1, dtype=bool)
    if not isinstance(knots, str):
        for k in knots:
            mask[whole_number("knots", k, 0, horizon)] = True
        return mask
    mask[:-1] = knots in ("running", "all")
    mask[-1] = knots in ("terminal", "all")
    return mask


def checked_knots(knots: Knots) -> Knots:
    """A name, or a tuple of whole numbers >= 0."""
    if isinstance(knots, str):
        if knots not in ("running", "terminal", "all"):
            raise ValueError(
                "`knots` must be 'running', 'terminal', 'all' or numbers of knots, "
                f"got {knots!r:.80}"
            )
        return knots
    if not np.iterable(knots):
        raise ValueError(f"`knots` must be a name or numbers of knots, got {knots!r:.80}")
    return tuple(whole_number("knots", k, 0) for k in knots)


def checked_weight(name: str, value: ArrayLike, length: int | None = None) -> Array:
    """`value` as weights >= 0, (length,)."""
    weight = as_array(name, value, (length,))
    if (weight < 0).any():
        raise ValueError(f"`{name}` must be >= 0, got {weight.min():g}")
    return weight


def knot_rows(name: str, value: Array, width: int, knots: int) -> Array:
    """A reference (width,) as one row, or (knots, width) as it is."""
    if value.shape not in ((width,), (knots, width)):
        raise ValueError(
            f"`{name}` must have shape {(width,)} or {(knots, width)}, got {value.shape}"
        )
    return np.atleast_2d(value)
