"""A motion in the browser: links, feet, contact forces, friction cones and a slider for time.

with Viewer(motion) as viewer:
    print(viewer.url)
    viewer.play()
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import redirect_stdout
from io import StringIO
from types import TracebackType

import numpy as np

from cito.dynamics.candidates import ContactPair
from cito.dynamics.shapes import Box, Capsule, Plane, Sphere, contact_frame
from cito.dynamics.types import Array, whole_number
from cito.visualization.motion import CLAMPING, SEPARATING, Motion
from cito.visualization.render import view_of
from cito.visualization.shapes import boxes, capsule, cone, links, size, surface

FORCE_SCALE = 4e-3  # length of a line [m/N]
LINK, TRUNK, CONTACT, FORCE = (150, 165, 180), (120, 140, 160), (70, 70, 70), (213, 94, 0)
CLAMPING_CONE, SLIDING_CONE = (0, 114, 178), (230, 159, 0)
GROUND, SOLID = (225, 225, 225), (200, 190, 170)
INTERVAL = 1 / 30  # between two pictures while it plays [s]


class Viewer:
    """Serves a motion on this machine until it is closed.

    Args:
        motion: of a run or a solution.
        port: 0: any that is free.
        host: address to listen on; by default only this machine can look.

    Raises:
        ImportError: viser is missing; says what to install.
    """

    def __init__(self, motion: Motion, port: int = 8080, host: str = "127.0.0.1") -> None:
        try:
            import viser
        except ImportError as error:
            raise ImportError(
                "the viewer needs viser: pip install '.[view]' in cito's folder"
            ) from error
        port = whole_number("port", port, 0, 65535)
        # A browser that opens a connection in advance and drops it is no error.
        logging.getLogger("websockets.server").setLevel(logging.CRITICAL)
        self.motion = motion
        with redirect_stdout(StringIO()):  # it greets in colours, also where JSON is wanted
            self.server = viser.ViserServer(host=host, port=port, label="cito", verbose=False)
        self.url = f"http://{host}:{self.server.get_port()}"
        self._closed, self._updating = threading.Event(), threading.RLock()
        self._moment = -1
        self._build()
        self._controls()
        self.show(float(motion.times[0]))

    def __enter__(self) -> Viewer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving, once the picture in the making is finished."""
        with self._updating:
            if self._closed.is_set():
                return
            self._closed.set()
            with redirect_stdout(StringIO()):
                self.server.stop()

    def play(self) -> None:
        """Answer the browser until `close` is called, from another thread or by Ctrl-C."""
        last = time.monotonic()
        while not self._closed.wait(INTERVAL):
            now = time.monotonic()
            with self._updating:
                if self._playing.value and not self._closed.is_set():
                    self._advance(now - last)
            last = now

    def _advance(self, duration: float) -> None:
        """Move the slider, which shows the motion there; from its end it goes back to the start."""
        t = self._time.value + self._speed.value * duration
        first, end = float(self.motion.times[0]), float(self.motion.times[-1])
        self._time.value = first if t > end else t

    def show(self, t: float) -> None:
        """Show the motion at time t [s]."""
        times = self.motion.times
        k = max(int(np.searchsorted(times, t + 1e-9, side="right")) - 1, 0)
        with self._updating:
            if k == self._moment or self._closed.is_set():
                return
            self._moment = k
            with self.server.atomic():
                self._place_bodies(k)
                self._place_contacts(k)

    def _build(self) -> None:
        """Everything that is there at all times."""
        scene, motion = self.server.scene, self.motion
        self._build_ground()
        radius = 0.06 * size(motion.system)
        self._bodies = [
            scene.add_frame(f"/robot/{i}", show_axes=False)
            for i in range(len(motion.system.bodies))
        ]
        for n, link in enumerate(links(motion.system)):
            vertices, faces = capsule(link.ends[0], link.ends[1], radius)
            scene.add_mesh_simple(
                f"/robot/{link.body}/link {n}", vertices=vertices, faces=faces, color=LINK
            )
        for n, box in enumerate(boxes(motion.system)):
            scene.add_box(
                f"/robot/{box.body}/trunk {n}",
                dimensions=tuple(2 * box.half),
                position=box.centre,
                color=TRUNK,
            )
        self._build_solids()
        self._build_contacts(radius)

    def _build_ground(self) -> None:
        """A grid on a plane, a mesh on anything else; the camera stands before the robot."""
        scene, motion = self.server.scene, self.motion
        scene.set_up_direction("+z")
        scene.add_light_ambient("/light", intensity=1.0)
        centres, reach = view_of(motion)
        ground = motion.system.ground
        if isinstance(ground, Plane):
            normal = np.asarray(ground.normal)
            turn = _quaternion(contact_frame(normal).T)
            place = ground.height * normal
            scene.add_grid("/ground", width=20, height=20, wxyz=turn, position=place)
        else:
            low, high = centres.min(axis=0) - 6 * reach, centres.max(axis=0) + 6 * reach
            vertices, faces = surface(motion.system, low[:2], high[:2])
            scene.add_mesh_simple("/ground", vertices=vertices, faces=faces, color=GROUND)
        eye = self.server.initial_camera
        eye.look_at = tuple(centres[0])
        eye.position = tuple(centres[0] + 3 * reach * np.array([1.0, -1.0, 0.5]))

    def _build_solids(self) -> None:
        """Shapes on bodies and on the world that contacts other than those with the ground meet."""
        scene, names = self.server.scene, [body.name for body in self.motion.system.bodies]
        pairs = [c for c in self.motion.system.contacts if isinstance(c, ContactPair)]
        solids = {(id(pair.shape), pair.other): pair for pair in pairs}
        for n, pair in enumerate(solids.values()):
            on = "/world" if pair.other is None else f"/robot/{names.index(pair.other)}"
            name, shape = f"{on}/solid {n}", pair.shape
            if isinstance(shape, Box):
                turn = _quaternion(shape.rotation)
                scene.add_box(
                    name, tuple(shape.size), color=SOLID, wxyz=turn, position=shape.position
                )
            elif isinstance(shape, Sphere):
                scene.add_icosphere(name, shape.radius, color=SOLID, position=shape.position)
            elif isinstance(shape, Capsule):
                mesh = capsule(np.asarray(shape.start), np.asarray(shape.end), shape.radius)
                scene.add_mesh_simple(name, vertices=mesh.vertices, faces=mesh.faces, color=SOLID)

    def _build_contacts(self, radius: float) -> None:
        scene, motion = self.server.scene, self.motion
        names = [body.name for body in motion.system.bodies]
        self._cones = []
        for i, contact in enumerate(motion.system.contacts):
            scene.add_icosphere(
                f"/robot/{names.index(contact.body)}/contact {i}",
                radius=contact.radius or radius,
                color=CONTACT,
                position=contact.position,
            )
            meshes = []
            for mode, color in (("clamping", CLAMPING_CONE), ("sliding", SLIDING_CONE)):
                vertices, faces = cone(8 * radius, float(motion.friction[i]))
                meshes.append(
                    scene.add_mesh_simple(
                        f"/cones/{mode} {i}",
                        vertices=vertices,
                        faces=faces,
                        color=color,
                        opacity=0.35,
                        side="double",
                        visible=False,
                    )
                )
            self._cones.append(meshes)
        zero = np.zeros((len(motion.system.contacts), 2, 3), np.float32)
        self._forces = (
            scene.add_line_segments("/forces", points=zero, colors=FORCE, thickness=0.5 * radius)
            if len(zero)
            else None
        )

    def _controls(self) -> None:
        gui, times = self.server.gui, self.motion.times
        gui.add_markdown(f"**{self.motion.name}**")
        first, last = float(times[0]), float(max(times[-1], times[0] + 1e-3))
        step = max(round((last - first) / 2000, 4), 1e-3)
        self._time = gui.add_slider("time [s]", first, last, step, first)
        self._playing = gui.add_checkbox("play", initial_value=False)
        self._speed = gui.add_slider("speed", 0.1, 2.0, 0.1, 1.0)
        self._time.on_update(lambda _: self.show(self._time.value))

    def _place_bodies(self, k: int) -> None:
        for i, body in enumerate(self._bodies):
            body.position = self.motion.poses.positions[k, i]
            body.wxyz = _quaternion(self.motion.poses.rotations[k, i])

    def _place_contacts(self, k: int) -> None:
        points, modes = self.motion.contacts[k], self.motion.modes[k]
        for i, meshes in enumerate(self._cones):
            for mesh in meshes:
                mesh.position = points[i]
                mesh.wxyz = _quaternion(self.motion.frames[k, i].T)
            meshes[0].visible = bool(modes[i] == CLAMPING)
            meshes[1].visible = bool(modes[i] not in (CLAMPING, SEPARATING))
        if self._forces is not None:
            ends = points + FORCE_SCALE * np.nan_to_num(self.motion.world_forces[k])
            self._forces.points = np.stack([points, ends], axis=1).astype(np.float32)


def _quaternion(R: Array) -> Array:
    """w x y z of a rotation (3, 3), by the largest of its four components."""
    diagonal, trace = np.diag(R), float(np.trace(R))
    squares = np.concatenate([[1 + trace], 1 + 2 * diagonal - trace]) / 4
    skew = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 4
    products = (R + R.T) / 4
    i = int(np.argmax(squares))
    if i == 0:
        q = np.concatenate([[squares[0]], skew])
    else:
        q = np.concatenate([[skew[i - 1]], products[i - 1]])
        q[i] = squares[i]
    return np.asarray(q / np.linalg.norm(q))
