"""Impulses as decision variables under an augmented Lagrangian."""

from __future__ import annotations

import pytest

from cito import api
from cito.solvers.complementarity_augmented import solve_augmented_contact
from cito.solvers.solution import Status

OPTIMUM = {"lift-off": 5.907067651056, "traverse": 27.679550591750}


@pytest.mark.parametrize("task", list(OPTIMUM))
def test_it_finds_the_optimum_and_the_hard_rollout_follows(task: str) -> None:
    solution = solve_augmented_contact(api.make(task))
    assert solution.status is Status.CONVERGED and solution.solver == "augmented-lagrangian"
    assert OPTIMUM[task] * (1 - 1e-9) <= solution.cost <= OPTIMUM[task] * (1 + 1e-4)
    assert solution.contact_residual < 1e-9


def test_other_systems_are_refused() -> None:
    with pytest.raises(ValueError, match="LinearSystem"):
        solve_augmented_contact(api.make("hop"))
