"""How policies are learned from the gradients of the simulator."""

from cito.solvers.learning.bptt import BPTT, BPTTSettings
from cito.solvers.learning.policy import Policy

__all__ = ["BPTT", "BPTTSettings", "Policy"]
