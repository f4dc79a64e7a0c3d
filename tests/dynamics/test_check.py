"""The finite-difference harness finds what it should find: right derivatives and wrong ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cito.dynamics import ContactDynamics, Exact, FullCone, Signorini, point_mass
from cito.dynamics.base import Transition
from cito.dynamics.check import (
    GradientCheck,
    GradientReport,
    check_gradients,
    check_transition,
    finite_difference,
)
from cito.dynamics.check_robot import check_modes
from cito.dynamics.joints import PositionDrive
from cito.problems.registry import make, tasks
from cito.problems.robots import load_robot
from tests.reference.systems import contact_free


def test_quartic_is_differentiated_to_rounding():
    def f(x):
        return np.stack([x[:, 0] ** 4 * x[:, 1], x[:, 1] ** 3 - x[:, 0]], axis=1)

    x = np.array([1.3, -0.7])
    J = np.array([[4 * x[0] ** 3 * x[1], x[0] ** 4], [-1, 3 * x[1] ** 2]])
    np.testing.assert_allclose(finite_difference(f, x, step=1e-2), J, rtol=1e-12)


def test_error_is_of_fourth_order():
    x = np.array([0.4])
    errors = [
        abs(finite_difference(np.sin, x, step=h)[0, 0] - np.cos(0.4)) for h in (4e-2, 2e-2, 1e-2)
    ]
    assert np.allclose(np.divide(errors[:-1], errors[1:]), 16, rtol=0.05)


def test_derivative_on_a_manifold_is_in_tangent_coordinates():
    """The unit circle in the plane: f doubles the angle, so its derivative is 2."""

    def integrate(x, d):
        angle = np.arctan2(x[:, 1], x[:, 0]) + d[:, 0]
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def difference(center, y):
        angles = np.arctan2(y[:, 1], y[:, 0]) - np.arctan2(center[:, 1], center[:, 0])
        return ((angles + np.pi) % (2 * np.pi) - np.pi)[:, None]

    def double(x):
        return np.stack([x[:, 0] ** 2 - x[:, 1] ** 2, 2 * x[:, 0] * x[:, 1]], axis=1)

    x = np.array([np.cos(1.5), np.sin(1.5)])  # doubled, it lies near the cut of the angle
    J = finite_difference(double, x, integrate=integrate, difference=difference, tangent=1)
    np.testing.assert_allclose(J, [[2.0]], rtol=1e-9)


def test_right_derivatives_pass_and_are_not_vacuous():
    report = check_gradients(ContactDynamics(point_mass(2), 0.05), samples=60)
    assert report.passed and report.error <= 1e-8
    assert {row.gradient for row in report.rows} == {"exact", "signorini", "full-cone"}
    assert sum(row.samples for row in report.rows) + report.skipped == 180
    assert all(row.magnitude > 1e-2 for row in report.rows)
    assert str(report).splitlines()[-1] == f"passed; near a mode boundary: {report.skipped}"


class Wrong(ContactDynamics):
    """A point mass whose Jacobians are off by a millionth and a half."""

    def transition(self, x, u, gradient=None):
        return Transition(*(1.0000015 * f for f in super().transition(x, u, gradient)))

    def transition_at_relaxed(self, x, u, gradient):
        return Transition(*(1.0000015 * f for f in super().transition_at_relaxed(x, u, gradient)))


def test_derivatives_a_little_wrong_fail():
    report = check_gradients(Wrong(point_mass(2), 0.05), samples=20)
    assert not report.passed and all(1e-6 < row.error < 2e-6 for row in report.rows)
    assert str(report).splitlines()[-1].startswith("FAILED")


@pytest.mark.parametrize("gradient", [Exact(), Signorini(0.1), FullCone(0.1)])
def test_state_on_a_mode_boundary_is_skipped(gradient):
    dynamics = ContactDynamics(point_mass(2), 0.05)
    limit = np.array([0.8 * 9.81, 0.0])  # on the boundary of stick
    assert check_transition(dynamics, np.zeros(4), limit, gradient) is None
    assert check_transition(dynamics, np.zeros(4), 0.5 * limit, gradient) is not None


def test_free_drift_has_no_magnitude():
    dynamics = ContactDynamics(point_mass(2, gravity=0.0), 0.05)
    error, magnitude = check_transition(dynamics, np.array([0, 9.0, 0, 0]), np.zeros(2), Exact())
    assert error <= 1e-8
    assert magnitude == pytest.approx(0.05)  # what the control brings, and nothing else


def test_report_without_rows_is_no_pass():
    assert not GradientReport((), 5).passed
    assert GradientReport((), 5).error == np.inf
    good, bad = (GradientCheck("exact", "s", 1, error, 1.0) for error in (1e-9, 1e-5))
    assert GradientReport((good,), 0).passed and not GradientReport((good, bad), 0).passed
    assert GradientReport((good, bad), 0).error == 1e-5


def test_system_without_contact_is_checked_with_the_exact_gradient():
    report = check_gradients(ContactDynamics(contact_free(), 0.05), samples=10)
    assert report.passed
    assert [(row.gradient, row.modes) for row in report.rows] == [("exact", "")]


def test_misuse_is_one_clear_error():
    with pytest.raises(ValueError, match="`dynamics` must be a ContactDynamics, got dict"):
        check_gradients({})
    with pytest.raises(ValueError, match="`center` must have shape"):
        check_gradients(ContactDynamics(point_mass(2), 0.05), center=np.zeros(3))
    with pytest.raises(ValueError, match="`rho`"):
        check_gradients(ContactDynamics(point_mass(2), 0.05), rho=0.0)


@pytest.mark.parametrize("name", sorted(tasks()))
def test_every_task_passes(name: str) -> None:
    """Samples at the edge of a mode (a redundant foot about to slip) are skipped, not failed."""
    try:
        problem = make(name)
    except ValueError as error:
        if "needs the package" not in str(error):
            raise
        pytest.skip(str(error))
    report = check_gradients(problem.dynamics, center=problem.start, samples=25, seed=2)
    assert report.passed, str(report)


@pytest.mark.parametrize("drive", [None, PositionDrive(100.0, 2.0)])
def test_both_forms_pass_with_forces_at_the_end_of_the_step(drive):
    """Damping, dry friction and position drives change what the production form is made of."""
    robot = load_robot("biped", joint_limits=True).with_drive(drive)
    bodies = [replace(b, dry_friction=0.3, stiffness=3.0) for b in robot.system.bodies]
    dynamics = ContactDynamics(replace(robot.system, bodies=bodies), 0.01, 0.8)
    report = check_modes(dynamics, robot.stance, states=1)
    assert report.passed, str(report)
    assert {row.mode for row in report.rows} == {"stance", "swing", "slide", "mixed", "limit"}
