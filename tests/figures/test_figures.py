"""The saved numbers behind the figures, from quick runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cito import figures
from cito.figures import figure_1, figure_2, figure_3, figure_4, runs
from cito.figures.runs import Run

PNG = b"\x89PNG\r\n\x1a\n"
SEPARATING, SLIDING, CLAMPING = 0, 1, 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("figures")


def made(name: str, folder: Path) -> Run:
    picture, run = figures.make(name, folder, quick=True)
    assert picture.read_bytes().startswith(PNG)
    return runs.load(run)


@pytest.fixture(scope="module")
def run_1(folder: Path) -> Run:
    return made("1", folder)


@pytest.fixture(scope="module")
def run_2(folder: Path) -> Run:
    return made("2", folder)


@pytest.fixture(scope="module")
def run_3(folder: Path) -> Run:
    return made("3", folder)


@pytest.fixture(scope="module")
def run_4(folder: Path) -> Run:
    return made("4", folder)


# --- figure 1


def ratios(run: Run, task: str) -> dict[str, float]:
    best = run.facts[f"{task}/optimum"]["cost"]
    return {m.key: run.facts[f"{task}/{m.key}"]["cost"] / best for m in figure_1.methods()}


@pytest.mark.parametrize("task", figure_1.TASKS)
def test_no_method_beats_the_optimum_and_the_default_reaches_it(run_1: Run, task: str) -> None:
    found = ratios(run_1, task)
    assert min(found.values()) > 1 - 1e-7
    assert found["adaptive"] < 1.005


@pytest.mark.parametrize("task", ["lift-off", "traverse"])
def test_exact_never_leaves_the_ground_where_full_cone_does(run_1: Run, task: str) -> None:
    found = ratios(run_1, task)
    assert run_1.facts[f"{task}/exact"]["status"] == "NO_GRADIENT"
    assert (run_1.arrays[f"{task}/exact/modes"] == CLAMPING).all()
    assert found["full-cone-0.1"] < 1.05 < found["exact"]


def test_signorini_sees_lift_off_and_not_slip(run_1: Run) -> None:
    assert ratios(run_1, "lift-off")["signorini"] < 1.05
    assert run_1.facts["traverse/signorini"]["status"] == "NO_GRADIENT"


@pytest.mark.parametrize("task", figure_1.TASKS)
def test_modes_agree_with_impulses_of_the_hard_law(run_1: Run, task: str) -> None:
    for method in figure_1.methods():
        name = f"{task}/{method.key}"
        lambda_T, lambda_N = run_1.arrays[f"{name}/impulses"].T
        modes = run_1.arrays[f"{name}/modes"][:, 0]
        assert run_1.facts[name]["contact_residual"] < 1e-7
        np.testing.assert_array_equal(lambda_N[modes == SEPARATING], 0)
        sliding = modes == SLIDING
        np.testing.assert_allclose(np.abs(lambda_T[sliding]), 0.8 * lambda_N[sliding], atol=1e-9)


def test_small_picture_stays_small(run_1: Run, folder: Path) -> None:
    out = figure_1.draw_small(folder / "figure_1-quick.npz", folder / "small.png")
    assert out.read_bytes().startswith(PNG)
    assert out.stat().st_size < 200_000


# --- figure 2


@pytest.mark.parametrize("regime", figure_2.FREE_VELOCITIES)
def test_path_lies_inside_both_cones_and_ends_at_the_hard_point(run_2: Run, regime: str) -> None:
    mu, rho = figure_2.FRICTION, run_2.arrays["rho"]
    l, s = (run_2.arrays[f"{regime}/{name}"] for name in ("impulse", "velocity"))
    corrected = figure_2.corrected(s, mu)
    assert (np.abs(l[:, 0]) < mu * l[:, 1]).all()
    assert (mu * np.abs(corrected[:, 0]) < corrected[:, 1]).all()
    np.testing.assert_allclose(
        s, l @ np.array(figure_2.DELASSUS) + figure_2.FREE_VELOCITIES[regime], atol=1e-9
    )
    # lambda . (sigma + Gamma) = rho but for the rounding of the kink, at most a tenth
    assert np.abs((l * corrected).sum(1) / rho - 1).max() < 0.1
    distance = np.linalg.norm(l - run_2.arrays[f"{regime}/hard_impulse"], axis=1)
    assert (np.diff(distance) > 0).all()
    assert run_2.facts["modes"][regime] == {"separating": 0, "sliding": 1, "clamping": 2}[regime]


# --- figure 3


def test_exact_sensitivity_is_constant_within_each_mode(run_3: Run) -> None:
    b_N, modes = run_3.arrays["b_N"], run_3.arrays["modes"]
    np.testing.assert_array_equal(modes, np.where(b_N > 0, 0, np.where(b_N > -1.25, 1, 2)))
    expected = np.array([[0.0, 0.0], [figure_3.FRICTION, -1.0], [0.0, -1.0]])[modes]
    np.testing.assert_allclose(run_3.arrays["exact/impulse"], expected, atol=1e-9)
    np.testing.assert_allclose(run_3.arrays["exact/velocity"], expected + [0, 1], atol=1e-9)


def test_relaxation_and_smoothing_agree_where_exact_jumps(run_3: Run) -> None:
    cone, exact = run_3.arrays["full-cone/impulse"], run_3.arrays["exact/impulse"]
    for order in (0, 1):
        smooth = run_3.arrays[f"randomized-{order}/impulse"]
        error = np.sqrt(np.mean((cone - smooth) ** 2))
        assert 0 < error < 0.5 * np.sqrt(np.mean((cone - exact) ** 2))
    assert np.abs(np.diff(cone, axis=0)).max() < 0.5 * np.abs(np.diff(exact, axis=0)).max()


def test_mode_intervals_meet_at_the_mode_boundaries(run_3: Run) -> None:
    expected = [(CLAMPING, -2.5, -1.25), (SLIDING, -1.25, 0.0), (SEPARATING, 0.0, 1.5)]
    np.testing.assert_allclose(figure_3.mode_intervals(run_3), expected, atol=1e-12)


# --- figure 4


def test_offset_shifts_the_closed_form(run_4: Run) -> None:
    a, rho, b_N = figure_4.INVERSE_MASS, figure_4.RHO, run_4.arrays["b_N"]
    for i, delta in enumerate(figure_4.OFFSETS):
        law = figure_4.closed_form(b_N, delta, a, rho)
        np.testing.assert_allclose(run_4.arrays["d_lambda"][i], law.d_impulse, atol=1e-8)
        np.testing.assert_allclose(run_4.arrays["d_sigma"][i], law.d_velocity, atol=1e-8)
        lambda_N, sigma_N = run_4.arrays["crossings"][i]
        np.testing.assert_allclose(lambda_N * sigma_N, rho, rtol=1e-8)
        np.testing.assert_allclose(sigma_N, a * lambda_N + figure_4.B_N + delta, atol=1e-9)
    assert (np.diff(run_4.arrays["crossings"][:, 0]) < 0).all()
    assert (np.diff(run_4.arrays["crossings"][:, 1]) > 0).all()


def test_closed_form_is_the_derivative_of_itself() -> None:
    b_N, h = np.linspace(-4, 4, 9), 1e-5
    low, high = (figure_4.closed_form(b_N + e, 0.5, 2.0, 0.3) for e in (-h, h))
    law = figure_4.closed_form(b_N, 0.5, 2.0, 0.3)
    np.testing.assert_allclose((high.impulse - low.impulse) / (2 * h), law.d_impulse, atol=1e-8)
    np.testing.assert_allclose((high.velocity - low.velocity) / (2 * h), law.d_velocity, atol=1e-8)


# --- saved runs


@pytest.mark.parametrize("name", ["2", "3"])
def test_runs_and_pictures_are_deterministic(name: str, folder: Path, tmp_path: Path) -> None:
    first = figures.make(name, folder, quick=True)
    again = figures.make(name, tmp_path, quick=True)
    for a, b in zip(first, again):
        assert a.read_bytes() == b.read_bytes()


def test_a_saved_run_is_used_again_only_for_its_settings(tmp_path: Path) -> None:
    calls: list[bool] = []

    def settings(quick: bool) -> dict[str, Any]:
        return {"quick": quick, "pair": (1, 2)}

    def compute(path: Path, quick: bool) -> None:
        calls.append(quick)
        runs.save(path, {"x": np.arange(3.0)}, {"fact": 1}, settings(quick))

    def draw(path: Path, out: Path) -> Path:
        out.write_bytes(PNG)
        return out

    script = runs.Script("figure", settings, compute, draw)
    _, run = script.make(tmp_path, quick=False, fresh=False)
    script.make(tmp_path, quick=False, fresh=False)
    assert calls == [False]
    script.make(tmp_path, quick=False, fresh=True)
    assert calls == [False, False]
    run.write_bytes(b"half a file")
    script.make(tmp_path, quick=False, fresh=False)
    assert calls == [False, False, False]
    np.testing.assert_array_equal(runs.load(run).arrays["x"], [0, 1, 2])
    runs.save(run, {}, {}, {"quick": False, "pair": (1, 3)})
    script.make(tmp_path, quick=False, fresh=False)
    assert len(calls) == 4


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "run.npz"
    target.write_text("old")
    with pytest.raises(RuntimeError), runs.replacing(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_unknown_figure_is_named() -> None:
    known = ", ".join(figures.FIGURES)
    assert known.startswith("1, 2, 3, 4, 6, 9, 10, 11, 12")
    with pytest.raises(ValueError, match=f"`name` must be one of {known}, got '99'"):
        figures.make("99", Path("nowhere"))


# --- figure scaling


def test_scaling_is_drawn_from_every_robot_measured(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cito.benchmarks import scaling

    sizes = [
        scaling.Scaled(curve, f"robot {k}", 5 + k, 2 + k, 2.0, 3.0, 1.0 + k, 2.0, 3.0, 40.0)
        for curve in ("dof", "contacts", "robots")
        for k in range(3)
    ]
    monkeypatch.setattr(scaling, "measured", lambda quick: iter(sizes))
    run = made("scaling", folder)
    assert run.arrays["robot"].tolist() == [size.robot for size in sizes]
    assert run.arrays["cito_step"].tolist() == [size.cito_step for size in sizes]
