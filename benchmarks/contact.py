"""The contact kernels: how often they solve, how well, and how fast.

    hard         random problems (see `contact_problems`), every answer judged anew in extended
                 precision
    relaxed      points of the central path for rho from 1e-6 to 1 lambda_ref sigma_ref, where there
                 is a path: some redundant contacts cannot all open at once
    sensitivity  against central differences of the hard solve and of the relaxed point
    speed        four feet of a quadruped, one thread, beside Pinocchio's ADMM solver where `pin`
                 is installed

`value` is to be compared with `bar`, `met` says whether it is on the right side of it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from cito.benchmarks.contact_problems import (
    Batch,
    quadruped_batch,
    random_batch,
    random_batches,
    scaled_residual,
)
from cito.dynamics.contact import (
    HardBatch,
    relax_batch,
    sensitivity_batch,
    solve_batch,
)
from cito.dynamics.gradients import Exact, FullCone, Signorini
from cito.dynamics.types import Array

Row = dict[str, Any]
DECADES = (-6, -4, -2, -1, 0)  # of rho in units of lambda_ref sigma_ref


def run(quick: bool) -> list[Row]:
    """All rows; 10^5 random problems, or 5000 if `quick`."""
    return list(rows(quick))


def rows(quick: bool) -> Iterator[Row]:
    """The rows one by one."""
    yield from _hard_rows(5_000 if quick else 100_000)
    yield from _relaxed_rows(1_000 if quick else 20_000)
    yield from _sensitivity_rows(100 if quick else 1_000)
    yield from _speed_rows(200 if quick else 1_000)


def _row(
    measure: str,
    value: float | None,
    unit: str,
    count: int,
    bar: float | None = None,
    note: str = "",
    *,
    at_least: bool = False,
) -> Row:
    met = None
    if bar is not None and value is not None:
        met = bool(value >= bar if at_least else value <= bar)
    return {
        "measure": measure,
        "value": value,
        "unit": unit,
        "bar": bar,
        "met": met,
        "count": count,
        "note": note,
    }


def _hard_rows(count: int) -> Iterator[Row]:
    status, cond, recomputed, angle, sweeps = [], [], [], [0.0], []
    elapsed = 0.0
    for batch in random_batches(count, seed=0):
        start = time.thread_time()
        out = solve_batch(batch.A, batch.b, batch.mu, batch.dims)
        elapsed += time.thread_time() - start
        status.append(out.status)
        cond.append(batch.cond)
        sweeps.append(out.sweeps)
        recomputed.append(
            scaled_residual(batch.dims, batch.A, batch.b, batch.mu, out.impulse).astype(float)
        )
        angle.append(_angle_to_slip(batch, out))
    status_, residual = np.concatenate(status), np.concatenate(recomputed)
    easy, good = np.concatenate(cond) <= 1e4, status_ == 0
    solved = good & (residual <= 1e-9)
    yield _row(
        "hard: residual <= 1e-9, cond <= 1e4", float(solved[easy].mean()), "share", int(easy.sum()),
        0.9999, at_least=True,
    )  # fmt: skip
    yield _row(
        "hard: residual <= 1e-9, all", float(solved.mean()), "share", count, 0.999, at_least=True
    )
    yield _row("hard: good status above 1e-8", int((good & (residual > 1e-8)).sum()), "", count, 0)
    yield _row("hard: angle of friction to slip", max(angle), "rad", count, 1e-7)
    spent = np.percentile(np.concatenate(sweeps), [50, 90, 99])
    note = f"iterations 50/90/99 %: {spent[0]:.0f}/{spent[1]:.0f}/{spent[2]:.0f}"
    yield _row("hard: mean time", 1e6 * elapsed / count, "us", count, note=note)


def _angle_to_slip(batch: Batch, out: HardBatch) -> float:
    """Largest |friction/|friction| + slip/|slip|| where slip > 1e-6 sigma_ref."""
    sigma = np.einsum("mij,mj->mi", batch.A.astype(np.longdouble), out.impulse) + batch.b
    sigma_ref, lambda_ref = _references(batch)
    worst, row = 0.0, 0
    for d in batch.dims:
        T = slice(row, row + d - 1)
        row += int(d)
        slip, friction = (np.linalg.norm(x[:, T], axis=1) for x in (sigma, out.impulse))
        moving = (out.status == 0) & (slip > 1e-6 * sigma_ref) & (friction > 1e-6 * lambda_ref)
        along = out.impulse[moving, T] / friction[moving, None]
        against = sigma[moving, T] / slip[moving, None]
        worst = max(worst, float(np.linalg.norm(along + against, axis=1).max(initial=0)))
    return worst


def _references(batch: Batch) -> tuple[Array, Array]:
    """sigma_ref, lambda_ref (m)."""
    normals = np.cumsum(batch.dims) - 1
    sigma_ref = np.maximum(np.abs(batch.b).max(axis=1), 1e-3)
    return sigma_ref, sigma_ref / batch.A[:, normals, normals].max(axis=1)


def _relaxed_rows(count: int) -> Iterator[Row]:
    batches = [_in_unit_energy(b) for b in random_batches(count, seed=1)]
    hard = [solve_batch(b.A, b.b, b.mu, b.dims) for b in batches]
    inside: dict[tuple[int, int], bool] = {}  # of problems that a relaxed law did not solve
    for decade in DECADES:
        status, iterations, continued, without = [], [], [], 0
        for which, (batch, start) in enumerate(zip(batches, hard)):
            gradient = FullCone(10.0**decade)
            out = relax_batch(batch.A, batch.b, batch.mu, gradient, batch.dims, hard=start)
            for k in map(int, np.flatnonzero(out.status == 1)):
                if (which, k) not in inside:
                    inside[which, k] = _largest_opening(batch, k) > 1e-7
                without += not inside[which, k]
            status.append(out.status)
            iterations.append(out.iterations)
            continued.append(out.continuations > 0)
        status_, spent = np.concatenate(status), np.percentile(np.concatenate(iterations), [50, 99])
        note = (
            f"Newton iterations 50/99 %: {spent[0]:.0f}/{spent[1]:.0f}, "
            f"continuation in {100 * np.concatenate(continued).mean():.2f} %; "
            f"{without} more have no path"
        )
        with_path = count - without
        yield _row(
            f"relaxed: converged, rho = 1e{decade}", float((status_ == 0).sum() / with_path),
            "share", with_path, 0.999, note, at_least=True,
        )  # fmt: skip
        yield _row(
            f"relaxed: outside the cones, rho = 1e{decade}", int((status_ == 2).sum()), "", count, 0
        )


def _largest_opening(batch: Batch, k: int) -> float:
    """Largest t <= 1 for which impulses in their cones let every contact of problem k open:

        sigma_N >= t,   sigma = A lambda + b,   ||lambda_T|| <= mu lambda_N

    Points of the central path have sigma_N > 0: where t is not positive there is none.
    """
    cvxpy = import_module("cvxpy")
    A, b, mu = batch.A[k], batch.b[k], batch.mu[k]
    impulse, t = cvxpy.Variable(len(b)), cvxpy.Variable()
    constraints, row = [t <= 1], 0
    for i, d in enumerate(batch.dims):
        N = row + int(d) - 1
        constraints += [A[N] @ impulse + b[N] >= t, impulse[N] >= 0]
        if d > 1:
            constraints.append(cvxpy.norm(impulse[row:N]) <= mu[i] * impulse[N])
        row = N + 1
    return float(cvxpy.Problem(cvxpy.Maximize(t), constraints).solve(solver="CLARABEL"))


def _in_unit_energy(batch: Batch) -> Batch:
    """The same problems in units where lambda_ref = sigma_ref = 1, so that rho is dimensionless."""
    sigma_ref, lambda_ref = _references(batch)
    scale = (lambda_ref / sigma_ref)[:, None, None]
    return batch._replace(A=batch.A * scale, b=batch.b / sigma_ref[:, None])


def _sensitivity_rows(count: int) -> Iterator[Row]:
    rng = np.random.default_rng(2)
    errors: dict[str, list[Array]] = {"exact": [], "signorini": [], "full-cone": []}
    for k in range(0, count, 50):
        batch = _in_unit_energy(random_batch(rng, ("spectral", "masses")[k // 50 % 2], 50))
        hard = solve_batch(batch.A, batch.b, batch.mu, batch.dims)
        keep = batch.cond <= 1e4
        for gradient in (Exact(), Signorini(0.1), FullCone(0.1)):
            errors[gradient.name].append(_difference_error(batch, hard, gradient)[keep])
    for name, parts in errors.items():
        error = np.concatenate(parts)
        error = error[np.isfinite(error)]
        yield _row(f"sensitivity: {name}, 99 % of errors", float(np.quantile(error, 0.99)), "",
                   len(error), 1e-6, "relative, against central differences")  # fmt: skip


def _difference_error(
    batch: Batch, hard: HardBatch, gradient: Exact | Signorini | FullCone
) -> Array:
    """Relative error of d lambda / d b per problem; NaN where the modes change on the way."""
    n, step = batch.b.shape[1], 1e-7
    A, mu, dims = batch.A, batch.mu, batch.dims
    D = sensitivity_batch(A, batch.b, mu, gradient, dims, hard=hard)
    N = np.cumsum(dims) - 1
    rho = getattr(gradient, "rho", 1.0)
    start = np.maximum(hard.impulse[:, N], 0) + np.sqrt(rho / A[:, N, N])
    eps = 0.1 * rho / (np.where(mu > 0, mu, 1) * start)
    valid = (D.status == 0) & (D.fallbacks == 0) & (hard.residual < 1e-11)
    wanted = np.empty_like(D.db)
    for j in range(n):
        ends = []
        for sign in (1, -1):
            b = batch.b.copy()
            b[:, j] += sign * step
            if isinstance(gradient, Exact):
                moved = solve_batch(A, b, mu, dims, warm=hard.impulse)
                valid &= (moved.modes == hard.modes).all(axis=1) & (moved.residual < 1e-11)
                ends.append(moved.impulse)
            else:
                relaxed = relax_batch(A, b, mu, gradient, dims, hard=hard, smoothing=eps)
                valid &= relaxed.status == 0
                ends.append(relaxed.impulse)
        wanted[:, :, j] = (ends[0] - ends[1]) / (2 * step)
    size = np.maximum(np.abs(D.db).max(axis=(1, 2)), 1e-9)
    error: Array = np.abs(D.db - wanted).max(axis=(1, 2)) / size
    return np.where(valid, error, np.nan)


def _speed_rows(m: int) -> Iterator[Row]:
    batch = quadruped_batch(m)
    A, b, mu, dims = batch.A, batch.b, batch.mu, batch.dims
    hard = solve_batch(A, b, mu, dims)
    shares = np.bincount(hard.modes.ravel(), minlength=3) / hard.modes.size
    modes = "separating {:.0%}, sliding {:.0%}, clamping {:.0%}".format(*shares)
    native = _raw_calls(batch, hard)
    for measure, call, bar, note in (
        ("speed: hard solve, 4 contacts, cold", native["cold"], 5.0, modes),
        ("speed: hard solve, warm, b changed by 1 %", native["warm"], None, ""),
        ("speed: relaxed point", native["relaxed"], None, "full-cone, rho = 0.1 J"),
        ("speed: relaxed point and sensitivity", native["full-cone"], 12.0, "with d lambda/d mu"),
        ("speed: signorini, the same", native["signorini"], None, ""),
        ("speed: exact sensitivity", native["exact"], None, ""),
    ):
        yield _row(measure, 1e6 * _median_time(call, m), "us", m, bar, note)
    yield _pinocchio_row(batch, hard)


def _raw_calls(batch: Batch, hard: HardBatch) -> dict[str, Callable[[], Any]]:
    """The native batch calls, without the checks of the Python face."""
    from cito.dynamics import _native

    problem = (batch.dims, batch.A, batch.b, batch.mu)
    start = (hard.impulse, hard.velocity, hard.modes)
    knots = np.zeros(len(batch.b), dtype=np.uint64)
    near = np.random.default_rng(3).normal(1, 0.01, batch.b.shape) * batch.b

    def sensitivity(gradient: Exact | Signorini | FullCone) -> Callable[[], Any]:
        native = gradient.native()
        return lambda: _native.contact_sensitivity(*problem, *start, native, knots)

    full = FullCone(0.1).native()
    return {
        "cold": lambda: _native.hard_solve(*problem, None),
        "warm": lambda: _native.hard_solve(batch.dims, batch.A, near, batch.mu, hard.impulse),
        "relaxed": lambda: _native.relaxed_solve(*problem, *start, full, None),
        "full-cone": sensitivity(FullCone(0.1)),
        "signorini": sensitivity(Signorini(0.1)),
        "exact": sensitivity(Exact()),
    }


def _median_time(call: Callable[[], Any], m: int, repeats: int = 21) -> float:
    """Processor seconds per problem, so that other programs on the machine count little."""
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return statistics.median(times) / m


def _pinocchio_row(batch: Batch, hard: HardBatch) -> Row:
    """Pinocchio's ADMM contact solver on the same problems, by its own clock."""
    measure = "speed: Pinocchio's ADMM, tolerance 1e-9"
    try:
        pin: Any = import_module("pinocchio")
    except ImportError:
        return _row(measure, None, "us", 0, note="skipped: `pin` is not installed")
    model = pin.Model()
    model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root")
    settings = pin.ADMMSolverSettings()
    settings.measure_timings = True
    settings.absolute_feasibility_tol = settings.absolute_complementarity_tol = 1e-9
    settings.relative_feasibility_tol = settings.relative_complementarity_tol = 0
    times, errors, n = [], [], batch.b.shape[1]
    for A, b, mu, impulse in zip(batch.A, batch.b, batch.mu, hard.impulse):
        models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
        for friction in mu:
            contact = pin.PointContactConstraintModel(model, 1, pin.SE3.Identity())
            contact.setFriction(float(friction))
            models.append(pin.ConstraintModel(contact))
            datas.append(models[-1].createData())
        solver, result = pin.ADMMConstraintSolver(n), pin.ADMMSolverResult()
        solver.solve(pin.DelassusOperatorDense(A), b, models, datas, settings, result)
        times.append(solver.getElapsedTime())
        answer = np.zeros(n)
        result.retrievePrimalSolution(answer)
        errors.append(np.abs(answer - impulse).max() / max(np.abs(impulse).max(), 1e-3))
    note = f"median distance of its impulses to ours {statistics.median(errors):.1e}"
    return _row(measure, statistics.median(times), "us", len(times), note=note)


def main() -> None:
    """Print the rows as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the problems")
    print(json.dumps({"rows": run(parser.parse_args().quick)}, indent=1))


if __name__ == "__main__":
    main()
