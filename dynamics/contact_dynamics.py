"""The step of a system with hard contact, over whole horizons.

    v+ = v + M^-1 ( h (B u - c) + J' lambda ),     q+ = q (+) h v+
    lambda from Signorini, Coulomb and maximum dissipation on  sigma = J v+ + e_N phi(q)/h

With restitution e > 0 a contact that approaches, v_N < 0, and would close within the step rebounds:

    sigma_N = v_N+ + e v_N  (+ phi/h where it is negative),     so that  v_N+ = -e v_N

The rollout holds the hard law, always. The gradient enters in `ContactLinearization` only.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cito.dynamics import _native
from cito.dynamics.base import Dynamics, Rollout, Transition
from cito.dynamics.contact_linearization import ContactLinearization, contact_arrays
from cito.dynamics.gradients import Exact, Gradient
from cito.dynamics.manifold import on_manifold
from cito.dynamics.rollout_adjoint import (
    Checkpoints,
    Cotangents,
    RolloutGradient,
    checkpoints,
    rollout_vjp,
)
from cito.dynamics.shapes import Shape
from cito.dynamics.types import (
    MAX_THREADS,
    Array,
    IntArray,
    as_array,
    as_limits,
    as_modes,
    as_vector,
    batch_axes,
    freeze,
    positive,
    whole_number,
)


class System(Protocol):
    """What `ContactDynamics` steps: a `LinearSystem`, a `SymbolicSystem`, ..."""

    @property
    def contact_dims(self) -> tuple[int, ...]:
        """Rows of each contact: 1 (N), 2 (T, N) or 3 (T1, T2, N)."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the coordinates of q are called."""

    @property
    def native(self) -> _native.System:
        """The system as the native core sees it."""


class Step(NamedTuple):
    """One hard step: state (..., nx), impulse, velocity (..., n), modes (..., nc), residual."""

    state: Array
    impulse: Array
    velocity: Array
    modes: NDArray[np.int32]
    residual: Array


class StepGradient(NamedTuple):
    """g' d x+ / d (.): state (..., ndx), control (..., nu), theta (..., np), friction (..., nc)."""

    state: Array
    control: Array
    theta: Array
    friction: Array


FIXED = ("system", "time_step", "friction", "theta", "threads", "restitution")


class ContactDynamics(Dynamics):
    """Semi-implicit Euler with hard frictional contact.

    Args:
        system: M, c, B, J, phi and their derivatives.
        time_step: h [s].
        friction: coefficient of every contact, one for each, (nc,), or one for each with tangent
            rows, >= 0 [-]; ignored where a contact has none.
        theta: offsets of the system's own parameters from their nominal values, (np,); none by
            default.
        threads: how many threads share the knots and step sizes of one call.
        restitution: coefficient e of every contact, or one for each, (nc,), between 0 and 1 [-].
        ground: what the contact points of a tree or robot touch, in place of its own ground.

    Raises:
        ValueError: a value that is not finite, of the wrong shape or of the wrong sign.
    """

    def __init__(
        self,
        system: System,
        time_step: float,
        friction: ArrayLike = 0.8,
        theta: ArrayLike | None = None,
        threads: int = 1,
        restitution: ArrayLike = 0.0,
        ground: Shape | None = None,
    ) -> None:
        system = system if ground is None else _over(ground, system)
        native = getattr(system, "native", None)
        if not isinstance(native, _native.System):
            raise ValueError(
                "`system` must be a LinearSystem, SymbolicSystem or TreeSystem, "
                f"got {type(system).__name__}"
            )
        self.system = system
        self.time_step = positive("time_step", time_step)
        self.friction = _friction(friction, system.contact_dims)
        if (self.friction < 0).any():
            raise ValueError(f"`friction` must be >= 0, got {self.friction.min():g}")
        self.restitution = as_vector("restitution", restitution, native.nc)
        if (self.restitution < 0).any() or (self.restitution > 1).any():
            raise ValueError(f"`restitution` must be between 0 and 1, got {self.restitution}")
        self.theta = None if theta is None else as_vector("theta", theta, native.np)
        self.threads = whole_number("threads", threads, 1, MAX_THREADS)
        self.nx, self.ndx, self.nu = native.nq + native.nv, 2 * native.nv, native.nu
        self.n, self.nc, self.n_theta = native.n, native.nc, native.np
        self.manifold = native
        bounces = self.restitution if self.restitution.any() else None
        self._model = _native.TimeStepping(
            native, self.time_step, self.friction, self.theta, bounces
        )
        freeze(self)

    def __setattr__(self, name: str, value: object) -> None:
        if "_model" in vars(self) and name in FIXED:  # the native model holds its own copies
            raise AttributeError(f"`{name}` can not be changed: make a new ContactDynamics")
        object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in FIXED)

    def __repr__(self) -> str:
        rubs = np.array(self.system.contact_dims, int) > 1
        friction = ", ".join(f"{mu:g}" for mu in np.unique(self.friction[rubs]))
        return (
            f"<ContactDynamics of {type(self.system).__name__}: nx {self.nx}, nu {self.nu}, "
            f"contacts {self.nc}, time step {self.time_step:g} s, friction {friction or 'none'}>"
        )

    @property
    def contact_names(self) -> tuple[str, ...]:
        """What the system calls its contacts, or "contact 0", "contact 1", ..."""
        names = getattr(self.system, "contact_names", ("",) * self.nc)
        return tuple(name or f"contact {i}" for i, name in enumerate(names))

    def step(self, x: ArrayLike, u: ArrayLike) -> Step:
        """The hard step from x (..., nx) under u (..., nu); the solve starts cold."""
        states, controls, batch = self._batch(x, u)
        # Not by `rollout`, whose checks would be half of the time of a single step.
        X, _, impulses, velocities, modes, residual = self._model.rollout(
            states, controls[:, None], np.ones(len(states)), *(None,) * 7, self.threads
        )
        return Step(
            X[:, 1].reshape(*batch, self.nx),
            impulses.reshape(*batch, self.n),
            velocities.reshape(*batch, self.n),
            modes.reshape(*batch, self.nc),
            residual.reshape(batch),
        )

    def transition(
        self, x: ArrayLike, u: ArrayLike, gradient: Gradient | None = None
    ) -> Transition:
        """f_x (..., ndx, ndx), f_u (..., ndx, nu) of the step from x under u; exact by default."""
        states, controls, batch = self._batch(x, u)
        law = (Exact() if gradient is None else gradient).native()
        f_x, f_u = self._model.transition(states, controls, law, self.threads)
        return Transition(
            f_x.reshape(*batch, self.ndx, self.ndx), f_u.reshape(*batch, self.ndx, self.nu)
        )

    def rollout(
        self,
        start: ArrayLike,
        controls: ArrayLike,
        *,
        states: Array | None = None,
        feedforward: Array | None = None,
        feedback: Array | None = None,
        alphas: Array | None = None,
        lower: Array | None = None,
        upper: Array | None = None,
        gaps: Array | None = None,
        impulses: Array | None = None,
    ) -> Rollout:
        """See `Dynamics.rollout`. Leading batch axes of `start` and `controls` are broadcast."""
        x0, U = as_array("start", start), as_array("controls", controls)
        if x0.ndim < 1 or x0.shape[-1] != self.nx:
            raise ValueError(f"`start` must have shape (..., {self.nx}), got {x0.shape}")
        if U.ndim < 2 or U.shape[-1] != self.nu:
            raise ValueError(f"`controls` must have shape (..., N, {self.nu}), got {U.shape}")
        if feedback is not None and states is None:
            raise ValueError("`states` must be given with `feedback`, which acts on x (-) X")
        N, batch = U.shape[-2], batch_axes("start", x0.shape[:-1], "controls", U.shape[:-2])
        if alphas is not None:
            alphas = as_array("alphas", alphas, (None,))
            if batch:
                raise ValueError("`alphas` need one nominal trajectory, got batch axes")
            batch = alphas.shape
        count = int(np.prod(batch))
        nx, ndx, nu, n, nc = self.nx, self.ndx, self.nu, self.n, self.nc
        # One start or one row of controls serves all trajectories.
        x0 = x0[None] if x0.ndim == 1 else np.broadcast_to(x0, (*batch, nx)).reshape(count, nx)
        U = U[None] if U.ndim == 2 else np.broadcast_to(U, (*batch, N, nu)).reshape(count, N, nu)
        out = self._model.rollout(
            np.ascontiguousarray(x0),
            np.ascontiguousarray(U),
            np.ones(count) if alphas is None else alphas,
            _optional("states", states, (N + 1, nx)),
            _optional("feedforward", feedforward, (N, nu)),
            _optional("feedback", feedback, (N, nu, ndx)),
            as_limits("lower", lower, nu),
            as_limits("upper", upper, nu),
            _optional("gaps", gaps, (N, ndx)),
            _optional("impulses", impulses, (N, n)),
            self.threads,
        )
        shapes = ((N + 1, nx), (N, nu), (N, n), (N, n), (N, nc), ())
        return Rollout(*(a.reshape((*batch, *s)) for a, s in zip(out, shapes)))

    def linearize(self, rollout: Rollout) -> ContactLinearization:
        """See `Dynamics.linearize`; `rollout` without batch axes and without NaN."""
        N = len(rollout.controls)
        shapes = ((N + 1, self.nx), (N, self.nu), (N, self.n), (N, self.n), (N, self.nc))
        for name, shape in zip(rollout._fields, shapes):
            got = getattr(rollout, name).shape
            if got != shape:
                raise ValueError(
                    f"`rollout` must be one trajectory: {name} of shape {shape}, got {got}"
                )
        for name in ("states", "controls", "impulses", "velocities"):
            as_array(f"rollout.{name}", getattr(rollout, name))
        as_modes("rollout.modes", rollout.modes, (N, self.nc))
        return self._linearize_knots(rollout.states[:-1], rollout.controls, rollout)

    def vjp(
        self,
        x: ArrayLike,
        u: ArrayLike,
        impulse: ArrayLike,
        velocity: ArrayLike,
        modes: IntArray,
        g: ArrayLike,
        gradient: Gradient | None = None,
    ) -> StepGradient:
        """g' times the derivative of the step, without forming f_x.

        Args:
            x, u: (..., nx), (..., nu).
            impulse, velocity, modes: the hard solution of these steps, as `step` returns them.
            g: cotangent of x+ in its tangent space, (..., ndx).
            gradient: contact gradient; exact by default.
        """
        states, controls, batch = self._batch(x, u)
        n, nc, K = self.n, self.nc, len(states)
        out = self._model.step_vjp(
            states,
            controls,
            as_array("impulse", impulse, (*batch, n)).reshape(K, n),
            as_array("velocity", velocity, (*batch, n)).reshape(K, n),
            as_modes("modes", modes, (*batch, nc)).reshape(K, nc),
            as_array("g", g, (*batch, self.ndx)).reshape(K, self.ndx),
            (Exact() if gradient is None else gradient).native(),
            self.threads,
        )
        return StepGradient(*(a.reshape(*batch, a.shape[-1]) for a in out))

    def checkpoints(
        self, start: ArrayLike, controls: ArrayLike, spacing: int | None = None
    ) -> Checkpoints:
        """An open-loop rollout of which every `spacing`-th state is kept, for `rollout_vjp`.

        Args:
            start, controls: (..., nx), (..., N, nu), batch axes broadcast, N >= 1.
            spacing: K; about sqrt(N) by default, where N/K + K is least.
        """
        return checkpoints(self, start, controls, spacing)

    def rollout_vjp(
        self,
        motion: Rollout | Checkpoints,
        g_states: ArrayLike | Cotangents,
        gradient: Gradient | None = None,
    ) -> RolloutGradient:
        """Gradient of a function of a whole motion's states, by transposed steps.

        Memory beside `motion` and the result is that of one step, or of one stretch between
        checkpoints, which is simulated again: the result is the same, to the last bit.

        Args:
            motion: an open-loop rollout or `checkpoints` of it, with any batch axes (shared among
                threads). Controls are differentiated as they were applied: what feedback or limits
                made of them is not followed, and gaps are not allowed for.
            g_states: gradient of the function in the tangent space of each state,
                (..., N+1, ndx), or a function of the first knot and the states (..., m, nx) of
                consecutive knots that returns theirs, (..., m, ndx), asked from the last knots
                to the first, each knot once.
            gradient: contact gradient; exact by default.
        """
        return rollout_vjp(self, motion, g_states, Exact() if gradient is None else gradient)

    def difference(self, x0: Array, x1: Array) -> Array:
        """See `Dynamics.difference`."""
        return on_manifold(self.manifold, ("x0", x0, self.nx), ("x1", x1, self.nx), False)

    def integrate(self, x: Array, dx: Array) -> Array:
        """See `Dynamics.integrate`."""
        return on_manifold(self.manifold, ("x", x, self.nx), ("dx", dx, self.ndx), True)

    def relaxed_step(
        self, x: ArrayLike, u: ArrayLike, gradient: Gradient, about: Step | None = None
    ) -> Step:
        """The step with the relaxed impulses lambda* in place of the hard ones.

        No rollout uses it: it is the map whose derivative `transition_at_relaxed` is.

        Args:
            x, u: (..., nx), (..., nu).
            gradient: which relaxed law.
            about: one hard step whose mode, slip direction and smoothing the relaxed law keeps at
                every x, u (a gradient holds these constant); each x, u has its own by default.
        """
        states, controls, batch = self._batch(x, u)
        K, nx, n, nc = len(states), self.nx, self.n, self.nc
        if about is None:
            hard = contact_arrays(self.rollout(states, controls[:, None]))
        else:
            impulse = as_array("about.impulse", about.impulse, (n,))
            velocity = as_array("about.velocity", about.velocity, (n,))
            hard = (
                np.tile(impulse, (K, 1)),
                np.tile(velocity, (K, 1)),
                np.tile(as_modes("about.modes", about.modes, (nc,)), (K, 1)),
            )
        out = self._model.relaxed_step(states, controls, *hard, gradient.native())
        return Step(
            out[0].reshape(*batch, nx),
            out[1].reshape(*batch, n),
            out[2].reshape(*batch, n),
            hard[2].reshape(*batch, nc),
            out[3].reshape(batch).astype(float),
        )

    def transition_at_relaxed(self, x: ArrayLike, u: ArrayLike, gradient: Gradient) -> Transition:
        """The derivative of `relaxed_step`: explicit terms at lambda* too (one knot per row)."""
        states, controls, batch = self._batch(x, u)
        hard = self.rollout(states, controls[:, None])
        relaxed = self.relaxed_step(states, controls, gradient).impulse
        f_x, f_u = self._linearize_knots(states, controls, hard, relaxed).with_gradient(gradient)
        return Transition(
            f_x.reshape(*batch, self.ndx, self.ndx), f_u.reshape(*batch, self.ndx, self.nu)
        )

    def _linearize_knots(
        self, states: Array, controls: Array, rollout: Rollout, explicit: Array | None = None
    ) -> ContactLinearization:
        native = _native.linearize(
            self._model, states, controls, *contact_arrays(rollout), explicit, self.threads
        )
        return ContactLinearization(
            native, rollout, self.friction, self.system.contact_dims, self.threads
        )

    def _batch(self, x: ArrayLike, u: ArrayLike) -> tuple[Array, Array, tuple[int, ...]]:
        """Rows of states (K, nx) and controls (K, nu), and the batch axes that they came with."""
        states, controls = as_array("x", x), as_array("u", u)
        if states.ndim < 1 or states.shape[-1] != self.nx:
            raise ValueError(f"`x` must have shape (..., {self.nx}), got {states.shape}")
        if controls.ndim < 1 or controls.shape[-1] != self.nu:
            raise ValueError(f"`u` must have shape (..., {self.nu}), got {controls.shape}")
        if states.ndim == controls.ndim == 1:
            return np.ascontiguousarray(states[None]), np.ascontiguousarray(controls[None]), ()
        batch = batch_axes("x", states.shape[:-1], "u", controls.shape[:-1])
        rows = int(np.prod(batch))
        X = np.broadcast_to(states, (*batch, self.nx)).reshape(rows, self.nx)
        U = np.broadcast_to(controls, (*batch, self.nu)).reshape(rows, self.nu)
        return np.ascontiguousarray(X), np.ascontiguousarray(U), batch


def _over(ground: Shape, system: System) -> System:
    """The same system over another ground."""
    if not hasattr(system, "with_ground"):
        raise ValueError(
            "`ground` can only be given with a TreeSystem or a robot, "
            f"got a {type(system).__name__}, which has contacts of its own"
        )
    over: System = system.with_ground(ground)
    return over


def _friction(value: ArrayLike, dims: tuple[int, ...]) -> Array:
    """mu (nc,) from one number, one for each contact or one for each with tangent rows."""
    rubs = np.array(dims, int) > 1
    try:
        skips_limits = np.shape(value) == (rubs.sum(),) != rubs.shape
    except ValueError:  # rows of different lengths
        skips_limits = False
    if not skips_limits:
        return as_vector("friction", value, len(dims))
    mu = np.zeros(len(dims))
    mu[rubs] = as_vector("friction", value, int(rubs.sum()))
    return mu


def _optional(name: str, value: Array | None, shape: tuple[int, ...]) -> Array | None:
    return None if value is None else as_array(name, value, shape)
