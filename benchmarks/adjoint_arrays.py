"""The arm of `adjoint_arm` in functions of arrays that PyTorch and JAX have in common.

World coordinates, all links at once; what is summed along the chain is a cumulative sum. Only the
frames are placed one after another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cito.benchmarks import adjoint_arm as arm

Array = Any  # of PyTorch or JAX


class Arm:
    """The arm in the functions `xp`, `cross(a, b)` and arrays `array(values)` of a library."""

    def __init__(self, xp: Any, cross: Any, array: Any) -> None:
        self.xp, self.cross = xp, cross
        skew = np.cross(arm.AXES[:, None], np.eye(3)).transpose(0, 2, 1)  # columns a x e_j
        self.K, self.KK, self.I = array(skew), array(skew @ skew), array(np.eye(3))
        self.axes, self.com = array(arm.AXES), array(arm.COM)
        self.positions = [array(p) for p in arm.POSITIONS]
        self.m, self.inertias = array(arm.MASSES), array(arm.INERTIAS)
        self.damping, self.armature = array(arm.DAMPING), array(arm.ARMATURE * np.eye(arm.JOINTS))
        self.implicit = array(arm.TIME_STEP * np.diag(arm.DAMPING))
        self.lift = array(np.array([0, 0, arm.GRAVITY]))

    def step(self, x: Array, u: Array) -> Array:
        """x+ (14,) of semi-implicit Euler, damping at v+."""
        q, v = x[: arm.JOINTS], x[arm.JOINTS :]
        M, c = self.mass_matrix_and_bias(q, v)
        v_next = v + arm.TIME_STEP * self.xp.linalg.solve(M + self.implicit, u - c)
        return self.xp.concatenate([q + arm.TIME_STEP * v_next, v_next])

    def mass_matrix_and_bias(self, q: Array, v: Array) -> tuple[Array, Array]:
        """M (7, 7) = J' Yc J and c (7,) = J' Fc + damping v."""
        xp, cross = self.xp, self.cross
        R, p = self.frames(q)
        z = xp.einsum("iab,ib->ia", R, self.axes)  # joint twists (lever, z)
        lever = cross(p, z)
        w = xp.cumsum(z * v[:, None], 0)
        o = xp.cumsum(lever * v[:, None], 0)
        dw = xp.cumsum(cross(w, z * v[:, None]), 0)
        do = xp.cumsum(cross(w, lever * v[:, None]) + cross(o, z * v[:, None]), 0) + self.lift
        com = p + xp.einsum("iab,b->ia", R, self.com)
        I = xp.einsum("iab,ibc,idc->iad", R, self.inertias, R)  # about the centres of mass
        h = self.m[:, None] * com
        H = xp.einsum("ia,ib->iab", h, com)
        I_o = I - H + xp.einsum("iaa->i", H)[:, None, None] * self.I  # about the origin
        # momentum (P, L) of each link, force (f, t) = Y A + V x* Y V
        P = self.m[:, None] * o + cross(w, h)
        L = xp.einsum("iab,ib->ia", I_o, w) + cross(h, o)
        f = self.m[:, None] * do + cross(dw, h) + cross(w, P)
        t = xp.einsum("iab,ib->ia", I_o, dw) + cross(h, do) + cross(w, L) + cross(o, P)
        f, t, h, I_o = (self.outwards(a) for a in (f, t, h, I_o))
        m = self.outwards(self.m)
        c = (lever * f).sum(-1) + (z * t).sum(-1) + self.damping * v
        G = lever @ (m[:, None] * lever + cross(z, h)).T
        G = G + z @ (xp.einsum("iab,ib->ia", I_o, z) + cross(h, lever)).T  # J_j' Yc_k J_k
        return xp.triu(G) + xp.triu(G, 1).T + self.armature, c

    def frames(self, q: Array) -> tuple[Array, Array]:
        """Rotations (7, 3, 3) and origins (7, 3) of the links in the world."""
        xp = self.xp
        turns = self.I + xp.sin(q)[:, None, None] * self.K
        turns = turns + (1 - xp.cos(q))[:, None, None] * self.KK
        R, p = turns[0], self.positions[0]
        rotations, origins = [R], [p]
        for i in range(1, arm.JOINTS):
            p = p + R @ self.positions[i]
            R = R @ turns[i]
            rotations.append(R)
            origins.append(p)
        return xp.stack(rotations), xp.stack(origins)

    def outwards(self, a: Array) -> Array:
        """Sums over the links from each one to the tip."""
        xp = self.xp
        return xp.flip(xp.cumsum(xp.flip(a, (0,)), 0), (0,))

    def loss(self, states: list[Array]) -> Array:
        """1/2 |x_N|^2 + h/2 sum_k |x_k|^2."""
        X = self.xp.stack(states)
        return 0.5 * (states[-1] ** 2).sum() + 0.5 * arm.TIME_STEP * (X**2).sum()
