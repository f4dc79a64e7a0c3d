"""cito beside its peers on the same work: a Go2 that stands on four feet, in many states.

    hard step             one step from each of 256 states, cold, in one call
    ten hard steps        ten in a row, where contact solvers start from the step before
    one call from Python  what a user's own loop pays
    step with Jacobians   f_x (36, 36) and f_u (36, 12) of 64 states besides
    two threads           64 states at once, on the wall
    scaling               see `cito.benchmarks.scaling`
    plan of a base pose   closed loops in MuJoCo's world, see `cito.benchmarks.mpc`; not if `quick`

Each peer takes its turn in every round, on one thread unless told otherwise, and is measured in
processor time; `median_us` and `least_us` (of the best round) are for one state. `ratio_to_cito` is
the median, over the rounds, of the peer's time by cito's: above 1, cito is faster. All have the
same robot, states, torques and time step. The laws differ: cito's contact is hard, with Coulomb's
cone; MuJoCo's is soft; Crocoddyl holds the feet where they are, without friction's limits;
Pinocchio's ADMM solves cito's law.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from cito.benchmarks import mpc, scaling
from cito.benchmarks.peer_crocoddyl import HOW_TO_PROVIDE, crocoddyl_node, find_python
from cito.benchmarks.peer_mujoco import MujocoPeer
from cito.benchmarks.peer_pinocchio import PinocchioPeer
from cito.benchmarks.peer_rows import Candidate, Row, compared, row
from cito.benchmarks.peer_rows import tables as tables
from cito.benchmarks.standing import Standing, standing
from cito.benchmarks.timing import Lap, processor_time, wall_time
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Exact, FullCone, Signorini
from cito.problems.robots import load_robot

MANY, STATES = 256, 64  # states of a call: for steps alone; as many as a plan has knots
THREADS, STEPS = 2, 10
TIME_STEP = 0.002  # [s] MuJoCo's default
FRICTION = 0.8  # [-] as in the robot's file
RHO = 0.1  # [J]
PLAIN = "no contact: for scale; called from Python"
PIN_MISSING = "skipped: Pinocchio is not installed (pip install '.[pinocchio]' in cito's folder)"


def rows(quick: bool, crocoddyl_python: str | None = None) -> Iterator[Row]:
    """All rows, one comparison after the other."""
    rounds = 7 if quick else 41
    python = find_python(crocoddyl_python)
    robot = load_robot("go2")
    many, work = (
        standing(robot.system, robot.stance, TIME_STEP, count, friction=FRICTION)
        for count in (MANY, STATES)
    )
    with ExitStack() as stack:
        models = {cone: _mujoco_model(robot.source, cone) for cone in ("pyramidal", "elliptic")}
        steppers = {cone: MujocoPeer(model, many) for cone, model in models.items()}
        mujoco, pool = (MujocoPeer(models["pyramidal"], work, threads) for threads in (1, THREADS))
        for peer in (*steppers.values(), mujoco, pool):
            stack.callback(peer.close)
        yield from compared("hard step", _steps(many, steppers, _pinocchio(many)), rounds, MANY)
        yield from compared("ten hard steps", _ten_steps(many, steppers), rounds, MANY * STEPS)
        yield from compared("one call from Python", _calls(work, mujoco), rounds, STATES)
        jacobians = _jacobians(work, mujoco, _pinocchio(work))
        jacobians.append(_crocoddyl(stack, python, work))
        yield from compared("step with Jacobians", jacobians, rounds, STATES)
        yield from _batches(work, pool, 5 * rounds)
    for size in scaling.measured(quick):
        yield from _scaled_rows(size)
    if not quick:
        yield from mpc.beside_peers(crocoddyl_python)


def run(quick: bool) -> list[Row]:
    """All rows."""
    return list(rows(quick))


def _steps(
    work: Standing, mujoco: Mapping[str, MujocoPeer], pinocchio: PinocchioPeer | None
) -> list[Candidate]:
    dynamics, x, u = work.dynamics, work.states, work.controls
    residual = dynamics.step(x, u).residual.max()
    candidates = [
        Candidate(
            "cito", processor_time(lambda: dynamics.step(x, u)),
            f"one native call; largest contact residual {residual:.0e}", work.active_contacts, 10.0,
        ),
        Candidate(
            "MuJoCo", processor_time(mujoco["pyramidal"].rollouts(1)),
            "mj_step, Euler, default solver, in C by mujoco.rollout",
            mujoco["pyramidal"].active_contacts(), 1.0,
        ),
        Candidate(
            "MuJoCo, elliptic cones", processor_time(mujoco["elliptic"].rollouts(1)),
            "the same with Coulomb's cone", mujoco["elliptic"].active_contacts(),
        ),
    ]  # fmt: skip
    if pinocchio is None:
        return [*candidates, Candidate("Pinocchio, ADMM", None, PIN_MISSING)]
    note = (
        "ten calls from Python; contacts found beforehand; "
        f"v+ within {pinocchio.largest_difference():.0e} of cito's"
    )
    admm, aba = processor_time(pinocchio.steps), processor_time(pinocchio.aba)
    return [
        *candidates,
        Candidate("Pinocchio, ADMM", admm, note, work.active_contacts),
        Candidate("Pinocchio, aba alone", aba, PLAIN, 0.0),
    ]


def _ten_steps(work: Standing, mujoco: Mapping[str, MujocoPeer]) -> list[Candidate]:
    controls = np.repeat(work.controls[:, None], STEPS, axis=1)
    rollout = work.dynamics.rollout(work.states, controls)
    active = float((rollout.modes != 0).sum(axis=2).mean())
    cito = processor_time(lambda: work.dynamics.rollout(work.states, controls))
    return [
        Candidate("cito", cito, "one native call; time of one step", active),
        *(
            Candidate(f"MuJoCo, {cone} cones", processor_time(peer.rollouts(STEPS)), "one C call")
            for cone, peer in mujoco.items()
        ),
    ]


def _calls(work: Standing, mujoco: MujocoPeer) -> list[Candidate]:
    pairs = list(zip(work.states, work.controls))

    def cito() -> None:
        for x, u in pairs:
            work.dynamics.step(x, u)

    def peer() -> None:
        for k in range(len(pairs)):
            mujoco.step(k)

    return [
        Candidate("cito", processor_time(cito), "dynamics.step(x, u) of one state"),
        Candidate("MuJoCo", processor_time(peer), "state and torques copied in, mj_step"),
    ]


def _jacobians(
    work: Standing, mujoco: MujocoPeer, pinocchio: PinocchioPeer | None
) -> list[Candidate]:
    dynamics, x, u = work.dynamics, work.states, work.controls

    def cito(gradient: Exact | Signorini | FullCone) -> Lap:
        return processor_time(lambda: dynamics.transition(x, u, gradient))

    active = work.active_contacts
    candidates = [
        Candidate("cito, full-cone", cito(FullCone(RHO)), f"rho = {RHO} J", active, 25.0),
        Candidate("cito, signorini", cito(Signorini(RHO)), f"rho = {RHO} J", active),
        Candidate("cito, exact", cito(Exact()), "", active),
        Candidate(
            "MuJoCo, forward differences", processor_time(lambda: mujoco.jacobians(False)),
            "mjd_transitionFD, eps = 1e-6, started warm", mujoco.active_contacts(), 15.0,
        ),
        Candidate(
            "MuJoCo, centred differences", processor_time(lambda: mujoco.jacobians(True)),
            "mjd_transitionFD, eps = 1e-6, started warm", mujoco.active_contacts(),
        ),
    ]  # fmt: skip
    if pinocchio is not None:
        derivatives = processor_time(pinocchio.aba_derivatives)
        candidates.append(Candidate("Pinocchio, derivatives of aba", derivatives, PLAIN, 0.0))
    return candidates


def _crocoddyl(stack: ExitStack, python: str | None, work: Standing) -> Candidate:
    name, lap, note, contacts = "Crocoddyl contact node", None, HOW_TO_PROVIDE, None
    if python is not None:
        try:
            version, lap = stack.enter_context(crocoddyl_node(python, work))
            contacts = float(work.dynamics.nc)
            note = (
                f"{version}: calc and calcDiff of an Euler node, points held in 3D, no cost, "
                "called from Python"
            )
        except OSError as error:
            note = f"skipped: {error}"
    return Candidate(name, lap, note, contacts, 2.5)


def _batches(work: Standing, mujoco: MujocoPeer, rounds: int) -> Iterator[Row]:
    x, u = work.states, work.controls
    dynamics = ContactDynamics(work.tree, TIME_STEP, work.dynamics.friction, threads=THREADS)
    gradient = FullCone(RHO)
    steps = [
        Candidate(
            "cito", wall_time(lambda: dynamics.step(x, u)), "", work.active_contacts, 1e6 / 150e3
        ),
        Candidate("MuJoCo", wall_time(mujoco.rollouts(1)), "mujoco.rollout"),
    ]  # fmt: skip
    jacobians = [
        Candidate(
            "cito, full-cone", wall_time(lambda: dynamics.transition(x, u, gradient)), "",
            work.active_contacts, 1e6 / 65e3,
        )
    ]  # fmt: skip
    for what, candidates in (("steps", steps), ("Jacobians", jacobians)):
        for found in compared(f"two threads, {what}", candidates, rounds, STATES):
            often, best = (1e6 / found[key] for key in ("median_us", "least_us"))
            note = f"{often:,.0f} {what}/s on the wall, {best:,.0f} in the best round"
            yield {**found, "note": "; ".join(filter(None, (note, found["note"])))}


def _scaled_rows(size: scaling.Scaled) -> Iterator[Row]:
    what = f"scaling: {size.robot}, {size.dof} dof, {size.contacts} contacts"
    for name, us, cito, active in (
        ("cito, step", size.cito_step, size.cito_step, size.active),
        ("MuJoCo, step", size.mujoco_step, size.cito_step, size.active_mujoco),
        ("cito, Jacobians", size.cito_jacobian, size.cito_jacobian, size.active),
        ("MuJoCo, Jacobians", size.mujoco_jacobian, size.cito_jacobian, size.active_mujoco),
    ):
        yield row(name, what, us, us / cito, contacts=active)


def _mujoco_model(source: Any, cone: str) -> Any:
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(source))
    model.opt.timestep = TIME_STEP
    model.opt.cone = {"pyramidal": 0, "elliptic": 1}[cone]
    return model


def _pinocchio(work: Standing) -> PinocchioPeer | None:
    try:
        return PinocchioPeer(work)
    except ImportError:
        return None


def main() -> None:
    """Print the rows as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and sizes")
    parser.add_argument("--crocoddyl-python", metavar="PATH", help="a Python that has crocoddyl")
    given = parser.parse_args()
    print(json.dumps({"rows": list(rows(given.quick, given.crocoddyl_python))}, indent=1))


if __name__ == "__main__":
    main()
