"""Controllers beside their peers: MuJoCo differentiates as it steps, gaits go the whole way."""

from __future__ import annotations

import numpy as np
import pytest

from cito import Exact, load_robot, make
from cito.benchmarks import mpc, mpc_crocoddyl, peer_crocoddyl
from cito.benchmarks.mpc_crocoddyl import foot_centres, posed, trot_gait
from cito.benchmarks.mujoco_dynamics import MujocoDynamics
from cito.problems.legged import robot_of

pytest.importorskip("mujoco")


@pytest.fixture(scope="module")
def model() -> MujocoDynamics:
    return MujocoDynamics(load_robot("go2"), 0.025, substeps=2, friction=0.7)


def in_the_air(model: MujocoDynamics) -> np.ndarray:
    rng = np.random.default_rng(3)
    x = model.integrate(make("base-pose-c3").start, 0.05 * rng.standard_normal(36))
    x[2] += 0.4
    x[-18:] = 0.3 * rng.standard_normal(18)
    return x


def test_jacobians_are_those_of_the_step_in_citos_conventions(model):
    x, u, e = in_the_air(model), np.linspace(-3, 3, 12), 1e-5
    f_x, f_u = model.jacobians(x, u)

    def step(x, u):
        return model.rollout(x, u[None]).states[1]

    for k, dx in enumerate(np.eye(36)):
        ends = (step(model.integrate(x, s * e * dx), u) for s in (-1, 1))
        np.testing.assert_allclose(model.difference(*ends) / (2 * e), f_x[:, k], atol=1e-5)
    for k, du in enumerate(np.eye(12)):
        ends = (step(x, u + s * e * du) for s in (-1, 1))
        np.testing.assert_allclose(model.difference(*ends) / (2 * e), f_u[:, k], atol=1e-6)


def test_a_linearization_has_one_derivative_whatever_the_gradient(model):
    x, U = in_the_air(model), np.zeros((2, 12))
    rollout = model.rollout(x, U)
    f_x, f_u = model.linearize(rollout).with_gradient(Exact())
    assert f_x.shape == (2, 36, 36) and f_u.shape == (2, 36, 12)
    np.testing.assert_allclose(f_x[1], model.jacobians(rollout.states[1], U[1])[0], atol=1e-12)


def test_rollouts_follow_policies_within_limits(model):
    problem = make("base-pose-c3")
    x, U = problem.start, problem.initial_controls[:3]
    nominal = model.rollout(x, U)
    assert (nominal.modes[-1] == 2).all()  # it stands on four feet
    K = np.full((3, 12, 36), 0.5)
    k = np.full((3, 12), 2.0)
    both = model.rollout(
        x, U, states=nominal.states, feedforward=k, feedback=K, alphas=np.array([0.0, 1.0]),
        lower=-np.full(12, 5.0), upper=np.full(12, 5.0),
    )  # fmt: skip
    np.testing.assert_allclose(both.controls[1, 0], np.clip(U[0] + 2, -5, 5))
    np.testing.assert_allclose(both.controls[0, 0], np.clip(U[0], -5, 5))
    assert np.abs(both.controls).max() <= 5


def test_a_gait_takes_every_foot_the_whole_way():
    problem = make("base-pose-c3", target=(0.4, 0.1, 0.0))
    feet = foot_centres(robot_of(problem), problem.start)
    np.testing.assert_allclose(feet[:, 2], 0.022, atol=1e-6)
    for horizon in (40, 120):
        gait = trot_gait(feet, np.array([0.4, 0.1, 0.0]), horizon)
        assert gait.places.shape == (horizon, 4, 3) and gait.contact[[0, -1]].all()
        np.testing.assert_allclose(gait.places[-1] - feet, np.tile([0.4, 0.1, 0], (4, 1)))
        assert set(gait.contact.sum(axis=1)) == {2, 4}
        lifted = gait.places[..., 2] > feet[:, 2] + 1e-9
        assert not (lifted & gait.contact).any() and lifted.any(axis=0).all()
        moved = np.abs(np.diff(gait.places, axis=0)).max()
        assert moved < 0.1  # paths do not jump


def test_weights_of_the_plan_are_those_of_the_task():
    problem = make("base-pose-c3", target=(0.4, 0.0, 0.0))
    work = posed(problem, robot_of(problem), 60)
    np.testing.assert_allclose(work["state_weights"][:7], [20, 20, 40, 40, 40, 40, 5])
    np.testing.assert_allclose(work["terminal_weights"][:6], [100, 100, 200, 200, 200, 200])
    np.testing.assert_allclose(work["state_weights"][18:25], [0.5] * 3 + [0.05] * 3 + [5e-3])
    assert work["goal"][0] == pytest.approx(0.4) and work["torque_weight"] == 2e-3


def test_rows_tell_who_came_near_and_what_was_skipped(monkeypatch):
    monkeypatch.delenv(peer_crocoddyl.VARIABLE, raising=False)
    monkeypatch.setattr(peer_crocoddyl, "find_spec", lambda name: None)
    monkeypatch.setattr(mpc, "QUICK_DURATION", 0.05)
    monkeypatch.setattr(mpc, "ITERATIONS", 1)
    monkeypatch.setattr(mpc, "TARGETS", ((0.05, 0.0, 0.0),))
    made = make
    monkeypatch.setattr(mpc, "make", lambda task, target: made(task, target=target, horizon=4))
    rows = mpc.run(True)
    assert [row["name"] for row in rows] == [
        "cito, full-cone",
        "cito, exact",
        "MuJoCo iLQR",
        "Crocoddyl BoxFDDP",
    ]
    assert len(rows) == mpc.total(True)
    for row in rows[:3]:
        assert row["success"] and 0 < row["cost"] < 10 and row["iteration_ms"] > 0
    assert rows[3]["cost"] is None and "--crocoddyl-python" in rows[3]["note"]
    (headers, cells), (_, notes) = mpc.tables(rows)
    assert all(len(line) == len(headers) for line in cells) and len(notes) == 2


def test_a_python_without_crocoddyl_is_told(tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'No module named crocoddyl' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(OSError, match="does not run in .*No module named crocoddyl"):
        mpc_crocoddyl.trot(str(broken), make("base-pose-c3"), 40)


def test_iterations_are_told_beside_those_of_peers(monkeypatch):
    def told(name, milliseconds, success, note=""):
        return {
            "target": "1, 0, 0",
            "name": name,
            "cost": 75.4,
            "success": success,
            "note": note,
        } | {"iteration_ms": milliseconds}

    found = [told("cito, full-cone", 2.0, True), told("MuJoCo iLQR", 50.0, False, "differences")]
    missing = told("Crocoddyl BoxFDDP", None, None, "skipped") | {"cost": None}
    monkeypatch.setattr(mpc, "rows", lambda quick, python: iter([*found, missing]))
    ours, theirs, skipped = mpc.beside_peers()
    assert (ours["median_us"], ours["ratio_to_cito"], ours["success"]) == (2000.0, 1.0, True)
    assert (theirs["median_us"], theirs["ratio_to_cito"]) == (50000.0, 25.0)
    assert theirs["note"] == "1, 0, 0 m not reached, cost 75; differences"
    assert skipped["median_us"] is None and skipped["note"] == "skipped"
