"""The comparison of gradients: errors and variances mean what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cito import api
from cito.benchmarks import gradients
from cito.dynamics.gradients import Exact, FullCone, Randomized


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gradients, "PLANAR", ("lift-off",))
        patch.setitem(gradients.LIMITS, True, 0.5)
        return gradients.run(quick=True)


def test_a_row_for_each_gradient_and_method(rows: list[dict[str, Any]]) -> None:
    by_name = {row["gradient"]: row for row in rows}
    assert list(by_name) == [
        "adaptive", "exact", "signorini", "full-cone", "randomized", "bundled",
        "fischer-burmeister", "augmented-lagrangian",
    ]  # fmt: skip
    assert by_name["adaptive"]["cost"] < 5.91 < by_name["exact"]["cost"]
    assert by_name["exact"]["gradient_error"] < 1e-3 < by_name["full-cone"]["gradient_error"]
    assert (
        by_name["full-cone"]["gradient_variance"] == 0 < by_name["randomized"]["gradient_variance"]
    )


def test_more_samples_lower_the_variance() -> None:
    problem = api.make("lift-off")
    U, numeric = gradients.near_the_guess(problem)
    few, many = (
        gradients.quality(problem, U, numeric, Randomized(std=2.0, samples=n))[1] for n in (8, 128)
    )
    assert few is not None and many is not None and 4 < few / many < 60


@pytest.mark.parametrize("task", ["hop", "arm-throw"])
def test_the_exact_gradient_is_that_of_the_hard_cost(task: str) -> None:
    problem = api.make(task)
    U, numeric = gradients.near_the_guess(problem)
    error, _ = gradients.quality(problem, U, numeric, Exact())
    biased, _ = gradients.quality(problem, U, numeric, FullCone(0.1))
    assert error is not None and biased is not None and error < 1e-4 < biased
    assert np.abs(numeric).max() > 0
