"""The mode-holding step: the optimum of one sequence of contact modes, against a dense QP."""

from __future__ import annotations

import daqp
import numpy as np
import pytest

from cito.dynamics import ContactDynamics, Exact, point_mass
from cito.dynamics.tree import Body, TreeSystem
from cito.problems import ControlCost, Problem, StateCost
from cito.problems.objective import Objective
from cito.solvers.ddp import solve_ddp
from cito.solvers.mode_holding import hold_modes
from cito.solvers.search import Neighbourhood, roll_out
from tests.reference.systems import contact_free

H, N = 0.05, 8


def neighbourhood(start, push, target, weight=1e-2, wanted=(0, 0)) -> Neighbourhood:
    """Of a point mass over the ground under a constant push; `wanted` is the cheapest control."""
    costs = (
        StateCost([1, 1, 0.1, 0.1], target, knots="all"),
        ControlCost([weight, weight], wanted),
    )
    dynamics = ContactDynamics(point_mass(2), H, 0.5)
    problem = Problem("point", dynamics, start, N, costs)
    objective = Objective(problem)
    iterate = roll_out(problem, objective, np.tile(np.array(push, dtype=float), (N, 1)))
    assert iterate is not None
    return Neighbourhood(problem, objective, iterate)


def restricted_optimum(n: Neighbourhood) -> float:
    """The least cost of the quadratic model whose margins all stay >= 0, by another solver."""
    margins, (f_x, f_u) = n.linearization.margins(), n.transition(Exact())
    l_x, l_u, l_xx, l_uu, _ = n.expansion
    S = np.zeros((N + 1, 4, N, 2))  # dx = S du
    for k in range(N):
        S[k + 1] = np.einsum("ij,jku->iku", f_x[k], S[k])
        S[k + 1][:, k] += f_u[k]
    S = S.reshape(N + 1, 4, 2 * N)
    E = np.eye(2 * N).reshape(N, 2, 2 * N)
    Q = np.einsum("kia,kij,kjb->ab", S, l_xx, S) + np.einsum("kia,kij,kjb->ab", E, l_uu, E)
    g = np.einsum("ki,kia->a", l_x, S) + np.einsum("ki,kia->a", l_u, E)
    used = np.isfinite(margins.value)
    rows = np.einsum("kmi,kia->kma", margins.state, S[:-1])
    rows += np.einsum("kmi,kia->kma", margins.control, E)
    inequalities, lower = rows[used], -margins.value[used]
    sense, upper = np.zeros(len(lower), dtype=np.int32), np.full(len(lower), 1e30)
    z, _, flag, _ = daqp.solve(Q, g, np.ascontiguousarray(inequalities), upper, lower, sense)
    assert flag == 1
    assert np.abs(inequalities @ z - lower).min() < 1e-9  # some margin is met
    return n.iterate.cost + float(g @ z + 0.5 * z @ Q @ z)


@pytest.mark.parametrize(
    "arguments",
    [
        ([0, 0, 0, 0], [1.0, 0], [0, 0, 0, 0], 1e-2, (8.0, 1.0)),  # wants to push beyond stick
        ([0, 0, 3, 0], [0, 0], [-1, 0, 0, 0], 1e-5),  # wants to turn back
        ([0, 0.2, 0, 1], [0, 9.81], [0.3, -1.0, 0, 0], 1e-4),  # wants below the ground
    ],
    ids=["sticking", "sliding", "flying"],
)
def test_one_step_is_the_optimum_of_its_modes(arguments):
    n = neighbourhood(*arguments)
    modes = n.iterate.rollout.modes
    assert len(np.unique(modes)) == 1
    trial = hold_modes(n)
    assert trial.holding and trial.alpha == 1.0
    assert trial.best.merit == pytest.approx(restricted_optimum(n), rel=1e-5)
    assert trial.best.merit < n.iterate.cost
    # The plain exact step leaves the modes at once.
    plain = n.full_step(Exact())
    assert not np.array_equal(plain.rollout.modes, modes)


def test_promises_what_it_keeps():
    n = neighbourhood([0, 0, 0, 0], [1.0, 0], [0, 0, 0, 0], 1e-2, (8.0, 1.0))
    trial = hold_modes(n)
    assert trial.expected < 0
    assert trial.best.merit - n.iterate.cost == pytest.approx(trial.expected, rel=1e-4)


def test_agrees_with_the_exact_step_where_no_margin_is_met():
    n = neighbourhood([0, 5.0, 0, 0], [0, 9.81], [0.1, 5.0, 0, 0])
    held, plain = hold_modes(n), n.search(Exact(), 0.0)
    assert held.best.merit == pytest.approx(plain.best.merit, rel=1e-9)
    assert held.expected == pytest.approx(plain.expected, rel=1e-9)


def test_keeps_a_joint_on_its_stop():
    """Asked to go beyond the stop, the optimum arrives there and rests on it."""
    arm = Body("arm", None, "revolute", 1.0, [0.3, 0, 0], 0.01 * np.eye(3), upper=1.0)
    dynamics = ContactDynamics(TreeSystem([arm], gravity=0.0, joint_limits=True), H)
    costs = (StateCost([10.0, 1], [1.5, 0], knots="all"), ControlCost([1e-2]))
    problem = Problem("stop", dynamics, np.zeros(2), 20, costs)
    solution = solve_ddp(problem)
    angle, arrival = solution.states[1:, 0], int(np.argmax(solution.modes[:, 0]))
    assert solution.converged and 5 < arrival < 15 and angle[arrival - 1] < 1 - 1e-3
    assert np.allclose(angle[arrival:], 1.0, rtol=0, atol=1e-9)
    # Once there it need not press, and pressing costs.
    assert np.abs(solution.controls[arrival + 1 :]).max() < 1e-6


def test_none_without_contact():
    dynamics = ContactDynamics(contact_free(), H)
    costs = (StateCost(np.ones(6), np.ones(6), knots="all"), ControlCost([1, 1]))
    problem = Problem("free", dynamics, np.zeros(6), 4, costs)
    objective = Objective(problem)
    iterate = roll_out(problem, objective, np.zeros((4, 2)))
    assert hold_modes(Neighbourhood(problem, objective, iterate)) is None
