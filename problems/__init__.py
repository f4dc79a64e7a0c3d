"""What is wanted: optimal-control problems, costs, and the tasks that ship with cito."""

from cito.problems import (
    arm,
    base_pose,
    cart_pole,
    commanded,
    hop,
    legged_tasks,
    planar,
    push_box,
    push_box_pose,
    recover,
    soft_arch,
    spring,
)
from cito.problems.costs import ControlCost, ResidualCost, ResidualJacobians, StateCost
from cito.problems.problem import Problem
from cito.problems.registry import make, task, tasks

__all__ = [
    "arm",
    "base_pose",
    "commanded",
    "cart_pole",
    "ControlCost",
    "Problem",
    "ResidualCost",
    "ResidualJacobians",
    "StateCost",
    "hop",
    "legged_tasks",
    "make",
    "planar",
    "push_box",
    "push_box_pose",
    "recover",
    "soft_arch",
    "spring",
    "task",
    "tasks",
]
