"""The derivative of hard steps: frozen impulses first, the contact gradient's part added late.

dv+ = dv+ at frozen impulse + M^-1 J' (d lambda/d b) dsigma at frozen impulse
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cito.dynamics import _native
from cito.dynamics.base import Linearization, Rollout, Transition
from cito.dynamics.gradients import Bundled, Exact, Gradient
from cito.dynamics.margins import Margins, contact_margins
from cito.dynamics.types import Array, IntArray


class ContactLinearization(Linearization):
    """Steps differentiated at frozen impulse; `with_gradient` adds the contact's part."""

    def __init__(
        self,
        native: _native.Linearization,
        rollout: Rollout,
        friction: Array,
        dims: tuple[int, ...],
        threads: int,
    ) -> None:
        self._native, self._rollout = native, rollout
        self._friction, self._dims, self._threads = friction, dims, threads
        self.unsolved = 0
        self.newton_iterations: IntArray = np.zeros(0, dtype=np.int32)

    @property
    def free_velocity(self) -> Array:
        """See `Linearization.free_velocity`."""
        b: Array = self._native.free_velocity()
        return b

    def margins(self) -> Margins | None:
        """See `Linearization.margins`."""
        if not self._dims:
            return None
        return contact_margins(
            *contact_arrays(self._rollout),
            self._native.normal_compliance(),
            self._friction,
            self._dims,
            self._native.contact_response(Exact().native()),
        )

    def seen_contacts(self, gradient: Gradient) -> NDArray[np.bool_]:
        """Which contacts (N, nc) `gradient` sees; a relaxed law leaves out limits of joints whose
        compliance there is more than 100 times that of the joint, and guards at 10 times."""
        seen: NDArray[np.bool_] = self._native.seen_contacts(gradient.native())
        return seen

    def integration(self, gradient: Gradient) -> _native.Linearization | None:
        """See `Linearization.integration`; a bundled gradient is a mean over other states."""
        return None if isinstance(gradient, Bundled) else self._native

    def with_gradient(self, gradient: Gradient) -> Transition:
        """See `Linearization.with_gradient`; also counts relaxed solves that did not converge."""
        f_x, f_u, status, iterations = self._native.with_gradient(gradient.native(), self._threads)
        self.unsolved = int(np.count_nonzero(status))
        self.newton_iterations = iterations
        return Transition(f_x, f_u)


def contact_arrays(rollout: Rollout) -> tuple[Array, Array, IntArray]:
    """Impulses, velocities and modes with all leading axes merged into one row per step."""
    impulses, velocities, modes = rollout.impulses, rollout.velocities, rollout.modes
    K = int(np.prod(modes.shape[:-1]))
    return (
        impulses.reshape(K, impulses.shape[-1]),
        velocities.reshape(K, velocities.shape[-1]),
        modes.reshape(K, modes.shape[-1]),
    )
