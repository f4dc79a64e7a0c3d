"""Linear systems with contact, and the point mass.

    M dv/dt + K q + D v + c_0 = B u + J' lambda/h,      phi(q) = G q + phi_0

with constant M, K, D, c_0, B, J, G, phi_0 and Euclidean q (nq = nv). The mixed-integer reference
is exact for these, which is why the reference tasks are built on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics import _native
from cito.dynamics.types import Array, as_array, as_vector, freeze, positive, without_native


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """Constant matrices of a linear system with `nc` candidate contacts.

    Args:
        mass_matrix: M, (nv, nv), symmetric positive definite [kg].
        actuation: B, (nv, nu) [-].
        bias: c_0, (nv,), constant generalized force, e.g. m g upwards-positive [N].
        contact_jacobian: J, (n, nv); rows of a contact (T, N) or (T1, T2, N) [-].
        contact_dims: (nc,), rows of each contact: 1 (N), 2 (T, N) or 3 (T1, T2, N).
        gap_jacobian: G, (nc, nv) [-].
        gap_offset: phi_0, (nc,) [m].
        stiffness: K, (nv, nv) [N/m]; zero by default.
        damping: D, (nv, nv) [N s/m]; zero by default.
        names: what the coordinates of q are called, for tables and plots.

    The system's own parameter theta (np = 1) is the logarithm of a scale on M and c_0.
    """

    mass_matrix: Array
    actuation: Array
    bias: Array
    contact_jacobian: Array
    contact_dims: tuple[int, ...]
    gap_jacobian: Array
    gap_offset: Array
    stiffness: Array | None = None
    damping: Array | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        M = as_array("mass_matrix", self.mass_matrix, (None, None))
        nv = len(M)
        if M.shape != (nv, nv) or not np.allclose(M, M.T, rtol=1e-12, atol=0):
            raise ValueError(f"`mass_matrix` must be square and symmetric, got shape {M.shape}")
        if np.linalg.eigvalsh(M)[0] <= 0:
            raise ValueError("`mass_matrix` must be positive definite")
        dims = tuple(int(d) for d in self.contact_dims)
        if any(d not in (1, 2, 3) for d in dims):
            raise ValueError(f"`contact_dims` must be 1, 2 or 3 each, got {dims}")
        zeros = np.zeros((nv, nv))
        set_(self, "mass_matrix", M)
        set_(self, "actuation", as_array("actuation", self.actuation, (nv, None)))
        set_(self, "bias", as_vector("bias", self.bias, nv))
        J = as_array("contact_jacobian", self.contact_jacobian, (sum(dims), nv))
        set_(self, "contact_jacobian", J)
        set_(self, "contact_dims", dims)
        set_(self, "gap_jacobian", as_array("gap_jacobian", self.gap_jacobian, (len(dims), nv)))
        set_(self, "gap_offset", as_vector("gap_offset", self.gap_offset, len(dims)))
        for name in ("stiffness", "damping"):
            value = getattr(self, name)
            set_(self, name, as_array(name, zeros if value is None else value, (nv, nv)))
        set_(self, "names", tuple(self.names) or tuple(f"q{i}" for i in range(nv)))
        freeze(self)

    __getstate__ = without_native

    @cached_property
    def native(self) -> _native.System:
        """The system as the native core sees it."""
        assert self.stiffness is not None and self.damping is not None  # set in __post_init__
        return _native.linear_system(
            self.mass_matrix,
            self.stiffness,
            self.damping,
            self.bias,
            self.actuation,
            self.contact_jacobian,
            self.gap_jacobian,
            self.gap_offset,
            np.array(self.contact_dims, dtype=np.int32),
        )


def point_mass(dimension: int = 2, mass: ArrayLike = 1.0, gravity: float = 9.81) -> LinearSystem:
    """A point mass over flat ground, driven by a force: q = (p_x, p_z) or (p_x, p_y, p_z) [m].

    Args:
        dimension: 2 or 3.
        mass: [kg].
        gravity: >= 0, along -z [m/s^2].
    """
    if dimension not in (2, 3):
        raise ValueError(f"`dimension` must be 2 or 3, got {dimension!r}")
    m = positive("mass", mass)
    g = positive("gravity", gravity, allow_zero=True)
    up = np.eye(dimension)[-1]
    return LinearSystem(
        mass_matrix=m * np.eye(dimension),
        actuation=np.eye(dimension),
        bias=m * g * up,
        contact_jacobian=np.eye(dimension),
        contact_dims=(dimension,),
        gap_jacobian=up[None],
        gap_offset=np.zeros(1),
        names=("p_x", "p_z") if dimension == 2 else ("p_x", "p_y", "p_z"),
    )
