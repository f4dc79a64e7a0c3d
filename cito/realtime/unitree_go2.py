"""Unitree's Go2 through the vendor's Python SDK (`unitree_sdk2py`), in low-level mode.

    rt/lowstate  -> joints, orientation, angular velocity, loads of the feet
    rt/lowcmd    <- position, velocity, torque, stiffness and damping of every motor

The SDK counts legs FR, FL, RR, RL; here they are FL, FR, RL, RR. In low-level mode the robot tells
neither position nor velocity of its base: an `Estimator` does, by default `LegOdometry`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from cito.dynamics.conversions import rotation_matrix
from cito.dynamics.robot import Robot
from cito.dynamics.types import Array, positive
from cito.realtime.clock import Clock, MonotonicClock
from cito.realtime.estimator import Estimator, LegOdometry, Measurement
from cito.realtime.joints import Index, Joints
from cito.realtime.robot_interface import Command, RobotFault, RobotState

LEGS, PARTS = ("FR", "FL", "RR", "RL"), ("hip", "thigh", "calf")  # the SDK's order
MOTORS, SLOTS = 12, 20  # motors of the robot, places in a message
SERVO = 0x01  # mode of a motor
HEAD, LOW_LEVEL = (0xFE, 0xEF), 0xFF
NO_POSITION, NO_VELOCITY = 2.146e9, 16000.0  # "do not control this"
STAND_STIFFNESS, STAND_DAMPING = 60.0, 5.0  # with which the robot gets up [N m/rad], [N m s/rad]
STAND_RATE = 500.0  # [Hz]


class UnitreeGo2:
    """A Go2 on the network.

    Args:
        model: the Go2, as `load_robot("go2")` returns it.
        interface: network interface, e.g. "eth0"; None: as the SDK chooses.
        domain: of DDS; 0 on the robot.
        estimator: of the base's position and velocity.
        stand_time: in which `reset` brings the joints to their posture [s].
        damping: kd in which `close` leaves the motors [N m s/rad].
        clock: what arrivals are stamped with.
        timeout: how long to wait for the first state and for the vendor's modes to end [s].

    Raises:
        ImportError: the SDK is not installed; says what to install.
        ValueError: `model` has not the joints of a Go2.
        RobotFault: no state arrived, or the robot did not leave its own control.
    """

    def __init__(
        self,
        model: Robot,
        interface: str | None = None,
        domain: int = 0,
        estimator: Estimator | None = None,
        stand_time: float = 2.0,
        damping: float = 3.0,
        clock: Clock | None = None,
        timeout: float = 10.0,
    ) -> None:
        self.model = model
        self._motors = motor_indices(model.actuated)
        self._feet = np.array([LEGS.index(name[:2]) for name in model.feet], dtype=np.intp)
        self._stand_time = positive("stand_time", stand_time)
        self._damping = Command.of_damping(np.full(MOTORS, positive("damping", damping)))
        self._timeout = positive("timeout", timeout)
        self._estimator = LegOdometry(model) if estimator is None else estimator
        self._clock = MonotonicClock() if clock is None else clock
        self._arrived: tuple[float, Any] | None = None
        self._state: RobotState | None = None
        self._connect(interface, domain)

    def _connect(self, interface: str | None, domain: int) -> None:
        try:
            from unitree_sdk2py.core import channel
            from unitree_sdk2py.idl.default import unitree_go_msg_dds__LowCmd_
            from unitree_sdk2py.idl.unitree_go.msg.dds_ import LowCmd_, LowState_
            from unitree_sdk2py.utils.crc import CRC
        except ImportError as error:
            raise ImportError(
                "the Go2 needs the vendor's SDK: pip install git+"
                "https://github.com/unitreerobotics/unitree_sdk2_python.git"
            ) from error
        channel.ChannelFactoryInitialize(domain, *([] if interface is None else [interface]))
        self._crc, self._message = CRC(), _idle(unitree_go_msg_dds__LowCmd_())
        self._publisher = channel.ChannelPublisher("rt/lowcmd", LowCmd_)
        self._publisher.Init()
        self._subscriber = channel.ChannelSubscriber("rt/lowstate", LowState_)
        self._subscriber.Init(self._arrive, 1)
        self._release()
        self._wait_for(lambda: self._arrived is not None, "no state has arrived from the Go2")

    def _arrive(self, message: Any) -> None:
        """Called by the SDK's thread."""
        self._arrived = self._clock.now(), message

    def _release(self) -> None:
        """End the vendor's own controllers, which would command the motors too."""
        from unitree_sdk2py.comm.motion_switcher import motion_switcher_client

        switcher = motion_switcher_client.MotionSwitcherClient()
        switcher.SetTimeout(self._timeout)
        switcher.Init()

        def released() -> bool:
            _, mode = switcher.CheckMode()
            if mode and mode.get("name"):
                switcher.ReleaseMode()
                return False
            return True

        self._wait_for(released, "the Go2 does not leave its own control")

    def reset(self, now: float, x: Array | None = None) -> None:
        """Bring the joints to their posture in x (nx,), the stance by default, and hold them."""
        state = self._newest()
        joints = Joints.of(self.model)
        target = (self.model.stance if x is None else x)[joints.q[joints.driven]]
        start = state.q[joints.q[joints.driven]]
        zero, ticks = np.zeros(MOTORS), max(round(self._stand_time * STAND_RATE), 1)
        began = self._clock.now()
        for k in range(1, ticks + 1):
            way = start + k / ticks * (target - start)
            stiffness, damping = np.full(MOTORS, STAND_STIFFNESS), np.full(MOTORS, STAND_DAMPING)
            self.write(self._clock.now(), Command(zero, way, zero, stiffness, damping))
            self._clock.sleep_until(began + k / STAND_RATE)

    def read(self, now: float) -> RobotState | None:
        """The newest state that has arrived; forces hold the load of each foot along N, in the
        robot's own unit."""
        return self._newest()

    def write(self, now: float, command: Command) -> None:
        """Send the command.

        Raises:
            RobotFault: the SDK could not send it.
        """
        c, message = command, self._message
        for i, motor in enumerate(self._motors):
            told = message.motor_cmd[motor]
            told.kp, told.kd = float(c.stiffness[i]), float(c.damping[i])
            told.q = float(c.position[i]) if told.kp else NO_POSITION
            told.dq = float(c.velocity[i]) if told.kd else NO_VELOCITY
            told.tau = float(c.torque[i])
        message.crc = self._crc.Crc(message)
        if self._publisher.Write(message) is False:
            raise RobotFault("the SDK could not send a command to the Go2")

    def close(self) -> None:
        """Leave the motors in damping and let go of the channels."""
        self.write(self._clock.now(), self._damping)
        self._subscriber.Close()
        self._publisher.Close()

    def _newest(self) -> RobotState:
        """The last message as a state; the estimator sees each message at most once."""
        assert self._arrived is not None  # the constructor has waited for it
        arrived, message = self._arrived
        if self._state is None or self._state.time != arrived:
            self._state = self._understood(arrived, message)
        return self._state

    def _understood(self, arrived: float, message: Any) -> RobotState:
        motors = [message.motor_state[m] for m in self._motors]
        imu = message.imu_state
        quaternion = np.roll(np.array(imu.quaternion, float), -1)  # w x y z comes first
        length = float(np.linalg.norm(quaternion))
        if not length > 0.5:
            raise RobotFault(f"the Go2 sends no orientation, but {quaternion.tolist()}")
        measured = Measurement(
            arrived,
            quaternion / length,
            np.array(imu.gyroscope, float),
            np.array(imu.accelerometer, float),
            np.array([motor.q for motor in motors], float),
            np.array([motor.dq for motor in motors], float),
            np.array(message.foot_force, float)[self._feet],
        )
        position, velocity = self._estimator.update(measured)
        R = rotation_matrix(measured.quaternion)
        forces = np.full((len(self._feet), 3), np.nan)
        forces[:, 2] = measured.load
        q = np.concatenate([position, measured.quaternion, measured.joint_position])
        v = np.concatenate([R.T @ velocity, measured.angular_velocity, measured.joint_velocity])
        return RobotState(arrived, q, v, forces)

    def _wait_for(self, done: Any, otherwise: str) -> None:
        deadline = time.monotonic() + self._timeout
        while not done():
            if time.monotonic() > deadline:
                raise RobotFault(f"{otherwise} within {self._timeout:g} s")
            time.sleep(0.01)


def motor_indices(actuated: Sequence[str]) -> Index:
    """The SDK's index of each drive, (12,), by the names of the joints.

    Raises:
        ValueError: these are not the joints of a Go2.
    """
    found = []
    for name in actuated:
        match = re.match(rf"({'|'.join(LEGS)})_({'|'.join(PARTS)})(_|$)", name)
        if match:
            found.append(len(PARTS) * LEGS.index(match[1]) + PARTS.index(match[2]))
    if sorted(found) != list(range(MOTORS)):
        raise ValueError(
            "`model` must have the joints FL_hip, FL_thigh, ... of a Go2, "
            f"got {', '.join(actuated)}"
        )
    return np.array(found, dtype=np.intp)


def _idle(message: Any) -> Any:
    """A command that asks nothing of any motor."""
    message.head[0], message.head[1] = HEAD
    message.level_flag, message.gpio = LOW_LEVEL, 0
    for motor in message.motor_cmd[:SLOTS]:
        motor.mode, motor.q, motor.dq = SERVO, NO_POSITION, NO_VELOCITY
        motor.kp = motor.kd = motor.tau = 0.0
    return message
