"""How good a learned model is: torques and their parts, energy, and how long its motions hold.

error    mean of |tau - tau^|^2 over the variance of tau, on samples that were not learned
parts    the same of inertial, Coriolis and gravity forces against those of the simulator, each
         over its own variance
drift    largest change of the true energy along the model's own motion without forces in its
         first second, over the energy that turns the arm upright
time     valid prediction time [s]: until the squared error of the position reaches 1e-2, under
         the forces of the true motion; integrated by Runge and Kutta's rule of fourth order
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from cito.dynamics.learned.model import Model
from cito.dynamics.learned.motions import Motions
from cito.dynamics.learned.network import torch
from cito.dynamics.tree import TreeSystem
from cito.dynamics.types import Array
from cito.problems.handwriting import write
from cito.problems.model_data import SYSTEMS, solved, true_energy, true_parts, truth

ARM = SYSTEMS["two-link-arm"]
VALID = 1e-2  # squared error of the position [rad^2]
SUBSTEPS = 2  # in a time step; over three seconds the square of their own error stays below 2e-4
RELEASE_STEP, RELEASE_TIME = 0.02, 3.0  # of motions without forces [s]
DRIFT_TIME = 1.0  # [s]

Torque = Callable[[float], Array]  # time -> (trials, n)


class Trial(NamedTuple):
    """True motions, integrated side by side: times (N+1,), q, v (N+1, trials, n), torques."""

    times: Array
    q: Array
    v: Array
    torque: Torque


def torque_errors(model: Model, tree: TreeSystem, unseen: Motions) -> dict[str, float]:
    """torque_error, acceleration_error, and inertial_, coriolis_ and gravity_error."""
    tau = model.inverse(unseen.q, unseen.v, unseen.a)
    a = model.forward(unseen.q, unseen.v, unseen.tau)
    errors = {
        "torque_error": relative(tau, unseen.tau),
        "acceleration_error": relative(a, unseen.a),
        "unsolved": float(np.isnan(tau).any(axis=1).mean()),
    }
    found = model.parts(unseen.q, unseen.v, unseen.a)
    for name, part in true_parts(tree, unseen.q, unseen.v, unseen.a).items():
        errors[f"{name}_error"] = relative(found[name], part)
    return errors


def relative(found: Array, true: Array) -> float:
    """Mean squared error over the variance, of joints that have any; samples with NaN left out."""
    spread = true.std(axis=0)
    spread = np.where(spread > 1e-9 * spread.max(), spread, spread.max())
    with np.errstate(over="ignore"):
        squares = ((found - true) / spread) ** 2
    sound = np.isfinite(squares).all(axis=1)
    return float(squares[sound].mean()) if sound.any() else float("inf")


@cache
def released(count: int, seed: int, seconds: float = RELEASE_TIME) -> Trial:
    """Motions of the two-link arm without forces, from rest, not further up than level."""
    tree, rng = ARM.tree, np.random.default_rng(seed)
    start = rng.uniform(-np.pi / 2, np.pi / 2, (count, 2))

    def nothing(t: float) -> Array:
        return np.zeros((count, 2))

    def rate(q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        M, c, _ = truth(tree, q, v)
        return v, solved(M, tau - c)

    times = np.arange(0.0, seconds + 1e-9, RELEASE_STEP)
    q, v = integrate(rate, start, 0 * start, nothing, times)
    return Trial(times, q, v, nothing)


def written(characters: str) -> list[Trial]:
    """A trial of each character."""
    trials = []
    for writing in map(write, characters):

        def torque(t: float, writing: object = writing) -> Array:
            return writing.torque(np.array([t]))  # type: ignore[attr-defined, no-any-return]

        motions = writing.motions
        trials.append(Trial(writing.times, motions.q[:, None], motions.v[:, None], torque))
    return trials


class Forecast(NamedTuple):
    """valid_times (trials,) [s], and the drift of the energy [-] where it was asked for."""

    valid_times: Array
    energy_drift: float


def forecast(model: Model, trial: Trial, tree: TreeSystem | None = None) -> Forecast:
    """How long the model's motions hold, and with the true `tree` how their energy drifts."""
    first = round(DRIFT_TIME / (trial.times[1] - trial.times[0])) if tree is not None else 0
    q, v = predicted(model, trial, first)
    errors = ((q - trial.q[: len(q)]) ** 2).sum(axis=2)
    wrong = ~(errors < VALID)  # NaN is wrong, too
    lost = np.where(wrong.any(axis=0), wrong.argmax(axis=0), len(trial.times) - 1)
    drift = np.nan if tree is None else energy_drift(tree, q[: first + 1], v[: first + 1])
    return Forecast(trial.times[lost], drift)


def energy_drift(tree: TreeSystem, q: Array, v: Array) -> float:
    """Largest change of the true energy along motions (m, trials, n), over that of standing up."""
    if not (np.isfinite(q).all() and np.isfinite(v).all()):
        return float("inf")
    m, trials, n = q.shape
    E = true_energy(tree, q.reshape(-1, n), v.reshape(-1, n)).reshape(m, trials)
    upright = true_energy(tree, np.array([[np.pi, 0.0]]), np.zeros((1, 2)))[0]
    return float(np.abs(E - E[0]).max() / upright)


def predicted(model: Model, trial: Trial, least: int = 0) -> tuple[Array, Array]:
    """The model's own motions, q and v (m, trials, n): `least` steps, then while one is valid."""
    tensor = model.tensor

    def rate(q: Array, s: Array, tau: Array) -> tuple[Array, Array]:
        out = model.rate(tensor(q), tensor(s), tensor(tau))
        return out.q.numpy(), out.s.numpy()

    def lost(k: int, q: Array) -> bool:
        return k >= least and not (((q - trial.q[k]) ** 2).sum(axis=1) < VALID).any()

    with torch.inference_mode():
        s = model.conjugate(tensor(trial.q[0]), tensor(trial.v[0])).numpy()
        q, s = integrate(rate, trial.q[0], s, trial.torque, trial.times, lost)
        zero = np.zeros_like(q[0])
        v = [rate(q_k, s_k, zero)[0] for q_k, s_k in zip(q, s)]
    return q, np.array(v)


Rate = Callable[[Array, Array, Array], tuple[Array, Array]]


def integrate(
    rate: Rate,
    q: Array,
    s: Array,
    torque: Torque,
    times: Array,
    stop: Callable[[int, Array], bool] = lambda k, q: False,
) -> tuple[Array, Array]:
    """Runge-Kutta of fourth order from q, s (trials, n): states at `times`, until `stop(k, q)`."""
    states = [(q, s)]
    h = (times[1] - times[0]) / SUBSTEPS
    for k, t in enumerate(times[:-1]):
        for i in range(SUBSTEPS):
            begin = t + i * h
            taus = torque(begin), torque(begin + h / 2), torque(begin + h)
            k1 = rate(q, s, taus[0])
            k2 = rate(q + h / 2 * k1[0], s + h / 2 * k1[1], taus[1])
            k3 = rate(q + h / 2 * k2[0], s + h / 2 * k2[1], taus[1])
            k4 = rate(q + h * k3[0], s + h * k3[1], taus[2])
            q, s = (
                x + h / 6 * (k1[j] + 2 * k2[j] + 2 * k3[j] + k4[j]) for j, x in enumerate((q, s))
            )
        states.append((q, s))
        if stop(k + 1, q):
            break
    return np.array([q for q, _ in states]), np.array([s for _, s in states])
