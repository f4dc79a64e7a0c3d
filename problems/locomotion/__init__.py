"""Legged locomotion as a task to be learned: environments, observations, costs, episodes."""

from cito.problems.locomotion.environment import Advance, LocomotionEnvironment, Outcome
from cito.problems.locomotion.finite import NotFinite
from cito.problems.locomotion.task import (
    Gait,
    LocomotionTask,
    Randomization,
    Reset,
    locomotion_task,
)

__all__ = [
    "Advance",
    "Gait",
    "LocomotionEnvironment",
    "LocomotionTask",
    "NotFinite",
    "Outcome",
    "Randomization",
    "Reset",
    "locomotion_task",
]
