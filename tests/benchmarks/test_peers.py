"""The comparison with peers: the work is the same for all, rows are complete, absence is said."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cito.benchmarks import crocoddyl_worker, peer_crocoddyl, peers, scaling, timing
from cito.benchmarks.mujoco_twin import mujoco_model
from cito.benchmarks.peer_mujoco import MujocoPeer
from cito.benchmarks.peer_pinocchio import PinocchioPeer
from cito.benchmarks.scaling_robots import Standee, go2_on_points, humanoid, legged, shipped
from cito.benchmarks.standing import Standing, standing
from cito.dynamics import _native
from cito.dynamics.conversions import from_mujoco
from cito.dynamics.tree import TreeSystem

NUMBERS = ("median_us", "least_us", "ratio_to_cito")
KEYS = {"name", "what", *NUMBERS, "active_contacts", "bar", "met", "note"}


@pytest.fixture(autouse=True)
def no_crocoddyl_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(peer_crocoddyl.VARIABLE, raising=False)
    monkeypatch.setattr(peer_crocoddyl, "find_spec", lambda name: None)


@pytest.fixture(scope="module")
def work() -> Standing:
    robot = shipped("go2")
    return standing(robot.system, robot.stance, peers.TIME_STEP, 6)


def executable(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


# --- the work


@pytest.mark.parametrize(
    "robot", [shipped("go2"), shipped("hopper"), legged(3), humanoid(), go2_on_points(16)]
)
def test_robots_stand_on_all_their_contacts(robot: Standee) -> None:
    work = standing(robot.system, robot.stance, 0.002, 3, pose=0.02, velocity=0.0, torque=0.0)
    native = robot.system.native
    still = np.zeros(native.nv)
    for x in work.states:
        phi = _native.system_terms(native, None, x[: native.nq], still)[4]
        assert np.ptp(phi) < 1e-9 and -1e-4 <= phi.min() <= 0
    assert work.active_contacts >= min(native.nc, 3)
    held = work.dynamics.step(np.append(robot.stance, still), work.controls[0])
    if native.nc > 2:  # nothing holds a trunk on one point
        assert np.abs(held.state[native.nq :]).max() < 1e-6


def test_states_differ_and_are_drawn_from_the_seed() -> None:
    robot = shipped("go2")
    one, same, other = (standing(robot.system, robot.stance, 0.002, 4, seed=s) for s in (1, 1, 2))
    assert (one.states == same.states).all() and (one.controls == same.controls).all()
    assert np.abs(one.states - other.states).min(axis=0).max() > 0.01
    assert np.ptp(one.states[:, 7:19], axis=0).min() > 0.01


@pytest.mark.parametrize("robot", [legged(2), humanoid(), go2_on_points(5)])
def test_the_mujoco_twin_has_the_same_mass_matrix_and_gaps(robot: Standee) -> None:
    mujoco = pytest.importorskip("mujoco")
    system, native = robot.system, robot.system.native
    model = mujoco_model(system, 0.002)
    work = standing(system, robot.stance, 0.002, 1)
    peer = MujocoPeer(model, work)
    data = peer.datas[0]
    data.qpos[:], data.qvel[:] = peer.qpos[0], peer.qvel[0]
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(
        from_mujoco(system, np.array(data.qpos), np.array(data.qvel)), work.states[0], atol=1e-13
    )
    M, *_, phi = _native.system_terms(
        native, None, work.states[0, : native.nq], work.states[0, native.nq :]
    )
    joints = np.zeros(native.nv), np.zeros(native.nv)
    for j in range(6, native.nv):  # joint columns: no frame to turn
        joints[0][:], joints[1][:] = 0, 0
        joints[0][j] = 1
        mujoco.mj_mulM(model, data, joints[1], joints[0])
        np.testing.assert_allclose(M[6:, j], joints[1][6:], rtol=1e-9, atol=1e-12)
    heights = [data.geom(point.name).xpos[2] - point.radius for point in system.contacts]
    np.testing.assert_allclose(heights, phi, atol=1e-12)
    peer.close()


def test_the_twin_wants_bodies_in_mujocos_order() -> None:
    pytest.importorskip("mujoco")
    bodies = humanoid().system.bodies
    with pytest.raises(ValueError, match="`system` must have its bodies in the order pelvis"):
        mujoco_model(TreeSystem([*bodies[:4], *bodies[-12:], *bodies[4:-12]]), 0.002)


def test_mujoco_sees_the_same_contacts_and_differentiates(work: Standing) -> None:
    pytest.importorskip("mujoco")
    peer = MujocoPeer(shipped("go2").mujoco_model(peers.TIME_STEP), work)
    assert peer.active_contacts() == pytest.approx(work.active_contacts, abs=0.2)
    peer.jacobians(centred=False)
    f_x, f_u = peer.f_x.copy(), peer.f_u.copy()
    peer.jacobians(centred=True)
    assert np.abs(f_u).max() > 0.01 and np.abs(f_x).max() > 1
    apart = np.abs(peer.f_x - f_x).max(axis=(1, 2))  # a state may lie on a kink of its law
    assert 0 < np.median(apart) < 1e-2 * np.abs(f_x).max()
    peer.close()


def test_pinocchios_admm_finds_the_same_step(work: Standing) -> None:
    pytest.importorskip("pinocchio")
    peer = PinocchioPeer(work)
    ours = work.dynamics.step(work.states, work.controls).state
    theirs = np.array([np.concatenate(peer.step(k)) for k in range(len(ours))])
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-3)
    assert peer.largest_difference() < 1e-3


def test_crocoddyls_worker_builds_the_same_robot(work: Standing) -> None:
    pin = pytest.importorskip("pinocchio")
    model = crocoddyl_worker.robot_model(pin, peer_crocoddyl.tables(work))
    x, native = work.states[0], work.tree.native
    M = _native.system_terms(native, None, x[: native.nq], x[native.nq :])[0]
    theirs = pin.crba(model, model.createData(), x[: native.nq], pin.Convention.WORLD)
    np.testing.assert_allclose(np.triu(theirs), np.triu(M), rtol=0, atol=1e-12)


# --- measuring


def test_candidates_take_turns_and_warm_up_is_not_counted() -> None:
    order: list[str] = []

    def lap(name: str) -> float:
        order.append(name)
        return float(len(order))

    seconds = timing.interleaved(
        {name: (lambda name=name: lap(name)) for name in "ab"}, rounds=3, warm_up=1
    )
    assert "".join(order) == "abababab"
    assert seconds["a"].tolist() == [3, 5, 7] and seconds["b"].tolist() == [4, 6, 8]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison of few states, with one size of the scaling."""
    pytest.importorskip("mujoco")

    def one(quick: bool) -> Iterator[scaling.Scaled]:
        yield scaling.measure("dof", legged(1), 2, 1)

    monkeypatch.setattr(peers, "STATES", 4)
    monkeypatch.setattr(peers, "MANY", 8)
    monkeypatch.setattr(scaling, "measured", one)


def test_rows_are_complete(small: None) -> None:
    rows = peers.run(quick=True)
    assert all(set(row) == KEYS for row in rows)
    assert len({(row["what"], row["name"]) for row in rows}) == len(rows)
    for row in rows:
        skipped = row["note"].startswith("skipped")
        assert all((row[number] is None) is skipped for number in NUMBERS)
        assert skipped or all(row[number] > 0 for number in NUMBERS)
        assert skipped or row["least_us"] <= row["median_us"]
        assert row["met"] is None or row["bar"] is not None
    first = {what: next(r for r in rows if r["what"] == what) for what in (r["what"] for r in rows)}
    assert all(row["name"].startswith("cito") for row in first.values())
    assert all(row["ratio_to_cito"] == 1 for row in first.values())
    [node] = [row for row in rows if row["name"] == "Crocoddyl contact node"]
    assert node["note"] == peer_crocoddyl.HOW_TO_PROVIDE
    tables = peers.tables(rows)
    assert [len(cells) for _, cells in tables][0] == len(rows) - 4
    assert all(len(line) == len(headers) for headers, cells in tables for line in cells)


def test_a_crocoddyl_that_answers_is_measured_by_its_own_clock(small: None, tmp_path: Path) -> None:
    python = executable(
        tmp_path / "python",
        """echo '{"version": "9.9"}'; while read line; do echo '{"seconds": 0.004}'; done""",
    )
    [node] = [row for row in peers.rows(True, python) if row["name"] == "Crocoddyl contact node"]
    assert node["median_us"] == pytest.approx(1000)
    assert node["note"].startswith("9.9: calc and calcDiff")
    assert node["met"] is True


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("kill -SEGV $$", "ended with SIGSEGV: its wheel is built for one version of Pinocchio"),
        ("echo 'no such module' >&2; exit 1", "does not run in .*: no such module"),
    ],
)
def test_a_crocoddyl_that_fails_is_a_skipped_row(
    small: None, tmp_path: Path, script: str, sentence: str
) -> None:
    python = executable(tmp_path / "python", script)
    [node] = [row for row in peers.rows(True, python) if row["name"] == "Crocoddyl contact node"]
    assert node["median_us"] is None
    with pytest.raises(AssertionError, match=sentence):
        raise AssertionError(node["note"])


def test_where_crocoddyls_python_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert peer_crocoddyl.find_python() is None
    monkeypatch.setenv(peer_crocoddyl.VARIABLE, sys.executable)
    assert peer_crocoddyl.find_python() == sys.executable
    with pytest.raises(FileNotFoundError, match="--crocoddyl-python must name a Python"):
        peer_crocoddyl.find_python("/nowhere/python")
    monkeypatch.setenv(peer_crocoddyl.VARIABLE, "/nowhere")
    with pytest.raises(FileNotFoundError, match="CITO_CROCODDYL_PYTHON must name a Python"):
        peer_crocoddyl.find_python()
    monkeypatch.delenv(peer_crocoddyl.VARIABLE)
    found: Any = object()
    monkeypatch.setattr(peer_crocoddyl, "find_spec", lambda name: found)
    assert peer_crocoddyl.find_python() == sys.executable


def test_without_pinocchio_its_rows_say_so(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_pinocchio", lambda work: None)
    rows = [row for row in peers.run(quick=True) if row["name"].startswith("Pinocchio")]
    assert [row["note"] for row in rows] == [peers.PIN_MISSING]
