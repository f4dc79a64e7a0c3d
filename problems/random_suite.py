"""The random suite: point-mass problems drawn around the three planar reference tasks.

With `numpy.random.default_rng(seed)`, in this order (U: uniform):

    gravity     9.81 m/s^2 with probability 0.8, else 0
    friction    U(0.2, 1.2)
    time step   0.03, 0.05 or 0.08 s
    horizon     15 .. 30 steps
    start       p_z = 0 with probability 0.6, else U(0.05, 0.4) m; v_x U(-1.5, 1.5) m/s; rest 0
    target      p_x U(-1.5, 1.5) m; p_z U(0.1, 0.6) m with probability 0.6, else 0; at rest
    weights     Q, R, Q_f of a task drawn from the three, each entry times 5^U(-1, 1)

Mass 1 kg, no control limits, every solve from zero control. Seeds 0 .. 99 are for tuning, seeds
1000 .. 1099 for reporting. Optima belong to one generator, which `generator_hash` identifies.
"""

from __future__ import annotations

import hashlib

import numpy as np

from cito.dynamics.types import Array, whole_number
from cito.problems.planar import friction_braking, lift_off, point_mass_problem, traverse
from cito.problems.problem import Problem
from cito.problems.registry import Task

TUNING_SEEDS = range(100)
REPORT_SEEDS = range(1000, 1100)


def random_problem(seed: int) -> Problem:
    """The problem of `seed`.

    Raises:
        ValueError: `seed` is no whole number >= 0.
    """
    seed = whole_number("seed", seed, 0)
    rng = np.random.default_rng(seed)
    gravity = 9.81 if rng.random() < 0.8 else 0.0
    friction = float(rng.uniform(0.2, 1.2))
    time_step = float(rng.choice([0.03, 0.05, 0.08]))
    horizon = int(rng.integers(15, 31))
    start_height = float(rng.uniform(0.05, 0.4)) if rng.random() >= 0.6 else 0.0
    speed = float(rng.uniform(-1.5, 1.5))
    target = float(rng.uniform(-1.5, 1.5))
    target_height = float(rng.uniform(0.1, 0.6)) if rng.random() < 0.6 else 0.0
    model = (lift_off, traverse, friction_braking)[int(rng.integers(3))]
    defaults = Task("", "", model).parameters

    def scattered(name: str) -> Array:
        weight = np.array(defaults[name])
        return weight * 5.0 ** rng.uniform(-1, 1, len(weight))

    return point_mass_problem(
        f"random-{seed}",
        friction=friction,
        time_step=time_step,
        horizon=horizon,
        mass=1.0,
        gravity=gravity,
        start=(0.0, start_height, speed, 0.0),
        target=(target, target_height, 0.0, 0.0),
        state_weight=scattered("state_weight"),
        control_weight=scattered("control_weight"),
        terminal_weight=scattered("terminal_weight"),
    )


def generator_hash() -> str:
    """Identifies what `random_problem` draws: a digest of the first twenty problems' numbers."""
    digest = hashlib.sha256()
    for seed in (*TUNING_SEEDS[:10], *REPORT_SEEDS[:10]):
        for name, value in sorted(random_problem(seed).parameters.items()):
            # Nine digits: the last ones may differ between mathematical libraries.
            numbers = ",".join(f"{number:.9e}" for number in np.ravel(value))
            digest.update(f"{name}={numbers};".encode())
    return digest.hexdigest()[:16]
