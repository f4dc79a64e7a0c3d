"""One short run of a robot that stands and is pushed, for all tests of what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from cito.problems.robots import load_robot
from cito.realtime.clock import LockstepClock
from cito.realtime.controller import StandController
from cito.realtime.disturbance import Pull
from cito.realtime.loop import run
from cito.realtime.run_log import RunLog
from cito.realtime.self_robot import SelfRobot


@pytest.fixture(scope="session")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "pushed.run"
    robot = load_robot("go2")
    simulator = SelfRobot(robot, 4e-3, pull=Pull([0, 250, 0], 0.2, 0.2))
    clock = LockstepClock()
    run(StandController(robot), simulator, 0.6, 250.0, inline=True, clock=clock, log=RunLog(path))
    return path
