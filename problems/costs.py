"""Costs: J = sum over terms, and over the knots where a term is active, of 1/2 || r ||^2_W.

A cost is a tuple of terms. A term knows a residual r over the whole horizon and its Jacobians;
Hessians are Gauss-Newton. Quadratic terms on state and control are summed in the native core;
`ResidualCost` brings any other residual, as Python functions or as a CasADi expression.
There is no factor h: weights are per knot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cito.dynamics.base import Dynamics
from cito.dynamics.types import Array, as_array, freeze

Knots = Literal["running", "terminal", "all"]


@dataclass(frozen=True, eq=False)
class StateCost:
    """1/2 (x (-) x_ref)' diag(weight) (x (-) x_ref).

    Args:
        weight: (ndx,), >= 0, in units of 1 / x^2.
        reference: x_ref, (nx,) or one for each knot, (N+1, nx).
        knots: "running" (k = 0..N-1), "terminal" (k = N) or "all".
    """

    weight: Array
    reference: Array
    knots: Knots = "running"

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", _weight("weight", self.weight))
        object.__setattr__(self, "reference", as_array("reference", self.reference))
        check_knots(self.knots)
        freeze(self)


@dataclass(frozen=True, eq=False)
class ControlCost:
    """1/2 (u - u_ref)' diag(weight) (u - u_ref) over k = 0..N-1.

    Args:
        weight: (nu,), >= 0, in units of 1 / u^2.
        reference: u_ref, (nu,) or one for each knot, (N, nu); zero by default.
    """

    weight: Array
    reference: Array | None = None

    def __post_init__(self) -> None:
        weight = _weight("weight", self.weight)
        object.__setattr__(self, "weight", weight)
        reference = np.zeros(len(weight)) if self.reference is None else self.reference
        object.__setattr__(self, "reference", as_array("reference", reference))
        freeze(self)


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
        object.__setattr__(self, "weight", _weight("weight", self.weight))
        check_knots(self.knots)
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

        return cls(residual, jacobians, _weight("weight", weight, residual.size), knots)


CostTerm = StateCost | ControlCost | ResidualCost


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
    Q = _weight("state_weight", state_weight, dynamics.ndx)
    R = _weight("control_weight", control_weight, dynamics.nu)
    Q_f = _weight("terminal_weight", terminal_weight, dynamics.ndx)
    return StateCost(Q, x_ref), ControlCost(R), StateCost(Q_f, x_ref, knots="terminal")


def active_knots(knots: Knots, horizon: int) -> NDArray[np.bool_]:
    """Mask (N+1,) of the knots at which a term is active."""
    mask = np.zeros(horizon + 1, dtype=bool)
    if knots in ("running", "all"):
        mask[:-1] = True
    if knots in ("terminal", "all"):
        mask[-1] = True
    return mask


def _weight(name: str, value: ArrayLike, length: int | None = None) -> Array:
    weight = as_array(name, value, (length,))
    if (weight < 0).any():
        raise ValueError(f"`{name}` must be >= 0, got {weight.min():g}")
    return weight


def check_knots(knots: str) -> None:
    """Refuse what is no `Knots`."""
    if knots not in ("running", "terminal", "all"):
        raise ValueError(f"`knots` must be 'running', 'terminal' or 'all', got {knots!r}")
