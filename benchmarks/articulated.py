"""What one step of the shipped robots costs, and its derivatives: one thread, processor time.

    terms         M, c, B, J and gaps; called from Python, state by state
    free flight   a step with the ground out of reach: terms, factorization, integration
    hard step     a step from a cold start
    Jacobians     the step with f_x and f_u, of its modes (exact) and of the relaxed law (full-cone)
    adjoint       a transposed step, of a step that was taken before; the same two laws

Robots stand as for the comparison with peers (`standing`); the arm of seven joints swings without
contact.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cito.benchmarks import adjoint_arm
from cito.benchmarks.scaling_robots import Standee, humanoid, shipped
from cito.benchmarks.standing import standing
from cito.benchmarks.timing import interleaved, processor_time
from cito.dynamics import _native
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Exact, FullCone, Gradient
from cito.dynamics.shapes import Plane
from cito.dynamics.types import Array

Row = dict[str, Any]
TIME_STEP = 0.002  # [s]
RHO = 0.1  # [J]
STATES, QUICK_STATES = 64, 8
ROUNDS, QUICK_ROUNDS = 31, 3
DEPTH = -10.0  # of the ground in free flight [m]
SHIPPED = ("hopper", "biped", "go2")


class Mechanism(NamedTuple):
    """Dynamics with the states (K, nx) and controls (K, nu) that it is measured at."""

    name: str
    dynamics: ContactDynamics
    states: Array
    controls: Array


def run(quick: bool) -> list[Row]:
    """All rows."""
    return list(rows(quick))


def rows(quick: bool) -> Iterator[Row]:
    """A row for each mechanism and kind of work."""
    for mechanism in mechanisms(QUICK_STATES if quick else STATES):
        yield from measure(mechanism, QUICK_ROUNDS if quick else ROUNDS)


def mechanisms(count: int) -> Iterator[Mechanism]:
    """The shipped robots, a humanoid on flat feet and an arm, in `count` states each."""
    for name in SHIPPED:
        yield standee(shipped(name), count)
    yield standee(humanoid(), count)
    arm, rng = adjoint_arm.arm(), np.random.default_rng(0)
    states, controls = rng.standard_normal((count, arm.nx)), rng.standard_normal((count, arm.nu))
    yield Mechanism("arm", arm, states, controls)


def standee(robot: Standee, count: int) -> Mechanism:
    """A robot in `count` states near its stance."""
    work = standing(
        robot.system, robot.stance, TIME_STEP, count, pose=0.02, velocity=0.02, torque=0.3
    )
    return Mechanism(robot.name, work.dynamics, work.states, work.controls)


def measure(mechanism: Mechanism, rounds: int) -> Iterator[Row]:
    """Medians over `rounds` rounds, each over all states, for one state."""
    laps = {what: processor_time(lap) for what, lap in works(mechanism).items()}
    for what, seconds in interleaved(laps, rounds).items():
        us = 1e6 * seconds / len(mechanism.states)
        yield {
            "name": mechanism.name,
            "what": what,
            "median_us": float(np.median(us)),
            "least_us": float(us.min()),
            "dof": mechanism.dynamics.ndx // 2,
            "contacts": mechanism.dynamics.nc,
        }


def works(mechanism: Mechanism) -> dict[str, Callable[[], object]]:
    """Work on all states of a mechanism, by name; without contact there is one law only."""
    dynamics, x, u = mechanism.dynamics, mechanism.states, mechanism.controls
    native, nq, step = dynamics.manifold, dynamics.manifold.nq, dynamics.step(x, u)
    g = np.random.default_rng(1).standard_normal((len(x), dynamics.ndx))
    found: dict[str, Callable[[], object]] = {
        "terms": lambda: [_native.system_terms(native, None, y[:nq], y[nq:]) for y in x]
    }
    if dynamics.nc:
        aloft = ContactDynamics(dynamics.system, TIME_STEP, ground=Plane(height=DEPTH))
        found["free flight"] = lambda: aloft.step(x, u)
    found["hard step"] = lambda: dynamics.step(x, u)
    laws: dict[str, Gradient] = {"exact": Exact(), "full-cone": FullCone(RHO)}
    for name, law in laws.items():
        if name == "exact" or dynamics.nc:
            found[f"{name} Jacobians"] = partial(dynamics.transition, x, u, law)
            found[f"{name} adjoint"] = partial(dynamics.vjp, x, u, *step[1:4], g, law)
    return found


def tables(rows: list[Row]) -> list[tuple[list[str], list[list[Any]]]]:
    """One line for each kind of work, one column for each mechanism."""
    names = list(dict.fromkeys(row["name"] for row in rows))
    sizes = {row["name"]: f"{row['dof']} dof, {row['contacts']} contacts" for row in rows}
    us = {(row["what"], row["name"]): f"{row['median_us']:.1f}" for row in rows}
    lines = [
        [what, *(us.get((what, name), "") for name in names)]
        for what in dict.fromkeys(row["what"] for row in rows)
    ]
    headers = ["microseconds", *(f"{name}, {sizes[name]}" for name in names)]
    return [(headers, lines)]


def main() -> None:
    """Print the rows as one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer states and rounds")
    print(json.dumps({"rows": run(parser.parse_args().quick)}, indent=1))


if __name__ == "__main__":
    main()
