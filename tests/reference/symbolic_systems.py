"""Symbolic systems that between them use every way to describe one."""

from __future__ import annotations

import casadi as ca

from cito.dynamics.symbolic import Contact, SymbolicSystem


def rod(compile: bool | None = None) -> SymbolicSystem:
    """A free rod with two ends, planar; theta = (mass, half length), viscous drag."""
    q, v, u = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("u", 1)
    theta = ca.SX.sym("theta", 2)
    m, half = theta[0], theta[1]
    along = half * ca.vertcat(ca.cos(q[2]), ca.sin(q[2]))
    return SymbolicSystem(
        q,
        v,
        u,
        kinetic=0.5 * m * (v[0] ** 2 + v[1] ** 2 + half**2 / 3 * v[2] ** 2),
        potential=9.81 * m * q[1],
        force=-0.3 * v,
        actuation=[[1], [0], [half * ca.sin(q[2])]],
        contacts=[Contact(point=q[:2] + along), Contact(point=q[:2] - along)],
        parameters=theta,
        nominal=[1.2, 0.5],
        compile=compile,
    )


def ball_in_bowl(compile: bool | None = None) -> SymbolicSystem:
    """A point in a spherical bowl, in space, on a spring: the normal turns with the point."""
    q, v, u = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("u", 3)
    radius = ca.SX.sym("radius")
    distance = ca.norm_2(q - ca.SX([0, 0, 2]))
    return SymbolicSystem(
        q,
        v,
        u,
        mass_matrix=ca.diag(1 + 0.1 * q**2),
        bias=ca.vertcat(0, 0, 9.81) + 0.3 * q + 0.1 * q * v**2,
        actuation=ca.SX.eye(3),
        contacts=[
            Contact(gap=radius - distance, normal=-(q - ca.SX([0, 0, 2])) / distance, velocity=v),
            Contact(gap=q[0] + 1, name="wall without friction"),
        ],
        parameters=radius,
        nominal=[2.0],
        compile=compile,
    )


def pendulum(compile: bool | None = None) -> SymbolicSystem:
    """A pendulum with a stop at 0.5 rad and no friction there."""
    q, v, u = ca.SX.sym("q"), ca.SX.sym("v"), ca.SX.sym("u")
    return SymbolicSystem(
        q,
        v,
        u,
        kinetic=0.5 * v**2,
        potential=-9.81 * ca.cos(q),
        actuation=[1],
        contacts=[Contact(gap=0.5 - q)],
        names=("angle",),
        compile=compile,
    )
