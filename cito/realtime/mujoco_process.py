"""A MuJoCo simulation in a process of its own: it plays the robot, and of cito it knows messages.

    python -m cito.realtime.mujoco_process SOCKET SETTINGS

SOCKET is an inherited file descriptor, SETTINGS a JSON object (the fields of `Settings`). The
model's contacts, solver and time step are MuJoCo's. The motors' law is evaluated at every
step; without commands for longer than `watchdog` the motors damp, as a real robot's do. The
simulation waits for the first command after the start and after every reset.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Sequence

import numpy as np

from cito.realtime.messages import Array, BadMessage, Kind, Message
from cito.realtime.mujoco_world import Settings, World

MAX_LAG = 0.1  # what a real-time simulation may be behind the clock before it skips time [s]
EPOCH = 1 << 32  # sequence numbers count the messages since the last of so many resets


class Simulator:
    """A world behind a socket, on its own clock or in lockstep with the loop's."""

    def __init__(self, link: socket.socket, settings: Settings) -> None:
        self._link, self._settings = link, settings
        self.world = World(settings)
        self._random = np.random.default_rng(settings.seed + 1)
        damping = np.array(settings.damping)
        self._fallback = [np.zeros_like(damping)] * 4 + [damping]
        self._epoch, self._sequence = 0, 0
        self._rest()

    def _rest(self) -> None:
        """Forget what was commanded and measured; wait for a command."""
        self._origin: float | None = None
        self._command: Sequence[Array] = self._fallback
        self._commanded = -np.inf
        self._inbox: deque[tuple[float, Sequence[Array]]] = deque()
        self._outbox: deque[tuple[float, bytes]] = deque()
        self._published = -np.inf

    def run_free(self) -> None:
        """Keep pace with the machine's clock until the other side hangs up."""
        self._link.setblocking(False)
        h = self._settings.time_step
        while self._receive_all(time.monotonic()):
            now = time.monotonic()
            if self._origin is not None:
                if now - self._time > MAX_LAG:
                    self._origin += now - self._time
                while self._time + h <= now:
                    self._step()
            if now - self._published >= 1 / self._settings.rate - 1e-4:
                self._measure(now if self._origin is None else self._time)
                self._published = now
            while self._outbox and self._outbox[0][0] <= now:
                self._send(self._outbox.popleft()[1])
            wake = now + 2e-4 if self._origin is None else self._time + h
            time.sleep(max(wake - time.monotonic(), 1e-4))

    def run_lockstep(self) -> None:
        """Simulate as far as the other side says, until it hangs up."""
        while raw := self._link.recv(1 << 16):
            message = self._understood(raw)
            if message is None:
                continue
            self._take(message, message.time)
            if message.kind is Kind.ADVANCE:
                self._advance(message.time)

    def _advance(self, until: float) -> None:
        """Simulate up to `until`, and tell the newest state that has arrived by then."""
        h, interval = self._settings.time_step, 1 / self._settings.rate
        if self._origin is None:
            self._measure(until, delay=0.0)
        else:
            while self._time + h <= until + 1e-9:
                self._step()
                if self._time - self._published >= interval - 1e-9:
                    self._measure(self._time)
                    self._published = self._time
        arrived = [entry for entry in self._outbox if entry[0] <= until + 1e-9]
        for _ in arrived[:-1]:
            self._outbox.popleft()
        if arrived:
            self._send(self._outbox[0][1])  # kept: it stays the newest until the next one
        else:
            self._send(self._packed(-np.inf, *self.world.measured()))  # nothing has arrived yet

    @property
    def _time(self) -> float:
        assert self._origin is not None
        return self._origin + float(self.world.data.time)

    def _step(self) -> None:
        now = self._time
        while self._inbox and self._inbox[0][0] <= now + 1e-9:
            self._commanded, self._command = self._inbox.popleft()
        silent = now - self._commanded > self._settings.watchdog
        self.world.step(self._fallback if silent else self._command)

    def _measure(self, now: float, delay: float | None = None) -> None:
        """Measure, and let it arrive after the latency; messages do not overtake each other."""
        delay = self._delay(self._settings.latency) if delay is None else delay
        due = max(now + delay, self._outbox[-1][0] if self._outbox else -np.inf)
        self._outbox.append((due, self._packed(now, *self.world.measured())))

    def _delay(self, latency: float) -> float:
        return latency + self._settings.jitter * float(self._random.random())

    def _packed(self, now: float, *parts: Array) -> bytes:
        self._sequence += 1
        sequence = self._epoch * EPOCH + self._sequence
        return self.world.format.pack(Kind.STATE, sequence, now, *parts)

    def _receive_all(self, now: float) -> bool:
        """Take all messages that have come; False where the other side hung up."""
        while True:
            try:
                raw = self._link.recv(1 << 16)
            except BlockingIOError:
                return True
            if not raw:
                return False
            message = self._understood(raw)
            if message is not None:
                self._take(message, now)

    def _understood(self, raw: bytes) -> Message | None:
        try:
            return self.world.format.unpack(raw)
        except BadMessage as refusal:
            print(f"refused {refusal}", file=sys.stderr, flush=True)
            return None

    def _take(self, message: Message, now: float) -> None:
        if message.kind is Kind.RESET:
            self.world.reset(*message.parts)
            self._epoch = message.sequence
            self._rest()
        elif message.kind is Kind.COMMAND and all(np.isfinite(p).all() for p in message.parts):
            if self._origin is None:
                self._origin = now
                self._commanded = now
            self._inbox.append((now + self._delay(self._settings.command_latency), message.parts))

    def _send(self, message: bytes) -> None:
        try:
            self._link.send(message)
        except BlockingIOError:  # the reader is slow: it misses this one
            pass


def main(arguments: Sequence[str]) -> None:
    """Run until the other side hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the loop's affair
    settings = Settings(**json.loads(arguments[1]))
    if settings.priority is not None:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(settings.priority))
        except OSError as error:
            print(f"SCHED_FIFO was not granted: {error}", file=sys.stderr, flush=True)
    with socket.socket(fileno=int(arguments[0])) as link:
        try:
            simulator = Simulator(link, settings)
            simulator.run_lockstep() if settings.lockstep else simulator.run_free()
        except (BrokenPipeError, ConnectionResetError):
            pass


if __name__ == "__main__":
    main(sys.argv[1:])
