"""`cito check` of robots: what it tells of a file, and of the derivatives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cito
from cito.cli import main
from cito.dynamics import check_robot
from cito.problems.robots import MODELS, SUMMARIES

URDF = """<robot name="post">
  <link name="base"><inertial><mass value="3"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <joint name="slide" type="prismatic"><parent link="base"/><child link="foot"/>
    <axis xyz="0 0 1"/><limit lower="-0.1" upper="0.2" effort="50" velocity="2"/></joint>
  <link name="foot"><inertial><mass value="1"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
    <collision><origin xyz="0 0 -0.3"/><geometry><box size="0.2 0.1 0.04"/></geometry></collision>
  </link>
</robot>"""


def checked(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["check", *arguments, "--json"]) == 0
    out, err = capfd.readouterr()
    assert err == "" and out.count("\n") == 1
    value = json.loads(out, parse_constant=pytest.fail)
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("name", SUMMARIES)
def test_shipped_robots_pass(capfd: pytest.CaptureFixture[str], name: str) -> None:
    told = checked(capfd, name)
    robot = cito.load_robot(name)
    assert told["mass"] == pytest.approx(robot.system.mass)
    assert (told["nq"], told["nv"], told["nu"]) == (
        robot.native.nq, robot.native.nv, robot.native.nu,
    )  # fmt: skip
    assert told["torque_limits"] == robot.torque_limits.tolist()
    assert [foot["name"] for foot in told["feet"]] == list(robot.feet)
    for foot, contact in zip(told["feet"], robot.contacts):
        assert foot["position"][2] == pytest.approx(contact.radius, abs=1e-9)
    errors = told["derivative_error"]
    assert errors.keys() == {"exact", "signorini", "full-cone"}
    assert told["passed"] and 0 < max(errors.values()) < 1e-6
    assert told["warnings"] == told["modes_not_met"] == told["modes_with_bracing"] == []
    met = {row["mode"]: set("".join(row["patterns"])) for row in told["derivatives"]}
    assert met["stance"] == {"c"} and met["swing"] == {"s"} and met["slide"] == {"l"}
    assert len(robot.feet) == 1 or len(met["mixed"]) > 1
    for row in told["derivatives"]:
        assert row["magnitude"] > 0.1 and (row["gradient"] == "exact" or row["contact"] > 0.1)


def test_a_file_with_a_flat_foot(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "post.urdf").write_text(URDF)
    told = checked(capfd, str(tmp_path / "post.urdf"))
    assert told["robot"] == "post" and told["floating_base"] and told["torque_limits"] == [50]
    assert [foot["name"] for foot in told["feet"]] == [f"foot.{k}" for k in (1, 2, 3, 4)]
    assert np.allclose([foot["position"][2] for foot in told["feet"]], 0)
    assert told["joints"][0]["limits"] == [-0.1, 0.2]
    assert told["joints"][0]["velocity_limit"] == 2
    assert "stance" in told["modes_with_bracing"]
    tested = {(row["mode"], row["gradient"]) for row in told["derivatives"]}
    assert ("stance", "full-cone") in tested and ("stance", "exact") not in tested
    assert main(["check", str(tmp_path / "post.urdf"), "--fixed-base"]) == 0
    out, _ = capfd.readouterr()
    assert "base on joints" in out and "brace each other" in out


def test_contacts_and_feet_are_chosen(capfd: pytest.CaptureFixture[str]) -> None:
    options = ("--feet", "RR, RL", "--contacts", "trunk", "--contacts", "*_knee")
    told = checked(capfd, "go2", "--samples", "1", *options)
    assert [foot["name"] for foot in told["feet"]] == ["RR", "RL"]
    names = [contact["name"] for contact in told["contacts"]]
    assert names == [f"trunk.{k}" for k in range(1, 9)] + [f"{leg}_knee" for leg in
                                                          ("FL", "FR", "RL", "RR")]  # fmt: skip
    assert all(contact["friction"] == 0.8 for contact in told["contacts"])


def test_tables_for_people(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "hopper"]) == 0
    out, err = capfd.readouterr()
    assert err == "" and "derivatives passed" in out
    for text in ("3.8 kg", "knee", "20", "foot", "full-cone", "base on joints"):
        assert text in out


def test_wrong_derivatives_fail(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_robot, "RELATIVE_TOLERANCE", 1e-20)
    assert main(["check", "hopper", "--samples", "1"]) == 1
    out, err = capfd.readouterr()
    assert "derivatives FAILED" in out and "did not pass: error" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["goo2"], "did you mean go2?"),
        (["nowhere.urdf"], "nowhere.urdf"),
        (["traverse", "--feet", "FL"], "--feet is for robots"),
        (["traverse", "--fixed-base"], "--fixed-base is for robots"),
        (["go2", "--feet", "FLL"], "did you mean 'FL'"),
        (["go2", "--samples", "0"], "--samples"),
        ([str(MODELS / "go2.xml"), "--contacts", "tail"], "`contacts` names 'tail'"),
    ],
)
def test_misuse(capfd: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["check", *arguments]) == 2
    out, err = capfd.readouterr()
    assert out == "" and message in err and err.count("\n") == 1
