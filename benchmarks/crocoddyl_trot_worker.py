"""Plans a trot with Crocoddyl's BoxFDDP, in its own Python: see `cito.benchmarks.mpc_crocoddyl`.

    python crocoddyl_trot_worker.py WORK.npz PLAN.npz

The feet that stand at each knot are prescribed, and so is where the others go: diagonal pairs swing
in turn, each foot by its share of the way. Costs are the task's (weights in WORK.npz), and besides
what a prescribed gait needs: the paths of the swinging feet, their speed at touchdown, friction
cones of the standing ones. Needs numpy, crocoddyl and its pinocchio, and nothing of cito.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any

import numpy as np

PATH, TOUCHDOWN, CONE = 1e4, 10.0, 1.0  # weights [1/m^2], [s^2/m^2], [1/N^2]
DAMPING = 50.0  # of the points held [1/s]
MAX_ITERATIONS, TOLERANCE = 100, 1e-4


def main() -> None:
    """Solve, and write states, controls and gains."""
    pin: Any = import_module("pinocchio")
    crocoddyl: Any = import_module("crocoddyl")
    with np.load(sys.argv[1], allow_pickle=False) as file:
        work = dict(file)
    problem = Trot(pin, crocoddyl, work).problem()
    solver = crocoddyl.SolverBoxFDDP(problem)
    solver.th_stop = TOLERANCE
    xs = [work["start"]] * (problem.T + 1)
    us = problem.quasiStatic(xs[:-1])
    began = time.thread_time()
    converged = solver.solve(xs, us, MAX_ITERATIONS, False)
    seconds = time.thread_time() - began
    np.savez(
        sys.argv[2],
        states=np.array(solver.xs),
        controls=np.array(solver.us),
        gains=-np.array(solver.K),  # u = us - K (x (-) xs)
        iterations=solver.iter + 1,
        seconds=seconds,
        converged=converged,
        cost=solver.cost,
        version=str(crocoddyl.__version__),
    )


class Trot:
    """The shooting problem."""

    def __init__(self, pin: Any, crocoddyl: Any, work: dict[str, Any]) -> None:
        self.pin, self.crocoddyl, self.work = pin, crocoddyl, work
        self.model = import_module("crocoddyl_worker").robot_model(pin, work)
        self.frames = [
            self.model.addFrame(
                pin.Frame(
                    f"foot {i}", int(body) + 1, 0, pin.SE3(np.eye(3), at), pin.FrameType.OP_FRAME
                )
            )
            for i, (body, at) in enumerate(zip(work["contact_body"], work["contact_point"]))
        ]
        self.state = crocoddyl.StateMultibody(self.model)
        self.actuation = crocoddyl.ActuationModelFloatingBase(self.state)
        self.h = float(work["time_step"])
        data = self.model.createData()
        pin.framesForwardKinematics(self.model, data, work["start"][: self.model.nq])
        self.feet = np.array([data.oMf[frame].translation for frame in self.frames])

    def problem(self) -> Any:
        """Every knot with its feet on the ground and the paths of the others."""
        places, contact = self.work["foot_places"], self.work["foot_contact"]
        nodes = [
            self._node(places[k], contact[k], contact[min(k + 1, len(contact) - 1)])
            for k in range(len(contact))
        ]
        last = self._node(places[-1], contact[-1], contact[-1], terminal=True)
        return self.crocoddyl.ShootingProblem(self.work["start"], nodes, last)

    def _node(self, places: Any, contact: Any, following: Any, terminal: bool = False) -> Any:
        crocoddyl, state, nu = self.crocoddyl, self.state, self.actuation.nu
        contacts = crocoddyl.ContactModelMultiple(state, nu)
        costs = crocoddyl.CostModelSum(state, nu)
        # an Euler node multiplies its cost by its time step, the last one does not
        scale = 1.0 if terminal else 1 / self.h
        self._add_task(costs, scale, terminal)
        for i, frame in enumerate(self.frames):
            if contact[i]:
                held = crocoddyl.ContactModel3D(
                    state, frame, np.zeros(3), self.pin.LOCAL_WORLD_ALIGNED, nu,
                    np.array([0.0, DAMPING]),
                )  # fmt: skip
                contacts.addContact(f"foot {i}", held)
                if not terminal:
                    self._add_cone(costs, i, frame, scale)
            elif not terminal:
                path = crocoddyl.ResidualModelFrameTranslation(state, frame, places[i], nu)
                costs.addCost(f"path {i}", crocoddyl.CostModelResidual(state, path), scale * PATH)
                if following[i]:
                    speed = crocoddyl.ResidualModelFrameVelocity(
                        state, frame, self.pin.Motion.Zero(), self.pin.LOCAL_WORLD_ALIGNED, nu
                    )
                    soft = crocoddyl.ActivationModelWeightedQuad(np.array([1.0] * 3 + [0.0] * 3))
                    costs.addCost(
                        f"touchdown {i}",
                        crocoddyl.CostModelResidual(state, soft, speed),
                        scale * TOUCHDOWN,
                    )
        forward = crocoddyl.DifferentialActionModelContactFwdDynamics(
            state, self.actuation, contacts, costs, 0.0, True
        )
        node = crocoddyl.IntegratedActionModelEuler(forward, 0.0 if terminal else self.h)
        if not terminal:
            node.u_lb, node.u_ub = -self.work["torque_limits"], self.work["torque_limits"]
        return node

    def _add_task(self, costs: Any, scale: float, terminal: bool) -> None:
        """Pose, velocity and posture of the task, and torques."""
        crocoddyl, state, nu = self.crocoddyl, self.state, self.actuation.nu
        weights = self.work["terminal_weights" if terminal else "state_weights"]
        residual = crocoddyl.ResidualModelState(state, self.work["goal"], nu)
        activation = crocoddyl.ActivationModelWeightedQuad(weights)
        costs.addCost("state", crocoddyl.CostModelResidual(state, activation, residual), scale)
        if not terminal:
            torque = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, nu))
            costs.addCost("torque", torque, scale * float(self.work["torque_weight"]))

    def _add_cone(self, costs: Any, i: int, frame: int, scale: float) -> None:
        crocoddyl, state, nu = self.crocoddyl, self.state, self.actuation.nu
        cone = crocoddyl.FrictionCone(np.eye(3), float(self.work["friction"]), 4, False)
        inside = crocoddyl.ActivationModelQuadraticBarrier(
            crocoddyl.ActivationBounds(cone.lb, cone.ub)
        )
        residual = crocoddyl.ResidualModelContactFrictionCone(state, frame, cone, nu, True)
        costs.addCost(
            f"cone {i}", crocoddyl.CostModelResidual(state, inside, residual), scale * CONE
        )


if __name__ == "__main__":
    main()
