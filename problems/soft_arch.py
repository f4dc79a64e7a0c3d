"""A soft bar that lies on the ground shall arch its back: a shape to match, with hard contact.

The bar is a mesh of triangles with the shape-targeting energy of `cito.dynamics.soft`, here with
lumped masses as a system of its own, so that the ground is the chain's: contacts open, slide and
stick as the bar bends. In each triangle of area a, with F = G q,

    V = a s / 2 |F - R A|^2,    A = 1 + u D,    D = e_x e_x'

for the fibre strain u that a muscle asks for. To first order in u its force is B(q) u with
B = -d/dq (dV/du at u = 0), linear in the control as the chain wants it; the dampers see the rate of
strain only, sym(F' dF/dt), and let rigid motions be. Planar, (x, z).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.types import Array, positive, whole_number
from cito.problems.costs import ControlCost, StateCost
from cito.problems.problem import MAX_HORIZON, Problem
from cito.problems.registry import task

if TYPE_CHECKING:
    from cito.dynamics.soft.mesh import Mesh
    from cito.dynamics.symbolic import SymbolicSystem

LENGTH, HEIGHT = 0.4, 0.1  # of the bar [m]
CELLS = (4, 1)
STRAIN_LIMIT = 0.4  # of a muscle


def bar_mesh() -> Mesh:
    """Two triangles a cell, one with its base on the ground."""
    from cito.dynamics.soft.shapes import block

    return block((LENGTH, HEIGHT), CELLS)


def soft_bar(
    mass: float = 0.2, gravity: float = 9.81, stiffness: float = 1000.0, damping: float = 3.0
) -> SymbolicSystem:
    """The bar, a muscle along it in each triangle: q = (x_0, z_0, x_1, ...), u strains [-].

    Args:
        mass: [kg].
        gravity: >= 0 [m/s^2].
        stiffness: s [N/m].
        damping: >= 0 [N s/m].
    """
    import casadi as ca

    from cito.dynamics.symbolic import Contact, SymbolicSystem

    m, s = positive("mass", mass), positive("stiffness", stiffness)
    g = positive("gravity", gravity, allow_zero=True)
    c = positive("damping", damping, allow_zero=True)
    mesh = bar_mesh()
    n, muscles = len(mesh.vertices), len(mesh.elements)
    q, v, u = ca.SX.sym("q", 2 * n), ca.SX.sym("v", 2 * n), ca.SX.sym("u", muscles)
    masses = (
        m
        * np.bincount(mesh.elements.ravel(), np.repeat(mesh.volumes, 3))
        / (3 * mesh.volumes.sum())
    )
    x, dx = ca.reshape(q, 2, n), ca.reshape(v, 2, n)
    V, pulls, damper = g * ca.dot(ca.SX(masses), x[1, :].T), [], ca.SX.zeros(2, n)
    for corners, area, grads in zip(mesh.elements, mesh.volumes, mesh.gradients):
        ids = [int(i) for i in corners]
        F, dF = x[:, ids] @ ca.SX(grads), dx[:, ids] @ ca.SX(grads)
        trace, skew = F[0, 0] + F[1, 1], F[1, 0] - F[0, 1]
        pair = ca.sqrt(trace**2 + skew**2)  # the sum of the signed singular values
        V += area * s / 2 * (ca.sumsqr(F) + 2 - 2 * pair)
        R = ca.vertcat(ca.horzcat(trace, -skew), ca.horzcat(skew, trace)) / pair
        pulls.append(area * s * ca.dot(R[:, 0], F[:, 0]))  # -dV/du at u = 0, up to a constant
        rate = F.T @ dF
        damper[:, ids] -= area * c * F @ (rate + rate.T) / 2 @ ca.SX(grads).T
    return SymbolicSystem(
        q, v, u,
        kinetic=0.5 * ca.dot(ca.SX(np.repeat(masses, 2)), v**2),
        potential=V,
        force=ca.vec(damper),
        actuation=ca.jacobian(ca.vertcat(*pulls), q).T,
        contacts=[
            Contact(point=x[:, int(i)], name=f"vertex {i}")
            for i in np.flatnonzero(mesh.vertices[:, 1] == 0)
        ],
        names=tuple(f"{axis}{i}" for i in range(n) for axis in "xz"),
    )  # fmt: skip


def arched(curvature: float) -> Array:
    """The bar bent into part of a circle, its ends on the ground, as positions (2 n,) [m].

    It is at rest, but for gravity, where muscles ask for A = 1 + curvature (z - HEIGHT / 2) D.
    """
    X = bar_mesh().vertices
    angle = curvature * (X[:, 0] - LENGTH / 2)
    radius = 1 / curvature + X[:, 1] - HEIGHT / 2
    x, z = LENGTH / 2 + radius * np.sin(angle), radius * np.cos(angle)
    return np.stack([x, z - z.min()], axis=1).ravel()


@task("soft-arch", "a soft bar on the ground shall arch its back; its muscles are all it has")
def soft_arch(
    friction: float = 0.3,
    time_step: float = 0.0025,
    horizon: int = 60,
    mass: float = 0.2,
    gravity: float = 9.81,
    stiffness: float = 1000.0,
    damping: float = 3.0,
    curvature: float = 2.0,
    state_weight: float = 10.0,
    control_weight: float = 1e-2,
    terminal_weight: float = 1000.0,
) -> Problem:
    """Weights are on positions; at the end a hundredth on velocities too."""
    parameters = dict(locals())
    system = soft_bar(mass, gravity, stiffness, damping)
    dynamics = ContactDynamics(system, time_step=time_step, friction=friction)
    nq = system.nv
    rest, still = bar_mesh().vertices.ravel(), np.zeros(nq)
    target = np.append(arched(positive("curvature", curvature)), still)
    running = positive("state_weight", state_weight, allow_zero=True)
    terminal = positive("terminal_weight", terminal_weight, allow_zero=True)
    R = np.full(system.nu, positive("control_weight", control_weight, allow_zero=True))
    return Problem(
        name="soft-arch",
        dynamics=dynamics,
        start=np.append(rest, still),
        horizon=whole_number("horizon", horizon, 1, MAX_HORIZON),
        costs=(
            StateCost(np.append(np.full(nq, running), still), target),
            ControlCost(R),
            StateCost(np.repeat([terminal, terminal / 100], nq), target, knots="terminal"),
        ),
        control_lower=np.full(system.nu, -STRAIN_LIMIT),
        control_upper=np.full(system.nu, STRAIN_LIMIT),
        parameters=parameters,
    )
