"""Swinging a pendulum up by its energy, and holding it up: on the terms of any model.

q = (driven joint, pendulum). With E = 1/2 H_11 w^2 + V of the pendulum, w its rate, and E* = V(up),

    a_0 = k_E (E - E*) H_01 w - k_p q_0 - k_d v_0         dE/dt = -H_01 w a_0,  so E -> E*
    u   = (H_00 - H_01^2 / H_11) a_0 + c_0 - H_01 / H_11 c_1

and near the top u = -K (x - x*) of the discrete Riccati equation, wherever the value x' P x of the
linear problem is small. After Spong (1996) and Astrom and Furuta, Swinging up a pendulum by energy
control (Automatica 2000); on learned terms: Lutter, Listmann, Peters, Deep Lagrangian Networks for
end-to-end learning of energy-based control for under-actuated systems (IROS 2019).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics import _native
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.types import Array, as_array, as_vector, positive


@dataclass(frozen=True)
class EnergyGains:
    """k_E [1 / (J kg m)], k_p, k_d of the driven joint [1/s^2], [1/s], and of the catch.

    Args:
        energy, position, rate: k_E, k_p, k_d.
        state, control: diagonal weights of the Riccati equation, (4,) and one number.
        value: x' P x below which the pendulum is caught.
    """

    energy: float
    position: float
    rate: float
    state: tuple[float, ...] = (1.0, 1.0, 0.1, 0.1)
    control: float = 0.1
    value: float = 50.0

    def __post_init__(self) -> None:
        for name in ("energy", "control", "value"):
            positive(name, getattr(self, name))
        for name in ("position", "rate"):
            positive(name, getattr(self, name), allow_zero=True)


class EnergyControl:
    """A controller without a clock: `control(x)`.

    Args:
        dynamics: of a system with two coordinates and one motor, at the first.
        potential: V(q), (..., 2) -> (...) [J], up to a constant.
        gains: see `EnergyGains`.
        limit: of the control, either way.

    Raises:
        ValueError: dynamics of another size.
    """

    def __init__(
        self,
        dynamics: ContactDynamics,
        potential: Callable[[ArrayLike], Array],
        gains: EnergyGains,
        limit: float,
    ) -> None:
        if (dynamics.nx, dynamics.nu, dynamics.nc) != (4, 1, 0):
            raise ValueError(
                "`dynamics` must have two coordinates, one control and no contact, got "
                f"{dynamics!r}"
            )
        self._dynamics, self._gains, self._limit = dynamics, gains, positive("limit", limit)
        self._potential = potential
        self._up = np.array([0.0, np.pi, 0.0, 0.0])
        self._target = float(potential(self._up[:2]))
        self._K, self._P = self._held()

    def control(self, x: ArrayLike) -> Array:
        """u (1,) at x (4,)."""
        x = as_vector("x", x, 4)
        error = self._from_top(x)
        u = -self._K @ error if self.caught(x) else self._swing(x)
        limited: Array = np.clip(np.atleast_1d(u), -self._limit, self._limit)
        return limited

    def caught(self, x: ArrayLike) -> bool:
        """Whether the linear controller is in charge at x (4,)."""
        error = self._from_top(as_array("x", x, (4,)))
        return bool(error @ self._P @ error < self._gains.value and abs(error[1]) < 0.6)

    def _from_top(self, x: Array) -> Array:
        error: Array = x - self._up
        error[1] = (error[1] + np.pi) % (2 * np.pi) - np.pi
        return error

    def _swing(self, x: Array) -> float:
        q, v, g = np.ascontiguousarray(x[:2]), np.ascontiguousarray(x[2:]), self._gains
        H, c, *_ = _native.system_terms(self._dynamics.manifold, None, q, v)
        w = v[1]
        E = 0.5 * H[1, 1] * w**2 + float(self._potential(q))
        a_0 = g.energy * (E - self._target) * H[0, 1] * w - g.position * q[0] - g.rate * v[0]
        share = H[0, 1] / H[1, 1]
        return float((H[0, 0] - share * H[0, 1]) * a_0 + c[0] - share * c[1])

    def _held(self) -> tuple[Array, Array]:
        """K (1, 4) and P (4, 4) of the linear-quadratic regulator at the top."""
        from scipy.linalg import solve_discrete_are

        A, B = self._dynamics.transition(self._up, np.zeros(1))
        Q, R = np.diag(self._gains.state), np.array([[self._gains.control]])
        P = solve_discrete_are(A, B, Q, R)
        K: Array = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        return K, P
