"""The rotation nearest to a matrix, and its derivative, at many points at once.

    R(M) = argmax over SO(d) of tr(R' M),   M = F A,   d = 2 or 3

Perturb M at fixed R, and R by R [w] with a spin w (one number in 2-D). The maximum is stationary:

    (tr(S) I - S) w = axial(R' M),   S = sym(R' M)          (2-D: tr(S) w = axial(R' M))

which is Newton's step for R, and, with dM in place of M on the right, the derivative dR = R [w].
The matrix on the left has the eigenvalues s_i + s_j of pairs of signed singular values (the last
one negative where det M < 0). Nothing is divided by s_i - s_j: equal singular values are no
special case. Where s_i + s_j = 0, of an element turned inside out by as much as it is thick, R
itself jumps; sums count as 1e-9 of the size of M at least, so that the derivative is large there
and not infinite. Its inverse is what is called the gains here.

Arrays are component first, (d, d, m): the last axis runs over points. The loops are native
(dynamics/native/soft.inc).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cito.dynamics import _native
from cito.dynamics.types import Array


class LocalStep(NamedTuple):
    """R, P = F - R A, both (d, d, m), and |P|^2 / 2 (m,)."""

    R: Array
    P: Array
    energy: Array


def local_step(F: Array, A: Array, near: Array | None = None) -> LocalStep:
    """The rotations nearest to F A; `near` (d, d, m) are rotations that may be close."""
    return LocalStep(*_native.soft_local_step(F, A, near))


def gains(F: Array, A: Array, R: Array) -> Array:
    """What `rotation_change` and `stress_change` need to know of R, (1, m) or (6, m)."""
    found: Array = _native.soft_gains(F, A, R)
    return found


def rotation_change(Z: Array, A: Array, R: Array, gains: Array) -> Array:
    """dR in the direction dF = Z, (d, d, m); X' dR(Z) = Z' dR(X) where A is the identity."""
    change: Array = _native.soft_derivative(Z, A, R, gains, False)
    return change


def stress_change(Z: Array, A: Array, R: Array, gains: Array) -> Array:
    """Z - dR A, the change of F - R A in the direction dF = Z, (d, d, m)."""
    change: Array = _native.soft_derivative(Z, A, R, gains, True)
    return change


def transposed_product(A: Array, B: Array) -> Array:
    """A' B at each point, (d, d, m)."""
    product: Array = np.einsum("kim,kjm->ijm", A, B)
    return product
