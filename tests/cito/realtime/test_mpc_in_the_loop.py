"""Model predictive control in the loop: equal runs, and the same plans from another process."""

from __future__ import annotations

import numpy as np

from cito.dynamics.contact_dynamics import ContactDynamics
from cito.mpc import MPC
from cito.problems.problem import Problem
from cito.problems.robot_costs import BasePose, JointVelocity, Posture, Torque
from cito.realtime.clock import LockstepClock
from cito.realtime.controller import standing_torque
from cito.realtime.disturbance import Noise
from cito.realtime.loop import run
from cito.realtime.remote_controller import RemoteController
from cito.realtime.run_file import Run, run_of
from cito.realtime.run_log import RunLog
from cito.realtime.self_robot import SelfRobot
from tests.cito.realtime.robots import GO2


def standing(delay: float = 0.0) -> MPC:
    """The Go2 keeps its place, seen over eight steps."""
    costs = [
        BasePose(GO2.stance[:3], position_weight=20.0, orientation_weight=40.0, knots="all"),
        Posture(GO2.stance[7:], 5.0, knots="all"),
        JointVelocity(5e-3, knots="all"),
        Torque(2e-3),
    ]
    limit = GO2.torque_limits
    problem = Problem(
        "stand",
        ContactDynamics(GO2, 0.025, 0.7),
        start=np.append(GO2.stance, np.zeros(18)),
        horizon=8,
        costs=costs,
        initial_controls=np.tile(standing_torque(GO2), (8, 1)),
        control_lower=-limit,
        control_upper=limit,
    )
    return MPC(problem, iterations=1, first_iterations=3, delay=delay)


def logged(seed: int = 0, delay: float = 0.0) -> Run:
    robot = SelfRobot(GO2, 5e-3, noise=Noise(joint_position=1e-3, velocity=0.01), seed=seed)
    log, clock = RunLog(), LockstepClock()
    summary = run(
        standing(delay), robot, 0.3, 200.0, solver_rate=40.0, inline=True, clock=clock, log=log
    )
    assert summary.failed_solves == 0 and summary.safety_events == 0
    assert summary.final_state is not None
    assert np.abs(summary.final_state[:3] - GO2.stance[:3]).max() < 0.03
    return run_of(log)


def test_equal_seeds_give_equal_closed_loops_bit_by_bit() -> None:
    a, b, c = logged(seed=1), logged(seed=1), logged(seed=2)
    for name in ("state", "torque", "forces", "plan_age"):
        assert a.ticks[name].tobytes() == b.ticks[name].tobytes()
    assert a.solves["cost"].tobytes() == b.solves["cost"].tobytes()
    assert a.states.tobytes() != c.states.tobytes()


def test_a_delay_is_ridden_out_under_the_plan_before() -> None:
    run_ = logged(delay=0.02)
    np.testing.assert_allclose(run_.solves["start"], run_.solves["time"] + 0.02, atol=1e-12)
    ages = run_.ticks["plan_age"]  # of plans that begin at 20 ms, 45 ms, ...
    np.testing.assert_allclose(ages[[0, 4, 8, 9]], [-0.02, 0.0, 0.02, 0.0], atol=1e-9)
    assert ages.max() < 0.025


def test_plans_come_from_another_process_without_the_dynamics() -> None:
    here, there = standing(), RemoteController(standing())
    x = np.append(GO2.stance, np.zeros(18))
    try:
        for t in (0.0, 0.025):
            mine, remote = here.update(t, x), there.update(t, x)
            np.testing.assert_array_equal(remote.control(t, x), mine.control(t, x))
            np.testing.assert_array_equal(remote.states, mine.states)
            assert remote.dynamics is there._dynamics
        assert there.cpu_time is not None and there.cpu_time > 0
    finally:
        there.close()
