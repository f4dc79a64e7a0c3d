"""A robot in MuJoCo under the motors' law, with what a controller is not told; no cito types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from cito.realtime.messages import Array, Format

IMPRATIO = 100.0  # stiffness of friction: with MuJoCo's 1, feet that stand creep


@dataclass(frozen=True)
class Settings:
    """What the simulator is told when it starts: see `MujocoRobot`; `noise` are the standard
    deviations of `Noise` by name, `damping` and `torque_limits` of each drive."""

    path: str
    joints: Sequence[str]
    driven: Sequence[str]
    feet: Sequence[str]
    base: str | None
    torque_limits: Sequence[float]
    damping: Sequence[float]
    time_step: float
    rate: float
    lockstep: bool
    friction: float | None
    payload: float
    pull: Sequence[float]
    pull_time: Sequence[float]
    noise: dict[str, float]
    latency: float
    command_latency: float
    jitter: float
    watchdog: float
    priority: int | None
    seed: int


class World:
    """The model, its state, and the motors."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.model = model = _compiled(settings)
        self.data = mujoco.MjData(model)
        ids = [_named(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in settings.driven]
        self._q, self._v = model.jnt_qposadr[ids], model.jnt_dofadr[ids]
        joints = [_named(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in settings.joints]
        self._joint_q, self._joint_v = model.jnt_qposadr[joints], model.jnt_dofadr[joints]
        self._limit = np.array(settings.torque_limits)
        self._base = (
            -1 if settings.base is None else _named(model, mujoco.mjtObj.mjOBJ_BODY, settings.base)
        )
        self._feet = _foot_geoms(model, settings.feet)
        self._random = np.random.default_rng(settings.seed)
        self.format = Format(model.nq, model.nv, len(ids), len(settings.feet))

    def reset(self, qpos: Array, qvel: Array) -> None:
        """Go to a state, at time 0."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel
        mujoco.mj_forward(self.model, self.data)

    def step(self, command: Sequence[Array]) -> None:
        """One step under the motors' law, with the pull where it is due."""
        data = self.data
        torque, position, velocity, stiffness, damping = command
        total = torque + stiffness * (position - data.qpos[self._q])
        total = total + damping * (velocity - data.qvel[self._v])
        data.qfrc_applied[:] = 0.0
        data.qfrc_applied[self._v] = np.clip(total, -self._limit, self._limit)
        start, duration = self.settings.pull_time
        if self._base >= 0 and start <= data.time < start + duration:
            force, point = np.array(self.settings.pull), data.xpos[self._base].copy()
            mujoco.mj_applyFT(
                self.model, data, force, np.zeros(3), point, self._base, data.qfrc_applied
            )
        mujoco.mj_step(self.model, data)

    def measured(self) -> tuple[Array, Array, Array]:
        """qpos and qvel with noise, forces on the feet (T1, T2, N) [N]."""
        qpos, qvel, noise = self.data.qpos.copy(), self.data.qvel.copy(), self.settings.noise
        if any(noise.values()):
            draw = self._random.standard_normal
            count = len(self._joint_q)
            qpos[self._joint_q] += noise["joint_position"] * draw(count)
            qvel[self._joint_v] += noise["joint_velocity"] * draw(count)
            if self._base >= 0:
                qpos[:3] += noise["position"] * draw(3)
                mujoco.mju_quatIntegrate(qpos[3:7], noise["angle"] * draw(3), 1.0)
                qvel[:3] += noise["velocity"] * draw(3)
                qvel[3:6] += noise["angular_velocity"] * draw(3)
        return qpos, qvel, self._forces()

    def _forces(self) -> Array:
        """Contact forces on the feet in the world frame, x and y being T1 and T2."""
        forces, wrench = np.zeros((len(self.settings.feet), 3)), np.zeros(6)
        for i in range(self.data.ncon):
            contact = self.data.contact[i]
            for sign, geom in ((-1.0, contact.geom1), (1.0, contact.geom2)):
                if geom in self._feet:
                    mujoco.mj_contactForce(self.model, self.data, i, wrench)
                    share = sign / len(self._feet[geom])
                    forces[self._feet[geom]] += share * contact.frame.reshape(3, 3).T @ wrench[:3]
        return forces.ravel()


def _compiled(settings: Settings) -> Any:
    """The model with the settings that the controller does not know of."""
    spec = mujoco.MjSpec.from_file(settings.path)
    if not any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.worldbody.geoms):
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05])
    model = spec.compile()
    model.opt.timestep = settings.time_step
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION  # torques come from outside
    model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, IMPRATIO
    if settings.friction is not None:
        model.geom_friction[:, 0] = settings.friction
    if settings.payload and settings.base is not None:
        model.body_mass[_named(model, mujoco.mjtObj.mjOBJ_BODY, settings.base)] += settings.payload
        mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def _named(model: Any, kind: Any, name: str) -> int:
    index = mujoco.mj_name2id(model, kind, name)
    if index < 0:
        raise ValueError(f"there is no {kind.name[6:].lower()} called {name!r} in the model")
    return int(index)


def _foot_geoms(model: Any, feet: Sequence[str]) -> dict[int, list[int]]:
    """Which feet each geometry is. A foot is named after a geometry or a body; those that stand for
    parts of one ("sole.1", "sole.2") share its force."""
    found: dict[int, list[int]] = {}
    for i, name in enumerate(feet):
        for known in (name, name.rpartition(".")[0]):
            geom = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, known)
            body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, known)
            geoms = [geom] if geom >= 0 else np.flatnonzero(model.geom_bodyid == body)
            if geom >= 0 or body >= 0:
                for g in geoms:
                    found.setdefault(int(g), []).append(i)
                break
    return found
