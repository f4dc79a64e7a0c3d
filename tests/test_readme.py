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


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.stem)
def test_the_blocks_of_a_tutorial_run_one_after_the_other(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    found = blocks("python", path.read_text(encoding="utf-8"))
    assert found
    for block in found:
        exec(compile(block, path.name, "exec"), names)


def test_the_python_blocks_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
    assert "Converged" in capsys.readouterr().out
    assert (tmp_path / "run.npz").is_file()
    stand_up = names["stand_up"]
    assert isinstance(stand_up, cito.Problem)


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
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    paths = re.findall(r"`((?:problems|docs|dynamics|solvers|tests)/[\w./]+)`", README)
    assert links and paths
    for name in links + paths:
        assert (ROOT / name).exists(), name
