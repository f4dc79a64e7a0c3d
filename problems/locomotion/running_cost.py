"""The running cost of a control step and its gradient, over whole windows at once.

    c = sum over terms of  weight * |residual|^2

    height           z - z*                      tilt       (up_x, up_y, 1 - up_z)
    velocity_xy      v_xy - command              yaw_rate   w_z - command
    velocity_z       v_z                         roll_pitch_rate   w_xy
    joint_position   q - q0, without hip rolls   hip_roll   q - q0 of these
    joint_velocity   dq                          action_rate   a - a_before
    foot_x, foot_y   p_xy - p*_xy, in the base frame
    foot_z           height of a foot above where it stands - h* max(0, sin 2 pi phi), with a gait
    knee             max(0, room - height of a knee above the ground): what must not touch it

Where feet should be follows from the command: below the hips, and with a gait from half a stride
behind to half a stride before,  p* = p0 - v_foot T/2 cos(2 pi phi),  T = period / 2  in stance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cito.dynamics.types import Array
from cito.problems.locomotion.features import Features, features, to_tangent
from cito.problems.locomotion.legs import Feet, Legs
from cito.problems.locomotion.task import KNEE_ROOM, LocomotionTask


class Cost(NamedTuple):
    """terms: weighted, by name, (...) each; total: their sum (...)."""

    terms: dict[str, Array]
    total: Array


class CostGradient(NamedTuple):
    """Of the total with respect to state (..., ndx, tangent), action and the action before it
    (..., nj)."""

    state: Array
    action: Array
    before: Array


class RunningCost:
    """The running cost of a task."""

    def __init__(self, task: LocomotionTask, legs: Legs) -> None:
        self.task, self.legs = task, legs
        self.weights = dict.fromkeys(task.weights, 0.0) | dict(task.weights)
        w = self.weights
        self._joints = np.where(legs.roll, w.get("hip_roll", 0), w.get("joint_position", 0))
        self._foot = np.array([w.get("foot_x", 0.0), w.get("foot_y", 0.0)])
        self._home = legs(task.nominal).position

    def __call__(
        self, x: Array, action: Array, before: Array, command: Array, phase: Array
    ) -> Cost:
        """Of steps that end in x (..., nx); see `with_gradient`."""
        return self.with_gradient(x, action, before, command, phase)[0]

    def with_gradient(
        self, x: Array, action: Array, before: Array, command: Array, phase: Array
    ) -> tuple[Cost, CostGradient]:
        """Of steps that end in states x.

        Args:
            x: (..., nx).
            action, before: of this step and the one before, (..., nj).
            command: (..., 3) [m/s, rad/s].
            phase: of the gait at x, (...) [cycles].
        """
        f = features(x)
        g = Features(*(np.zeros_like(part) for part in f))
        terms = self._body(f, command, g) | self._joint_terms(f, g)
        terms |= self._feet(f, command, phase, g)
        rate = self.weights.get("action_rate", 0.0)
        change = action - before
        terms["action_rate"] = rate * (change * change).sum(-1)
        cost = Cost(terms, np.sum(list(terms.values()), axis=0))
        return cost, CostGradient(to_tangent(f, g), 2 * rate * change, -2 * rate * change)

    def _body(self, f: Features, command: Array, g: Features) -> dict[str, Array]:
        """Terms of the base, whose gradients are written into g."""
        w = self.weights.get
        height, tilt = f.height - self.task.height, f.up - [0, 0, 1]
        twist = f.twist.copy()
        twist[..., :2] -= command[..., :2]
        twist[..., 5] -= command[..., 2]
        g.height[...] = 2 * w("height", 0) * height
        g.up[...] = 2 * w("tilt", 0) * tilt
        named = ("velocity_xy",) * 2 + ("velocity_z",) + ("roll_pitch_rate",) * 2 + ("yaw_rate",)
        weight = np.array([w(name, 0) for name in named])
        g.twist[...] = 2 * weight * twist
        squares = weight * twist * twist
        return {
            "height": w("height", 0) * height * height,
            "tilt": w("tilt", 0) * (tilt * tilt).sum(-1),
            "velocity_xy": squares[..., 0] + squares[..., 1],
            "velocity_z": squares[..., 2],
            "roll_pitch_rate": squares[..., 3] + squares[..., 4],
            "yaw_rate": squares[..., 5],
        }

    def _joint_terms(self, f: Features, g: Features) -> dict[str, Array]:
        """Terms of joint angles and rates."""
        off, rate = f.joints - self.task.nominal, self.weights.get("joint_velocity", 0.0)
        g.joints[...] += 2 * self._joints * off
        g.rates[...] = 2 * rate * f.rates
        squares = self._joints * off * off
        return {
            "joint_position": squares[..., np.flatnonzero(~self.legs.roll)].sum(-1),
            "hip_roll": squares[..., np.flatnonzero(self.legs.roll)].sum(-1),
            "joint_velocity": rate * (f.rates * f.rates).sum(-1),
        }

    def _feet(self, f: Features, command: Array, phase: Array, g: Features) -> dict[str, Array]:
        """Terms of the feet; p = p(q) in the base frame, height = z + up . p - radius."""
        gait, feet = self.task.gait, self.legs(f.joints)
        p, goal = feet.position, self._home[:, :2]
        if gait is not None:
            angle = 2 * np.pi * (phase[..., None] + np.array(gait.offsets))
            stride = 0.25 * gait.period * np.cos(angle)[..., None]
            goal = goal - stride * self._foot_velocity(command)
        off = p[..., :2] - goal
        g_p = np.zeros_like(p)
        g_p[..., :2] = 2 * self._foot * off
        squares = (self._foot * off * off).sum(-2)
        terms = {"foot_x": squares[..., 0], "foot_y": squares[..., 1]}
        if gait is not None:
            weight = self.weights.get("foot_z", 0.0)
            wanted = gait.swing_height * np.maximum(0, np.sin(angle))
            height = f.height[..., None] + (p @ f.up[..., None])[..., 0] - self.legs.radius
            error = height - wanted
            terms["foot_z"] = weight * (error * error).sum(-1)
            g_height = 2 * weight * error
            g.height[...] += g_height.sum(-1)
            g.up[...] += (g_height[..., None] * p).sum(-2)
            g_p += g_height[..., None] * f.up[..., None, :]
        g.joints[...] += self.legs.transposed(feet.columns, g_p)
        return terms | self._knees(f, feet, g)

    def _knees(self, f: Features, feet: Feet, g: Features) -> dict[str, Array]:
        """The term of the knees."""
        weight = self.weights.get("knee", 0.0)
        height = f.height[..., None] + (feet.knee @ f.up[..., None])[..., 0]
        short = np.maximum(0.0, KNEE_ROOM - height)
        g_height = -2 * weight * short
        g.height[...] += g_height.sum(-1)
        g.up[...] += (g_height[..., None] * feet.knee).sum(-2)
        g_knee = g_height[..., None] * f.up[..., None, :]
        g.joints[...] += self.legs.transposed(feet.knee_columns, g_knee)
        return {"knee": weight * (short * short).sum(-1)}

    def _foot_velocity(self, command: Array) -> Array:
        """Velocity (..., L, 2) over the ground of a base at the places of its feet [m/s]."""
        x, y = self._home[:, 0], self._home[:, 1]
        yaw = command[..., 2, None]
        return np.stack([command[..., 0, None] - yaw * y, command[..., 1, None] + yaw * x], -1)
