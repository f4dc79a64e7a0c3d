"""Parameters from recorded motions: friction, masses, damping, contact points.

    min over (theta, log mu)   J = 1/2 sum_k || x_k (-) x^_k ||_W^2
    x_k rolled out under the recorded controls with the hard law, from recorded states

The gradient is one transposed sweep over the motion, whatever the number of parameters; L-BFGS-B of
SciPy does the rest. A recording is cut into windows, each of which starts from its own recorded
state: through contacts, small errors grow until a long motion says nothing of its parameters.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from cito.dynamics import _native
from cito.dynamics.base import Rollout
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Exact, Gradient
from cito.dynamics.types import Array, as_array, as_vector, positive, whole_number

LEAST_FRICTION = 1e-6  # its logarithm is the unknown


@dataclass(frozen=True, eq=False)
class Recording:
    """A motion as it was seen.

    Args:
        states: x^_k, (N+1, nx).
        controls: u_k, (N, nu), applied from k to k+1.
    """

    states: Array
    controls: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", as_array("states", self.states, (None, None)))
        object.__setattr__(self, "controls", as_array("controls", self.controls, (None, None)))
        if len(self.states) != len(self.controls) + 1 or len(self.controls) == 0:
            raise ValueError(
                "`states` must have one row more than `controls`, "
                f"got {len(self.states)} and {len(self.controls)}"
            )


@dataclass(frozen=True, eq=False, repr=False)
class Identification:
    """What the recordings say.

    Args:
        dynamics: the dynamics with the estimated parameters.
        theta: (n_theta,), the system's own parameters.
        friction: (nc,).
        cost: J at the estimate.
        evaluations: of J with its gradient.
        seconds: wall clock.
        message: why the search ended.
        history: one (unknowns, cost) for each evaluation.
    """

    dynamics: ContactDynamics
    theta: Array
    friction: Array
    cost: float
    evaluations: int
    seconds: float
    message: str
    history: list[tuple[Array, float]] = field(default_factory=list)

    def __repr__(self) -> str:
        mu = ", ".join(f"{m:.4g}" for m in np.unique(self.friction))
        theta = ", ".join(f"{value:.4g}" for value in self.theta)
        found = [f"friction {mu}"] * (self.friction.size > 0) + [f"theta {theta}"] * bool(theta)
        return f"<Identification: {'; '.join(found)}; cost {self.cost:.4g}, {self.message}>"


def identify(
    dynamics: ContactDynamics,
    recordings: Recording | Sequence[Recording],
    *,
    friction: Literal["shared", "each", "known"] = "shared",
    theta: bool = True,
    weight: ArrayLike = 1.0,
    window: int | None = None,
    gradient: Gradient | None = None,
    tolerance: float = 1e-9,
    max_evaluations: int = 500,
) -> Identification:
    """Estimate parameters of `dynamics`, starting from the ones it has.

    Args:
        dynamics: the system, with a first guess of its friction and theta.
        recordings: one or several motions.
        friction: one unknown coefficient for all contacts, one each, or none.
        theta: whether the system's own parameters are unknown.
        weight: W, (ndx,) or one for all, >= 0.
        window: steps after which the simulation starts anew from the recorded state; None: never.
        gradient: contact gradient; exact by default.
        tolerance: relative decrease of J at which to stop.
        max_evaluations: of J with its gradient.

    Raises:
        ValueError: recordings that do not fit the system; nothing unknown.
    """
    started = time.perf_counter()
    windows = cut(dynamics, recordings, window)
    misfit = Misfit(dynamics, windows, friction, theta, weight, gradient or Exact())
    if misfit.start.size == 0:
        raise ValueError("`friction` and `theta` leave nothing to estimate")
    options: dict[str, Any] = {
        "maxfun": whole_number("max_evaluations", max_evaluations, 1),
        "ftol": positive("tolerance", tolerance),
        "gtol": 1e-12,
    }
    found = minimize(misfit, misfit.start, jac=True, method="L-BFGS-B", options=options)
    estimate = misfit.dynamics_at(found.x)
    return Identification(
        dynamics=estimate,
        theta=np.zeros(0) if estimate.theta is None else estimate.theta,
        friction=estimate.friction,
        cost=float(found.fun),
        evaluations=len(misfit.history),
        seconds=time.perf_counter() - started,
        message=str(found.message),
        history=misfit.history,
    )


class Misfit:
    """J and its gradient as a function of the unknowns z = (log mu, theta).

    Args:
        dynamics: first guess.
        windows: recordings of equal length.
        friction, theta, weight, gradient: as of `identify`.
    """

    def __init__(
        self,
        dynamics: ContactDynamics,
        windows: Sequence[Recording],
        friction: Literal["shared", "each", "known"],
        theta: bool,
        weight: ArrayLike,
        gradient: Gradient,
    ) -> None:
        if friction not in ("shared", "each", "known"):
            raise ValueError(
                f"`friction` must be 'shared', 'each' or 'known', got {friction!r:.80}"
            )
        self._dynamics, self._gradient = dynamics, gradient
        self._weight = as_vector("weight", weight, dynamics.ndx)
        if (self._weight < 0).any():
            raise ValueError(f"`weight` must be >= 0, got {self._weight.min():g}")
        self._states = np.array([w.states for w in windows])
        self._controls = np.array([w.controls for w in windows])
        self._tables = [self._table(states) for states in self._states]
        mu = np.log(np.maximum(dynamics.friction, LEAST_FRICTION))
        self._friction = "known" if dynamics.nc == 0 else friction
        first = {"shared": mu[:1], "each": mu, "known": mu[:0]}[self._friction]
        own = np.zeros(dynamics.n_theta) if dynamics.theta is None else dynamics.theta

        self._split = len(first)
        self._theta = theta
        self.start: Array = np.append(first, own if theta else own[:0])
        self.history: list[tuple[Array, float]] = []

    def dynamics_at(self, z: Array) -> ContactDynamics:
        """The dynamics with the unknowns put in."""
        d, mu = self._dynamics, np.exp(z[: self._split])
        friction = d.friction if self._friction == "known" else mu
        theta = z[self._split :] if self._theta else d.theta
        shared = np.broadcast_to(friction, (d.nc,))
        return ContactDynamics(d.system, d.time_step, shared, theta, d.threads)

    def rollout(self, z: Array) -> Rollout:
        """All windows, simulated under the unknowns."""
        return self.dynamics_at(z).rollout(self._states[:, 0], self._controls)

    def value(self, z: Array) -> float:
        """J alone; infinite where a motion is not finite."""
        J = float(self._costs(self.rollout(z).states).sum())
        return J if np.isfinite(J) else np.inf

    def __call__(self, z: Array) -> tuple[float, Array]:
        """J and dJ/dz."""
        dynamics = self.dynamics_at(z)
        motion = dynamics.rollout(self._states[:, 0], self._controls)
        if not np.isfinite(motion.states).all():
            return 1e300, np.zeros_like(z)
        J = float(self._costs(motion.states).sum())
        g = np.array(
            [
                table.expansion(states, controls)[0]
                for table, states, controls in zip(self._tables, motion.states, self._controls)
            ]
        )
        out = dynamics.rollout_vjp(motion, g, self._gradient)
        g_mu = out.friction.sum(axis=0) * dynamics.friction  # d/d log mu
        parts = {"shared": g_mu.sum(keepdims=True), "each": g_mu, "known": g_mu[:0]}
        own = out.theta.sum(axis=0) if self._theta else np.zeros(0)
        self.history.append((z.copy(), J))
        return J, np.append(parts[self._friction], own)

    def _costs(self, states: Array) -> Array:
        """1/2 sum_k || x_k (-) x^_k ||_W^2 of each window."""
        motions = zip(self._tables, states, self._controls)
        return np.array([table.value(X[None], U[None])[0] for table, X, U in motions])

    def _table(self, recorded: Array) -> _native.CostTable:
        """The cost of a window, whose gradient the native core forms on the manifold."""
        table = _native.CostTable(self._dynamics.manifold, len(recorded) - 1)
        everywhere = np.ones(len(recorded), dtype=bool)
        table.add("state", self._weight, recorded, everywhere, np.zeros(0, np.int32), np.zeros(0))
        return table


def cut(
    dynamics: ContactDynamics, recordings: Recording | Sequence[Recording], window: int | None
) -> list[Recording]:
    """The recordings cut into pieces of equal length; what is left at an end is not used."""
    given = [recordings] if isinstance(recordings, Recording) else list(recordings)
    if not given:
        raise ValueError("`recordings` must not be empty")
    for i, one in enumerate(given):
        widths = one.states.shape[1], one.controls.shape[1]
        if widths != (dynamics.nx, dynamics.nu):
            raise ValueError(
                f"`recordings[{i}]` must have states of {dynamics.nx} and controls of "
                f"{dynamics.nu} columns, got {widths[0]} and {widths[1]}"
            )
    shortest = min(len(one.controls) for one in given)
    length = shortest if window is None else whole_number("window", window, 1, shortest)
    return [
        Recording(one.states[k : k + length + 1], one.controls[k : k + length])
        for one in given
        for k in range(0, len(one.controls) - length + 1, length)
    ]
