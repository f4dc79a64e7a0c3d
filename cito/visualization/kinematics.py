"""Where bodies and contact points of a tree are, for many configurations at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cito.dynamics.conversions import rotation_matrix
from cito.dynamics.shapes import Shape, contact_frame
from cito.dynamics.tree import Body, TreeSystem
from cito.dynamics.types import Array


class Poses(NamedTuple):
    """Placements of all bodies in the world: rotations (K, nb, 3, 3), positions (K, nb, 3) [m]."""

    rotations: Array
    positions: Array


def body_poses(system: TreeSystem, q: Array) -> Poses:
    """The placements at configurations q (K, nq).

    R_i = R_parent P_i R_joint(q_i),   p_i = p_parent + R_parent (p_i^0 + slide)
    """
    index = {body.name: i for i, body in enumerate(system.bodies)}
    K, nb = len(q), len(system.bodies)
    rotations, positions = np.empty((K, nb, 3, 3)), np.empty((K, nb, 3))
    at = 0
    for i, body in enumerate(system.bodies):
        R, p = _joint(body, q[:, at : at + body.nq])
        at += body.nq
        if body.parent is not None:
            parent = index[body.parent]
            p = positions[:, parent] + np.einsum("kab,kb->ka", rotations[:, parent], p)
            R = rotations[:, parent] @ R
        rotations[:, i], positions[:, i] = R, p
    return Poses(rotations, positions)


def contact_points(system: TreeSystem, poses: Poses) -> Array:
    """The centres of the contact spheres in the world, (K, nc, 3) [m]."""
    index = {body.name: i for i, body in enumerate(system.bodies)}
    points = np.empty((len(poses.positions), len(system.contacts), 3))
    for c, contact in enumerate(system.contacts):
        i = index[contact.body]
        points[:, c] = poses.positions[:, i] + poses.rotations[:, i] @ contact.position
    return points


def contact_frames(system: TreeSystem, poses: Poses, points: Array) -> Array:
    """Frames of the contacts in the world, rows T1, T2 and N, (K, nc, 3, 3)."""
    normals = np.empty_like(points)
    for c, contact in enumerate(system.contacts):
        R, p = _carrier(system, poses, c)
        local = np.einsum("kba,kb->ka", R, points[:, c] - p)
        shape: Shape = getattr(contact, "shape", system.ground)
        normals[:, c] = np.einsum("kab,kb->ka", R, shape.distance(local).normal)
    frames = [contact_frame(normal) for normal in normals.reshape(-1, 3)]
    return np.array(frames).reshape(*points.shape, 3)


def contact_velocities(system: TreeSystem, poses: Poses, points: Array, times: Array) -> Array:
    """Velocities of the contacts relative to what they meet, in the world, (K, nc, 3) [m/s]; by
    differences over `times`, which increase."""
    velocities = np.zeros_like(points)
    if len(times) < 2:
        return velocities
    for c in range(points.shape[1]):
        R, p = _carrier(system, poses, c)
        local = np.einsum("kba,kb->ka", R, points[:, c] - p)
        velocities[:, c] = np.einsum("kab,kb->ka", R, np.gradient(local, times, axis=0))
    return velocities


def _carrier(system: TreeSystem, poses: Poses, c: int) -> tuple[Array, Array]:
    """Pose (K, 3, 3), (K, 3) of the body whose shape contact c meets; of the world elsewhere."""
    other = getattr(system.contacts[c], "other", None)
    K = len(poses.positions)
    if other is None:
        return np.broadcast_to(np.eye(3), (K, 3, 3)), np.zeros((K, 3))
    i = [body.name for body in system.bodies].index(other)
    return poses.rotations[:, i], poses.positions[:, i]


def _joint(body: Body, q: Array) -> tuple[Array, Array]:
    """Rotations (K, 3, 3) and positions (K, 3) of a body in its parent."""
    if body.joint == "free":
        return rotation_matrix(q[:, 3:]), q[:, :3]
    if body.joint == "spherical":
        return body.rotation @ rotation_matrix(q), np.broadcast_to(body.position, (len(q), 3))
    if body.joint == "revolute":
        half = q / 2
        turn = rotation_matrix(np.hstack([np.sin(half) * body.axis, np.cos(half)]))
        return body.rotation @ turn, np.broadcast_to(body.position, (len(q), 3))
    slide = body.position + q * (body.rotation @ body.axis)
    return np.broadcast_to(body.rotation, (len(q), 3, 3)), slide
