"""How solutions are found: DDP, the mixed-integer reference, the complementarity NLP."""

from cito.solvers.adaptive import Adaptive
from cito.solvers.ddp import solve_ddp
from cito.solvers.descent import DDPSettings
from cito.solvers.portfolio import Portfolio
from cito.solvers.solution import Solution, Status

__all__ = ["Adaptive", "DDPSettings", "Portfolio", "Solution", "Status", "solve_ddp"]
