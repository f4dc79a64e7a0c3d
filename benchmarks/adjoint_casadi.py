"""The arm of `adjoint_arm` in CasADi: its own derivatives of the same step, in reverse mode."""

from __future__ import annotations

from typing import Any

import casadi as ca

from cito.benchmarks import adjoint_arm as arm

NX = 2 * arm.JOINTS


def step() -> Any:
    """(x, u) -> x+ as a function of scalar operations; damping acts at v+."""
    q, v, u = (ca.SX.sym(name, arm.JOINTS) for name in "qvu")
    M, c = mass_matrix_and_bias(q, v)
    M += arm.TIME_STEP * ca.diag(ca.SX(arm.DAMPING))
    v_next = v + arm.TIME_STEP * ca.ldl_solve(u - c, *ca.ldl(M, False))
    x_next = ca.vertcat(q + arm.TIME_STEP * v_next, v_next)
    return ca.Function("step", [ca.vertcat(q, v), u], [x_next])


def transposed_step() -> Any:
    """(g_x(k+1), x, u) -> g_x(k), g_u(k) by CasADi's reverse mode of scalar operations."""
    x, u, g = ca.SX.sym("x", NX), ca.SX.sym("u", arm.JOINTS), ca.SX.sym("g", NX)
    x_next = step()(x, u)
    g_x = arm.TIME_STEP * x + ca.jtimes(x_next, x, g, True)
    return ca.Function("transposed", [g, x, u], [g_x, ca.jtimes(x_next, u, g, True)])


def mass_matrix_and_bias(q: Any, v: Any) -> tuple[Any, Any]:
    """M (7, 7) and c (7,), recursively, each link in its own frame."""
    n = arm.JOINTS
    frames = [_frame(i, q[i]) for i in range(n)]
    forces = _forces(frames, v)
    M, c = ca.SX.zeros(n, n), ca.SX.zeros(n)
    m, h, I = 0.0, ca.SX.zeros(3), ca.SX.zeros(3, 3)  # of all links from i on, about frame i
    for i in reversed(range(n)):
        axis, com = ca.SX(arm.AXES[i]), ca.SX(arm.COM)
        m += arm.MASSES[i]
        h += arm.MASSES[i] * com
        I += ca.SX(arm.INERTIAS[i]) - arm.MASSES[i] * ca.skew(com) @ ca.skew(com)
        f, t = ca.cross(axis, h), I @ axis  # of a unit acceleration of joint i
        M[i, i] = ca.dot(axis, t) + arm.ARMATURE
        c[i] = ca.dot(axis, forces[i][1]) + arm.DAMPING[i] * v[i]
        for j in range(i, 0, -1):
            f, t = _to_parent(frames[j], f, t)
            M[i, j - 1] = M[j - 1, i] = ca.dot(ca.SX(arm.AXES[j - 1]), t)
        if i == 0:
            break
        f, t = _to_parent(frames[i], *forces[i])
        forces[i - 1] = (forces[i - 1][0] + f, forces[i - 1][1] + t)
        R, p = frames[i]
        P, h = ca.skew(p), R @ h
        I = R @ I @ R.T - P @ ca.skew(h) - ca.skew(h) @ P - m * P @ P
        h += m * p
    return M, c


def _frame(i: int, angle: Any) -> tuple[Any, Any]:
    """Rotation to the parent and origin in it."""
    K = ca.skew(ca.SX(arm.AXES[i]))
    R = ca.SX.eye(3) + ca.sin(angle) * K + (1 - ca.cos(angle)) * (K @ K)
    return R, ca.SX(arm.POSITIONS[i])


def _to_parent(frame: tuple[Any, Any], f: Any, t: Any) -> tuple[Any, Any]:
    R, p = frame
    f = R @ f
    return f, R @ t + ca.cross(p, f)


def _forces(frames: list[tuple[Any, Any]], v: Any) -> list[tuple[Any, Any]]:
    """Force and torque that each single link asks for, at rest joint accelerations."""
    forces = []
    w, dw, a = ca.SX.zeros(3), ca.SX.zeros(3), ca.SX([0, 0, arm.GRAVITY])
    for i, (R, p) in enumerate(frames):
        rate, com, I = ca.SX(arm.AXES[i]) * v[i], ca.SX(arm.COM), ca.SX(arm.INERTIAS[i])
        a = R.T @ (a + ca.cross(dw, p) + ca.cross(w, ca.cross(w, p)))
        w = R.T @ w
        dw = R.T @ dw + ca.cross(w, rate)
        w = w + rate
        f = arm.MASSES[i] * (a + ca.cross(dw, com) + ca.cross(w, ca.cross(w, com)))
        forces.append((f, I @ dw + ca.cross(w, I @ w) + ca.cross(com, f)))
    return forces
