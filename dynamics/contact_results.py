"""What the contact solves return, one by one and in batches, and how they ended."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from cito.dynamics.types import Array, IntArray


class HardStatus(Enum):
    """How a hard contact solve ended. The value is the sentence a user reads."""

    SOLVED = "Solved: the scaled residual of the contact law is at most 1e-9."
    INACCURATE = (
        "The scaled residual of the contact law stayed above 1e-9; the best answer found is "
        "returned. Check the conditioning of A, or its symmetry if it comes from a model."
    )
    INFEASIBLE = (
        "No impulse can keep every contact from penetrating: contacts oppose each other and b "
        "closes all of them. Remove a contact, or let the gap open over several steps."
    )
    BAD_INPUT = "A or b holds NaN or infinity; nothing was solved."


class RelaxedStatus(Enum):
    """How the solve of a relaxed law ended. The value is the sentence a user reads."""

    SOLVED = "Solved: Newton's method converged strictly inside the cones."
    NOT_CONVERGED = (
        "Newton's method did not converge, also along the central path from a larger rho. "
        "Try a larger rho, or a positive delta where contacts are wedged."
    )
    INFEASIBLE_ROOT = "The root found lies outside the friction cones. Try a larger rho."


class HardSolution(NamedTuple):
    """Solution of the hard law.

    impulse (n) [N s], velocity (n) [m/s], modes (nc): 0 separating, 1 sliding, 2 clamping; at the
    cone's apex (impulse and normal velocity zero) a contact is separating, on the edge between
    stick and slip clamping. residual: the largest violation of the law, scaled by
    sigma_ref = max(|b|, 1e-3 m/s) and lambda_ref = sigma_ref / max A_NN. sweeps: iterations of any
    kind that the solver spent.
    """

    impulse: Array
    velocity: Array
    modes: IntArray
    status: HardStatus
    residual: float
    sweeps: int


class RelaxedSolution(NamedTuple):
    """Point of a relaxed law.

    impulse (n) [N s], velocity (n) [m/s] at b + delta e_N; residual of the law relative to rho;
    Newton iterations, stages of continuation that were needed, and contacts that fell back to
    the hard law (`signorini` without a positive root).
    """

    impulse: Array
    velocity: Array
    status: RelaxedStatus
    residual: float
    iterations: int
    continuations: int
    fallbacks: int


class HardBatch(NamedTuple):
    """Like `HardSolution` with a leading axis (m); `status` indexes `tuple(HardStatus)`."""

    impulse: Array
    velocity: Array
    modes: IntArray
    status: IntArray
    residual: Array
    sweeps: IntArray


class RelaxedBatch(NamedTuple):
    """Like `RelaxedSolution` with a leading axis (m); `status` indexes `tuple(RelaxedStatus)`."""

    impulse: Array
    velocity: Array
    status: IntArray
    residual: Array
    iterations: IntArray
    continuations: IntArray
    fallbacks: IntArray


class SensitivityBatch(NamedTuple):
    """Derivatives of a gradient's law, with a leading axis (m) in a batch.

    db (n, n): d lambda / d b [1/kg inverse]; dmu (n, nc): d lambda / d mu [N s];
    status (index into `tuple(RelaxedStatus)`) and iterations of the relaxed solve; fallbacks:
    contacts (randomized: samples) that could not be relaxed (solved).
    """

    db: Array
    dmu: Array
    status: IntArray
    iterations: IntArray
    fallbacks: IntArray
