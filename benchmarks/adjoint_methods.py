"""Ways to the gradient of `adjoint_arm`, each measured in a process of its own.

    python -m cito.benchmarks.adjoint_methods NAME STEPS FILE

prints a JSON object with seconds_per_step and peak_bytes, and saves the gradient to FILE (.npy).
Seconds are those of the processor, on one thread; bytes are those of the resident set beyond what
it was before the first gradient of this length, all code loaded and functions built.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cito.benchmarks import adjoint_arm as arm
from cito.dynamics.gradients import Exact, FullCone, Gradient
from cito.dynamics.types import Array

Run = Callable[[], Array]  # the gradient (N, 7)
REPEATS, PATIENCE = 7, 2.0  # runs, and processor seconds after which no further one begins


def cito(steps: int, spacing: int | None = None, ground: bool = False) -> Run:
    """Transposed steps, from all states of the rollout or from every `spacing`-th."""
    dynamics, (start, U) = arm.arm(ground), arm.motion(steps)
    gradient: Gradient = FullCone(0.05) if ground else Exact()

    def cotangents(first: int, states: Array) -> Array:
        g: Array = arm.TIME_STEP * states
        if first + len(states) == steps + 1:
            g[-1] += states[-1]
        return g

    def run() -> Array:
        if spacing is None:
            motion: Any = dynamics.rollout(start, U)
        else:
            motion = dynamics.checkpoints(start, U, spacing)
        return dynamics.rollout_vjp(motion, cotangents, gradient).controls

    return run


def torch(steps: int) -> Run:
    """The full tape of PyTorch's autograd."""
    th: Any = importlib.import_module("torch")
    from cito.benchmarks.adjoint_arrays import Arm

    th.set_num_threads(1)
    body = Arm(th, th.linalg.cross, lambda a: th.tensor(a, dtype=th.float64))
    start, U = arm.motion(steps)

    def run() -> Array:
        u = th.tensor(U, requires_grad=True)
        states = [th.tensor(start)]
        for u_k in u:
            states.append(body.step(states[-1], u_k))
        body.loss(states).backward()
        gradient: Array = u.grad.numpy()
        return gradient

    return run


def jax(steps: int) -> Run:
    """A compiled scan, differentiated in reverse mode."""
    jx: Any = importlib.import_module("jax")
    from cito.benchmarks.adjoint_arrays import Arm

    jx.config.update("jax_enable_x64", True)
    jnp = jx.numpy
    body = Arm(jnp, jnp.cross, jnp.asarray)
    start, U = (jnp.asarray(a) for a in arm.motion(steps))

    def loss(controls: Any) -> Any:
        def advance(x: Any, u: Any) -> Any:
            x_next = body.step(x, u)
            return x_next, x_next

        last, X = jx.lax.scan(advance, start, controls)
        running = (start**2).sum() + (X**2).sum()
        return 0.5 * (last**2).sum() + 0.5 * arm.TIME_STEP * running

    gradient = jx.jit(jx.grad(loss)).lower(U).compile()
    return lambda: np.asarray(gradient(U))


def casadi(steps: int, compiled: bool = False) -> Run:
    """Reverse mode of the step's scalar operations, mapped over the steps: the leanest way."""
    import casadi as ca

    from cito.benchmarks import adjoint_casadi as ours

    functions = [ours.step(), ours.transposed_step()]
    if compiled:
        functions = _compiled(functions)
    forward, backward = (f.mapaccum(f.name() + "s", steps) for f in functions)
    start, U = arm.motion(steps)

    def run() -> Array:
        X = ca.horzcat(start, forward(start, U.T))
        g = (1 + arm.TIME_STEP) * X[:, -1]
        _, g_u = backward(g, X[:, steps - 1 :: -1] if steps > 1 else X[:, :1], U[::-1].T)
        return np.ascontiguousarray(np.array(g_u).T[::-1])

    return run


def casadi_graph(steps: int) -> Run:
    """`casadi.gradient` of the whole motion: what its user writes in one line."""
    import casadi as ca

    from cito.benchmarks import adjoint_casadi as ours

    start, U = arm.motion(steps)
    u = ca.MX.sym("u", arm.JOINTS, steps)
    X = ours.step().mapaccum("steps", steps)(ca.DM(start), u)
    loss = ca.sumsqr(X[:, -1]) / 2 + arm.TIME_STEP / 2 * (ca.sumsqr(X) + float(start @ start))
    gradient = ca.Function("gradient", [u], [ca.gradient(loss, u)])
    return lambda: np.array(gradient(U.T)).T


def _compiled(functions: list[Any]) -> list[Any]:
    """The same functions as C of this very arm, compiled for this very machine."""
    import casadi as ca

    folder = Path(tempfile.mkdtemp())
    code = ca.CodeGenerator("arm.c")
    for function in functions:
        code.add(function)
    code.generate(f"{folder}/")
    library = folder / "arm.so"
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run([compiler() or "cc", *flags, folder / "arm.c", "-o", library], check=True)
    loaded = [ca.external(function.name(), str(library)) for function in functions]
    shutil.rmtree(folder)
    return loaded


def compiler() -> str | None:
    """A C compiler of this machine."""
    return next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)


METHODS: dict[str, Callable[[int], Run]] = {
    "cito": cito,
    "cito, checkpoints": lambda steps: cito(steps, int(np.ceil(np.sqrt(steps)))),
    "torch": torch,
    "jax": jax,
    "casadi": casadi,
    "casadi, whole graph": casadi_graph,
    "casadi, compiled": lambda steps: casadi(steps, compiled=True),
    "cito, contact": lambda steps: cito(steps, ground=True),
}
AUTODIFF = ("torch", "jax", "casadi", "casadi, whole graph")


def settle() -> int:
    """Give free memory back to the system and forget the peak; bytes in memory now."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak() -> int:
    """The most bytes that this process had in memory since it settled."""
    return _status("VmHWM")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    raise OSError(f"/proc/self/status has no {name}")


def measure(name: str, steps: int) -> tuple[dict[str, float], Array]:
    """Seconds per step and peak bytes of a method, and its gradient."""
    METHODS[name](10)()
    run = METHODS[name](steps)
    baseline = settle()
    seconds: list[float] = []
    while len(seconds) < REPEATS and sum(seconds) < PATIENCE:
        start = time.process_time()
        gradient = run()
        seconds.append(time.process_time() - start)
        if len(seconds) == 1:
            bytes_ = peak() - baseline
    row = {"seconds_per_step": statistics.median(seconds) / steps, "peak_bytes": max(bytes_, 4096)}
    return row, gradient


def main() -> None:
    """Measure one method; see the module."""
    name, steps, file = sys.argv[1:]
    row, gradient = measure(name, int(steps))
    np.save(file, gradient)
    print(json.dumps(row))


if __name__ == "__main__":
    main()
