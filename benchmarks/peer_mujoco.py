"""MuJoCo on the same states: its step, and its transition Jacobians by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from cito.benchmarks.standing import Standing
from cito.dynamics.conversions import to_mujoco
from cito.dynamics.types import Array

DIFFERENCE = 1e-6  # of mjd_transitionFD


class MujocoPeer:
    """A MuJoCo model with the states and controls of `work`.

    Args:
        model: of the same robot, with its time step set.
        work: what is done.
        threads: of the rollouts.
    """

    def __init__(self, model: Any, work: Standing, threads: int = 1) -> None:
        import mujoco
        from mujoco import rollout

        self._mujoco, self.model, self._threads = mujoco, model, threads
        self.datas = [mujoco.MjData(model) for _ in range(threads)]
        self.qpos, self.qvel = to_mujoco(work.tree, work.states)
        self.controls = work.controls
        count = len(work.states)
        self._start = np.hstack([np.zeros((count, 1)), self.qpos, self.qvel])  # time first
        self._rollout = rollout.Rollout(nthread=0 if threads == 1 else threads)
        ndx, nu = 2 * model.nv, model.nu
        self.f_x, self.f_u = np.zeros((count, ndx, ndx)), np.zeros((count, ndx, nu))

    @cached_property
    def _accelerations(self) -> Array:
        """Of every state, (K, nv)."""
        found = np.zeros((len(self.qpos), self.model.nv))
        for k, qacc in enumerate(found):
            self._set(self.datas[0], k)
            self._mujoco.mj_forward(self.model, self.datas[0])
            qacc[:] = self.datas[0].qacc
        return found

    def close(self) -> None:
        """End the threads."""
        self._rollout.close()

    def active_contacts(self) -> float:
        """Contacts with a force in one step, mean over the states."""
        count, force = 0, np.zeros(6)
        for k in range(len(self.qpos)):
            self.step(k)
            for i in range(self.datas[0].ncon):
                self._mujoco.mj_contactForce(self.model, self.datas[0], i, force)
                count += force[0] > 0
        return count / len(self.qpos)

    def rollouts(self, steps: int) -> Callable[[], object]:
        """`steps` steps from every state, in C."""
        controls = np.repeat(self.controls[:, None], steps, axis=1)
        states = np.zeros((len(controls), steps, self._start.shape[1]))
        datas = self.datas if self._threads > 1 else self.datas[:1]

        def work() -> None:
            self._rollout.rollout(self.model, datas, self._start, controls, state=states)

        return work

    def step(self, k: int) -> None:
        """One step from state k, called from Python."""
        self._set(self.datas[0], k)
        self._mujoco.mj_step(self.model, self.datas[0])

    def jacobians(self, centred: bool) -> None:
        """f_x, f_u of every state by finite differences, one call from Python each.

        Every solve starts from the solution of the state itself, as it would along a motion.
        """
        data = self.datas[0]
        for k in range(len(self.qpos)):
            self._set(data, k)
            data.qacc_warmstart[:] = self._accelerations[k]
            self._mujoco.mjd_transitionFD(
                self.model, data, DIFFERENCE, centred, self.f_x[k], self.f_u[k], None, None
            )

    def _set(self, data: Any, k: int) -> None:
        data.qpos[:], data.qvel[:], data.ctrl[:] = self.qpos[k], self.qvel[k], self.controls[k]
        data.qacc_warmstart[:] = 0
