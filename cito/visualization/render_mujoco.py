"""MuJoCo's renderer, drawing into memory through EGL."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from mujoco.egl import GLContext

from cito.dynamics.conversions import to_mujoco
from cito.dynamics.types import Array
from cito.visualization.motion import TOUCH, Motion
from cito.visualization.render import Picture, view_of

FORCE_SCALE = 4e-3  # length of an arrow [m/N]
ARROW = np.array([0.85, 0.25, 0.15, 1.0], dtype=np.float32)


class MujocoRenderer:
    """Draws the robot's own geometries and the forces on its contacts.

    Raises:
        ValueError: the robot does not come from an MJCF file.
        RuntimeError, ImportError, AttributeError: EGL is missing or broken, as MuJoCo says it.
    """

    def __init__(self, motion: Motion, width: int, height: int) -> None:
        if motion.source is None or motion.source.suffix != ".xml":
            raise ValueError("only robots from MJCF files have geometries that MuJoCo can draw")
        self._motion, self._width, self._height = motion, width, height
        self._qpos = to_mujoco(motion.system, motion.states).q
        self._context = GLContext(width, height)
        self._context.make_current()
        self._model = _lit(str(motion.source), width, height)
        self._data = mujoco.MjData(self._model)
        self._scene = mujoco.MjvScene(self._model, 1000)
        self._options, self._camera = mujoco.MjvOption(), mujoco.MjvCamera()
        self._gpu = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._gpu)
        self._centres, radius = view_of(motion)
        self._camera.distance, self._camera.azimuth, self._camera.elevation = 4.5 * radius, 130, -18

    def draw(self, k: int) -> Picture:
        """The motion at its k-th instant."""
        self._camera.lookat[:] = self._centres[k]
        self._data.qpos[:] = self._qpos[k]
        mujoco.mj_forward(self._model, self._data)
        mujoco.mjv_updateScene(
            self._model,
            self._data,
            self._options,
            None,
            self._camera,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )
        for point, force in zip(self._motion.contacts[k], self._motion.world_forces[k]):
            if np.isfinite(force).all() and np.linalg.norm(force) > TOUCH:
                self._arrow(point, FORCE_SCALE * force)
        viewport = mujoco.MjrRect(0, 0, self._width, self._height)
        mujoco.mjr_render(viewport, self._scene, self._gpu)
        picture = np.empty((self._height, self._width, 3), np.uint8)
        mujoco.mjr_readPixels(picture, None, viewport, self._gpu)
        return np.ascontiguousarray(picture[::-1])

    def close(self) -> None:
        """Let go of the graphics."""
        self._gpu.free()
        self._context.free()

    def _arrow(self, start: Array, vector: Array) -> None:
        """An arrow; MuJoCo draws it with half the length of the connector."""
        if self._scene.ngeom >= self._scene.maxgeom:
            return
        kind, geom = mujoco.mjtGeom.mjGEOM_ARROW, self._scene.geoms[self._scene.ngeom]
        mujoco.mjv_initGeom(geom, kind, np.zeros(3), np.zeros(3), np.zeros(9), ARROW)
        mujoco.mjv_connector(geom, kind, 0.012, start, start + 2 * vector)
        self._scene.ngeom += 1


def _lit(path: str, width: int, height: int) -> Any:
    """The model with a sky, a chequered floor and a large enough buffer."""
    spec = mujoco.MjSpec.from_file(path)
    spec.visual.global_.offwidth, spec.visual.global_.offheight = width, height
    spec.add_texture(
        name="cito sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=[0.92, 0.95, 0.98],
        rgb2=[0.75, 0.82, 0.9],
        width=64,
        height=64,
    )
    spec.add_texture(
        name="cito floor",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=[0.86, 0.86, 0.86],
        rgb2=[0.78, 0.78, 0.78],
        width=128,
        height=128,
    )
    material = spec.add_material(name="cito floor", texrepeat=[2, 2], texuniform=True)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "cito floor"
    planes = [g for g in spec.worldbody.geoms if g.type == mujoco.mjtGeom.mjGEOM_PLANE]
    planes = planes or [spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])]
    for plane in planes:
        plane.material = plane.material or "cito floor"
        if plane.material == "cito floor":
            plane.rgba = [1, 1, 1, 1]
    return spec.compile()
