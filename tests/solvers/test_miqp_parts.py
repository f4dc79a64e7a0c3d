"""The parts of the mixed-integer reference: big M, bent objectives, nodes, the cvxpy solver."""

from __future__ import annotations

import itertools

import cvxpy as cp
import daqp
import numpy as np
import pytest

from cito.problems import make
from cito.problems.push_box import push_box_planar
from cito.problems.random_suite import random_problem
from cito.solvers.miqp_bounds import big_m, relaxed_cost
from cito.solvers.miqp_branch_and_bound import BranchAndBound
from cito.solvers.miqp_convexify import Products, bend
from cito.solvers.miqp_model import Quadratic, condense
from cito.solvers.miqp_nodes import OPEN, Nodes, Program
from cito.solvers.miqp_polish import polish

PROBLEMS = {
    "random": lambda: random_problem(7),
    "braking": lambda: make("friction-braking", horizon=8),
    "box": lambda: push_box_planar(horizon=8, gravity=5.0),
}


def rollouts(problem, count=40, seed=0):
    """Rollouts of random controls, many of them in contact; z, binaries and cost of each."""
    program, rng = condense(problem), np.random.default_rng(seed)
    N, nu = problem.horizon, problem.dynamics.nu
    for _ in range(count):
        U = rng.normal(0, rng.choice([1.0, 10.0]), (N, nu)) + rng.normal(0, 5, nu)
        rollout = problem.dynamics.rollout(problem.start, U)
        # Impulses as sums of the cone edges of each knot.
        E = np.array([edge.impulse for edge in program.edges]).T
        b = np.linalg.lstsq(E, rollout.impulses.T, rcond=None)[0].T
        yield program, np.append(U.ravel(), b.ravel()), program.binaries_of(rollout), rollout


@pytest.mark.parametrize("name", PROBLEMS)
def test_rollouts_are_feasible_points(name):
    problem = PROBLEMS[name]()
    seen = set()
    for program, z, c, rollout in rollouts(problem):
        b, on = z[program.controls :], c.astype(bool)
        tolerance = 1e-9 * (1 + np.abs(z).max())
        assert (b >= -tolerance).all() and (program.normal(z) >= -tolerance).all()
        assert np.abs(b[~on]).max(initial=0) < tolerance
        assert np.abs(program.opening(z)[on]).max(initial=0) < tolerance
        assert (program.slip(z)[on[program.slip_binary]] <= tolerance).all()
        seen |= set(rollout.modes.ravel().tolist())
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("name", PROBLEMS)
def test_big_m_cuts_off_no_cheaper_rollout(name):
    problem, cheapest = PROBLEMS[name](), np.inf
    points = [(program, z, program.objective(z)) for program, z, _, _ in rollouts(problem)]
    program, budget = points[0][0], np.median([cost for *_, cost in points])
    bounds = big_m(program, budget)
    for _, z, cost in points:
        if cost <= budget:
            assert (z[program.controls :] <= bounds.impulse).all()
            assert (program.opening(z) <= bounds.opening).all()
            assert (program.slip(z) <= bounds.slip).all()
            cheapest = min(cheapest, cost)
    assert 0 < relaxed_cost(program) < cheapest < np.inf
    # They shrink with the budget and are not just anything.
    tighter = big_m(program, cheapest)
    assert (tighter.impulse < bounds.impulse).all() and np.isfinite(bounds.impulse).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_bent_objective_is_convex_and_never_above_the_cost(name):
    program = condense(PROBLEMS[name]())
    nodes = Nodes(standard_form(program), Products(*program.products()))
    sharp = nodes.sharpen(np.full(nodes.binaries, OPEN, dtype=np.int8))
    assert sharp is not None
    assert np.linalg.eigvalsh(sharp.objective.hessian)[0] > 0
    differs = 0.0
    for _, z, _, _ in rollouts(PROBLEMS[name]()):
        cost, bent = program.objective(z), sharp.objective(z)
        assert bent <= cost + 1e-8 * abs(cost)
        differs = max(differs, (cost - bent) / cost)
    assert differs > 1e-6  # sliding rollouts show that the objectives are not the same


def test_bending_proves_lift_off_at_the_root():
    program = condense(make("lift-off"))
    nodes = Nodes(standard_form(program), Products(*program.products()))
    root = np.full(nodes.binaries, OPEN, dtype=np.int8)
    plain = nodes.relax(root, nodes.root(), np.inf, None).bound
    bent = nodes.relax(root, nodes.root(), np.inf, nodes.sharpen(root)).bound
    assert plain < 3.3 and 5.85 < bent <= 5.9070676511


def test_bend_solves_a_program_known_in_closed_form():
    # min 1/2 (x - 1)^2 + 1/2 (y - 1)^2 with x, y >= 0 and x y = 0 is 1/2; w = 1 makes the sum
    # 1/2 (x + y)^2 - (x + y) + 1, whose least value is 1/2 as well.
    objective = Quadratic(np.eye(2), -np.ones(2), 1.0)
    products = Products(np.array([[1.0, 0, 0]]), np.array([[0, 1.0, 0]]))
    bent = bend(objective, products, np.array([[-1.0, 0, 0], [0, -1.0, 0]]))
    assert bent.hessian[0, 1] == pytest.approx(0.99, abs=0.01)
    z = np.linalg.solve(bent.hessian, -bent.gradient)
    assert 0.49 < bent(z) <= 0.5


@pytest.mark.parametrize("name", PROBLEMS)
def test_limits_of_a_node_are_its_rows(name):
    form = standard_form(condense(PROBLEMS[name]()))
    nodes, rng = Nodes(form), np.random.default_rng(1)
    inside = 0
    for _ in range(200):
        c = rng.integers(0, 2, nodes.binaries).astype(np.int8)
        lower, upper = nodes.limits(c)
        z = rng.normal(0, 1, form.F.shape[1]) * rng.choice([1e-3, 1.0])
        z[rng.random(len(z)) < 0.5] = 0.0
        rows = np.append(z, nodes._A @ z)
        by_rows = (form.F @ z + form.C @ c - form.g).max()
        by_limits = max((rows - upper).max(), (lower - rows).max())
        assert (by_rows > 1e-9) == (by_limits > 1e-9)
        inside += by_rows <= 1e-9
    assert inside < 200


@pytest.mark.parametrize("name", PROBLEMS)
def test_bounds_grow_with_decisions_and_never_pass_a_completion(name):
    program = condense(PROBLEMS[name]())
    nodes, rng = Nodes(standard_form(program)), np.random.default_rng(2)
    grew = False
    for _, _, c, _ in rollouts(PROBLEMS[name](), 10):
        z, cost = nodes.complete(c)
        assert cost == pytest.approx(program.objective(polish(program, c)), rel=1e-8)
        decisions = np.full(nodes.binaries, OPEN, dtype=np.int8)
        start, bound, sharp = nodes.root(), -np.inf, nodes.sharpen(decisions)
        for j in rng.permutation(nodes.binaries):
            decisions[j] = c[j]
            relaxed = nodes.relax(decisions, start, np.inf, sharp)
            exact = nodes.relax(decisions, start, np.inf, None)
            assert max(relaxed.bound, exact.bound) <= cost * (1 + 1e-9)
            assert exact.bound >= bound - 1e-9 * abs(bound)
            grew |= exact.bound > bound
            start, bound = exact.working_set, exact.bound
        assert bound == pytest.approx(cost, rel=1e-7)
        # Above the cutoff the node is closed, whatever DAQP counts from.
        assert nodes.relax(decisions, nodes.root(), 0.9 * cost, None).bound == np.inf
        assert nodes.relax(decisions, nodes.root(), 1.1 * cost, None).bound < np.inf
    assert grew


@pytest.mark.parametrize("seed", range(6))
def test_solver_finds_the_optimum_of_any_such_program(seed):
    rng = np.random.default_rng(seed)
    n, nb = 5, 6
    root = rng.normal(size=(n, n))
    H, f = root @ root.T + 0.1 * np.eye(n), rng.normal(0, 3, n)
    at_zero, at_one = rng.normal(size=(nb, n)), rng.normal(size=(nb, n))
    z, c = cp.Variable(n), cp.Variable(nb, boolean=True)
    constraints = [at_zero @ z <= 50 * c, at_one @ z - 0.3 <= 50 * (1 - c), cp.sum(z) <= 2]
    problem = cp.Problem(cp.Minimize(0.5 * cp.quad_form(z, H) + f @ z + 7), constraints)
    solver = BranchAndBound()
    value = problem.solve(solver=solver)

    def cost(choice):
        rows = np.vstack([np.where(np.array(choice)[:, None], at_one, at_zero), np.ones((1, n))])
        upper = np.append(np.where(choice, 0.3, 0.0), 2.0)
        _, least, flag, _ = daqp.solve(H, f, rows, upper, np.full(nb + 1, -1e30))
        return least + 7 if flag == 1 else np.inf

    best = min(cost(choice) for choice in itertools.product((0, 1), repeat=nb))
    assert value == pytest.approx(best, rel=1e-6)
    assert solver.search.closed and solver.search.bound <= best + 1e-9
    assert set(np.round(c.value, 12)) <= {0.0, 1.0}


def test_solver_tells_infeasible_programs():
    z, c = cp.Variable(2), cp.Variable(1, boolean=True)
    constraints = [z[:1] <= c, z[1:] <= 1 - c, z >= 1.5]
    problem = cp.Problem(cp.Minimize(0.5 * cp.quad_form(z, np.eye(2))), constraints)
    solver = BranchAndBound()
    problem.solve(solver=solver)
    assert problem.status == cp.INFEASIBLE and solver.search.closed


def test_solver_refuses_other_programs():
    z, c = cp.Variable(2), cp.Variable(2, boolean=True)
    J = cp.Minimize(0.5 * cp.quad_form(z, np.eye(2)))
    with pytest.raises(ValueError, match="no equalities"):
        cp.Problem(J, [cp.sum(z) == 1, z <= c]).solve(solver=BranchAndBound())
    with pytest.raises(ValueError, match="at most one binary in each row"):
        cp.Problem(J, [z[0] <= c[0] + c[1], z <= c]).solve(solver=BranchAndBound())
    with pytest.raises(ValueError, match="no row without a continuous variable"):
        cp.Problem(J, [c[0] <= 0.5, z <= c]).solve(solver=BranchAndBound())
    with pytest.raises(ValueError, match="no binaries in its objective"):
        cp.Problem(cp.Minimize(J.expr + c[0]), [z <= c]).solve(solver=BranchAndBound())


def standard_form(program):
    """The statement of `miqp_model.state`, written as rows by hand."""
    nz, nb = len(program.objective.gradient), program.binaries
    M = big_m(program, 1e4)
    edges = np.eye(nz)[program.controls :]
    blocks = [  # F, C, g
        (-edges, np.zeros((nb, nb)), np.zeros(nb)),
        (-program.normal.matrix, np.zeros((len(program.normal.offset), nb)), program.normal.offset),
        (edges, -np.diag(M.impulse), np.zeros(nb)),
        (program.opening.matrix, np.diag(M.opening), M.opening - program.opening.offset),
        (
            program.slip.matrix,
            np.eye(nb)[program.slip_binary] * M.slip[:, None],
            M.slip - program.slip.offset,
        ),
    ]
    F, C, g = (np.concatenate(part) for part in zip(*blocks))
    return Program(program.objective, F, C, g)
