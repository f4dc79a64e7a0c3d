"""Policy enhancement: which way an action goes, against finite differences of its worth."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cito.dynamics.check import finite_difference
from cito.problems.locomotion import NotFinite
from tests.reference.episodic import B, made, samples

torch = pytest.importorskip("torch")

from cito.solvers.learning.policy_ascent import ascent  # noqa: E402

GAMMA = 0.9


def value(o: "torch.Tensor") -> "torch.Tensor":
    """Some smooth function of observations, in double precision inside."""
    return torch.sin(o.double() * torch.arange(1, o.shape[1] + 1)).sum(dim=1)


@pytest.mark.parametrize("name", ("links-1", "links-5", "hopper-run", "float"))
def test_the_direction_is_the_slope_of_reward_and_value(name: str) -> None:
    task = made(name)
    x, a = samples(task)
    found = ascent(task, value, GAMMA, x, a)
    for k in range(B):
        slope = finite_difference(
            lambda y, k=k: ascent(task, value, GAMMA, np.tile(x[k], (len(y), 1)), y).value[:, None],  # type: ignore[misc]
            a[k],
            step=1e-3,  # observations are rounded to single precision
        )
        size = np.abs(slope).max()
        assert size > 1e-2
        assert_allclose(found.direction[k], slope[0], atol=2e-3 * size)


def test_nothing_comes_after_a_fall() -> None:
    task = made("hopper-run")
    x, a = samples(task)
    x[:2, 1], x[:2, 2:4] = 0.15, (-1.3, 2.6)  # folded
    found, none = (ascent(task, value, gamma, x, a) for gamma in (GAMMA, 1e-12))
    assert_allclose(found.direction[:2], none.direction[:2])
    assert_allclose(found.value[:2], none.value[:2])
    assert (np.abs(found.direction[2:] - none.direction[2:]) > 1e-3).any()


def test_a_value_that_is_no_number_is_told() -> None:
    task = made("links-1")
    x, a = samples(task)
    with pytest.raises(
        NotFinite, match="direction of the policy of sample 0, .* at control step 7"
    ):
        ascent(task, lambda o: value(o) * torch.nan, GAMMA, x, a, time=7)
