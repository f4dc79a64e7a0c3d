"""The command line: what is printed, what is saved, and the exit status."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import cito
from cito.cli import main
from cito.problems.locomotion import NotFinite

ROOT = Path(cito.__file__).parent.parent


class Outcome(NamedTuple):
    """Exit status, standard output, standard error."""

    status: int
    out: str
    err: str


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run one command line in this process."""

    def run_(*arguments: str) -> Outcome:
        try:
            status = main(arguments)
        except SystemExit as stop:  # argparse's own way out
            status = int(stop.code or 0)
        return Outcome(status, *capfd.readouterr())

    return run_


Run = Callable[..., Outcome]


def strict_json(text: str) -> dict[str, object]:
    """The one JSON object in `text`, with nothing that JSON does not have."""
    assert text.count("\n") == 1 and text.endswith("\n")
    value = json.loads(text, parse_constant=pytest.fail)
    assert isinstance(value, dict)
    return value


def test_list_names_tasks_gradients_and_solvers(run: Run) -> None:
    status, out, err = run("list")
    assert (status, err) == (0, "")
    for name in (*cito.tasks(), "adaptive", "full-cone", "ddp", "mpcc", "miqp"):
        assert name in out
    told = strict_json(run("list", "--json").out)
    assert list(told["tasks"]) == cito.tasks()
    assert told.keys() == {
        "tasks", "robots", "gradients", "solvers", "optional", "benchmarks", "figures",
    }  # fmt: skip


def test_every_benchmark_and_figure_is_described(run: Run) -> None:
    from cito import benchmarks, figures

    for command, names, summaries in (
        ("bench", benchmarks.BENCHMARKS, benchmarks.SUMMARIES),
        ("figure", figures.FIGURES, figures.SUMMARIES),
    ):
        assert list(names) == list(summaries)
        told = run(command, "--help").out + run("list").out
        assert all(told.count(summary) == 2 for summary in summaries.values())


def test_list_shows_the_parameters_of_a_task(run: Run) -> None:
    out = run("list", "traverse").out
    assert "friction" in out and "0.8" in out and "[m/s^2]" in out
    told = strict_json(run("list", "traverse", "--json").out)
    assert told["parameters"]["target"] == [1.0, 0.0, 0.0, 0.0]


def test_solve_prints_a_result_and_saves_it(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    status, out, err = run("solve", "traverse", "--out", str(folder))
    assert (status, err) == (0, "")
    assert "27.67955" in out and "Converged" in out and "3s 9l 18c" in out
    assert "contact 0" in out and "c sticking" in out
    solution = cito.load(folder / "traverse_adaptive.npz")
    assert solution.cost == pytest.approx(27.679550592, rel=1e-3)


def test_json_has_the_promised_keys(run: Run, tmp_path: Path) -> None:
    command = ("solve", "traverse", "--gradient", "full-cone", "--rho", "0.03", "--json")
    status, out, err = run(*command, "--out", str(tmp_path), "--set", "horizon=20")
    told = strict_json(out)
    assert (status, err) == (0, "")
    assert {
        "task", "solver", "gradient", "status", "converged", "cost",
        "iterations", "solve_time", "modes", "contact_residual",
    } <= told.keys()  # fmt: skip
    assert told["gradient"] == "full-cone" and told["converged"] is False
    assert [set(modes) <= set("slc") and len(modes) for modes in told["modes"]] == [20]
    assert cito.load(told["file"]).cost == told["cost"]


def test_a_task_in_a_file_of_its_own(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cito.problems.registry._TASKS", {})
    file = tmp_path / "mine.py"
    file.write_text(
        "import cito, numpy\nfrom cito.problems.planar import traverse\n"
        "@cito.task('mine', 'a short way')\n"
        "def mine(horizon: int = 5) -> cito.Problem:\n    return traverse(horizon=horizon)\n"
    )
    assert "a short way" in run("list", f"{file}:mine").out
    told = strict_json(run("solve", str(file), "--set", "horizon=4", "--json").out)
    assert told["horizon"] == 4
    assert run("check", str(file), "--samples", "40").status == 0
    status, out, err = run("solve", f"{file}:other")
    assert (status, out) == (2, "") and "has mine" in err


def test_contacts_have_the_names_that_their_system_gives_them(run: Run) -> None:
    command = ("solve", "hop", "--max-iterations", "1")
    assert "foot " in run(*command).out
    assert strict_json(run(*command, "--json").out)["contacts"] == ["foot"]


def test_the_settings_of_the_comparison_can_be_given(run: Run) -> None:
    bundled = ("--gradient", "bundled", "--offset", "0.1", "--threshold", "0")
    told = strict_json(run("solve", "lift-off", "--json", *bundled).out)
    assert told["cost"] == pytest.approx(5.9071, rel=1e-3)
    full_cone = ("--gradient", "full-cone", "--eps", "0.1", "--max-iterations", "1")
    assert run("solve", "traverse", *full_cone).status == 0


def test_the_reference_tells_bound_gap_and_nodes(run: Run) -> None:
    command = ("solve", "lift-off", "--solver", "miqp", "--set", "horizon=5")
    told = strict_json(run(*command, "--json").out)
    assert told["solver"] == "miqp" and told["gradient"] is None and told["converged"] is True
    assert told["bound"] <= told["cost"] and told["gap"] <= 1e-6 and told["nodes"] >= 1
    status, out, _ = run(*command)
    assert status == 0 and f"{told['bound']:.9g}" in out


def test_check_tells_the_error_of_every_gradient_and_mode(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = strict_json(run("check", "traverse", "--samples", "40", "--json").out)
    assert told["passed"] is True and told["error"] < 1e-6
    gradients = {row["gradient"] for row in told["rows"]}
    assert gradients == {"exact", "signorini", "full-cone"}
    assert "FAILED" not in (out := run("check", "traverse").out) and "passed; " in out
    monkeypatch.setattr("cito.dynamics.check.RELATIVE_TOLERANCE", 1e-20)
    status, out, err = run("check", "traverse", "--samples", "40")
    assert "FAILED; " in out and "skipped near a mode boundary" in out
    assert status == 1 and "full-cone" in out and "did not pass: error" in err


def test_set_takes_the_type_of_the_default(run: Run) -> None:
    settings = ("friction=0.5", "horizon=12", "target = 0.5, 0,0,0", "control_weight=(1e-2,2e-2)")
    options = [part for setting in settings for part in ("--set", setting)]
    told = strict_json(run("solve", "traverse", "--json", "--max-iterations", "1", *options).out)
    assert told["parameters"]["friction"] == 0.5
    assert told["parameters"]["target"] == [0.5, 0.0, 0.0, 0.0]
    assert told["parameters"]["control_weight"] == [0.01, 0.02]
    assert told["horizon"] == 12


def test_a_solver_that_stops_early_still_has_a_result(run: Run) -> None:
    status, out, _ = run("solve", "lift-off", "--gradient", "exact", "--json")
    told = strict_json(out)
    assert (status, told["status"], told["converged"]) == (0, "no_gradient", False)
    status, out, _ = run("solve", "lift-off", "--max-iterations", "1", "--json")
    assert (status, strict_json(out)["status"]) == (0, "max_iterations")


def test_failed_work_is_status_1_with_the_reason_and_valid_json(run: Run) -> None:
    start = "start=0,0,1e200,0"
    status, out, err = run("solve", "traverse", "--set", start, "--json")
    told = strict_json(out)
    assert status == 1
    assert err == f"cito: {cito.Status.DIVERGED.value}\n"
    assert told["cost"] is None and told["converged"] is False
    assert run("solve", "traverse", "--set", start).status == 1


MISUSE = {
    "no-task": (["solve"], "required: TASK"),
    "no-command": (["sovle"], "invalid choice: 'sovle'"),
    "task": (["solve", "travers"], "did you mean traverse?"),
    "listed-task": (["list", "travers"], "did you mean traverse?"),
    "checked-task": (["check", "travers"], "did you mean traverse?"),
    "gradient": (["solve", "traverse", "--gradient", "fullcone"], "did you mean full-cone?"),
    "solver": (["solve", "traverse", "--solver", "miqpp"], "did you mean miqp?"),
    "rho-not-a-number": (["solve", "traverse", "--rho", "x"], "invalid float value: 'x'"),
    "rho-of-exact": (["solve", "traverse", "--gradient", "exact", "--rho", "1"], "takes none"),
    "rho-of-adaptive": (["solve", "traverse", "--rho", "1"], "gradient 'adaptive'"),
    "rho-negative": (["solve", "traverse", "--gradient", "full-cone", "--rho", "-1"], "> 0"),
    "gradient-of-mpcc": (
        ["solve", "traverse", "--solver", "mpcc", "--gradient", "exact"],
        "`gradient` is not an argument of solver 'mpcc'",
    ),
    "set-name": (
        ["solve", "traverse", "--set", "frction=1"],
        "no parameter 'frction': did you mean friction?",
    ),
    "set-equals": (["solve", "traverse", "--set", "friction"], "NAME=VALUE, got 'friction'"),
    "set-type": (["solve", "traverse", "--set", "horizon=2.5"], "must be a whole number"),
    "set-list": (["solve", "traverse", "--set", "start=0,a,0,0"], "numbers separated by commas"),
    "set-shape": (["solve", "traverse", "--set", "target=1,2"], "`target` must have shape (4,)"),
    "set-weight": (
        ["solve", "traverse", "--set", "control_weight=0.01"],
        "`control_weight` must have shape (2,), got (1,)",
    ),
    "set-nan": (["solve", "traverse", "--set", "friction=nan"], "must be finite"),
    "set-sign": (["solve", "traverse", "--set", "mass=-1"], "`mass` must be > 0, got -1"),
    "limit": (["solve", "traverse", "--max-iterations", "-3"], ">= 0, got -3"),
    "set-huge": (["solve", "traverse", "--set", "horizon=2147483648"], "`horizon` must be <= "),
    "set-huge-hop": (["solve", "hop", "--set", "horizon=2147483648"], "`horizon` must be <= "),
    "samples-huge": (
        ["solve", "traverse", "--gradient", "randomized", "--samples", "3000000000"],
        "`--samples` must be <= 1000000",
    ),
    "seed-huge": (
        ["solve", "traverse", "--gradient", "randomized", "--seed", "9" * 23],
        "`--seed` must be <= ",
    ),
    "check-samples-huge": (["check", "traverse", "--samples", "1" + 13 * "0"], "must be <= "),
    "check-samples": (["check", "traverse", "--samples", "-5"], "`--samples` must be"),
    "check-seed": (["check", "traverse", "--seed", "-1"], "`--seed` must be"),
    "out-empty": (["solve", "traverse", "--out", ""], "--out must be a folder, got ''"),
    "out-is-a-file": (["solve", "traverse", "--out", str(Path(__file__))], "is a file"),
    "out-is-nowhere": (["solve", "traverse", "--out", "/proc/none"], "cannot write to /proc/none"),
    "bench": (["bench", "plannar"], "did you mean planar?"),
    "bench-seeds": (["bench", "planar", "--seeds", "0:3"], "--seeds is for the benchmark random"),
    "bench-crocoddyl": (
        ["bench", "ddp", "--crocoddyl-python", "x"],
        "--crocoddyl-python is for the benchmarks peers, mpc, not for ddp",
    ),
    "bench-no-crocoddyl": (
        ["bench", "peers", "--crocoddyl-python", "/nowhere/python"],
        "--crocoddyl-python must name a Python, there is none at /nowhere/python",
    ),
    "figure": (["figure", "17"], "unknown figure '17'"),
}


@pytest.mark.parametrize("arguments, sentence", MISUSE.values(), ids=MISUSE)
@pytest.mark.parametrize("json_too", [False, True], ids=["human", "json"])
def test_misuse_is_status_2_and_one_sentence(
    run: Run, arguments: list[str], sentence: str, json_too: bool
) -> None:
    status, out, err = run(*arguments, *(["--json"] if json_too else []))
    assert status == 2 and sentence in err
    assert err == f"cito: {strict_json(out)['error']}\n" if json_too else out == ""
    assert err.startswith("cito") and err.count("\n") == 1 and "Traceback" not in err


def test_the_output_folder_is_checked_before_any_work(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cito.api.solve", lambda *_, **__: pytest.fail("it was solved first"))
    assert run("solve", "traverse", "--out", str(Path(__file__))).status == 2


def test_the_output_file_is_checked_before_any_work(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("cito.api.solve", lambda *_, **__: pytest.fail("it was solved first"))
    (tmp_path / "traverse_exact.npz").mkdir()
    command = ("solve", "traverse", "--out", str(tmp_path))
    status, _, err = run(*command, "--gradient", "exact")
    assert status == 2 and "--out: `path` must be a file" in err
    monkeypatch.setattr("cito.cli_solve.LONGEST_NAME", 10)
    status, _, err = run(*command)
    assert status == 2 and "too long for a file" in err


@pytest.mark.parametrize(
    ("error", "sentence"),
    [(MemoryError(), "not enough memory"), (KeyError("x"), "unexpected KeyError: 'x' (CITO_DEBUG")],
)
def test_an_unexpected_error_is_one_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str
) -> None:
    def fail(arguments: object) -> int:
        raise error

    monkeypatch.setattr("cito.cli.run", fail)
    status, out, err = run("list", "--json")
    assert status == 1 and sentence in err and err.count("\n") == 1
    assert err == f"cito: {strict_json(out)['error']}\n"
    monkeypatch.setenv("CITO_DEBUG", "1")
    assert "Traceback" in run("list").err


def test_a_number_that_is_none_is_told_as_it_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(arguments: object) -> int:
        raise NotFinite("the return is nan at step 30")

    monkeypatch.setattr("cito.cli.run", fail)
    assert run("list")[::2] == (1, "cito: the return is nan at step 30\n")


def test_a_closed_standard_output_is_said() -> None:
    command = f"{sys.executable} -m cito list --json >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (1, "cito: standard output is closed\n")


def test_without_a_command_the_help_is_printed(run: Run) -> None:
    status, out, _ = run()
    assert status == 0 and "cito solve" not in out and "solve a task" in out


def test_python_m_cito_and_a_closed_pipe() -> None:
    command = f"{sys.executable} -m cito list | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_prints_the_best_result_and_ends_with_130() -> None:
    """The process interrupts itself in the middle of a solve that would go on."""
    code = """
import os, signal, sys
import cito.api, cito.cli
from cito import ContactDynamics
linearize, calls = ContactDynamics.linearize, []
def interrupted(self, rollout):
    calls.append(1)
    if len(calls) == 6:
        os.kill(os.getpid(), signal.SIGINT)
    return linearize(self, rollout)
ContactDynamics.linearize = interrupted
sys.exit(cito.cli.main(["solve", "lift-off", "--json", "--gradient", "full-cone"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    told = strict_json(done.stdout)
    assert (done.returncode, done.stderr, told["status"]) == (130, "", "interrupted")
    assert told["cost"] < 50 and told["iterations"] < 13


def test_an_interrupt_before_any_result_is_130_without_a_traceback() -> None:
    code = """
import os, signal, sys
import cito.cli
cito.cli.run = lambda arguments: os.kill(os.getpid(), signal.SIGINT)
sys.exit(cito.cli.main(["list", "--json"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (130, "cito: interrupted\n")
    assert strict_json(done.stdout) == {"error": "interrupted"}
