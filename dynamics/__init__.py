"""One step of the world and its derivative: contact law, systems, rollouts, gradients."""

from cito.dynamics.base import Dynamics, Linearization, Rollout, Transition
from cito.dynamics.contact_dynamics import ContactDynamics, Step
from cito.dynamics.contact_linearization import ContactLinearization
from cito.dynamics.gradients import (
    GRADIENTS,
    Bundled,
    Exact,
    FullCone,
    Gradient,
    Randomized,
    Signorini,
)
from cito.dynamics.linear import LinearSystem, point_mass
from cito.dynamics.parameters import Parameter

__all__ = [
    "GRADIENTS",
    "Bundled",
    "ContactDynamics",
    "ContactLinearization",
    "Dynamics",
    "Exact",
    "FullCone",
    "Gradient",
    "LinearSystem",
    "Linearization",
    "Parameter",
    "Randomized",
    "Rollout",
    "Signorini",
    "Step",
    "Transition",
    "point_mass",
]
