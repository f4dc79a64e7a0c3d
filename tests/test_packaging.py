"""The package: what setuptools would put into a wheel, what an sdist needs, the layers."""

import importlib
import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

import cito

ROOT = Path(cito.__file__).resolve().parent.parent
LINKS = ("dynamics", "problems", "solvers", "figures", "benchmarks")

setuptools = pytest.importorskip("setuptools")


@pytest.fixture(scope="module")
def configuration() -> dict[str, object]:
    from setuptools.config.pyprojecttoml import read_configuration

    return read_configuration(ROOT / "pyproject.toml")["tool"]["setuptools"]


def test_every_package_of_the_tree_is_in_the_wheel(configuration: dict[str, object]) -> None:
    own = [p.parent for p in (ROOT / "cito").glob("*/__init__.py") if p.parent.name not in LINKS]
    with_init = {
        ".".join(["cito", *folder.relative_to(ROOT).parts])
        for top in LINKS
        for folder in [(ROOT / top), *(p.parent for p in (ROOT / top).rglob("*/__init__.py"))]
    }
    with_init |= {f"cito.{folder.name}" for folder in own}
    assert set(configuration["packages"]) == {"cito", *with_init}
    assert set(configuration["package-dir"].items()) == {
        ("cito", "cito"),
        *((f"cito.{top}", top) for top in LINKS),
    }


def test_every_data_file_that_is_read_is_in_the_wheel(configuration: dict[str, object]) -> None:
    data = configuration["package-data"]
    sources = (".py", ".so", ".pyd", ".cpp", ".hpp", ".inc")
    for package, folder in configuration["package-dir"].items():
        for file in (ROOT / folder).rglob("*"):
            if file.is_dir() or file.suffix in sources or "__pycache__" in file.parts:
                continue
            if file.is_relative_to(ROOT / "cito") and file.parent != ROOT / "cito":
                continue  # by way of a link: seen under its own folder
            name = str(file.relative_to(ROOT / folder))
            patterns = data.get(package, [])
            assert any(fnmatch(name, pattern) for pattern in patterns), f"{package}: {name}"


def test_the_links_that_type_checkers_follow_are_there() -> None:
    for name in LINKS:
        link = ROOT / "cito" / name
        if not link.exists():
            pytest.skip("an sdist or a checkout without links")
        assert link.is_symlink() and os.readlink(link) == f"../{name}"


def test_everything_imports_under_its_one_name() -> None:
    """In a new process, as a warning in one of the modules would be an error in another test."""
    code = """
import importlib, pkgutil, sys, cito
for module in pkgutil.walk_packages(cito.__path__, "cito."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
bare = {"dynamics", "problems", "solvers", "figures", "benchmarks"} & set(sys.modules)
print(len([name for name in sys.modules if name.startswith("cito.")]), *bare)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    count, *bare = done.stdout.split()
    assert int(count) > 30 and not bare


def test_the_readers_of_the_manifest_find_the_sources() -> None:
    manifest = (ROOT / "MANIFEST.in").read_text()
    for needed in ("dynamics/native", "tests", "Makefile", "constraints.txt", "CHANGELOG.md"):
        assert needed in manifest


def test_without_a_compiler_the_build_says_so_in_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", f"--build-lib={tmp_path}",
         f"--build-temp={tmp_path}"],
        env={**os.environ, "CXX": "/nowhere/c++"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].startswith("cito needs a C++17 compiler")
    assert "`/nowhere/c++` was not found: install one" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_is_installed_under_its_name() -> None:
    entry = next(
        line
        for line in (ROOT / "pyproject.toml").read_text().splitlines()
        if line.startswith("cito = ")
    )
    module, function = entry.split('"')[1].split(":")
    assert callable(getattr(importlib.import_module(module), function))
