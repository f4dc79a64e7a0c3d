"""Rollouts of a learned policy in MuJoCo, with its contacts, its solver and a model of its own.

The robot's file may be another than the policy learned with: joints are found by their names.
Motors are MuJoCo's position actuators with the gains and torque limits of the task's robot, so that
their law holds at every step of the simulation.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from cito.dynamics.conversions import from_mujoco, to_mujoco
from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, positive
from cito.problems.locomotion import LocomotionTask
from cito.problems.locomotion.environment import LOW, UPRIGHT
from cito.problems.locomotion.episodes import draw_states
from cito.problems.locomotion.features import features
from cito.problems.locomotion.legs import Legs
from cito.problems.locomotion.observation import Observer
from cito.problems.locomotion.running_cost import RunningCost
from cito.problems.locomotion.task import Reset
from cito.problems.robots import load_robot
from cito.solvers.learning.evaluation import RESETS, Act, Rollouts, grid, summary

TIME_STEP = 0.002  # [s]
IMPRATIO = 100.0  # stiffness of friction: with MuJoCo's 1, feet that stand creep
BUMPS = 2.0  # of them on a square metre, where there are some
BUMP_SIZES = (0.03, 0.15)  # half of a bump's length and width [m]
LEAST_BUMP = 1 / 3  # lowest bump, of the highest
FREE = 0.6  # radius without bumps about where a robot starts [m]
DROP = 0.005  # of the feet above the ground at the start: models differ by millimetres [m]


def evaluate_in_mujoco(
    task: LocomotionTask,
    act: Act,
    model: str | Path | None = None,
    friction: float | None = None,
    *,
    seconds: float = 10.0,
    push: float = 0.0,
    bumps: float = 0.0,
    threads: int = 2,
) -> dict[str, Any]:
    """The figures of `evaluation.evaluate`, from MuJoCo.

    Args:
        task: that the policy learned.
        act: actions (B, nj) of observations (B, n).
        model: an MJCF file; that of the task's robot by default.
        friction: one instead of the task's range.
        seconds: of a rollout [s].
        push: largest sudden change of the base's horizontal velocity, every two seconds [m/s].
        bumps: height of the highest boxes that lie about on the ground, see `draw_bumps` [m].
        threads: of the simulation.

    Raises:
        ValueError: the file does not hold the joints and feet of the task's robot, or an argument
            is out of its range.
    """
    positive("push", push, allow_zero=True)
    bounds = task.randomization.friction
    if friction is not None:
        bounds = (positive("friction", friction, allow_zero=True),) * 2
    path = Path(task.robot.source if model is None else model)
    command, mu = grid(task, bounds)
    reach = 1.0 + seconds * float(np.linalg.norm(command[:, :2], axis=1).max())
    debris = draw_bumps(positive("bumps", bumps, allow_zero=True), reach)
    worlds = Worlds(task, path, mu, threads, debris)
    kinds = {
        name: worlds.roll_out(act, reset, command, seconds, push) for name, reset in RESETS.items()
    }
    return summary(task, kinds)


class Bumps(NamedTuple):
    """m boxes, half of each in the ground: place (m, 2) of the centre [m], size (m, 3) from it to
    the faces [m], the last of them the height above the ground; yaw (m,) [rad]."""

    place: Array
    size: Array
    yaw: Array


def draw_bumps(height: float, reach: float) -> Bumps:
    """Boxes like debris, always the same: BUMPS a square metre, uniform over a disk but for where
    robots start, of heights from a third of `height` [m] up to it.

    Args:
        height: of the highest; of zero there are none.
        reach: radius of the disk [m].
    """
    random = np.random.default_rng(7)
    count = round(BUMPS * np.pi * (reach**2 - FREE**2)) if height and reach > FREE else 0
    radius = np.sqrt(random.uniform(FREE**2, max(reach, FREE) ** 2, count))
    angle, yaw = random.uniform(0, 2 * np.pi, (2, count))
    size = np.empty((count, 3))
    size[:, :2] = random.uniform(*BUMP_SIZES, (count, 2))
    size[:, 2] = random.uniform(LEAST_BUMP * height, height, count)
    return Bumps(radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1), size, yaw)


class Worlds:
    """B copies of a robot in MuJoCo, each on ground of its own friction.

    Args:
        task: gains and names.
        path: of the MJCF file.
        friction: of all geometries, (B,) [-].
        threads: that share the copies.
        bumps: boxes on the ground.
    """

    def __init__(
        self,
        task: LocomotionTask,
        path: Path,
        friction: Array,
        threads: int = 2,
        bumps: Bumps | None = None,
    ) -> None:
        self.task, self.robot, self.friction = task, load_robot(path), friction
        self._q, self._v = _order(task.robot, self.robot)
        compiled = _compiled(task, path, bumps)
        models = {mu: _on(compiled, float(mu)) for mu in np.unique(friction)}
        self.models = [models[mu] for mu in friction]
        self.data = [mujoco.MjData(model) for model in self.models]
        self._threads = threads
        model = self.models[0]
        self._feet = _foot_geoms(model, task.robot.feet)
        legs = set(model.geom_bodyid[self._feet])
        self._others = np.array([body not in legs for body in model.geom_bodyid])
        self._floor = model.geom_bodyid == 0
        self._substeps = round(task.control_step / TIME_STEP)

    def states(self) -> Array:
        """(B, nx), joints in the task's order."""
        qpos = np.stack([data.qpos for data in self.data])
        qvel = np.stack([data.qvel for data in self.data])
        x = from_mujoco(self.robot, qpos, qvel)
        nq = self.robot.native.nq
        return np.concatenate([x[:, :nq][:, self._q], x[:, nq:][:, self._v]], axis=1)

    def put(self, x: Array) -> None:
        """Go to states (B, nx), in the task's order."""
        nq, own = self.robot.native.nq, np.empty_like(x)
        own[:, self._q], own[:, nq + self._v] = x[:, :nq], x[:, nq:]
        for model, data, qpos, qvel in zip(self.models, self.data, *to_mujoco(self.robot, own)):
            mujoco.mj_resetData(model, data)
            data.qpos[:], data.qvel[:] = qpos, qvel
            mujoco.mj_forward(model, data)

    def step(self, target: Array) -> None:
        """One control step towards joint angles (B, nj)."""

        def run(rows: Sequence[int]) -> None:
            for i in rows:
                self.data[i].ctrl[:] = target[i]
                mujoco.mj_step(self.models[i], self.data[i], self._substeps)

        parts = [range(k, len(self.data), self._threads) for k in range(self._threads)]
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(run, parts))

    def touching(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which feet (B, L) touch something, and whether anything but legs' ends does, (B,)."""
        feet = np.zeros((len(self.data), len(self._feet)), bool)
        other = np.zeros(len(self.data), bool)
        for i, data in enumerate(self.data):
            pairs = data.contact.geom
            feet[i] = np.isin(self._feet, pairs)
            ground = self._floor[pairs].any(axis=1)
            other[i] = (self._others[pairs] & ~self._floor[pairs])[ground].any()
        return feet, other

    def roll_out(
        self, act: Act, reset: Reset, command: Array, seconds: float, push: float
    ) -> Rollouts:
        """Rollouts under commands (B, 3) from one kind of start."""
        task, random = self.task, np.random.default_rng(3)
        B, nj = len(command), len(task.nominal)
        legs, observer = Legs(task.robot), Observer(task)
        price = RunningCost(task, legs)
        x = draw_states(task, legs, command, replace(reset, clearance=0.0), random)
        x[:, 2] += DROP
        self.put(x)
        phase, action = random.random(B), np.zeros((B, nj))
        period = task.gait.period if task.gait else 1.0
        frames = np.zeros((B, task.history, observer.layout.size))
        frames[:] = observer(features(x), action, command, phase)[:, None]
        alive, kept = np.ones(B, bool), []
        for k in range(round(seconds / task.control_step)):
            before, action = action, np.clip(act(frames.reshape(B, -1)), -1.0, 1.0)
            self.step(task.nominal + task.action_scale * action)
            if push and k % round(2.0 / task.control_step) == 0 and k:
                for data in self.data:
                    data.qvel[:2] += random.uniform(-push, push, 2)
            x, phase = self.states(), (phase + task.control_step / period) % 1.0
            f = features(x)
            feet, other = self.touching()
            alive = alive & ~other & (f.height >= LOW * task.height) & (f.up[:, 2] >= UPRIGHT)
            cost = price(x, action, before, command, phase).total
            kept.append((f.twist.copy(), feet, cost, alive))
            frames[:, 1:] = frames[:, :-1]
            frames[:, 0] = observer(f, action, command, phase)
        velocity, contact, cost, lived = (np.stack(part) for part in zip(*kept))
        return Rollouts(velocity, contact, cost, command, self.friction, lived)


def _order(known: Robot, other: Robot) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where the coordinates and velocities of `known` are in those of `other`."""
    missing = set(known.joints) ^ set(other.joints)
    if missing:
        raise ValueError(f"`model` must have the joints of {known.name}; not in both: {missing}")
    joints = np.array([other.joints.index(name) for name in known.joints])
    return (
        np.concatenate([np.arange(7), 7 + joints]),
        np.concatenate([np.arange(6), 6 + joints]),
    )


def _compiled(task: LocomotionTask, path: Path, bumps: Bumps | None = None) -> Any:
    """The model with the task's motors, a floor and what lies on it."""
    spec = mujoco.MjSpec.from_file(str(path))
    for old in [*spec.actuators, *spec.sensors, *spec.keys]:
        spec.delete(old)
    if not any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.worldbody.geoms):
        _touchable(spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05]))
    for place, size, yaw in zip(*bumps) if bumps is not None else ():
        box = spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=size, pos=[*place, 0.0])
        _touchable(box).quat = [np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]
    robot = task.robot
    limits = dict(zip(robot.actuated, robot.torque_limits))
    for name in robot.joints:
        motor = spec.add_actuator(name=f"{name} motor", target=name)
        motor.trntype = mujoco.mjtTrn.mjTRN_JOINT
        motor.gaintype, motor.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        motor.gainprm[0], motor.biasprm[1], motor.biasprm[2] = task.kp, -task.kp, -task.kd
        if np.isfinite(limits[name]):
            motor.forcelimited, motor.forcerange = True, [-limits[name], limits[name]]
    model = spec.compile()
    model.opt.timestep = TIME_STEP
    model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, IMPRATIO
    return model


def _touchable(geom: Any) -> Any:
    """The geometry, with contacts whatever the file's default is."""
    geom.contype = geom.conaffinity = 1
    return geom


def _on(model: Any, friction: float) -> Any:
    """A copy of the model with one friction."""
    own = copy.copy(model)
    own.geom_friction[:, 0] = friction
    return own


def _foot_geoms(model: Any, feet: Sequence[str]) -> NDArray[np.intp]:
    """The geometry of each foot: of its name, or the last sphere of a body of its name."""
    found = []
    for name in feet:
        geom = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, name)
        if geom < 0:
            body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name)
            geoms = np.flatnonzero(model.geom_bodyid == body)
            if body < 0 or not len(geoms):
                raise ValueError(f"`model` must have a geometry or a body for the foot {name}")
            geom = geoms[-1]
        found.append(int(geom))
    return np.array(found, dtype=np.intp)
