"""Systems described by CasADi expressions.

    M(q) dv/dt + c(q, v) = B(q) u + J(q)' lambda/h,       q Euclidean, v = dq/dt, q in R^nv

Say what the coordinates are, give the energies (or M and c), the actuation and the points that may
touch the ground; mass matrix, bias, Jacobians and all derivatives follow. A rod that slides and
tips on a table, pushed sideways at its middle, is ten lines:

    import casadi as ca
    from cito.dynamics.symbolic import Contact, SymbolicSystem

    q, v, u = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("u", 1)
    along = 0.5 * ca.vertcat(ca.cos(q[2]), ca.sin(q[2]))  # from the middle to an end, planar (x, z)
    rod = SymbolicSystem(
        q, v, u,
        kinetic=0.5 * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2 / 12),
        potential=9.81 * q[1],
        actuation=[[1], [0], [0]],
        contacts=[Contact(point=q[:2] + along), Contact(point=q[:2] - along)],
    )

and `ContactDynamics(rod, time_step=0.02, friction=0.5)` makes it a world to step and to optimize.
CasADi's functions run in the native core, compiled where there is a C compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics import _native
from cito.dynamics.symbolic_build import build_programs
from cito.dynamics.symbolic_check import check_numbers, check_symbols, expression, symbols
from cito.dynamics.types import as_vector


@dataclass(frozen=True, eq=False)
class Contact:
    """A candidate contact, as expressions in q (and v where it says so).

    A point over flat ground is `Contact(point=p(q))`. Two bodies touch through
    `Contact(gap, normal, velocity)`. A limit without friction is `Contact(gap=phi(q))`.

    Args:
        point: p(q), (2,) = (x, z) or (3,) = (x, y, z), the material point that touches [m].
        gap: phi(q), signed distance [m]; p_z where only a point is given.
        normal: N(q), unit vector out of the surface, (2,) or (3,); world z by default.
        velocity: velocity of the touching material point relative to the surface's, linear in v,
            (2,) or (3,) [m/s]; dp/dq v by default.
        name: for tables and plots.
    """

    point: Any = None
    gap: Any = None
    normal: Any = None
    velocity: Any = None
    name: str = ""


class SymbolicSystem:
    """A system with contact from CasADi SX expressions; see the module for an example.

    Args:
        q, v, u: symbols, (nv,), (nv,) and (nu,).
        kinetic: T(q, v) [J], quadratic in v; with `potential` it gives M and c by Lagrange.
        potential: V(q) [J], 0 by default.
        mass_matrix, bias: M(q) (nv, nv) and c(q, v) (nv,), in place of the energies.
        force: generalized force in q, v beside the actuation (springs, damping), (nv,) [N, N m].
        actuation: B(q), (nv, nu).
        contacts: candidate contacts, all planar or all in space.
        parameters: symbols theta, (np,), that other expressions may hold.
        nominal: their values, (np,); the native core counts theta from here.
        names: what the coordinates of q are called.
        compile: True: compile generated C; False: run CasADi's tape; None: compile if possible.

    Raises:
        ValueError: shapes that do not fit, symbols left free, T not quadratic in v, M not symmetric
            positive definite, contact velocities that do not fit their gap.
        RuntimeError: `compile=True` without a working compiler.

    Attributes:
        mass_matrix, bias, actuation, contact_jacobian (n, nv), gaps (nc,): the terms as SX.
        compiled: whether the native core runs compiled code.
    """

    def __init__(
        self,
        q: Any,
        v: Any,
        u: Any,
        *,
        kinetic: Any = None,
        potential: Any = None,
        mass_matrix: Any = None,
        bias: Any = None,
        force: Any = None,
        actuation: Any,
        contacts: Sequence[Contact] = (),
        parameters: Any = None,
        nominal: ArrayLike | None = None,
        names: Sequence[str] = (),
        compile: bool | None = None,
    ) -> None:
        self.q, self.v, self.u = symbols("q", q), symbols("v", v, len_of(q)), symbols("u", u)
        self.parameters = symbols("parameters", ca.SX(0, 1) if parameters is None else parameters)
        self.inputs = (self.q, self.v, self.u, self.parameters)
        self.nv, self.nu = len_of(self.q), len_of(self.u)
        self.nominal = _nominal(nominal, len_of(self.parameters))
        self.names = tuple(names) or tuple(f"q{i}" for i in range(self.nv))
        if len(self.names) != self.nv:
            raise ValueError(f"`names` must have {self.nv} entries, got {len(self.names)}")

        nv = self.nv
        if kinetic is not None:
            if mass_matrix is not None or bias is not None:
                raise ValueError("`kinetic` already determines `mass_matrix` and `bias`: give one")
            self.mass_matrix, self.bias = lagrange(self.q, self.v, kinetic, potential)
        elif mass_matrix is None or bias is None or potential is not None:
            raise ValueError(
                "the dynamics must be given as `kinetic` (and `potential`) or as `mass_matrix` "
                "and `bias`"
            )
        else:
            self.mass_matrix = expression("mass_matrix", mass_matrix, (nv, nv))
            self.bias = expression("bias", bias, (nv, 1))
        if force is not None:
            self.bias = self.bias - expression("force", force, (nv, 1))
        self.actuation = expression("actuation", actuation, (nv, self.nu))
        rows = [contact_rows(i, c, self.q, self.v) for i, c in enumerate(contacts)]
        self.contacts = tuple(contacts)
        self.contact_names = tuple(contact.name for contact in contacts)
        self.contact_dims = tuple(int(J.shape[0]) for J, _ in rows)
        self.contact_jacobian = ca.vertcat(ca.SX(0, nv), *(J for J, _ in rows))
        self.gaps = ca.vertcat(ca.SX(0, 1), *(phi for _, phi in rows))

        check_symbols(self)
        check_numbers(self)
        functions = [self.terms_function, *_derivative_functions(self)]
        self._programs, self.compiled = build_programs(functions, compile)

    def __repr__(self) -> str:
        return (
            f"<SymbolicSystem: q ({', '.join(self.names)}), {self.nu} controls, "
            f"contacts {len(self.contact_dims)}>"
        )

    @cached_property
    def terms_function(self) -> Any:
        """casadi.Function (theta, q, v) -> M, c, B, J', phi with M, B and J' transposed.

        CasADi stores matrices by columns and the native core by rows, so all are dense and
        transposed: each output's memory is the row-major array.
        """
        terms = [self.mass_matrix, self.bias, self.actuation, self.contact_jacobian, self.gaps]
        return _row_major_function("terms", [self.parameters, self.q, self.v], terms)

    @cached_property
    def native(self) -> Any:
        """The system as the native core sees it."""
        terms, derivatives, parameter_derivatives = self._programs
        return _native.symbolic_system(
            terms,
            derivatives,
            parameter_derivatives,
            self.nv,
            self.nu,
            self.nominal,
            np.array(self.contact_dims, dtype=np.int32),
        )


def lagrange(q: Any, v: Any, kinetic: Any, potential: Any = None) -> tuple[Any, Any]:
    """M and c of the Lagrangian T - V:  d/dt dT/dv - dT/dq + dV/dq = M dv/dt + c."""
    T = expression("kinetic", kinetic, (1, 1))
    V = expression("potential", 0 if potential is None else potential, (1, 1))
    M, momentum = ca.hessian(T, v)
    if ca.depends_on(M, v):
        raise ValueError("`kinetic` must be quadratic in v: its second derivative depends on v")
    c = ca.jtimes(momentum, q, v) - ca.gradient(T, q) + ca.gradient(V, q)
    return M, c


def contact_rows(index: int, contact: Contact, q: Any, v: Any) -> tuple[Any, Any]:
    """J (dim, nv), rows (T.., N), and phi (1, 1) of one contact."""
    name = f"contacts[{index}]"
    if contact.point is None and contact.velocity is None:
        if contact.gap is None or contact.normal is not None:
            raise ValueError(f"`{name}` needs a point, or gap, normal and velocity, or a gap alone")
        phi = expression(f"{name}.gap", contact.gap, (1, 1))
        return ca.jacobian(phi, q), phi
    moving = contact.point if contact.velocity is None else contact.velocity
    d = len_of(moving)
    if d not in (2, 3):
        raise ValueError(f"`{name}` must be planar (2 coordinates) or in space (3), got {d}")
    on_ground = contact.normal is None and contact.point is not None
    if contact.gap is None and not on_ground:
        raise ValueError(f"`{name}.gap` must be given with a normal or a velocity")
    if contact.normal is None and contact.point is None:
        raise ValueError(f"`{name}.normal` must be given with a velocity")

    normal = [0] * (d - 1) + [1] if contact.normal is None else contact.normal
    N = expression(f"{name}.normal", normal, (d, 1))
    if contact.velocity is None:
        J = ca.jacobian(expression(f"{name}.point", contact.point, (d, 1)), q)
    else:
        velocity = expression(f"{name}.velocity", contact.velocity, (d, 1))
        if not ca.substitute(velocity, v, ca.SX.zeros(v.shape)).is_zero():
            raise ValueError(f"`{name}.velocity` must be linear in v, but is not zero at v = 0")
        J = ca.jacobian(velocity, v)
    phi = contact.point[d - 1] if contact.gap is None else contact.gap
    return ca.mtimes(contact_frame(N).T, J), expression(f"{name}.gap", phi, (1, 1))


def contact_frame(N: Any) -> Any:
    """Columns (T, N), planar, or (T1, T2, N): T1 is world x projected on the tangent plane."""
    if N.shape[0] == 2:
        return ca.horzcat(ca.vertcat(N[1], -N[0]), N)
    along_x = ca.SX([1, 0, 0]) - N[0] * N
    along_y = ca.SX([0, 1, 0]) - N[1] * N  # where N is close to world x
    T1 = ca.if_else(ca.fabs(N[0]) < 0.9, along_x, along_y)
    T1 = T1 / ca.norm_2(T1)
    return ca.horzcat(T1, ca.cross(N, T1), N)


def len_of(vector: Any) -> int:
    """Number of entries of a vector of CasADi's or of a sequence."""
    return int(vector.numel()) if isinstance(vector, ca.SX | ca.DM) else len(vector)


def _nominal(nominal: ArrayLike | None, np_: int) -> Any:
    return as_vector("nominal", np.zeros(np_) if nominal is None else nominal, np_)


def _derivative_functions(system: SymbolicSystem) -> list[Any]:
    """The derivatives of r = M a + c - B u - J' f and of w_c = J w, as cito::System wants them.

    Two functions of (theta, q, v, a, u, f, w): the derivatives by q, v and those by theta.
    """
    q, v, u, theta = system.q, system.v, system.u, system.parameters
    J = system.contact_jacobian
    a, w, f = ca.SX.sym("a", system.nv), ca.SX.sym("w", system.nv), ca.SX.sym("f", J.shape[0])
    r = system.mass_matrix @ a + system.bias - system.actuation @ u - J.T @ f
    Jw, phi = J @ w, system.gaps
    inputs = [theta, q, v, a, u, f, w]
    state = [ca.jacobian(r, q), ca.jacobian(r, v), ca.jacobian(Jw, q), ca.jacobian(phi, q)]
    parameters = [ca.jacobian(expr, theta) for expr in (r, Jw, phi)]
    return [
        _row_major_function("derivatives", inputs, state),
        _row_major_function("parameter_derivatives", inputs, parameters),
    ]


def _row_major_function(name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    return ca.Function(name, inputs, ca.cse([ca.densify(output.T) for output in outputs]))
