"""One script for each figure; each draws from a saved run.

A figure module has `settings(quick)`, `compute(path, quick)`, `draw(path, out)` and
`make(out, quick, fresh)`. Modules are imported only when asked for: they own matplotlib.
"""

from __future__ import annotations

import importlib
from pathlib import Path

FIGURES: dict[str, str] = {
    **{str(n): f"cito.figures.figure_{n}" for n in (1, 2, 3, 4, 6, 9, 10, 11, 12, 13, 14)},
    "arms": "cito.figures.arms",
    "robots": "cito.figures.robots",
    "scaling": "cito.figures.scaling",
    "adjoint": "cito.figures.adjoint",
    "soft-body": "cito.figures.soft_body",
    "lagrangian": "cito.figures.lagrangian",
    "rl-gradients": "cito.figures.rl_gradients",
}
# These show their own progress:
WITH_PROGRESS = (
    *(f"cito.figures.figure_{n}" for n in (6, 9, 10, 12, 14)),
    "cito.figures.rl_gradients",
)
SUMMARIES = {
    "1": "three planar tasks under several gradients: paths, impulses, convergence",
    "2": "the central path of one planar contact in each of its regimes",
    "3": "sensitivities of a contact as its free velocity sweeps the modes",
    "4": "what the offset delta does to the relaxed normal law",
    "6": "policies learned through contact: training, costs and falls, by gradient",
    "9": "back-propagation through time beside proximal policy optimization, while they learn",
    "10": "what the trainings of figure 9 ended with, over the number of robots",
    "11": "Newton's method on the relaxed laws of a training run, and from the raw start",
    "12": "a quadruped reaches base poses: mean objective in closed loop, by gradient",
    "13": "a quadruped that leans: cost over iterations by gradient and by acceptance rule",
    "14": "what pulls a standing quadruped survives, by gradient, force and direction",
    "arms": "arms that throw and hit a ball; motions and parameters by gradient and by CMA-ES",
    "robots": "legged robots jump, leap and stand up: snapshots, forces on the feet, contact modes",
    "scaling": "time of a step and its Jacobians over the size of the robot, beside MuJoCo",
    "adjoint": "memory and time of the gradient of a motion over its length, beside autodiff",
    "soft-body": "shapes that soft bodies take by a learned actuation field, on two meshes",
    "lagrangian": "learned models of dynamics: errors, how long they hold, swing-ups by them",
    "rl-gradients": "reinforcement learning with the simulator's derivatives and without",
}


def make(name: str, out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure called `name` into the folder `out`, from its saved run if there is one.

    Args:
        name: a key of `FIGURES`.
        out: folder of the picture and of the saved run; made if it is not there.
        quick: a coarser run.
        fresh: run again although a run with these settings is saved.

    Returns:
        The files: the picture first, then the saved run.

    Raises:
        ValueError: there is no such figure.
    """
    if name not in FIGURES:
        raise ValueError(f"`name` must be one of {', '.join(FIGURES)}, got {name!r}")
    files: list[Path] = importlib.import_module(FIGURES[name]).make(out, quick, fresh)
    return files
