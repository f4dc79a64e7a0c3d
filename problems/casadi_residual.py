"""A residual from a CasADi expression, and its Jacobians, for all knots in one call."""

from __future__ import annotations

from typing import Any

from cito.dynamics.types import Array


class CasadiResidual:
    """r(x, u) of one knot as an expression, evaluated on (..., nx), (..., nu).

    Args:
        x, u: symbols (SX or MX), (nx,) and (nu,).
        expression: r, (nr,), of nothing but x and u.

    Raises:
        ValueError: an expression that holds other symbols, or is no column.
    """

    def __init__(self, x: Any, u: Any, expression: Any) -> None:
        import casadi as ca

        r = ca.densify(expression)
        if r.shape[1] != 1:
            raise ValueError(f"`expression` must be a column (nr, 1), got shape {r.shape}")
        self.size, self._sizes = int(r.shape[0]), (int(x.numel()), int(u.numel()))
        # Columns of a CasADi matrix follow each other, so that transposed ones are row-major.
        r_x, r_u = (ca.vec(ca.densify(ca.jacobian(r, z)).T) for z in (x, u))
        try:
            self._value = ca.Function("residual", [x, u], [r])
            self._jacobians = ca.Function("jacobians", [x, u], [r_x, r_u])
        except RuntimeError as error:
            raise ValueError(
                "`x` and `u` must be symbols and `expression` hold no others, got "
                f"x {x}, u {u}, expression {str(expression):.80}"
            ) from error
        self._maps: dict[tuple[str, int], Any] = {}

    def __call__(self, X: Array, U: Array) -> Array:
        """r, (..., nr)."""
        (r,) = self._evaluate(self._value, X, U)
        return r.reshape(*X.shape[:-1], self.size)

    def jacobians(self, X: Array, U: Array) -> tuple[Array, Array]:
        """r_x (..., nr, nx) and r_u (..., nr, nu)."""
        rows = (*X.shape[:-1], self.size)
        r_x, r_u = self._evaluate(self._jacobians, X, U)
        return r_x.reshape(*rows, self._sizes[0]), r_u.reshape(*rows, self._sizes[1])

    def _evaluate(self, function: Any, X: Array, U: Array) -> list[Array]:
        """The outputs for every row of X and U, a row each."""
        points = [z.reshape(-1, z.shape[-1]) for z in (X, U)]
        if (got := tuple(z.shape[-1] for z in points)) != self._sizes:
            raise ValueError(f"`x` and `u` must have the problem's sizes {got}, got {self._sizes}")
        key = (function.name(), len(points[0]))
        if key not in self._maps:
            self._maps[key] = function.map(key[1])
        return [out.full().T for out in self._maps[key].call([z.T for z in points])]
