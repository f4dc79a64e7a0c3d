"""`cito mpc`: a robot finds its steps, pulls act, misuse is told."""

from __future__ import annotations

import json

import pytest

from cito.cli import main, parser
from cito.cli_mpc import BUDGET, SOLVE_TIME, chosen_budget, chosen_delay
from cito.problems.recover import humanoid

try:
    humanoid("g1")
    INSTALLED = True
except ValueError:
    INSTALLED = False
FIELDS = (
    "objective_mean",
    "objective_std",
    "position_error",
    "orientation_error",
    "fell",
    "solve_p50",
    "solve_p99",
    "period_p99",
    "missed_deadlines",
    "ticks",
    "mode_switches",
    "safety_events",
)


def outcome(capsys, *arguments):
    status = main(["mpc", *arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_a_quadruped_steps_to_its_target(capsys, tmp_path):
    status, row = outcome(
        capsys, "base-pose", "--set", "target=0.2,0,0", "--duration", "2", "--out", str(tmp_path)
    )
    assert status == 0 and all(field in row for field in FIELDS)
    assert row["position_error"] < 0.03 and row["orientation_error"] < 0.05
    assert not row["fell"] and row["mode_switches"] > 4 and row["ticks"] == 800
    assert (tmp_path / "base-pose.run").is_file()


def test_a_quadruped_goes_at_a_velocity(capsys):
    options = ("--set", "velocity=0.3,0,0.3", "--duration", "2", "--gradient", "adaptive")
    status, row = outcome(capsys, "base-pose", *options)
    assert status == 0 and not row["fell"] and row["other_contacts"] == 0
    assert row["tracking_error"] < 0.05 and row["velocity_error"] < 0.1
    again = outcome(capsys, "base-pose", *options)[1]
    assert all(again[key] == row[key] for key in ("objective_mean", "position_error"))


def test_a_pull_moves_the_robot(capsys):
    pull = ("--set", "pull=0,60,0", "--set", "pull_time=0.1,0.2")
    _, still = outcome(capsys, "stand", "--duration", "0.4")
    _, pulled = outcome(capsys, "stand", "--duration", "0.4", *pull)
    assert pulled["position_error"] > 2 * still["position_error"]


def test_mujoco_runs_on_a_clock_of_its_own(capsys):
    given = ("stand", "--robot", "mujoco", "--duration", "0.5", "--rate", "40")
    status, row = outcome(capsys, *given)
    assert status == 0 and all(field in row for field in FIELDS)
    assert 0.4 < row["duration"] < 0.6 and not row["fell"] and row["failed_solves"] == 0
    assert row["solves"] > 5 and "priority" in row["granted"]
    assert row["unexplained_deadlines"] <= row["missed_deadlines"]
    assert row["position_error"] < 0.05


def test_plans_faster_than_the_time_step_and_late_ones_keep_a_robot_up(capsys):
    """100 plans a second of 25 ms steps, each of which applies 8 ms after its measurement."""
    given = ("base-pose", "--rate", "100", "--delay", "0.008", "--duration", "1.5")
    for robot in (("self",), ("mujoco", "--lockstep")):
        status, row = outcome(capsys, *given, "--robot", *robot)
        assert status == 0 and not row["fell"] and row["solves"] == 150
        assert row["tracking_error"] < 0.03 and row["missed_deadlines"] == 0


def test_a_quadruped_rears_in_a_world_that_is_not_its_model(capsys):
    given = ("rear", "--robot", "mujoco", "--lockstep", "--duration", "2.7")
    status, row = outcome(capsys, *given, "--set", "hold=0.3", "--set", "rise_time=0.7")
    assert status == 0 and not row["fell"] and row["other_contacts"] == 0
    assert row["tracking_error"] < 0.08 and row["orientation_error"] < 0.2


@pytest.mark.skipif(not INSTALLED, reason="example-robot-data is not installed")
def test_a_humanoid_recovers_where_plans_are_shifted_by_parts_of_a_step(capsys):
    """States come every 2 ms to a loop of 2.5 ms: plans are 24 or 26 ms apart, steps 25 ms."""
    status, row = outcome(capsys, "recover", "--duration", "1.6", "--set", "give_way=0")
    assert status == 0 and not row["fell"] and row["position_error"] < 0.05


def test_the_delay_is_less_than_the_time_between_two_plans():
    for arguments, delay in (
        (["stand"], 0.0),
        (["stand", "--robot", "mujoco"], SOLVE_TIME),
        (["stand", "--robot", "mujoco", "--delay", "0.003"], 0.003),
    ):
        assert chosen_delay(parser().parse_args(["mpc", *arguments]), 40.0) == delay
    fast = parser().parse_args(["mpc", "stand", "--robot", "mujoco"])
    assert chosen_delay(fast, 100.0) == pytest.approx(0.008)
    assert chosen_budget(fast, 100.0) == pytest.approx(BUDGET * 0.008)
    assert chosen_budget(parser().parse_args(["mpc", "stand"]), 40.0) == float("inf")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["traverse"], "is not about a robot"),
        (["cart-pole"], "`cito solve cart-pole` solves it, cito.MPC in Python again and again"),
        (["stand", "--robot", "atlas"], "--robot must be self or mujoco, got 'atlas'"),
        (["stand", "--set", "pull=1,2"], "--set pull must be 3 numbers"),
        (["stand", "--set", "pull=a,b,c"], "--set pull must be numbers separated by commas"),
        (["stand", "--gradient", "adaptive", "--rho", "1"], "`rho` is not a number of gradient"),
        (["base-pose", "--set", "velocity=1,0"], "`velocity` must have shape (3,)"),
        (["stand", "--rate", "0"], "`--rate` must be > 0, got 0"),
        (["stand", "--control-rate", "0"], "`--control-rate` must be > 0, got 0"),
        (["stand", "--delay", "1e9"], "`delay` must be within a plan of 0.8 s, got 1e+09 s"),
        (["stand", "--iterations", "0"], "`iterations` must be a whole number >= 1"),
    ],
)
def test_misuse_is_told(arguments, sentence, capsys):
    assert main(["mpc", *arguments]) == 2
    assert sentence in capsys.readouterr().err
