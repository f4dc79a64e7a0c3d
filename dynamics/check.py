"""The finite-difference harness: every derivative in cito is tested by `finite_difference`.

`check_gradients(dynamics)` tests the transition Jacobians of a system, contact mode by contact
mode, and says how large the derivatives were, so that a pass can not be vacuous:

    exact                   f_x, f_u against the hard step, inside each mode
    signorini, full-cone    f_x, f_u against the step with relaxed impulses, explicit terms at the
                            relaxed point too (`ContactDynamics.relaxed_step`), the mode, the slip
                            direction and the smoothing of the law held as the gradients hold them
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Exact, FullCone, Gradient, Signorini
from cito.dynamics.step_terms import step_terms
from cito.dynamics.types import Array, as_array

if TYPE_CHECKING:
    from cito.dynamics.base import Dynamics

STEP = 1e-5  # of the perturbed coordinates
RELATIVE_TOLERANCE = 1e-6
EPS = 1e-2  # smoothing of the full cone [m/s]
SMALLEST = 0.1  # blocks whose entries are less than this count as that large
AWAY = 1e-4  # margin of a contact mode below which a sample is skipped [m/s]
MODE_LETTERS = "slc"


def finite_difference(
    function: Callable[[Array], Array],
    x: Array,
    *,
    step: float = STEP,
    integrate: Callable[[Array, Array], Array] | None = None,
    difference: Callable[[Array, Array], Array] | None = None,
    tangent: int | None = None,
) -> Array:
    """Central differences of `function` at x, fourth order, on the manifold.

        f' is about (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / (12 h)

    Args:
        function: (K, nx) rows -> (K, ny) rows; called once with all perturbed points.
        x: (nx,).
        step: h, absolute.
        integrate: x (+) dx; addition by default.
        difference: y1 (-) y0; subtraction by default.
        tangent: number of tangent coordinates of x; len(x) by default.

    Returns:
        The Jacobian, (ny, tangent).
    """
    n = len(x) if tangent is None else tangent
    offsets = step * np.array([1.0, -1.0, 2.0, -2.0])
    dx = (offsets[:, None, None] * np.eye(n)).reshape(-1, n)
    points = x + dx if integrate is None else integrate(np.broadcast_to(x, (len(dx), len(x))), dx)
    values = function(points)
    center = function(x[None])
    deltas = values - center if difference is None else difference(center, values)
    plus, minus, plus2, minus2 = deltas.reshape(4, n, -1)
    jacobian: Array = ((8 * (plus - minus) - (plus2 - minus2)) / (12 * step)).T
    return jacobian


class GradientCheck(NamedTuple):
    """The worst case of one gradient over the samples of one mode pattern.

    modes: a letter per contact, s(eparating), l (sliding), c(lamping).
    error: largest |analytic - finite difference|, relative as of `relative_error`.
    magnitude: largest entry of the finite difference beyond that of a free drift
        x+ = (q + h v, v), so that 0 means that the check said nothing.
    """

    gradient: str
    modes: str
    samples: int
    error: float
    magnitude: float


@dataclass(frozen=True)
class GradientReport:
    """Rows of `check_gradients`, and whether all stayed within the tolerance."""

    rows: tuple[GradientCheck, ...]
    skipped: int

    @property
    def passed(self) -> bool:
        """Whether anything was checked and every error is within 1e-6."""
        return bool(self.rows) and all(row.error <= RELATIVE_TOLERANCE for row in self.rows)

    @property
    def error(self) -> float:
        """The largest error over all rows."""
        return max((row.error for row in self.rows), default=np.inf)

    def __str__(self) -> str:
        lines = [f"{'gradient':10s} {'modes':10s} {'samples':>7s} {'error':>9s} {'magnitude':>9s}"]
        for row in self.rows:
            lines.append(
                f"{row.gradient:10s} {row.modes or '-':10s} {row.samples:7d} "
                f"{row.error:9.1e} {row.magnitude:9.1e}"
            )
        verdict = "passed" if self.passed else "FAILED"
        lines.append(f"{verdict}; near a mode boundary: {self.skipped}")
        return "\n".join(lines)


def check_gradients(
    dynamics: Dynamics,
    *,
    center: ArrayLike | None = None,
    spread: float = 0.3,
    samples: int = 200,
    rho: float = 0.1,
    seed: int = 0,
) -> GradientReport:
    """Test f_x, f_u of `exact`, `signorini` and `full-cone` by finite differences.

    Args:
        dynamics: a `ContactDynamics`.
        center: state around which to sample, (nx,); the origin by default.
        spread: standard deviation of the samples in tangent coordinates and controls.
        samples: how many states and controls to draw; they are sorted by contact mode.
        rho: relaxation of the relaxed gradients [J].
        seed: of the samples.

    Returns:
        One row for each gradient and mode pattern that was met; `exact` has none where contacts
        brace each other and slide, since v+ then depends on how they share the load.

    Raises:
        ValueError: `dynamics` has no contact step to differentiate.
    """
    if not isinstance(dynamics, ContactDynamics):
        raise ValueError(f"`dynamics` must be a ContactDynamics, got {type(dynamics).__name__}")
    x0 = np.zeros(dynamics.nx) if center is None else as_array("center", center, (dynamics.nx,))
    rng = np.random.default_rng(seed)
    dx = spread * rng.standard_normal((samples, dynamics.ndx))
    # Half of the samples stay near `center`: there the gap term phi/h does not drown the velocity.
    dx[::2, : dynamics.ndx // 2] *= dynamics.time_step
    states = dynamics.integrate(np.broadcast_to(x0, (samples, dynamics.nx)), dx)
    controls = spread * rng.standard_normal((samples, dynamics.nu))
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    skipped = 0
    for x, u in zip(states, controls):
        pattern = "".join(MODE_LETTERS[m] for m in dynamics.step(x, u).modes)
        undetermined = "l" in pattern and is_braced(dynamics, x, pattern)
        for gradient in _gradients(dynamics, rho):
            # Contacts that brace each other and slide: v+ depends on how they share the load.
            skips = undetermined and isinstance(gradient, Exact)
            result = None if skips else check_transition(dynamics, x, u, gradient)
            if result is None:
                skipped += 1
            else:
                found.setdefault((gradient.name, pattern), []).append(result)
    rows = tuple(
        GradientCheck(name, pattern, len(r), max(e for e, _ in r), max(m for _, m in r))
        for (name, pattern), r in sorted(found.items())
    )
    return GradientReport(rows, skipped)


def check_transition(
    dynamics: ContactDynamics, x: Array, u: Array, gradient: Gradient
) -> tuple[float, float] | None:
    """Error and contact magnitude of one transition; None where a mode changes within the step."""
    return transition_error(dynamics, x, u, gradient) if modes_hold(dynamics, x, u) else None


def transition_error(
    dynamics: ContactDynamics, x: Array, u: Array, gradient: Gradient
) -> tuple[float, float]:
    """As `check_transition`, for a transition within which no mode changes."""
    hard, exact = dynamics.step(x, u), isinstance(gradient, Exact)

    def step(points: Array) -> Array:
        states, controls = points[:, : dynamics.nx], points[:, dynamics.nx :]
        if exact:
            return dynamics.step(states, controls).state
        return dynamics.relaxed_step(states, controls, gradient, about=hard).state

    transition = dynamics.transition if exact else dynamics.transition_at_relaxed
    analytic = np.hstack(transition(x, u, gradient))
    errors = []
    for size in (STEP, STEP / 10, STEP / 100):  # less rounding first, less truncation last
        numeric = finite_difference(
            step,
            np.concatenate([x, u]),
            step=size,
            integrate=joint_move(dynamics),
            difference=dynamics.difference,
            tangent=dynamics.ndx + dynamics.nu,
        )
        errors.append(relative_error(analytic, numeric))
        if errors[-1] < 0.1 * RELATIVE_TOLERANCE:
            break
    return min(errors), float(np.abs(numeric - _free_drift(dynamics)).max())


def relative_error(analytic: Array, numeric: Array) -> float:
    """Largest |analytic - numeric| of [f_x, f_u], each block relative to its largest entry.

    The blocks are the columns of q, of v and of u: those of q are larger by 1/h, and would hide
    what is wrong in the others.
    """
    nv = len(numeric) // 2
    blocks = np.split(np.abs(analytic - numeric), (nv, 2 * nv), axis=1)
    sizes = np.split(np.abs(numeric), (nv, 2 * nv), axis=1)
    errors = [
        block.max(initial=0.0) / max(size.max(initial=0.0), SMALLEST)
        for block, size in zip(blocks, sizes)
    ]
    return float(max(errors))


def _free_drift(dynamics: ContactDynamics) -> Array:
    """[f_x, f_u] of x+ = (q + h v, v): what a step without any force would have."""
    nv, I = dynamics.ndx // 2, np.eye(dynamics.ndx // 2)
    top = np.hstack([I, dynamics.time_step * I, np.zeros((nv, dynamics.nu))])
    return np.vstack([top, np.hstack([0 * I, I, np.zeros((nv, dynamics.nu))])])


def _gradients(dynamics: ContactDynamics, rho: float) -> list[Gradient]:
    # The default smoothing follows A(q), which the gradient holds constant: fix it here.
    return [Exact(), Signorini(rho), FullCone(rho, eps=EPS)] if dynamics.nc else [Exact()]


def joint_move(dynamics: ContactDynamics) -> Callable[[Array, Array], Array]:
    """(x, u) rows moved by tangent rows (dx, du)."""
    nx, n = dynamics.nx, dynamics.ndx

    def move(points: Array, d: Array) -> Array:
        states = dynamics.integrate(points[:, :nx], d[:, :n])
        return np.hstack([states, points[:, nx:] + d[:, n:]])

    return move


def modes_hold(dynamics: ContactDynamics, x: Array, u: Array) -> bool:
    """Whether every contact keeps its mode around x, u and is not about to leave it."""
    z, total = np.concatenate([x, u]), dynamics.ndx + dynamics.nu
    margins = dynamics.linearize(dynamics.rollout(x, u[None])).margins()
    if margins is not None and margins.value.min() < AWAY:
        return False
    reach = 10 * STEP
    d = np.vstack([np.zeros((1, total)), reach * np.eye(total), -reach * np.eye(total)])
    points = joint_move(dynamics)(np.broadcast_to(z, (len(d), len(z))), d)
    steps = dynamics.step(points[:, : dynamics.nx], points[:, dynamics.nx :])
    return bool((steps.modes == steps.modes[0]).all())


def is_braced(dynamics: ContactDynamics, x: Array, pattern: str) -> bool:
    """Whether the contacts that carry have more rows than rank; rows that cannot move are none."""
    J = step_terms(dynamics, x).J
    carries = np.array([letter != "s" for letter in pattern], bool)
    rows = J[np.repeat(carries, dynamics.system.contact_dims)]
    rows = rows[np.linalg.norm(rows, axis=1) > 1e-9]
    return len(rows) > 0 and int(np.linalg.matrix_rank(rows, tol=1e-6)) < len(rows)
