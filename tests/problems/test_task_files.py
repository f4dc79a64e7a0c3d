"""Tasks in files of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from cito.problems import registry
from cito.problems.task_files import task_name

TASK = """
import cito

@cito.task("{name}", "lift-off in a few steps")
def {name}(horizon: int = 5) -> cito.Problem:
    return cito.make("lift-off", horizon=horizon)
"""


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_TASKS", dict(registry.tasks()))


def test_a_file_with_one_task_needs_no_name(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(TASK.format(name="alone"))
    for _ in range(2):  # a file is run once
        assert task_name(str(file)) == task_name(f"{file}:alone") == "alone"
    assert registry.make("alone", horizon=3).horizon == 3


def test_a_file_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "cito_test_neighbour.py").write_text("STEPS = 4\n")
    text = TASK.format(name="neighbourly").replace("= 5", "= STEPS")
    (tmp_path / "mine.py").write_text("from cito_test_neighbour import STEPS\n" + text)
    assert registry.make(task_name(f"{tmp_path}/mine.py")).horizon == 4


def test_registered_names_are_themselves() -> None:
    assert task_name("traverse") == "traverse"
    with pytest.raises(ValueError, match="did you mean traverse"):
        task_name("travers")


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        (None, "", "`task` must be in a file that is there, got .*mine.py"),
        ("x = 1\n", "", "registers no task"),
        ("x = 1\ny = nothing\n", "", "cannot be run: line 2: NameError: name 'nothing'"),
        ("def f(:\n", "", "cannot be run: line 1: "),
        ("raise SystemExit\n", "", "cannot be run: line 1: SystemExit"),
        (TASK.format(name="lone"), ":other", "got 'other': .*mine.py has lone"),
        (TASK.format(name="p") + TASK.format(name="q"), "", "got no name: .*mine.py has p, q"),
        ("import cito\ncito.task('traverse', '')(print)", "", "line 2: .*already registered"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    tmp_path: Path, text: str | None, name: str, sentence: str
) -> None:
    file = tmp_path / "mine.py"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ValueError, match=sentence):
        task_name(f"{file}{name}")
