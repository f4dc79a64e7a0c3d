"""Linear systems with contact that the tests step: point masses, coupled bodies, random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cito.dynamics import ContactDynamics, LinearSystem, point_mass

if TYPE_CHECKING:
    from cito.dynamics.symbolic import SymbolicSystem


def random_system(dims: tuple[int, ...], seed: int = 0, nv: int = 6, nu: int = 4) -> LinearSystem:
    """Dense M, K, D and contact rows that couple every contact with every other.

    Each normal row is the gradient of its gap, so that the gap after a step is h sigma_N.
    """
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((nv, nv)) / np.sqrt(nv)
    J = rng.standard_normal((sum(dims), nv)) / np.sqrt(nv)
    last = np.cumsum(dims, dtype=int) - 1
    return LinearSystem(
        mass_matrix=np.eye(nv) + root @ root.T,
        actuation=rng.standard_normal((nv, nu)),
        bias=rng.standard_normal(nv),
        contact_jacobian=J,
        contact_dims=dims,
        gap_jacobian=J[last],
        gap_offset=np.zeros(len(dims)),
        stiffness=0.3 * rng.standard_normal((nv, nv)),
        damping=0.3 * rng.standard_normal((nv, nv)),
    )


def two_bodies(masses: tuple[float, float] = (1.0, 3.0), gravity: float = 9.81) -> LinearSystem:
    """A point mass on another on the ground, q = (x_1, z_1, x_2, z_2), forces on both.

    Contacts: the first with the ground; the second with the first, at a distance of 1 m.
    """
    m = np.repeat(masses, 2)
    ground, between = np.eye(2, 4), np.hstack([-np.eye(2), np.eye(2)])
    J = np.vstack([ground, between])
    return LinearSystem(
        mass_matrix=np.diag(m),
        actuation=np.eye(4),
        bias=gravity * m * np.array([0.0, 1.0, 0.0, 1.0]),
        contact_jacobian=J,
        contact_dims=(2, 2),
        gap_jacobian=J[[1, 3]],
        gap_offset=np.array([0.0, -1.0]),
    )


def chain() -> SymbolicSystem:
    """Three point masses on two massless rods in a vertical plane; M, c, J, phi all turn with q.

    q = (x, z of the first mass, angles of the rods from the horizontal); u = (force along z on the
    first mass, torque between the rods); the outer masses touch the ground.
    theta = (logarithm of a scale on the last mass, length of the second rod).
    """
    import casadi as ca

    from cito.dynamics.symbolic import Contact, SymbolicSystem

    q, v, u, theta = (ca.SX.sym(s, k) for s, k in (("q", 4), ("v", 4), ("u", 2), ("theta", 2)))
    first = q[:2]
    middle = first + 0.7 * ca.vertcat(ca.cos(q[2]), ca.sin(q[2]))
    last = middle + theta[1] * ca.vertcat(ca.cos(q[3]), ca.sin(q[3]))
    masses, points = (1.0, 0.5, 0.8 * ca.exp(theta[0])), (first, middle, last)
    kinetic = sum(0.5 * m * ca.sumsqr(ca.jtimes(p, q, v)) for m, p in zip(masses, points))
    potential = sum(9.81 * m * p[1] for m, p in zip(masses, points))
    return SymbolicSystem(
        q,
        v,
        u,
        kinetic=kinetic,
        potential=potential,
        actuation=[[0, 0], [1, 0], [0, 1], [0, -1]],
        contacts=[Contact(point=first), Contact(point=last)],
        parameters=theta,
        nominal=[0.0, 0.7],
        compile=False,
    )


def contact_free(nv: int = 3, nu: int = 2, seed: int = 0) -> LinearSystem:
    """Masses, springs and dampers without any contact."""
    rng = np.random.default_rng(seed)
    return LinearSystem(
        mass_matrix=np.diag(rng.uniform(0.5, 2.0, nv)),
        actuation=rng.standard_normal((nv, nu)),
        bias=rng.standard_normal(nv),
        contact_jacobian=np.zeros((0, nv)),
        contact_dims=(),
        gap_jacobian=np.zeros((0, nv)),
        gap_offset=np.zeros(0),
        stiffness=rng.standard_normal((nv, nv)),
        damping=rng.standard_normal((nv, nv)),
    )


def contact_systems() -> dict[str, ContactDynamics]:
    """What the properties of the step and of its derivatives are tested on."""
    h = 0.05
    return {
        "point mass 2-D": ContactDynamics(point_mass(2), h),
        "point mass 3-D": ContactDynamics(point_mass(3, mass=2.0), h, friction=0.5),
        "frictionless": ContactDynamics(point_mass(3), h, friction=0.0),
        "two bodies": ContactDynamics(two_bodies(), h, friction=[0.4, 0.7]),
        "coupled 2, 2": ContactDynamics(random_system((2, 2), 1), h, friction=[0.3, 0.9]),
        "coupled 3, 1": ContactDynamics(random_system((3, 1), 2), h, friction=0.6),
        "coupled 1, 2, 3": ContactDynamics(random_system((1, 2, 3), 3, nv=8), h, friction=0.5),
        "coupled 3, 2, 1, 3": ContactDynamics(
            random_system((3, 2, 1, 3), 4, nv=10), h, friction=[0.7, 1.0, 0.0, 0.5]
        ),
    }


def exploding_spring(stiffness: float) -> LinearSystem:
    """A unit mass on a spring that pushes apart so hard that the free motion overflows."""
    return LinearSystem(
        mass_matrix=np.eye(1),
        actuation=np.eye(1),
        bias=np.zeros(1),
        contact_jacobian=np.zeros((0, 1)),
        contact_dims=(),
        gap_jacobian=np.zeros((0, 1)),
        gap_offset=np.zeros(0),
        stiffness=-stiffness * np.eye(1),
    )
