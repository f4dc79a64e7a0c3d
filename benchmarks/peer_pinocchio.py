"""Pinocchio on the same states, called from Python: aba, its derivatives, a step by its ADMM.

    v_free = v + h aba(q, v, tau),    A = J M^-1 J' from the contacts' Cholesky decomposition,
    lambda by ADMM from  A lambda + J v_free + e_N phi/h,    v+ = v_free + M^-1 J' lambda

Contact frames are placed beforehand: to find the contacts is not part of its time.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from cito.benchmarks.standing import Standing
from cito.dynamics import _native
from cito.dynamics.tree import TreeSystem
from cito.dynamics.types import Array


class PinocchioPeer:
    """A Pinocchio model with the states and controls of `work`.

    Raises:
        ImportError: Pinocchio is not installed.
    """

    def __init__(self, work: Standing) -> None:
        self.pin: Any = import_module("pinocchio")
        self.work, tree = work, work.tree
        self.model, self._joints = pinocchio_model(self.pin, tree)
        self.data = self.model.createData()
        nq = tree.native.nq
        self.q, self.v = work.states[:, :nq].copy(), work.states[:, nq:].copy()
        self.tau = work.controls @ np.asarray(tree.actuation).T
        self._contacts = [self._contact_models(q) for q in self.q]
        self._gap_velocity = np.array([self._gaps(q) / work.dynamics.time_step for q in self.q])
        self._settings = self.pin.ADMMSolverSettings()
        self._solver = self.pin.ADMMConstraintSolver(3 * len(tree.contacts))
        self._result = self.pin.ADMMSolverResult()
        self._cholesky = self.pin.ConstraintCholeskyDecomposition(
            self.model, self.data, *self._contacts[0]
        )

    def aba(self) -> None:
        """Forward dynamics of every state, without contact."""
        for q, v, tau in zip(self.q, self.v, self.tau):
            self.pin.aba(self.model, self.data, q, v, tau)

    def aba_derivatives(self) -> None:
        """Derivatives of the forward dynamics of every state, without contact."""
        for q, v, tau in zip(self.q, self.v, self.tau):
            self.pin.computeABADerivatives(self.model, self.data, q, v, tau)

    def steps(self) -> None:
        """One step of every state."""
        for k in range(len(self.q)):
            self.step(k)

    def largest_difference(self) -> float:
        """Of its v+ to cito's, over all states [m/s, rad/s]."""
        ours = self.work.dynamics.step(self.work.states, self.work.controls).state
        theirs = np.array([self.step(k)[1] for k in range(len(self.q))])
        return float(np.abs(theirs - ours[:, self.q.shape[1] :]).max())

    def step(self, k: int) -> tuple[Array, Array]:
        """q+ (nq,), v+ (nv,) of state k."""
        pin, model, data = self.pin, self.model, self.data
        h, q, v = self.work.dynamics.time_step, self.q[k], self.v[k]
        models, datas = self._contacts[k]
        v_free = v + h * pin.aba(model, data, q, v, self.tau[k])
        pin.crba(model, data, q, pin.Convention.WORLD)
        for contact, scratch in zip(models, datas):
            contact.calc(model, data, scratch)
        self._cholesky.compute(model, data, models, datas, 0.0)
        J = pin.getConstraintsJacobian(model, data, models, datas)
        b = J @ v_free
        b[2::3] += self._gap_velocity[k]
        delassus = self._cholesky.getDelassusOperatorCholeskyExpression()
        self._solver.solve(delassus, b, models, datas, self._settings, self._result)
        impulse = np.zeros(len(b))
        self._result.retrievePrimalSolution(impulse)
        pin.cholesky.decompose(model, data)
        v_next = v_free + pin.cholesky.solve(model, data, J.T @ impulse)
        return pin.integrate(model, q, h * v_next), v_next

    def _contact_models(self, q: Array) -> tuple[Any, Any]:
        """Points of the feet against the ground below them, in the axes of the world."""
        pin, work = self.pin, self.work
        models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
        pin.forwardKinematics(self.model, self.data, q)
        for point, mu in zip(work.tree.contacts, work.dynamics.friction):
            joint = self._joints[point.body]
            placement = self.data.oMi[joint]
            touching = placement.act(point.position) - np.array([0, 0, point.radius])
            world = pin.SE3(np.eye(3), touching)
            contact = pin.PointContactConstraintModel(
                self.model, 0, world, joint, placement.actInv(world)
            )
            contact.setFriction(float(mu))
            models.append(pin.ConstraintModel(contact))
            datas.append(models[-1].createData())
        return models, datas

    def _gaps(self, q: Array) -> Array:
        native = self.work.tree.native
        return np.asarray(_native.system_terms(native, None, q, np.zeros(native.nv))[4])


def pinocchio_model(pin: Any, tree: TreeSystem) -> tuple[Any, dict[str, int]]:
    """The tree as a `pinocchio.Model`, and the joint of each body."""
    model = pin.Model()
    joints: dict[str, int] = {}
    for body in tree.bodies:
        if body.joint == "free":
            joint = pin.JointModelFreeFlyer()
        elif body.joint == "revolute":
            joint = pin.JointModelRevoluteUnaligned(body.axis)
        else:
            joint = pin.JointModelPrismaticUnaligned(body.axis)
        parent = joints[body.parent] if body.parent is not None else 0
        index = model.addJoint(parent, joint, pin.SE3(body.rotation, body.position), body.name)
        inertia = pin.Inertia(body.mass, body.com, body.inertia)
        model.appendBodyToJoint(index, inertia, pin.SE3.Identity())
        joints[body.name] = index
    model.armature = np.concatenate(
        [[0.0] * 6 if b.joint == "free" else [b.armature] for b in tree.bodies]
    )
    model.gravity.linear = np.array([0, 0, -tree.gravity])
    return model, joints
