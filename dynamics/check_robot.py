"""Derivatives of a robot's step in contact modes that are sought out, not met by chance.

    exact                   whole: f_x, f_u against the hard step
    signorini, full-cone    whole, against the relaxed step with all terms at the relaxed point;
                            and the production form, link by link (`check_production`)

Contacts that brace each other (two or more on one rigid foot) leave their impulses undetermined
where they carry. Of these only the full cone is a smooth map; the other two are not tested there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cito.dynamics.check import EPS, RELATIVE_TOLERANCE, transition_error
from cito.dynamics.check_production import FrozenStep, check_production, frozen_step
from cito.dynamics.check_states import State, states_in_mode
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Exact, FullCone, Gradient, Signorini
from cito.dynamics.types import Array, as_array, whole_number


class ModeCheck(NamedTuple):
    """One gradient in one mode, the worst over the states that were tried.

    patterns: modes of the contacts that were met, a letter each: s, l, c as in `GradientCheck`.
    whole: largest |analytic - finite difference|, relative as of `relative_error`.
    production: the same of the production form, link by link; None for `exact`, which has one form.
    magnitude: largest entry beyond those of a free drift; 0 would mean that the check said nothing.
    contact: largest entry of the contact's part of f_x, f_u in production; None for `exact`.
    """

    mode: str
    gradient: str
    states: int
    patterns: tuple[str, ...]
    whole: float
    production: float | None
    magnitude: float
    contact: float | None

    @property
    def error(self) -> float:
        """The larger of the two forms' errors."""
        return max(self.whole, self.production or 0.0)


@dataclass(frozen=True)
class RobotReport:
    """Rows of `check_modes`.

    missing: modes that no state led to.
    braced: modes of which a state has contacts that brace each other.
    """

    rows: tuple[ModeCheck, ...]
    missing: tuple[str, ...]
    braced: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether anything was checked and every error is within 1e-6."""
        return bool(self.rows) and all(row.error <= RELATIVE_TOLERANCE for row in self.rows)

    @property
    def error(self) -> float:
        """The largest error of all rows."""
        return max((row.error for row in self.rows), default=np.inf)

    def errors(self) -> dict[str, float]:
        """The largest error of each gradient over the modes."""
        names = dict.fromkeys(row.gradient for row in self.rows)
        return {n: max(row.error for row in self.rows if row.gradient == n) for n in names}


def check_modes(
    dynamics: ContactDynamics,
    stance: Array,
    *,
    feet: Sequence[int] | None = None,
    rho: float = 0.1,
    states: int = 2,
    seed: int = 0,
    modes: Sequence[str] | None = None,
) -> RobotReport:
    """Test f_x, f_u of `exact`, `signorini` and `full-cone` near a stance, mode by mode.

    Args:
        dynamics: of a robot or another tree.
        stance: configuration in which the contacts touch, (nq,).
        feet: the contacts whose mode is meant; all but the joint limits by default.
        rho: relaxation of the relaxed gradients [J].
        states: how many in each mode.
        seed: of the states.
        modes: which of `MODES`; by default all that the contacts can be in. Without contacts
            there is one, "free".
    """
    states = whole_number("states", states, 1)
    nv = dynamics.ndx // 2
    start = np.append(as_array("stance", stance, (dynamics.nx - nv,)), np.zeros(nv))
    rows: list[ModeCheck] = []
    missing, braced = [], []
    dims = dynamics.system.contact_dims
    feet = [i for i, d in enumerate(dims) if d > 1] if feet is None else list(feet)
    for mode in _modes(dims, feet) if modes is None else modes:
        rng = np.random.default_rng(seed)
        found = list(states_in_mode(dynamics, start, mode, feet, states, rng))
        frozen = [frozen_step(dynamics, state.x, state.u) for state in found]
        if not found:
            missing.append(mode)
        if any(state.braced for state in found):
            braced.append(mode)
        for gradient in gradients(rho):
            tested = [
                (state, links)
                for state, links in zip(found, frozen)
                if isinstance(gradient, FullCone) or not state.braced
            ]
            if tested:
                rows.append(_check(dynamics, mode, gradient, tested))
    return RobotReport(tuple(rows), tuple(missing), tuple(braced))


def _modes(dims: Sequence[int], feet: Sequence[int]) -> list[str]:
    """What these contacts can do."""
    modes = ["stance", "swing", "slide"] if feet else []
    modes += ["mixed"] if len(feet) > 1 else []
    modes += ["limit"] if 1 in dims else []
    return modes or ["free"]


def gradients(rho: float) -> list[Gradient]:
    """Those that are checked; the smoothing of the full cone is fixed, which it holds constant."""
    return [Exact(), Signorini(rho), FullCone(rho, eps=EPS)]


def _check(
    dynamics: ContactDynamics,
    mode: str,
    gradient: Gradient,
    found: Sequence[tuple[State, FrozenStep]],
) -> ModeCheck:
    whole, production = [], []
    for (x, u, *_), frozen in found:
        whole.append(transition_error(dynamics, x, u, gradient))
        if not isinstance(gradient, Exact):
            production.append(check_production(dynamics, x, u, gradient, frozen))
    return ModeCheck(
        mode,
        gradient.name,
        len(found),
        tuple(dict.fromkeys(state.pattern for state, _ in found)),
        max(error for error, _ in whole),
        max((error for error, _ in production), default=None),
        max(size for _, size in whole),
        max((size for _, size in production), default=None),
    )
