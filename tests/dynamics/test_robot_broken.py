"""Broken robot files: one sentence each that names the file; never a crash, never a noise.

`cito bench fuzz` reads a thousand mutants of every robot there is.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from cito.benchmarks import fuzz_robots
from cito.dynamics.robot import load_robot
from cito.problems.robots import MODELS, robots
from cito.problems.robots import load_robot as load_named

HOPPER = (MODELS / "hopper.xml").read_text()
FOOT = '<geom name="foot" type="sphere" size="0.02" pos="0 0 -0.2"'
THIGH = '<inertial pos="0 0 -0.1" mass="0.5" diaginertia="0.0017 0.0017 0.0001"/>'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (THIGH, "", "thigh"),
        ('mass="0.5"', 'mass="-1"', "body 'thigh'.*mass >= 0, got -1"),
        ('mass="0.5"', 'mass="0"', "thigh|mass"),
        ('mass="0.5"', 'mass="nan"', "`mass` of a <inertial>.*NaN"),
        ('mass="0.5"', 'mass="1e300"', "below 1e|finite"),
        ('mass="0.5"', 'mass="1e999"', "mass|large"),
        ('mass="0.5"', 'mass="much"', "mass"),
        ('diaginertia="0.0017 0.0017 0.0001"', 'diaginertia="-1 1 1"', "thigh|inertia"),
        ('diaginertia="0.0017 0.0017 0.0001"', 'diaginertia="0 0 0"', "thigh|inertia"),
        ('<joint name="hip" class="hinge" range="-1.6 1.6"/>', '<joint type="spiral"/>', "spiral"),
        ('name="hip" class="hinge" range="-1.6 1.6"', 'name="hip" axis="0 0 0"', "axis|hip"),
        ('name="hip" class="hinge"', 'name="hip" class="gone"', "gone"),
        ('<body name="shank"', '<body name="thigh"', "thigh|repeated"),
        ('joint name="knee"', 'joint name="hip"', "hip|repeated"),
        ('<body name="trunk">', '<body name="trunk" quat="0 0 0 0">', "trunk|quat"),
        ('<geom name="foot"', '<sphere name="foot"', "sphere"),
        ("<worldbody>", '<include file="gone.xml"/><worldbody>', "gone.xml"),
        ("<worldbody>", '<include file="broken.xml"/><worldbody>', "include|broken"),
        ('joint="knee"', 'joint="elbow"', "elbow"),
        ('qpos="0 0.35', 'qpos="0.35', "qpos|key"),
        ("<actuator>", '<option gravity="0 0 9.81"/><actuator>', "gravity.*-z"),
        ("<actuator>", '<option gravity="0 1e300 -9.81"/><actuator>', "gravity"),
        (FOOT, FOOT.replace("0.02", "-0.02"), "size|radius"),
        (FOOT, FOOT.replace("0.02", "1e300"), "`radius` of contact 'foot'.*below 1e"),
        (FOOT, FOOT + ' friction="-1"', "`friction` of contact 'foot'.*>= 0"),
        ("mujoco", "scene", "must open with <mujoco>"),
        ("</mujoco>", "", "XML file"),
        ('<motor name="hip"', '<motor nam="hip"', "nam"),
    ],
)
def test_broken_mjcf_is_refused_by_name(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
    message: str,
) -> None:
    assert old in HOPPER
    monkeypatch.chdir(tmp_path)
    count = -1 if old == "mujoco" else 1
    (tmp_path / "broken.xml").write_text(HOPPER.replace(old, new, count))
    with pytest.raises(ValueError, match=message) as caught:
        load_robot(tmp_path / "broken.xml")
    told = str(caught.value)
    assert "broken.xml" in told and "\n" not in told
    assert capfd.readouterr() == ("", "") and [f.name for f in tmp_path.iterdir()] == ["broken.xml"]


def test_what_mujoco_repairs_is_read_as_mujoco_reads_it(tmp_path: Path) -> None:
    """Axes and quaternions of any length."""
    text = HOPPER.replace('axis="1 0 0"', 'axis="20 0 0"')
    text = text.replace('<body name="thigh">', '<body name="thigh" quat="3 0 0 0">')
    (tmp_path / "long.xml").write_text(text)
    robot, plain = load_robot(tmp_path / "long.xml"), load_named("hopper")
    assert np.allclose(robot.system.bodies[0].axis, [1, 0, 0])
    assert np.allclose(robot.system.bodies[3].rotation, plain.system.bodies[3].rotation)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "XML file"),
        (b"   \n", "XML file"),
        (bytes(range(256)) * 8, "XML file"),
        (b"\xff\xfe<\x00m\x00u\x00", "XML file"),
        (b"<mujoco/>", "must have a body that moves"),
        (b"<robot/>", "must have a <link>"),
        (b'<robot><link name="rock"/></robot>', "mass > 0"),
        (b"<html><body/></html>", "must open with <mujoco>"),
        (b'<?xml version="1.0" encoding="klingon"?><mujoco/>', "XML file"),
        (b"<mujoco>" + b"<worldbody><body>" * 3000, "XML file"),
        (b"<mujoco><worldbody>" + b"<body>" * 3000 + b"</body>" * 3000 + b"</worldbody></mujoco>",
         "deep"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("suffix", [".xml", ".urdf"])
def test_what_is_no_robot_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], content: bytes, message: str, suffix: str
) -> None:
    path = tmp_path / f"thing{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_robot(path)
    assert path.name in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere.xml"):
        load_robot(tmp_path / "nowhere.xml")
    with pytest.raises(FileNotFoundError, match="`path`"):
        load_robot(tmp_path)  # a folder
    with pytest.raises(ValueError, match="did you mean 'go2'"):
        load_named("goo2")
    with pytest.raises(ValueError, match="there are biped, go2, hopper"):
        load_named("zzzz")


# ------------------------------------------------------------------------------------------ fuzzing


@pytest.mark.parametrize("name", robots())
def test_mutants_load_or_are_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text, path = (MODELS / f"{name}.xml").read_bytes(), tmp_path / "mutant.xml"
    outcomes = []
    for seed in range(40):
        path.write_bytes(fuzz_robots.mutant(text, np.random.default_rng(seed)))
        outcomes.append(fuzz_robots.attempt(path))
    assert set(outcomes) == {"loaded", "refused"}, outcomes
    assert capfd.readouterr() == ("", "") and [f.name for f in tmp_path.iterdir()] == ["mutant.xml"]


def test_mutants_are_a_function_of_their_seed() -> None:
    text = HOPPER.encode()
    first = [fuzz_robots.mutant(text, np.random.default_rng(seed)) for seed in range(20)]
    again = [fuzz_robots.mutant(text, np.random.default_rng(seed)) for seed in range(20)]
    assert first == again and len(set(first)) > 15


def test_a_reader_that_dies_or_speaks_is_seen(tmp_path: Path) -> None:
    """The readers' process is replaced; what it says on its streams counts as a failure."""
    reader = fuzz_robots.Reader()
    try:
        assert reader.outcome(MODELS / "hopper.xml") == "loaded"
        (tmp_path / "empty.xml").write_text("")
        assert reader.outcome(tmp_path / "empty.xml") == "refused"
        process = next(iter(reader._pool._processes.values()))
        process.kill()
        process.join()
        assert reader.outcome(MODELS / "hopper.xml") == "the process died"
        assert reader.outcome(MODELS / "hopper.xml") == "loaded"
    finally:
        reader.close()


def test_noise_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def loud(path: Path) -> str:
        os.write(1, b"hello")
        return "loaded"

    monkeypatch.setattr(fuzz_robots, "attempt", loud)
    assert fuzz_robots._quietly(str(tmp_path / "any.xml")) == "wrote: hello"
