"""MuJoCo as the model of a planner: its steps as the dynamics, finite differences as derivatives.

    step(x, u)   `substeps` calls of mj_step under constant torques
    f_x, f_u     the product of their transition Jacobians, each by mjd_transitionFD

This is how MuJoCo MPC plans by iLQR (Howell et al., 2022). Contact is soft, so that a foot in the
air has no derivative with respect to the ground, and one on it pushes before it is pressed.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from cito.dynamics.base import Dynamics, Linearization, Rollout, Transition
from cito.dynamics.conversions import from_mujoco, rotation_matrix, to_mujoco
from cito.dynamics.gradients import Gradient
from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, IntArray

DIFFERENCE = 1e-6  # of mjd_transitionFD


class MujocoDynamics(Dynamics):
    """A robot in MuJoCo, its states in cito's conventions.

    Args:
        robot: read from an MJCF file, its first body free.
        time_step: of a knot [s].
        substeps: steps of MuJoCo in it.
        friction: sliding friction of all geometries [-].
        impratio: MuJoCo's, stiffness of friction over that of the normal; cone: "pyramidal" or
            "elliptic".
    """

    def __init__(
        self,
        robot: Robot,
        time_step: float,
        substeps: int = 1,
        friction: float = 0.8,
        impratio: float = 1.0,
        cone: str = "pyramidal",
    ) -> None:
        import mujoco

        self._mujoco = mujoco
        self.system, self.time_step, self.substeps = robot, time_step, substeps
        model = mujoco.MjModel.from_xml_path(str(robot.source))
        model.opt.timestep = time_step / substeps
        model.opt.cone = {"pyramidal": 0, "elliptic": 1}[cone]
        model.opt.impratio = impratio
        model.geom_friction[:, 0] = friction
        self.model, self._data = model, mujoco.MjData(model)
        self.manifold = robot.native
        self.nx, self.ndx = model.nq + model.nv, 2 * model.nv
        self.nu, self.nc, self.n = model.nu, len(robot.feet), 3 * len(robot.feet)
        self._feet = {model.geom(name).id: i for i, name in enumerate(robot.feet)}

    def difference(self, x0: Array, x1: Array) -> Array:
        """See `Dynamics.difference`."""
        return np.asarray(self._space.difference(x0, x1))

    def integrate(self, x: Array, dx: Array) -> Array:
        """See `Dynamics.integrate`."""
        return np.asarray(self._space.integrate(x, dx))

    @cached_property
    def _space(self) -> Any:
        """The same manifold, with its functions."""
        from cito.dynamics.contact_dynamics import ContactDynamics

        return ContactDynamics(self.system, self.time_step)

    def rollout(
        self,
        start: Array,
        controls: Array,
        *,
        states: Array | None = None,
        feedforward: Array | None = None,
        feedback: Array | None = None,
        alphas: Array | None = None,
        lower: Array | None = None,
        upper: Array | None = None,
        gaps: Array | None = None,
        impulses: Array | None = None,
    ) -> Rollout:
        """See `Dynamics.rollout`; single shooting only, and one start."""
        sizes = np.zeros(1) if alphas is None else alphas
        found = []
        for alpha in sizes:
            U = controls if feedforward is None else controls + alpha * feedforward
            found.append(self._rolled(start, U, states, feedback, lower, upper))
        if alphas is None:
            return found[0]
        return Rollout(*(np.stack(field) for field in zip(*found)))

    def _rolled(
        self,
        start: Array,
        controls: Array,
        states: Array | None,
        feedback: Array | None,
        lower: Array | None,
        upper: Array | None,
    ) -> Rollout:
        N = len(controls)
        X, U = np.zeros((N + 1, self.nx)), controls.copy()
        forces, modes = np.zeros((N, self.n)), np.zeros((N, self.nc), np.int32)
        self._set(start)
        X[0] = start
        for k in range(N):
            if feedback is not None and states is not None:
                U[k] += feedback[k] @ self.difference(states[k], X[k])
            if lower is not None or upper is not None:
                U[k] = np.clip(U[k], lower, upper)
            self._data.ctrl[:] = U[k]
            for _ in range(self.substeps):
                self._mujoco.mj_step(self.model, self._data)
            if not (np.isfinite(self._data.qpos).all() and np.isfinite(self._data.qvel).all()):
                X[k + 1 :] = np.nan
                break
            X[k + 1] = from_mujoco(self.system, self._data.qpos, self._data.qvel)
            modes[k] = self._touching()
        return Rollout(X, U, forces, np.zeros((N, self.n)), modes, np.array(0.0))

    def linearize(self, rollout: Rollout) -> Linearization:
        """See `Dynamics.linearize`."""
        return _Differences(self, rollout)

    def jacobians(self, x: Array, u: Array) -> tuple[Array, Array]:
        """f_x (ndx, ndx), f_u (ndx, nu) of one step by forward differences."""
        self._set(x)
        self._data.ctrl[:] = u
        A, B = np.zeros((self.ndx, self.ndx)), np.zeros((self.ndx, self.nu))
        f_x, f_u = _to_world(x, self.ndx), np.zeros((self.ndx, self.nu))
        for _ in range(self.substeps):
            self._mujoco.mjd_transitionFD(
                self.model, self._data, DIFFERENCE, False, A, B, None, None
            )
            f_x, f_u = A @ f_x, A @ f_u + B
            self._mujoco.mj_step(self.model, self._data)
        back = _from_world(from_mujoco(self.system, self._data.qpos, self._data.qvel), self.ndx)
        return back @ f_x, back @ f_u

    def _set(self, x: Array) -> None:
        self._mujoco.mj_resetData(self.model, self._data)
        self._data.qpos[:], self._data.qvel[:] = to_mujoco(self.system, x)
        self._mujoco.mj_forward(self.model, self._data)

    def _touching(self) -> IntArray:
        """2 for each foot that touches the ground, else 0, (nc,)."""
        modes = np.zeros(self.nc, np.int32)
        for i in range(self._data.ncon):
            for geom in (self._data.contact[i].geom1, self._data.contact[i].geom2):
                if geom in self._feet:
                    modes[self._feet[geom]] = 2
        return modes


class _Differences(Linearization):
    """Jacobians along a rollout; there is one derivative only, whatever gradient is asked for."""

    def __init__(self, dynamics: MujocoDynamics, rollout: Rollout) -> None:
        self._dynamics, self._rollout = dynamics, rollout

    @cached_property
    def _transition(self) -> Transition:
        pairs = [
            self._dynamics.jacobians(x, u)
            for x, u in zip(self._rollout.states, self._rollout.controls)
        ]
        f_x, f_u = (np.ascontiguousarray(np.stack(part)) for part in zip(*pairs))
        return Transition(f_x, f_u)

    def with_gradient(self, gradient: Gradient) -> Transition:
        """See `Linearization.with_gradient`."""
        return self._transition

    @property
    def free_velocity(self) -> Array:
        """None is known."""
        return np.zeros((len(self._rollout.controls), 0))


def _to_world(x: Array, ndx: int) -> Array:
    """d (MuJoCo's tangent) / d (cito's) at x: position and linear velocity, which cito writes in
    the body frame, turned into the world.

        p' = R dp,   v' = R (dv + dphi x v)
    """
    T: Array = np.eye(ndx)
    nv = ndx // 2
    R, v = rotation_matrix(x[3:7]), x[-nv:][:3]
    T[:3, :3] = T[nv : nv + 3, nv : nv + 3] = R
    T[nv : nv + 3, 3:6] = R @ -_cross(v)
    return T


def _from_world(x: Array, ndx: int) -> Array:
    """The inverse of `_to_world`."""
    return np.asarray(np.linalg.inv(_to_world(x, ndx)), dtype=np.float64)


def _cross(v: Array) -> Array:
    x, y, z = v.tolist()
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
