"""A loopback stand-in for `unitree_sdk2py`: its modules, message fields and channels, and a Go2
behind them that is simulated by cito. Nothing here needs the SDK, a network or a robot."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from cito.dynamics.conversions import rotation_matrix
from cito.realtime.clock import Clock
from cito.realtime.robot_interface import Command
from cito.realtime.self_robot import SelfRobot

# The SDK's motors 0..11 are FR, FL, RR, RL; those of the simulation FL, FR, RL, RR.
TO_SDK = [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]


@dataclass
class MotorCmd:
    mode: int = 0
    q: float = 0.0
    dq: float = 0.0
    tau: float = 0.0
    kp: float = 0.0
    kd: float = 0.0
    reserve: list[int] = field(default_factory=lambda: [0, 0, 0])


@dataclass
class LowCmd_:
    head: list[int] = field(default_factory=lambda: [0, 0])
    level_flag: int = 0
    frame_reserve: int = 0
    sn: list[int] = field(default_factory=lambda: [0, 0])
    version: list[int] = field(default_factory=lambda: [0, 0])
    bandwidth: int = 0
    motor_cmd: list[MotorCmd] = field(default_factory=lambda: [MotorCmd() for _ in range(20)])
    gpio: int = 0
    reserve: int = 0
    crc: int = 0


@dataclass
class IMUState:
    quaternion: list[float] = field(default_factory=lambda: [0.0] * 4)
    gyroscope: list[float] = field(default_factory=lambda: [0.0] * 3)
    accelerometer: list[float] = field(default_factory=lambda: [0.0] * 3)
    rpy: list[float] = field(default_factory=lambda: [0.0] * 3)
    temperature: int = 0


@dataclass
class MotorState:
    mode: int = 1
    q: float = 0.0
    dq: float = 0.0
    ddq: float = 0.0
    tau_est: float = 0.0


@dataclass
class LowState_:
    imu_state: IMUState = field(default_factory=IMUState)
    motor_state: list[MotorState] = field(default_factory=lambda: [MotorState() for _ in range(20)])
    foot_force: list[int] = field(default_factory=lambda: [0] * 4)
    tick: int = 0
    crc: int = 0


class CRC:
    def Crc(self, message: Any) -> int:
        return zlib.crc32(repr({**asdict(message), "crc": 0}).encode())


class Network:
    """Topics and their listeners, and the mode that the robot is in."""

    def __init__(self) -> None:
        self.listeners: dict[str, Callable[[Any], None]] = {}
        self.initialized: tuple[Any, ...] = ()
        self.mode = "normal"
        self.open: set[str] = set()
        self.refuse = False


@contextmanager
def sdk(network: Network) -> Iterator[None]:
    """Modules with the SDK's names, for as long as the context lasts."""

    class ChannelPublisher:
        def __init__(self, name: str, kind: type) -> None:
            self.name = name

        def Init(self) -> None:
            network.open.add(self.name)

        def Write(self, message: Any, timeout: float | None = None) -> bool:
            if network.refuse:
                return False
            network.listeners[self.name](message)
            return True

        def Close(self) -> None:
            network.open.discard(self.name)

    class ChannelSubscriber:
        def __init__(self, name: str, kind: type) -> None:
            self.name = name

        def Init(self, handler: Callable[[Any], None], queue: int = 0) -> None:
            network.open.add(self.name)
            network.listeners[self.name] = handler

        def Close(self) -> None:
            network.open.discard(self.name)

    class MotionSwitcherClient:
        def SetTimeout(self, timeout: float) -> None: ...

        def Init(self) -> None: ...

        def CheckMode(self) -> tuple[int, dict[str, str]]:
            return 0, {"name": network.mode}

        def ReleaseMode(self) -> tuple[int, None]:
            network.mode = ""
            return 0, None

    def initialize(*arguments: Any) -> None:
        network.initialized = arguments

    contents: dict[str, dict[str, Any]] = {
        "": {},
        ".core": {},
        ".core.channel": {
            "ChannelFactoryInitialize": initialize,
            "ChannelPublisher": ChannelPublisher,
            "ChannelSubscriber": ChannelSubscriber,
        },
        ".idl": {},
        ".idl.default": {"unitree_go_msg_dds__LowCmd_": LowCmd_},
        ".idl.unitree_go": {},
        ".idl.unitree_go.msg": {},
        ".idl.unitree_go.msg.dds_": {"LowCmd_": LowCmd_, "LowState_": LowState_},
        ".utils": {},
        ".utils.crc": {"CRC": CRC},
        ".comm": {},
        ".comm.motion_switcher": {},
        ".comm.motion_switcher.motion_switcher_client": {
            "MotionSwitcherClient": MotionSwitcherClient
        },
    }
    modules = {}
    for suffix, names in contents.items():
        module = ModuleType(f"unitree_sdk2py{suffix}")
        vars(module).update(names, __path__=[])
        modules[module.__name__] = module
        parent, _, child = module.__name__.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


class MockGo2:
    """The robot's end: obeys rt/lowcmd and publishes rt/lowstate."""

    def __init__(self, network: Network, simulator: SelfRobot, clock: Clock) -> None:
        self.network, self.simulator, self.clock = network, simulator, clock
        self.commands: list[LowCmd_] = []
        self._velocity = np.zeros(3)
        network.listeners["rt/lowcmd"] = self.obey

    def obey(self, message: LowCmd_) -> None:
        """What the firmware checks and does."""
        assert message.head == [0xFE, 0xEF] and message.level_flag == 0xFF
        assert message.crc == CRC().Crc(message)
        assert all(motor.mode == 1 for motor in message.motor_cmd)
        self.commands.append(message)
        motors = [message.motor_cmd[m] for m in TO_SDK]
        for motor in motors:  # the sentinels stand for "not controlled"
            assert (motor.q == 2.146e9) == (motor.kp == 0)
            assert (motor.dq == 16000.0) == (motor.kd == 0)
        command = Command(
            *(np.array([getattr(motor, name) for motor in motors], float)
              for name in ("tau", "q", "dq", "kp", "kd"))
        )  # fmt: skip
        self.simulator.write(self.clock.now(), command)

    def publish(self) -> None:
        """A state as the robot sends it."""
        state = self.simulator.read(self.clock.now())
        message = LowState_()
        x, y, z, w = state.q[3:7]
        message.imu_state.quaternion = [w, x, y, z]
        message.imu_state.gyroscope = state.v[3:6].tolist()
        message.imu_state.accelerometer = self._specific_force(state)
        for i, m in enumerate(TO_SDK):
            message.motor_state[m].q = state.q[7 + i]
            message.motor_state[m].dq = state.v[6 + i]
        for i, leg in enumerate((1, 0, 3, 2)):
            message.foot_force[leg] = int(state.forces[i, 2])
        self.network.listeners["rt/lowstate"](message)

    def _specific_force(self, state: Any) -> list[float]:
        R = rotation_matrix(state.q[3:7])
        velocity, before = R @ state.v[:3], self._velocity
        self._velocity = velocity
        acceleration = (velocity - before) / self.simulator.dynamics.time_step
        force: list[float] = (R.T @ (acceleration + [0, 0, 9.81])).tolist()
        return force
