"""What is counted of rollouts."""

from dataclasses import replace

import numpy as np
import pytest

from cito.problems.locomotion import locomotion_task
from cito.solvers.learning.evaluation import Rollouts, evaluate, grid, pairs, scores

TASK = locomotion_task("trot")


def standing(T: int = 100, B: int = 4) -> Rollouts:
    return Rollouts(
        np.zeros((T, B, 6)),
        np.ones((T, B, 4), bool),
        np.ones((T, B)),
        np.zeros((B, 3)),
        np.ones(B),
        np.ones((T, B), bool),
    )


def test_errors_are_counted_from_one_second_on_and_until_a_fall() -> None:
    r = standing()
    r.velocity[:50], r.velocity[80:, 0] = 7.0, 9.0  # before; and of one that has fallen
    r.alive[80:, 0] = False
    r.velocity[50:80, 0, 5] = 0.2
    found = scores(TASK, r)
    assert found["fall_rate"] == 0.25 and found["velocity_rmse"] == 0
    assert found["yaw_rate_rmse"] == pytest.approx(np.sqrt(30 * 0.04 / 180))
    r.velocity[50:, 1, :2] = [0.3, 0.4]
    assert scores(TASK, r)["velocity_rmse"] == pytest.approx(np.sqrt(50 * 0.25 / 180))


def test_the_feet_of_a_pair_agree() -> None:
    assert pairs(TASK) == [(0, 3), (1, 2)]
    assert pairs(locomotion_task("pace")) == [(0, 2), (1, 3)]
    assert pairs(locomotion_task("gait-free")) == [(0, 3), (1, 2)]
    r = standing()
    r.contact[::2, :, 0] = False
    assert scores(TASK, r)["gait_phase"] == pytest.approx(0.75)


def test_nothing_is_counted_where_all_fall_at_once() -> None:
    r = standing()
    r.alive[:] = False
    found = scores(TASK, r)
    assert found["fall_rate"] == 1 and found["velocity_rmse"] is None and found["cost"] is None


def test_the_grid_is_that_of_the_task() -> None:
    command, mu = grid(TASK, TASK.randomization.friction)
    assert command.shape == (225, 3) and mu.min() == 0.6 and mu.max() == 1.0
    assert (command >= TASK.command_low).all() and (command <= TASK.command_high).all()
    assert len({(*c, m) for c, m in zip(command, mu)}) == 225
    wider, _ = grid(replace(TASK, command_margin=0.5), TASK.randomization.friction)
    assert np.array_equal(wider, command)


def test_a_policy_that_stands_is_rolled_out() -> None:
    found = evaluate(locomotion_task("gait-free"), lambda o: np.zeros((len(o), 12)), seconds=1.1)
    assert found["rollouts"] == 450 and found["mild"]["rollouts"] == 225
    assert found["mild"]["fall_rate"] == 0 and found["mild"]["gait_phase"] > 0.95
    assert found["velocity_rmse"] > 0.2


@pytest.mark.parametrize("friction", [float("nan"), -1.0])
def test_a_friction_that_is_none_is_refused(friction: float) -> None:
    with pytest.raises(ValueError, match="`friction` must be"):
        evaluate(TASK, None, friction)  # type: ignore[arg-type]
