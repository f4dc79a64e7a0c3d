"""General constraints along a trajectory: g(x_k, u_k) <= 0, or = 0, at some of its knots.

Limits on controls belong to `Problem`, contact and joint limits to the dynamics; this is for the
rest: a region that the hand must not enter, a speed limit, a pose to pass through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cito.dynamics.types import Array, as_array, positive, whole_number
from cito.problems.costs import Knots, ResidualJacobians, active_knots, checked_knots


@dataclass(frozen=True, eq=False)
class Constraint:
    """g(x_k, u_k) <= 0 or g(x_k, u_k) = 0.

    Args:
        values: (X (..., N+1, nx), U (..., N+1, nu)) -> g (..., N+1, m); the last control row is
            zero.
        size: m.
        jacobians: (X (N+1, nx), U (N+1, nu)) -> ResidualJacobians of g; None: central differences.
        kind: "inequality" (g <= 0) or "equality" (g = 0).
        knots: where the constraint holds; x_0 is given, so that constraints on it are of no use.
        scale: typical size of g, by which violations are measured.
        name: for messages.
    """

    values: Callable[[Array, Array], Array]
    size: int
    jacobians: Callable[[Array, Array], ResidualJacobians] | None = None
    kind: Literal["inequality", "equality"] = "inequality"
    knots: Knots = "all"
    scale: float = 1.0
    name: str = "constraint"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole_number("size", self.size, 1))
        object.__setattr__(self, "scale", positive("scale", self.scale))
        if self.kind not in ("inequality", "equality"):
            raise ValueError(f"`kind` must be 'inequality' or 'equality', got {self.kind!r:.80}")
        object.__setattr__(self, "knots", checked_knots(self.knots))

    @classmethod
    def from_casadi(cls, x: Any, u: Any, expression: Any, **options: Any) -> Constraint:
        """The constraint on g(x, u), a CasADi expression, with its Jacobians.

        Args:
            x, u: symbols (SX or MX), (nx,) and (nu,), of a system with nx = ndx.
            expression: g, (m,); u is zero at the last knot.
            options: `kind`, `knots`, `scale`, `name`.

        Raises:
            ValueError: other symbols in `expression`.
        """
        from cito.problems.casadi_residual import CasadiResidual

        g = CasadiResidual(x, u, expression)

        def jacobians(X: Array, U: Array) -> ResidualJacobians:
            return ResidualJacobians(*g.jacobians(X, U))

        return cls(g, g.size, jacobians, **options)

    def evaluated(self, X: Array, U: Array) -> Array:
        """g along trajectories (..., N+1, m), checked."""
        g = np.asarray(self.values(X, U), dtype=np.float64)
        shape = (*X.shape[:-1], self.size)
        if g.shape != shape:
            raise ValueError(f"`values` of {self.name} must return shape {shape}, got {g.shape}")
        return g

    def violation(self, states: Array, controls: Array) -> float:
        """The largest violation over the knots where it holds, in units of `scale`."""
        active = self.active(len(controls))
        g = self.evaluated(states, padded(controls))[active]
        worst = np.abs(g) if self.kind == "equality" else np.maximum(g, 0.0)
        return float(worst.max(initial=0.0)) / self.scale

    def active(self, horizon: int) -> NDArray[np.bool_]:
        """Mask (N+1,) of the knots at which it holds."""
        return active_knots(self.knots, horizon)


def padded(controls: Array) -> Array:
    """Controls (N, nu) with a zero row for the terminal knot."""
    controls = as_array("controls", controls)
    return np.concatenate([controls, np.zeros((1, controls.shape[-1]))])
