"""A structured Lagrangian as a system of the native core.

    H(q) dv/dt + c(q, v) = B u + J(q)' lambda/h,      H, c from the networks, B and contacts known

The networks become CasADi expressions of whole matrices, not of scalars, and these C code with
short loops: it compiles in a second, whatever the width. From there on a learned system is a system
like any other: `ContactDynamics` steps it with hard contact, DDP and MPC take its f_x, f_u.

    network     h, D = dh/dq:   h_l = tanh(W h + b),   D_l = diag(1 - h_l^2) W D
    H = L L',   dH/dq_k = dL_k L' + L dL_k',   c = (sum_k v_k dH_k) v - 1/2 (v' dH_k v)_k + dV/dq
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics import _native
from cito.dynamics.learned.cholesky import places
from cito.dynamics.learned.lagrangian import StructuredLagrangian
from cito.dynamics.learned.network import Network
from cito.dynamics.symbolic import Contact, contact_rows
from cito.dynamics.symbolic_build import build_programs
from cito.dynamics.types import as_array

Contacts = Callable[[Any], Sequence[Contact]]


class LearnedSystem:
    """The system of a trained model.

    Args:
        model: a copy of its weights is taken.
        actuation: B, (n, nu); a motor at every coordinate by default.
        contacts: function of the symbols q (n,) that returns candidate contacts, as of
            `SymbolicSystem`; no contacts by default.
        names: of the coordinates.
        compile: True: compile generated C; False: run CasADi's tape; None: compile if possible.

    Raises:
        ValueError: another kind of model, or shapes that do not fit it.
        RuntimeError: `compile=True` without a working compiler.
    """

    def __init__(
        self,
        model: StructuredLagrangian,
        actuation: ArrayLike | None = None,
        contacts: Contacts | None = None,
        names: Sequence[str] = (),
        *,
        compile: bool | None = None,
    ) -> None:
        if not isinstance(model, StructuredLagrangian):
            raise ValueError(
                "`model` must be a StructuredLagrangian, which has a mass matrix, "
                f"got {type(model).__name__}"
            )
        n = model.n
        B = np.eye(n) if actuation is None else actuation
        self.model = model
        self.actuation = as_array("actuation", B, (n, None))
        self.nv, self.nu = n, self.actuation.shape[1]
        self.names = tuple(names) or tuple(f"q{i}" for i in range(n))
        if len(self.names) != n:
            raise ValueError(f"`names` must have {n} entries, got {len(self.names)}")
        self._contacts = _Contacts.of(n, contacts)
        self.contact_dims, self.contact_names = self._contacts.dims, self._contacts.names
        functions = _functions(model, self.actuation, self._contacts)
        self._programs, self.compiled = build_programs(functions, compile)

    def __repr__(self) -> str:
        return (
            f"<LearnedSystem of {self.model!r}: q ({', '.join(self.names)}), {self.nu} controls, "
            f"contacts {len(self.contact_dims)}>"
        )

    @cached_property
    def native(self) -> Any:
        """The system as the native core sees it."""
        dims = np.array(self.contact_dims, dtype=np.int32)
        terms, derivatives, none = self._programs
        return _native.symbolic_system(
            terms, derivatives, none, self.nv, self.nu, np.zeros(0), dims
        )


class _Contacts(NamedTuple):
    """casadi.Function q -> J, phi; rows of each contact and its name."""

    function: Any
    dims: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, n: int, contacts: Contacts | None) -> _Contacts:
        q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
        found = [] if contacts is None else list(contacts(q))
        rows = [contact_rows(i, contact, q, v) for i, contact in enumerate(found)]
        J = ca.vertcat(ca.SX(0, n), *(J for J, _ in rows))
        phi = ca.vertcat(ca.SX(0, 1), *(phi for _, phi in rows))
        try:
            function = ca.Function("contacts", [q], [ca.densify(J), ca.densify(phi)])
        except RuntimeError as error:
            raise ValueError(
                "`contacts` must return gaps and velocities of the q that it is given, and of "
                "nothing else"
            ) from error
        dims = tuple(int(J.shape[0]) for J, _ in rows)
        return cls(function, dims, tuple(contact.name for contact in found))


class _Expressions(NamedTuple):
    """H (n, n), the list of dH/dq_k, dV/dq (n, 1)."""

    H: Any
    dH: list[Any]
    dV: Any


def _functions(model: StructuredLagrangian, B: Any, contacts: _Contacts) -> list[Any]:
    """terms, derivatives and parameter derivatives, as `cito.dynamics.symbolic` has them."""
    n, m = model.n, sum(contacts.dims)
    theta = ca.MX.sym("theta", 0)
    q, v, u = ca.MX.sym("q", n), ca.MX.sym("v", n), ca.MX.sym("u", B.shape[1])
    a, w, f = ca.MX.sym("a", n), ca.MX.sym("w", n), ca.MX.sym("f", m)
    H, dH, dV = _expressions(model, q)
    c = dV
    for k in range(n):
        c = c + v[k] * (dH[k] @ v)
    c = c - 0.5 * ca.vertcat(*(v.T @ dH_k @ v for dH_k in dH))
    J, phi = contacts.function.call([q], True, False)
    B = ca.MX(ca.DM(B))
    r = H @ a + c - B @ u
    Jw = J @ w
    if m > 0:
        r = r - J.T @ f
    inputs = [theta, q, v, a, u, f, w]
    empty = [ca.MX(len_, 0) for len_ in (n, m, phi.shape[0])]
    return [
        _function("terms", [theta, q, v], [H, c, B, J, phi]),
        _function(
            "derivatives",
            inputs,
            [ca.jacobian(r, q), ca.jacobian(r, v), ca.jacobian(Jw, q), ca.jacobian(phi, q)],
        ),
        _function("parameter_derivatives", inputs, empty),
    ]


def _function(name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """Dense and transposed outputs: CasADi stores columns, the native core rows."""
    return ca.Function(name, inputs, [ca.densify(output.T) for output in outputs])


def _expressions(model: StructuredLagrangian, q: Any) -> _Expressions:
    """The model's terms at the symbols q (n,).

    Where entries of a vector differ in kind they are told apart by factors 0 and 1, so that all
    matrices and all of their derivatives are dense: C code for sparse ones is longer and slower.
    """
    n, shape = model.n, model.shape
    on = np.array(shape.periodic)
    z, D = _features(on, model.scales.q, q)
    raw, draw = _network(model.networks["mass"], z, D)
    _, dV = _network(model.networks["potential"], z, D)

    # The diagonal through softplus(x) = log(1 + exp x), in a form that does not overflow.
    diagonal = ca.DM((np.arange(raw.shape[0]) < n).astype(float))
    x = raw + shape.shift
    softplus = ca.fmax(x, 0) + ca.log1p(ca.exp(-ca.fabs(x)))
    entries = diagonal * (softplus + shape.floor) + (1 - diagonal) * raw
    slope = diagonal / (1 + ca.exp(-x)) + (1 - diagonal)
    rows = ca.DM(places(n).T)  # entries -> L row by row
    unit = ca.DM(np.diag(np.sqrt(model.scales.tau / model.scales.a)))
    L = unit @ ca.reshape(rows @ entries, n, n).T
    dL = [unit @ ca.reshape(rows @ (slope * draw[:, k]), n, n).T for k in range(n)]
    half = [dL_k @ L.T for dL_k in dL]
    return _Expressions(L @ L.T, [h + h.T for h in half], float(model.scales.tau.mean()) * dV.T)


def _features(on: Any, spread: Any, q: Any) -> tuple[Any, Any]:
    """z (nz, 1) and dz/dq (nz, n), in the order of `Model.features`."""
    n = len(on)
    turning, straight = np.flatnonzero(on), np.flatnonzero(~on)
    A = np.vstack([np.eye(n)[turning], np.eye(n)[turning], np.eye(n)[straight]])
    A[2 * len(turning) :] /= spread[straight, None]
    kind = np.repeat([0, 1, 2], [len(turning), len(turning), len(straight)])
    as_cos, as_sin, as_is = (ca.DM((kind == k).astype(float)) for k in range(3))
    x = ca.DM(A) @ q
    z = as_cos * ca.cos(x) + as_sin * ca.sin(x) + as_is * x
    slope = as_sin * ca.cos(x) - as_cos * ca.sin(x) + as_is
    return z, ca.repmat(slope, 1, n) * ca.DM(A)


def _network(network: Network, z: Any, D: Any) -> tuple[Any, Any]:
    """y (outputs, 1) and dy/dq (outputs, n)."""
    h = ca.densify(z)
    D = ca.densify(D)
    *hidden, last = [tuple(ca.DM(p.detach().numpy().astype(float)) for p in layer)
                     for layer in network.layers]  # fmt: skip
    for W, b in hidden:
        h = ca.tanh(W @ h + b)
        D = ca.repmat(1 - h * h, 1, D.shape[1]) * (W @ D)
    W, b = last
    return W @ h + b, W @ D
