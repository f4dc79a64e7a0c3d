"""What observations and costs see of a legged robot's state, and the transpose of its derivative.

    x = (p, quaternion, q; v, w, dq)  ->  height z = p_z,  up = R' e_z,  v, w (body frame),  q, dq

In the tangent space at x, with displacement d and rotation phi of the base in its own frame,
    dz = up . d,      d up = up x phi,
so neither quaternions nor rotation matrices appear in any gradient.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cito.dynamics.types import Array
from cito.problems.locomotion.legs import cross

BASE_Q, BASE_V = 7, 6  # coordinates and velocities of a free joint


class Features(NamedTuple):
    """height (...) [m], up (..., 3) the world's z axis in the base frame, twist (..., 6) of the
    base in its frame [m/s, rad/s], joints and rates (..., nj) [rad, rad/s]; or gradients of all."""

    height: Array
    up: Array
    twist: Array
    joints: Array
    rates: Array


def features(x: Array) -> Features:
    """Of states x (..., nx) of a robot whose base is free and whose joints have one coordinate."""
    nj = (x.shape[-1] - BASE_Q - BASE_V) // 2
    a, b, c, w = x[..., 3], x[..., 4], x[..., 5], x[..., 6]
    up = np.empty((*x.shape[:-1], 3))
    up[..., 0] = 2 * (a * c - w * b)
    up[..., 1] = 2 * (b * c + w * a)
    up[..., 2] = 1 - 2 * (a * a + b * b)
    v = BASE_Q + nj
    return Features(x[..., 2], up, x[..., v : v + 6], x[..., BASE_Q:v], x[..., v + 6 :])


def to_tangent(at: Features, g: Features) -> Array:
    """Gradient (..., ndx) in the tangent space of x, from one with respect to its features."""
    nj = at.joints.shape[-1]
    out = np.empty((*at.height.shape, 2 * (nj + BASE_V)))
    out[..., :3] = g.height[..., None] * at.up
    out[..., 3:6] = cross(g.up, at.up)
    out[..., 6 : 6 + nj] = g.joints
    out[..., 6 + nj : 12 + nj] = g.twist
    out[..., 12 + nj :] = g.rates
    return out
