"""Tasks of a legged robot that moves as it is told: no gait, no foothold and no schedule is given.

For `cito mpc`: what is wanted moves with time.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from cito.dynamics.types import as_array, positive
from cito.problems.base_motion import Drive, Rear
from cito.problems.base_pose import guarded, moving_base
from cito.problems.moving_base import Weights
from cito.problems.problem import Problem
from cito.problems.registry import task
from cito.problems.robot_costs import AirTime
from cito.problems.robot_size import RobotSize


@task("walk", "a legged robot goes at a velocity, with steps of its own")
def walk(
    robot: str = "go2",
    velocity: ArrayLike = (0.4, 0.0, 0.0),
    friction: float = 0.7,
    time_step: float = 0.025,
    horizon: int = 20,
    position_weight: float = 200.0,
    orientation_weight: float = 40.0,
    velocity_weight: float = 0.5,
    posture_weight: float = 5.0,
    slip_weight: float = 0.3,
    air_weight: float = 0.1,
    contacts: str = "auto",
) -> Problem:
    """`velocity`: forwards, to the left [m/s] and turning [rad/s], in the heading of the base.

    Feet pay for slip, the less the higher they are (`slip_weight`), and for each knot that they
    spend in the air (`air_weight`).
    """
    parameters = dict(locals())
    loaded = guarded(robot, contacts)
    vx, vy, w = as_array("velocity", velocity, (3,))
    weights = Weights(
        position=positive("position_weight", position_weight),
        orientation=positive("orientation_weight", orientation_weight),
        linear=positive("velocity_weight", velocity_weight),
        posture=positive("posture_weight", posture_weight),
        slip=positive("slip_weight", slip_weight, allow_zero=True),
    )
    air = positive("air_weight", air_weight, allow_zero=True)
    length = 0.02 * RobotSize.of(loaded).length
    extra = [AirTime(air, length=length)] if air else []
    return moving_base("walk", loaded, Drive((vx, vy, w)), weights, parameters, extra)


@task("rear", "a quadruped lifts its front legs, stands on the others for a while, comes down")
def rear(
    robot: str = "go2",
    pitch: float = 0.5,
    hold: float = 0.5,
    rise_time: float = 0.9,
    friction: float = 0.7,
    time_step: float = 0.025,
    horizon: int = 20,
    position_weight: float = 200.0,
    orientation_weight: float = 100.0,
    posture_weight: float = 1.0,
    contacts: str = "auto",
) -> Problem:
    """`pitch`: of the base, nose up [rad], held for `hold` and reached in `rise_time` [s]."""
    parameters = dict(locals())
    loaded = guarded(robot, contacts)
    size = RobotSize.of(loaded)
    hips = [b.position[0] for b in loaded.system.bodies if b.parent == loaded.system.bodies[0].name]
    command = Rear(
        float(as_array("pitch", pitch, ())),
        -min(hips, default=0.0),
        positive("rise_time", rise_time) * size.time,
        positive("hold", hold, allow_zero=True),
    )
    weights = Weights(
        position=positive("position_weight", position_weight),
        orientation=positive("orientation_weight", orientation_weight),
        posture=positive("posture_weight", posture_weight),
    )
    return moving_base("rear", loaded, command, weights, parameters)
