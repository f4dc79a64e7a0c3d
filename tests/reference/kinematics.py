"""Frames, velocities and contact points of a kinematic tree, as plainly as numpy says it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from cito.dynamics.shapes import Capsule, Plane, Shape, contact_frame
from cito.dynamics.tree import TreeSystem


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotation about a unit axis."""
    W = np.cross(np.eye(3), axis)
    return np.eye(3) + np.sin(angle) * W + (1 - np.cos(angle)) * W @ W


class Motion(NamedTuple):
    """Of each body: R (nb, 3, 3), p, v (of the frame's origin), omega (nb, 3), in the world."""

    R: np.ndarray
    p: np.ndarray
    v: np.ndarray
    omega: np.ndarray


def motion(tree: TreeSystem, x: np.ndarray) -> Motion:
    """All bodies, parents first."""
    names = [body.name for body in tree.bodies]
    nq = sum(body.nq for body in tree.bodies)
    q, rate = list(x[:nq]), list(x[nq:])
    R, p, v, omega = [], [], [], []
    for body in tree.bodies:
        at = None if body.parent is None else names.index(body.parent)
        parent = (np.eye(3), np.zeros(3), np.zeros(3), np.zeros(3))
        R_p, p_p, v_p, w_p = parent if at is None else (R[at], p[at], v[at], omega[at])
        R_0, r = R_p @ body.rotation, R_p @ body.position
        v_0 = v_p + np.cross(w_p, r)
        if body.joint == "free":
            position, quaternion = q[:3], q[3:7]
            del q[:7]
            r = r + R_0 @ position
            R_i = R_0 @ Rotation.from_quat(quaternion).as_matrix()
            v_i, w_i = R_i @ rate[:3], R_i @ rate[3:6]
            del rate[:6]
        elif body.joint == "spherical":
            R_i = R_0 @ Rotation.from_quat(q[:4]).as_matrix()
            v_i, w_i = v_0, w_p + R_i @ rate[:3]
            del q[:4], rate[:3]
        elif body.joint == "revolute":
            R_i = R_0 @ turn(body.axis, q.pop(0))
            v_i, w_i = v_0, w_p + R_0 @ body.axis * rate.pop(0)
        else:
            step = R_0 @ body.axis
            r, R_i, w_i = r + step * q.pop(0), R_0, w_p
            v_i = v_p + np.cross(w_p, r) + step * rate.pop(0)
        for values, value in zip((R, p, v, omega), (R_i, p_p + r, v_i, w_i)):
            values.append(value)
    return Motion(*(np.array(values) for values in (R, p, v, omega)))


def body_point(m: Motion, body: int, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity of a point fixed to a body."""
    r = m.R[body] @ point
    return m.p[body] + r, m.v[body] + np.cross(m.omega[body], r)


def distance_to(shape: Shape, x: np.ndarray) -> tuple[float, np.ndarray]:
    """Distance of x from a shape, and the normal there."""
    if isinstance(shape, Plane):
        return float(shape.normal @ x - shape.height), np.asarray(shape.normal)
    if isinstance(shape, Capsule):
        along = np.asarray(shape.end) - shape.start
        t = np.clip((x - shape.start) @ along / (along @ along), 0, 1)
        away = x - shape.start - t * along
        return float(np.linalg.norm(away) - shape.radius), away / np.linalg.norm(away)
    at = shape.distance(x)
    return float(at.value), at.normal


def foot(tree: TreeSystem, m: Motion, i: int) -> tuple[float, np.ndarray]:
    """Distance of contact i from what it may touch and its tangential velocity there, (2,)."""
    contact, names = tree.contacts[i], [b.name for b in tree.bodies]
    body = names.index(contact.body)
    shape, other = getattr(contact, "shape", tree.ground), getattr(contact, "other", None)
    centre, v = body_point(m, body, contact.position)
    if other is None:
        R, p, v_other, w_other = np.eye(3), np.zeros(3), np.zeros(3), np.zeros(3)
    else:
        k = names.index(other)
        R, p, v_other, w_other = m.R[k], m.p[k], m.v[k], m.omega[k]
    distance, normal = distance_to(shape, R.T @ (centre - p))
    normal = R @ normal
    touch = centre - contact.radius * normal
    relative = v + np.cross(m.omega[body], touch - centre) - v_other - np.cross(w_other, touch - p)
    return distance - contact.radius, contact_frame(normal)[:2] @ relative


def centre_of_mass(tree: TreeSystem, m: Motion) -> np.ndarray:
    """Of all bodies, (3,)."""
    points = [body_point(m, i, body.com)[0] for i, body in enumerate(tree.bodies)]
    return np.average(points, axis=0, weights=[body.mass for body in tree.bodies])
