"""How solutions are found: DDP, the mixed-integer reference, the complementarity NLP."""

from cito.solvers.adaptive import Adaptive
from cito.solvers.ddp import DDPSettings, solve_ddp
from cito.solvers.solution import Solution, Status

__all__ = ["Adaptive", "DDPSettings", "Solution", "Status", "solve_ddp"]
