"""What the README and the tutorials show is run."""

import re
import shlex
from pathlib import Path

import pytest

import cito
from cito.cli import main

ROOT = Path(cito.__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    """The fenced blocks of `language`, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


TUTORIALS = [
    path
    for path in sorted((ROOT / "docs").glob("*.md"))
    if blocks("python", path.read_text("utf-8"))
]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_blocks_of_a_tutorial_run_one_after_the_other(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks("python", path.read_text(encoding="utf-8")):
        exec(compile(block, path.name, "exec"), names)
    if path.stem == "guide":
        assert (tmp_path / "run.npz").is_file()


def test_the_python_blocks_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
    assert capsys.readouterr().out
    plan, x = names["plan"], names["x"]
    assert isinstance(plan, cito.Solution) and plan.cost < 0.9 * plan.history[0]["cost"]
    assert 0.1 < x[0] < 0.4  # type: ignore[index]


def test_the_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    makefile = (ROOT / "Makefile").read_text()
    lines = [shlex.split(line) for block in blocks("sh") for line in block.splitlines() if line]
    assert lines
    for program, *arguments in lines:
        if program == "make":
            assert re.search(rf"^{arguments[0]}:", makefile, re.MULTILINE)
        elif program == "cito" and arguments[0] not in ("bench", "figure"):  # these take long
            assert main(arguments) == 0
        else:
            assert program in ("cito", "pip")


def test_every_file_and_picture_that_is_named_is_there() -> None:
    named = 0
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        links = re.findall(r"\]\((?!http)([^)#]+)\)", text)
        paths = re.findall(r"`((?:problems|docs|dynamics|solvers|tests|cito)/[\w./]+)`", text)
        named += len(links) + len(paths)
        for name in links:
            assert (page.parent / name).exists(), name
        for name in paths:
            assert (ROOT / name).exists(), name
    assert named > 5
