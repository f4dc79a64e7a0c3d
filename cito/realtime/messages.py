"""Messages between the loop and a simulator in another process: fixed sizes, no cito types.

    header  = magic, kind, sequence number, time [s]
    STATE   = header, qpos, qvel (MuJoCo's conventions), forces on the feet (T1, T2, N) [N]
    COMMAND = header, torque, position, velocity, stiffness, damping
    RESET   = header, qpos, qvel
    ADVANCE = header                       (lockstep: simulate until that time, then tell the state)

One message is one datagram, so that a wrong size is seen as such and never shifts the next one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
HEADER = struct.Struct("<4sIQd")
MAGIC = b"CITO"


class Kind(IntEnum):
    """What a message is."""

    STATE = 1
    COMMAND = 2
    RESET = 3
    ADVANCE = 4


class BadMessage(Exception):
    """A message that is not what the sender and the receiver agreed on."""


@dataclass(frozen=True)
class Format:
    """Sizes that both sides agree on when the simulator starts.

    Args:
        nq, nv, nu: of the robot.
        feet: how many it has.
    """

    nq: int
    nv: int
    nu: int
    feet: int

    def lengths(self, kind: Kind) -> tuple[int, ...]:
        """Numbers in each part of the body."""
        return {
            Kind.STATE: (self.nq, self.nv, 3 * self.feet),
            Kind.COMMAND: (self.nu,) * 5,
            Kind.RESET: (self.nq, self.nv),
            Kind.ADVANCE: (),
        }[kind]

    def pack(self, kind: Kind, sequence: int, time: float, *parts: Array) -> bytes:
        """The bytes of a message.

        Raises:
            ValueError: parts that do not have the lengths agreed on.
        """
        lengths = self.lengths(kind)
        if tuple(part.size for part in parts) != lengths:
            sizes = tuple(part.size for part in parts)
            raise ValueError(f"`parts` of {kind.name} must have {lengths} numbers, got {sizes}")
        body = b"".join(np.ascontiguousarray(part, "<f8").tobytes() for part in parts)
        return HEADER.pack(MAGIC, kind, sequence, time) + body

    def fits(self, kind: Kind, message: bytes) -> bool:
        """Whether a message has the size of this kind."""
        return len(message) == HEADER.size + 8 * sum(self.lengths(kind))

    def unpack(self, message: bytes) -> Message:
        """What a message says.

        Raises:
            BadMessage: another size, kind or origin than agreed on.
        """
        if len(message) < HEADER.size:
            raise BadMessage(f"a message of {len(message)} bytes is shorter than its header")
        magic, number, sequence, time = HEADER.unpack_from(message)
        if magic != MAGIC or number not in tuple(Kind):
            raise BadMessage("a message that does not come from cito")
        kind = Kind(number)
        lengths = self.lengths(kind)
        if not self.fits(kind, message):
            agreed = HEADER.size + 8 * sum(lengths)
            raise BadMessage(f"a {kind.name} of {len(message)} bytes where {agreed} were agreed on")
        body = np.frombuffer(message, "<f8", offset=HEADER.size).astype(float)
        parts = tuple(np.split(body, np.cumsum(lengths)[:-1])) if lengths else ()
        return Message(kind, sequence, time, parts)


@dataclass(frozen=True)
class Message:
    """A message as it came: kind, sequence number, time [s] and the parts of its body."""

    kind: Kind
    sequence: int
    time: float
    parts: tuple[Array, ...]
