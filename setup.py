"""How to compile cito.dynamics._native: the one thing pyproject.toml cannot say."""

import os
import shutil
import sys
from glob import glob
from pathlib import Path

import nanobind
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SANITIZE = os.environ.get("CITO_SANITIZE", "")  # e.g. "address,undefined"; see the Makefile
nb = Path(nanobind.__file__).parent


class BuildNative(build_ext):
    """build_ext that says in one sentence what is missing when there is no C++ compiler."""

    def build_extensions(self) -> None:
        command = getattr(self.compiler, "compiler_cxx", None) or ["c++"]
        if os.name == "posix" and shutil.which(command[0]) is None:
            sys.exit(
                f"cito needs a C++17 compiler to build its native core, and `{command[0]}` was "
                "not found: install one (Debian/Ubuntu: apt install g++; macOS: xcode-select "
                "--install) or set CXX to yours, then install cito again."
            )
        super().build_extensions()


flags = ["-std=c++17", "-O3", "-g0", "-fvisibility=hidden", "-fno-strict-aliasing"]
link = []
if SANITIZE:
    flags += ["-g", "-O1", f"-fsanitize={SANITIZE}", "-fno-omit-frame-pointer"]
    link += [f"-fsanitize={SANITIZE}"]
native = Extension(
    "cito.dynamics._native",
    [*sorted(glob("dynamics/native/*.cpp")), str(nb / "src/nb_combined.cpp")],
    depends=glob("dynamics/native/*.[hi]*"),
    include_dirs=[str(nb / "include"), str(nb / "ext/robin_map/include")],
    define_macros=[("NB_COMPACT_ASSERTIONS", None)],
    extra_compile_args=flags,
    extra_link_args=link,
    language="c++",
)
setup(ext_modules=[native], cmdclass={"build_ext": BuildNative})
