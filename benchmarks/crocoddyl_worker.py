"""Times Crocoddyl's contact node on the states that `cito bench peers` sends, in its own Python.

    python crocoddyl_worker.py WORK.npz

Answers each line on standard input with one line of JSON: first {"version": ...}, then, for every
line, {"seconds": processor time of calc and calcDiff over all states}. Needs numpy, crocoddyl and
the pinocchio that crocoddyl was built with, and nothing of cito.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any

import numpy as np


def main() -> None:
    """Build the node once, then time it whenever a line comes in."""
    pin: Any = import_module("pinocchio")
    crocoddyl: Any = import_module("crocoddyl")
    with np.load(sys.argv[1], allow_pickle=False) as file:
        work = dict(file)
    node = contact_node(pin, crocoddyl, work)
    data = node.createData()
    rows = list(zip(work["states"], work["controls"]))

    def lap() -> float:
        start = time.thread_time()
        for x, u in rows:
            node.calc(data, x, u)
            node.calcDiff(data, x, u)
        return time.thread_time() - start

    print(json.dumps({"version": str(crocoddyl.__version__)}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"seconds": lap()}), flush=True)


def robot_model(pin: Any, work: dict[str, Any]) -> Any:
    """The kinematic tree of the tables, joint i being body i - 1."""
    model = pin.Model()
    for i, kind in enumerate(work["joint"]):
        axis, R, p = work["axis"][i], work["rotation"][i], work["position"][i]
        joint = {
            "free": pin.JointModelFreeFlyer,
            "revolute": lambda axis=axis: pin.JointModelRevoluteUnaligned(axis),
            "prismatic": lambda axis=axis: pin.JointModelPrismaticUnaligned(axis),
        }[str(kind)]()
        name = f"joint {i}" if i else "root_joint"  # by this name Crocoddyl knows what has no motor
        index = model.addJoint(int(work["parent"][i]) + 1, joint, pin.SE3(R, p), name)
        inertia = pin.Inertia(float(work["mass"][i]), work["com"][i], work["inertia"][i])
        model.appendBodyToJoint(index, inertia, pin.SE3.Identity())
    model.armature = work["armature"]
    model.gravity.linear = np.array([0, 0, -float(work["gravity"])])
    return model


def contact_node(pin: Any, crocoddyl: Any, work: dict[str, Any]) -> Any:
    """Euler steps of forward dynamics with every contact point held, without costs."""
    model = robot_model(pin, work)
    state = crocoddyl.StateMultibody(model)
    actuation = crocoddyl.ActuationModelFloatingBase(state)
    contacts = crocoddyl.ContactModelMultiple(state, actuation.nu)
    for i, (body, point) in enumerate(zip(work["contact_body"], work["contact_point"])):
        placement = pin.SE3(np.eye(3), point)
        frame = model.addFrame(
            pin.Frame(f"contact {i}", int(body) + 1, 0, placement, pin.FrameType.OP_FRAME)
        )
        contact = crocoddyl.ContactModel3D(
            state, frame, np.zeros(3), pin.LOCAL_WORLD_ALIGNED, actuation.nu, np.zeros(2)
        )
        contacts.addContact(f"contact {i}", contact)
    costs = crocoddyl.CostModelSum(state, actuation.nu)
    forward = crocoddyl.DifferentialActionModelContactFwdDynamics(
        state, actuation, contacts, costs, 0.0, True
    )
    return crocoddyl.IntegratedActionModelEuler(forward, float(work["time_step"]))


if __name__ == "__main__":
    main()
