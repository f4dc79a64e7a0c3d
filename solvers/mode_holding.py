"""The step that holds the contact modes: along the ridges of the hard cost instead of into them.

Between mode changes the hard step is smooth, at a change it has a kink, and the best trajectory
often sits exactly on one: a foot that presses just enough not to slip. From there the plain exact
step overshoots the kink and the line search crawls. Here the step solves

    min   the quadratic model of the cost, with the exact f_x, f_u
    s.t.  every contact margin stays >= 0 to first order      (dynamics/margins.py)

by an active set: margins that the step would violate become strongly weighted equalities in the
Riccati recursion, those whose multiplier has the wrong sign are dropped. For a linear system and a
quadratic cost one such step is the optimum of its mode sequence.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cito.dynamics import _native
from cito.dynamics.gradients import Exact
from cito.dynamics.margins import Margins
from cito.dynamics.types import Array
from cito.problems.objective import CostExpansion
from cito.solvers.search import Neighbourhood, Policy, Trial

WEIGHT = 1e7  # cost of violating a margin by the scale of the margins, in units of the cost
VIOLATED = 1e-6  # margins below -VIOLATED * scale become active
RELEASED = 1e-11  # active margins above RELEASED * scale pull the wrong way
MAX_CHANGES = 12  # of the active set
STEP_SIZES: Array = np.exp2(-np.arange(0.0, 5.0))


def hold_modes(neighbourhood: Neighbourhood) -> Trial | None:
    """The best rollout along the mode-holding step; None without contact or without a policy."""
    margins = neighbourhood.linearization.margins()
    if margins is None or neighbourhood.iterate.gaps is not None:
        return None
    exact, expansion = neighbourhood.transition(Exact()), neighbourhood.expansion
    used = np.isfinite(margins.value)
    scale = max(float(np.abs(margins.value[used]).max(initial=0.0)), 1e-9)
    weight = WEIGHT * max(abs(neighbourhood.iterate.cost), 1e-12) / scale**2

    active, policy, expected = np.zeros_like(used), None, 0.0
    for _ in range(MAX_CHANGES):
        held = _with_equalities(expansion, margins, active, weight)
        policy = neighbourhood.backward(Exact(), 0.0, held)
        if policy is None:
            return None
        dX, dU = _native.linear_rollout(*exact, policy.feedforward, policy.feedback)
        expected = _model_change(expansion, dX, dU)
        predicted = _predict(margins, dX, dU)
        updated = (active & (predicted <= RELEASED * scale)) | (predicted < -VIOLATED * scale)
        if (updated == active).all():
            break
        active = updated
    assert policy is not None
    return _best_along(neighbourhood, policy, min(expected, 0.0))


def _with_equalities(
    expansion: CostExpansion, margins: Margins, active: NDArray[np.bool_], weight: float
) -> CostExpansion:
    """The expansion of  cost + weight/2 sum over active margins (m + m_x dx + m_u du)^2."""
    l_x, l_u, l_xx, l_uu = (a.copy() for a in expansion[:4])
    l_ux = np.zeros((*l_u.shape, l_x.shape[1])) if expansion.l_ux is None else expansion.l_ux.copy()
    m = np.where(active, margins.value, 0.0)
    W = np.where(active, weight, 0.0)[..., None]
    m_x, m_u = margins.state.swapaxes(1, 2), margins.control.swapaxes(1, 2)
    Wm, Wm_x, Wm_u = W * m[..., None], W * margins.state, W * margins.control
    l_x[:-1] += (m_x @ Wm)[..., 0]
    l_u += (m_u @ Wm)[..., 0]
    l_xx[:-1] += m_x @ Wm_x
    l_uu += m_u @ Wm_u
    l_ux += m_u @ Wm_x
    return CostExpansion(l_x, l_u, l_xx, l_uu, l_ux)


def _predict(margins: Margins, dX: Array, dU: Array) -> Array:
    change = np.einsum("kmi,ki->km", margins.state, dX[:-1])
    change += np.einsum("kmi,ki->km", margins.control, dU)
    predicted: Array = margins.value + change
    return predicted


def _model_change(expansion: CostExpansion, dX: Array, dU: Array) -> float:
    """l_x dx + l_u du + 1/2 (dx' l_xx dx + du' l_uu du) + du' l_ux dx, summed over the knots."""
    l_x, l_u, l_xx, l_uu, l_ux = expansion
    change = np.sum(l_x * dX) + np.sum(l_u * dU)
    change += 0.5 * np.einsum("ki,kij,kj->", dX, l_xx, dX)
    change += 0.5 * np.einsum("ki,kij,kj->", dU, l_uu, dU)
    if l_ux is not None:
        change += np.einsum("ki,kij,kj->", dU, l_ux, dX[:-1])
    return float(change)


def _best_along(neighbourhood: Neighbourhood, policy: Policy, expected: float) -> Trial:
    best, alpha = None, 0.0
    for candidate, size in zip(neighbourhood.forward(policy, STEP_SIZES), STEP_SIZES):
        if candidate and (best is None or candidate.merit < best.merit):
            best, alpha = candidate, float(size)
    return Trial(Exact(), 0.0, expected, best, alpha, None, holding=True)
