"""`import cito`: every public name is there, and none costs anything before it is used."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cito

HEAVY = ("torch", "casadi", "cvxpy", "mujoco", "matplotlib", "scipy", "rich")


def fresh_process(code: str) -> str:
    """What `code` prints in a new interpreter that warns of nothing."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(cito.__file__).parent.parent,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    "code",
    [
        "import cito",
        "import cito; cito.solve; cito.load; cito.tasks(); cito.make('traverse')",
        "import cito.cli; cito.cli.parser()",
    ],
)
def test_heavy_libraries_stay_out(code: str) -> None:
    loaded = fresh_process(f"import sys\n{code}\nprint(*sys.modules)").split()
    assert "cito" in loaded
    assert not set(HEAVY) & set(loaded)


def test_importing_cito_does_not_even_import_numpy() -> None:
    assert fresh_process("import sys, cito; print('numpy' in sys.modules)") == "False\n"


def test_every_public_name_resolves_to_something_documented() -> None:
    for name in cito.__all__:
        value = getattr(cito, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name
        assert name in dir(cito)


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(cito.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    assert seen.keys() == set(cito.__all__)
    assert seen == cito._HOME


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'sovle'"):
        cito.sovle  # noqa: B018


def test_the_version_is_the_same_everywhere() -> None:
    root = Path(cito.__file__).parent.parent
    for file, pattern in {
        "pyproject.toml": r'^version = "(.*)"$',
        "CITATION.cff": r"^version: (.*)$",
        "CHANGELOG.md": r"^## \[(\d.*?)\]",
    }.items():
        found = re.search(pattern, (root / file).read_text(), re.MULTILINE)
        assert found and found[1] == cito.__version__, file
