"""Contact-implicit trajectory optimization: hard contact in the rollout, a smooth backward pass.

    problem = cito.make("traverse", friction=0.5)
    solution = cito.solve(problem)
    print(solution.cost, solution.status.value)

What is named here is imported when it is first used, so that `import cito` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cito.api import make, solve, tasks
    from cito.dynamics.base import Dynamics, Linearization, Rollout, Transition
    from cito.dynamics.candidates import ContactPair, ContactPoint
    from cito.dynamics.check import GradientReport, check_gradients
    from cito.dynamics.contact_dynamics import ContactDynamics
    from cito.dynamics.conversions import (
        from_mujoco,
        from_pinocchio,
        to_mujoco,
        to_pinocchio,
    )
    from cito.dynamics.gradients import (
        Bundled,
        Exact,
        FullCone,
        Gradient,
        Randomized,
        Signorini,
    )
    from cito.dynamics.joints import Body, PositionDrive
    from cito.dynamics.linear import LinearSystem, point_mass
    from cito.dynamics.parameters import Parameter
    from cito.dynamics.robot import Robot
    from cito.dynamics.shapes import Box, Capsule, Plane, Sphere
    from cito.dynamics.symbolic import Contact, SymbolicSystem
    from cito.dynamics.terrain import HeightField
    from cito.dynamics.tree import TreeSystem
    from cito.mpc import MPC
    from cito.plan import Hold, Plan
    from cito.problems.constraints import Constraint
    from cito.problems.costs import ControlCost, ResidualCost, ResidualJacobians, StateCost
    from cito.problems.problem import Problem
    from cito.problems.registry import task
    from cito.problems.robot_costs import (
        AirTime,
        BasePose,
        BaseVelocity,
        CenterOfMass,
        FootSlip,
        JointVelocity,
        PointPosition,
        Posture,
        SoftLimit,
        Torque,
        TorqueSmoothness,
    )
    from cito.problems.robots import load_robot
    from cito.realtime.run_file import Run, load_run
    from cito.results import load
    from cito.solvers.adaptive import Adaptive
    from cito.solvers.augmented_lagrangian import AugmentedLagrangian, solve_constrained
    from cito.solvers.miqp import reference
    from cito.solvers.portfolio import Portfolio
    from cito.solvers.solution import Solution, Status

__version__ = "0.1.0"

__all__ = [
    "Adaptive",
    "AirTime",
    "AugmentedLagrangian",
    "BasePose",
    "BaseVelocity",
    "Body",
    "Box",
    "Bundled",
    "Capsule",
    "CenterOfMass",
    "Constraint",
    "Contact",
    "ContactDynamics",
    "ContactPair",
    "ContactPoint",
    "ControlCost",
    "Dynamics",
    "Exact",
    "FootSlip",
    "FullCone",
    "Gradient",
    "GradientReport",
    "HeightField",
    "Hold",
    "JointVelocity",
    "Linearization",
    "LinearSystem",
    "MPC",
    "Parameter",
    "Plan",
    "Plane",
    "PointPosition",
    "Portfolio",
    "PositionDrive",
    "Posture",
    "Problem",
    "Randomized",
    "ResidualCost",
    "ResidualJacobians",
    "Robot",
    "Rollout",
    "Run",
    "Signorini",
    "SoftLimit",
    "Solution",
    "Sphere",
    "StateCost",
    "Status",
    "SymbolicSystem",
    "Torque",
    "TorqueSmoothness",
    "Transition",
    "TreeSystem",
    "check_gradients",
    "from_mujoco",
    "from_pinocchio",
    "load",
    "load_robot",
    "load_run",
    "make",
    "point_mass",
    "reference",
    "solve",
    "solve_constrained",
    "task",
    "tasks",
    "to_mujoco",
    "to_pinocchio",
]

_NAMES = {
    "cito.api": "make solve tasks",
    "cito.dynamics.base": "Dynamics Linearization Rollout Transition",
    "cito.dynamics.candidates": "ContactPair ContactPoint",
    "cito.dynamics.check": "GradientReport check_gradients",
    "cito.dynamics.contact_dynamics": "ContactDynamics",
    "cito.dynamics.conversions": "from_mujoco from_pinocchio to_mujoco to_pinocchio",
    "cito.dynamics.gradients": "Bundled Exact FullCone Gradient Randomized Signorini",
    "cito.dynamics.joints": "Body PositionDrive",
    "cito.dynamics.linear": "LinearSystem point_mass",
    "cito.dynamics.parameters": "Parameter",
    "cito.dynamics.robot": "Robot",
    "cito.dynamics.shapes": "Box Capsule Plane Sphere",
    "cito.dynamics.symbolic": "Contact SymbolicSystem",
    "cito.dynamics.terrain": "HeightField",
    "cito.dynamics.tree": "TreeSystem",
    "cito.mpc": "MPC",
    "cito.plan": "Hold Plan",
    "cito.problems.constraints": "Constraint",
    "cito.problems.costs": "ControlCost ResidualCost ResidualJacobians StateCost",
    "cito.problems.problem": "Problem",
    "cito.problems.registry": "task",
    "cito.problems.robot_costs": "AirTime BasePose BaseVelocity CenterOfMass FootSlip "
    "JointVelocity PointPosition Posture SoftLimit Torque TorqueSmoothness",
    "cito.problems.robots": "load_robot",
    "cito.realtime.run_file": "Run load_run",
    "cito.results": "load",
    "cito.solvers.adaptive": "Adaptive",
    "cito.solvers.portfolio": "Portfolio",
    "cito.solvers.augmented_lagrangian": "AugmentedLagrangian solve_constrained",
    "cito.solvers.miqp": "reference",
    "cito.solvers.solution": "Solution Status",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cito' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value  # found without this function from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
