"""From CasADi functions to programs of the native core.

Where there is a C compiler, CasADi's generated C is compiled once and kept in a cache directory of
the user's, named by a hash of everything that went into it. Elsewhere the native core runs the tape
of scalar operations that CasADi itself evaluates. The numbers are the same up to rounding.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cito.dynamics import _native

CACHE_VARIABLE = "CITO_CACHE_DIR"


def build_programs(functions: Sequence[Any], compile: bool | None) -> tuple[list[Any], bool]:
    """Programs of the native core for some CasADi functions, and whether they are compiled.

    Args:
        functions: of SX, or of MX without calls of others, with dense inputs and outputs.
        compile: True: compile, or fail; False: run CasADi's tape; None: compile where possible.

    Raises:
        ValueError: a function holds an operation that the core does not know.
        RuntimeError: `compile` is True and there is no compiler or it failed; carries its message.
    """
    scalar = all(function.is_a("SXFunction") for function in functions)
    tapes = [_Tape(function) for function in functions] if scalar else []
    if compile is not False:
        try:
            source = _generate(functions)
            if " arg1" in source or any(function.sz_iw() > 0 for function in functions):
                raise RuntimeError("generated C needs room that the native core does not offer")
            library = _load(_compile(source))
            return [_compiled_program(library, function) for function in functions], True
        except RuntimeError:
            if compile:
                raise
    tapes = tapes or [_Tape(function.expand()) for function in functions]
    return [tape.program() for tape in tapes], False


class _Tape:
    """The instructions of an SX function as the core takes them."""

    def __init__(self, function: Any) -> None:
        numbers = _operation_numbers()
        count = function.n_instructions()
        columns = np.zeros((4, count), dtype=np.int32)
        self.constants = np.zeros(count)
        for k in range(count):
            operation = function.instruction_id(k)
            if operation not in numbers:
                raise ValueError(
                    f"`{function.name()}` holds an operation that cito does not support "
                    f"(number {operation} of CasADi's list): write it with elementary functions"
                )
            inputs, outputs = function.instruction_input(k), function.instruction_output(k)
            columns[0, k] = numbers[operation]
            columns[1, k] = outputs[0]
            # Unary operations read their operand twice; an output's offset stands last.
            columns[2:, k] = [*inputs, *outputs[1:], *inputs, 0, 0][:2]
            if not inputs:
                self.constants[k] = function.instruction_constant(k)
        self.columns = columns
        self.work = int(function.sz_w())

    def program(self) -> Any:
        operation, output, first, second = self.columns
        return _native.tape_program(operation, output, first, second, self.constants, self.work)


@cache
def _operation_numbers() -> dict[int, int]:
    """CasADi's number of an operation -> the core's."""
    import casadi

    names: list[str] = _native.tape_operations()
    return {getattr(casadi, f"OP_{name}"): number for number, name in enumerate(names)}


def _generate(functions: Sequence[Any]) -> str:
    """C source of `functions`."""
    import casadi

    generator = casadi.CodeGenerator("cito_symbolic", {"with_header": False})
    for function in functions:
        generator.add(function)
    return str(generator.dump())


def _compiled_program(library: ctypes.CDLL, function: Any) -> Any:
    address = ctypes.cast(getattr(library, function.name()), ctypes.c_void_p).value
    assert address is not None
    return _native.compiled_program(address, int(function.sz_w()))


def _compile(source: str) -> Path:
    """The shared library made from C source; built at most once per user and machine type."""
    compiler = find_compiler()
    if compiler is None:
        raise RuntimeError(
            "no C compiler was found: install one (Debian/Ubuntu: apt install gcc; macOS: "
            "xcode-select --install), set CC to yours, or pass compile=False"
        )
    # Optimizing very long straight-line code takes minutes and gains little.
    command = [*compiler, "-O2" if len(source) < 2_000_000 else "-O1", "-fPIC", "-shared"]
    recipe = "\0".join([source, *command, platform.machine(), sys.platform])
    name = hashlib.sha256(recipe.encode()).hexdigest()[:32]
    library = cache_directory() / f"symbolic-{name}.so"
    if not library.exists():
        _run_compiler(command, source, library)
    return library


def _run_compiler(command: Sequence[str], source: str, library: Path) -> None:
    """Compile next to `library` and rename: another process sees all of the file or none."""
    with tempfile.TemporaryDirectory(dir=library.parent, prefix="build-") as build:
        code, output = Path(build, "symbolic.c"), Path(build, "symbolic.so")
        code.write_text(source)
        try:
            result = subprocess.run(
                [*command, "-o", str(output), str(code), "-lm"],
                capture_output=True,
                text=True,
                timeout=600,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(f"the C compiler could not run: {error}") from error
        if result.returncode != 0 or not output.exists():
            message = result.stderr.strip()[-2000:]
            raise RuntimeError(f"the C compiler failed (`{shlex.join(command)}`):\n{message}")
        os.replace(output, library)


@cache
def find_compiler() -> tuple[str, ...] | None:
    """The command of a C compiler that takes gcc's arguments: $CC, else cc, gcc or clang."""
    if os.name != "posix":
        return None
    for command in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        words = shlex.split(command)
        if words and shutil.which(words[0]):
            return tuple(words)
    return None


@cache
def cache_directory() -> Path:
    """Where compiled systems are kept: $CITO_CACHE_DIR, else the platform's user cache.

    Where neither can be written, a directory of this process in the system's temporary files.
    """
    home = os.environ.get("XDG_CACHE_HOME") or (
        "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    )
    chosen = os.environ.get(CACHE_VARIABLE) or os.path.join(home, "cito")
    directory = Path(chosen).expanduser()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return directory
    except OSError:
        temporary = tempfile.mkdtemp(prefix="cito-")
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        return Path(temporary)


def _load(library: Path) -> ctypes.CDLL:
    """Load a compiled system; it stays loaded for the life of the process."""
    try:
        return ctypes.CDLL(str(library))
    except OSError as error:
        raise RuntimeError(f"the compiled system {library} cannot be loaded: {error}") from error
