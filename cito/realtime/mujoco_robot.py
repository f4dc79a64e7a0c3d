"""The loop's end of a MuJoCo simulation in another process."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.conversions import from_mujoco, to_mujoco
from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, as_vector, positive, whole_number
from cito.realtime.disturbance import Noise, Pull
from cito.realtime.joints import Joints
from cito.realtime.messages import BadMessage, Format, Kind, Message
from cito.realtime.robot_interface import Command, RobotFault, RobotState

LARGEST = 1 << 16  # bytes of a message
START_TIMEOUT = 60.0  # MuJoCo must have been imported and the model compiled by then [s]
ROOT = Path(__file__).resolve().parent.parent.parent


class MujocoRobot:
    """A robot played by MuJoCo in a process and on a clock of its own.

    Args:
        model: the robot, read from an MJCF file.
        time_step: of the simulation [s].
        rate: at which states are published [Hz].
        lockstep: simulate only as far as the loop's clock has come, instead of in real time.
        friction: sliding friction of all geometries [-]; by default as in the file.
        payload: mass added to the base [kg].
        pull: on the base.
        noise: on what is measured; seed: of noise and jitter.
        latency: from measurement to arrival [s]; command_latency: from arrival to effect [s].
        jitter: uniform addition to both, up to this [s].
        damping: kd of the motors where they get no commands [N m s/rad].
        watchdog: after how long without a command they damp [s].
        priority: of SCHED_FIFO for the simulator, 1 to 99, where that is permitted: a robot does
            not slow down because the machine is busy. None: the scheduler as it is.

    Raises:
        ValueError: a number out of its range, or a robot that does not come from an MJCF file.
        RobotFault: the simulation did not start.
    """

    def __init__(
        self,
        model: Robot,
        time_step: float = 1e-3,
        rate: float = 1000.0,
        *,
        lockstep: bool = False,
        friction: float | None = None,
        payload: float = 0.0,
        pull: Pull | None = None,
        noise: Noise | None = None,
        latency: float = 0.0,
        command_latency: float = 0.0,
        jitter: float = 0.0,
        damping: ArrayLike = 3.0,
        watchdog: float = 0.1,
        priority: int | None = None,
        seed: int = 0,
    ) -> None:
        if model.source.suffix != ".xml":
            raise ValueError(f"`model` must come from an MJCF file (.xml), got {model.source}")
        joints, nu = Joints.of(model), len(model.actuated)
        pull = pull or Pull()
        if not joints.floating and (payload or pull.force.any()):
            raise ValueError("`payload` and `pull` act on a base that is free, there is none")
        for name, number in (("latency", latency), ("jitter", jitter), ("payload", payload)):
            positive(name, number, allow_zero=True)
        self.model = model
        native = model.native
        self._format = Format(native.nq, native.nv, nu, len(model.feet))
        self._lockstep = lockstep
        self._settings = {
            "path": str(model.source.resolve()),
            "joints": model.joints,
            "driven": model.actuated,
            "feet": model.feet,
            "base": model.system.bodies[0].name if joints.floating else None,
            "torque_limits": model.torque_limits.tolist(),
            "damping": as_vector("damping", damping, nu).tolist(),
            "time_step": positive("time_step", time_step),
            "rate": positive("rate", rate),
            "lockstep": lockstep,
            "friction": None
            if friction is None
            else positive("friction", friction, allow_zero=True),
            "payload": payload,
            "pull": pull.force.tolist(),
            "pull_time": (pull.start, pull.duration),
            "noise": asdict(noise or Noise()),
            "latency": latency,
            "command_latency": positive("command_latency", command_latency, allow_zero=True),
            "jitter": jitter,
            "watchdog": positive("watchdog", watchdog),
            "priority": priority if priority is None else whole_number("priority", priority, 1, 99),
            "seed": seed,
        }
        self._epoch, self._sequence = 0, 0
        self._newest: RobotState | None = None
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.link, self._complaints = ours, tempfile.TemporaryFile()
        arguments = [str(theirs.fileno()), json.dumps(self._settings)]
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cito.realtime.mujoco_process", *arguments],
                pass_fds=[theirs.fileno()],
                stderr=self._complaints,
                cwd=ROOT,
            )
        try:
            self.reset(0.0)
        except RobotFault:
            self.close()
            raise

    def reset(self, now: float, x: Array | None = None) -> None:
        """Go to x (nx,), by default the stance at rest; the simulation waits for a command."""
        rest = np.append(self.model.stance, np.zeros(self.model.native.nv))
        qpos, qvel = to_mujoco(self.model, rest if x is None else x)
        self._epoch += 1
        self._newest = None
        self._send(self._format.pack(Kind.RESET, self._epoch, now, qpos, qvel))
        self.link.settimeout(START_TIMEOUT)
        if self._lockstep:
            self._send(self._format.pack(Kind.ADVANCE, 0, now))
        while self._newest is None:  # what was measured before the reset is passed over
            self._take(self._receive())
        if not self._lockstep:
            self.link.setblocking(False)

    def read(self, now: float) -> RobotState | None:
        """The newest state that has arrived.

        Raises:
            RobotFault: the simulator is gone, or a message was refused.
        """
        if self._lockstep:
            self._send(self._format.pack(Kind.ADVANCE, 0, now))
            self._take(self._receive())
            return self._newest
        newest, refused = b"", None
        while True:
            try:
                raw = self.link.recv(LARGEST)
            except BlockingIOError:
                break
            except OSError as error:
                raise self._gone() from error
            if not raw:
                raise self._gone()
            if self._format.fits(Kind.STATE, raw):
                newest = raw
            else:
                refused = raw
        if newest:
            self._take(newest)
        if refused is not None:
            self._take(refused)  # says why
        return self._newest

    def write(self, now: float, command: Command) -> None:
        """Send the command.

        Raises:
            RobotFault: the simulator is gone, or takes no more commands.
        """
        self._sequence += 1
        c = command
        parts = (c.torque, c.position, c.velocity, c.stiffness, c.damping)
        self._send(self._format.pack(Kind.COMMAND, self._sequence, now, *parts))

    def close(self) -> None:
        """Hang up, at which the simulation ends."""
        self.link.close()
        try:
            self.process.wait(5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._complaints.close()

    def _receive(self) -> bytes:
        try:
            return self.link.recv(LARGEST)
        except TimeoutError:
            raise RobotFault(f"the simulator said nothing for {START_TIMEOUT:g} s") from None
        except OSError as error:
            raise self._gone() from error

    def _send(self, message: bytes) -> None:
        try:
            self.link.send(message)
        except BlockingIOError:
            raise RobotFault("the simulator takes no more commands") from None
        except OSError as error:
            raise self._gone() from error

    def _take(self, raw: bytes) -> None:
        """Keep the state in a message, unless it is older than the last reset."""
        if not raw:
            raise self._gone()
        try:
            message = self._format.unpack(raw)
        except BadMessage as refusal:
            raise RobotFault(f"refused {refusal}") from None
        if message.kind is Kind.STATE and message.sequence >> 32 == self._epoch:
            self._newest = self._state(message)

    def _state(self, message: Message) -> RobotState | None:
        qpos, qvel, forces = message.parts
        if message.time == -np.inf:  # lockstep: nothing has arrived yet
            return self._newest
        try:
            x = from_mujoco(self.model, qpos, qvel)
        except ValueError as error:
            raise RobotFault(f"refused a state: {error}") from None
        nq = self.model.native.nq
        return RobotState(message.time, x[:nq], x[nq:], forces.reshape(-1, 3))

    def _gone(self) -> RobotFault:
        """The fault of a simulator that has ended, in its own last words."""
        try:
            status = self.process.wait(2.0)
        except subprocess.TimeoutExpired:
            return RobotFault("the simulator hung up")
        self._complaints.seek(0)
        words = self._complaints.read().decode(errors="replace").strip().splitlines()
        said = f": {words[-1]}" if words else ""
        return RobotFault(f"the simulator has ended with status {status}{said}")
