"""Actuated soft bodies at rest: meshes, the shape-targeting energy, equilibria, sensitivities.

For a pose of a bar and what a loss of it says of the actuation:

    mesh = block((1.0, 0.2), (12, 2)).quadratic()
    body = SoftBody(mesh, held_end(mesh).vertices)
    pose = solve_equilibrium(body, A)          # A (m, d, d): the stretch wanted at each point
    g_A, g_held = equilibrium_vjp(body, A, pose.positions, dL_dx)[:2]
"""

from cito.dynamics.soft.adjoint import Sensitivity, equilibrium_vjp
from cito.dynamics.soft.body import SoftBody
from cito.dynamics.soft.equilibrium import Equilibrium, solve_equilibrium
from cito.dynamics.soft.mesh import Mesh
from cito.dynamics.soft.shapes import Bones, block, face_patch, held_end

__all__ = [
    "Bones",
    "Equilibrium",
    "Mesh",
    "Sensitivity",
    "SoftBody",
    "block",
    "equilibrium_vjp",
    "face_patch",
    "held_end",
    "solve_equilibrium",
]
