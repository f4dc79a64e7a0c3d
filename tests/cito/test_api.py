"""The public functions: names become objects, misuse is told, non-convergence is a status."""

from collections.abc import Callable

import numpy as np
import pytest

import cito
from cito.api import gradient_named
from cito.dynamics.gradients import GRADIENTS
from cito.solvers.complementarity import solve_complementarity
from cito.solvers.miqp import reference


@pytest.fixture(scope="module")
def problem() -> cito.Problem:
    return cito.make("lift-off", horizon=12)


def test_the_planar_tasks_are_there() -> None:
    assert {"lift-off", "traverse", "friction-braking"} <= set(cito.tasks())


def test_ddp_with_the_adaptive_gradient_is_the_default(problem: cito.Problem) -> None:
    default, named = cito.solve(problem), cito.solve(problem, "adaptive", solver="ddp")
    assert (default.solver, default.gradient) == ("ddp", "adaptive")
    assert default.cost == named.cost
    np.testing.assert_array_equal(default.states, named.states)


@pytest.mark.parametrize("name", GRADIENTS)
def test_every_gradient_has_a_name_that_solve_takes(problem: cito.Problem, name: str) -> None:
    by_name = cito.solve(problem, name, max_iterations=3)
    by_object = cito.solve(problem, GRADIENTS[name](), max_iterations=3)
    assert by_name.gradient == name
    assert by_name.cost == by_object.cost <= 0.5 * 10 * 0.25 * 12 + 0.5 * 100 * 0.25


def test_numbers_of_a_gradient_are_set_by_name() -> None:
    assert gradient_named("full-cone", rho=0.3, delta=1.0) == cito.FullCone(0.3, 1.0)
    assert gradient_named("randomized", samples=8).samples == 8
    with pytest.raises(ValueError, match="`rho` is not a number of gradient .exact.: it takes"):
        gradient_named("exact", rho=0.1)
    with pytest.raises(ValueError, match="it takes none"):
        gradient_named("adaptive", rho=0.1)
    with pytest.raises(ValueError, match="`rho` must be > 0, got -1"):
        gradient_named("signorini", rho=-1)


def test_limits_and_callback_reach_the_solver(problem: cito.Problem) -> None:
    records = []
    solution = cito.solve(problem, max_iterations=2, callback=records.append)
    assert solution.status is cito.Status.MAX_ITERATIONS
    assert records and records[-1]["iteration"] == 2
    controls = np.full((12, 2), [0.0, 15.0])
    started = cito.solve(problem, max_iterations=0, initial_controls=controls)
    np.testing.assert_array_equal(started.controls, controls)
    assert cito.solve(problem, time_limit=1e-9).status is cito.Status.TIME_LIMIT


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gradient": "fullcone"}, "unknown gradient 'fullcone': did you mean full-cone?"),
        ({"gradient": "zzz"}, "known are exact, signorini, full-cone"),
        ({"gradient": 0.1}, "`gradient` must be a gradient or the name of one, got float"),
        ({"solver": "ipopt"}, "unknown solver 'ipopt': known are ddp, mpcc, miqp"),
        ({"solver": "mpcc", "gradient": "exact"}, "`gradient` is not an argument of solver 'mpcc'"),
        ({"solver": "miqp", "max_iterations": 3}, "takes time_limit and callback"),
        ({"max_iterations": -1}, "`max_iterations` must be .*>= 0, got -1"),
        ({"tolerance": 0.0}, "`tolerance` must be > 0, got 0"),
        ({"time_limit": -1.0}, "`time_limit` must be > 0, got -1"),
        ({"time_limit": "x"}, "`time_limit` must be an array of numbers, got 'x'"),
        ({"solver": "mpcc", "time_limit": "x"}, "`time_limit` must be"),
        ({"max_iterations": np.inf}, "`max_iterations` must be a whole number"),
        ({"solver": "mpcc", "max_iterations": "a"}, "`max_iterations` must be a whole number"),
        ({"callback": 3}, "`callback` must be a function"),
        ({"initial_controls": np.zeros((3, 2))}, r"must have shape \(12, 2\), got \(3, 2\)"),
    ],
)
def test_misuse_is_a_value_error_that_says_what_is_wanted(
    problem: cito.Problem, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        cito.solve(problem, **arguments)


def test_a_name_is_no_problem() -> None:
    with pytest.raises(ValueError, match=r"must be a Problem, got str; make\(\"traverse\"\)"):
        cito.solve("lift-off")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cito.make("hop", horizon=None), "`horizon` must be a whole number"),
        (lambda: cito.make("traverse", horizon=None), "`horizon` must be a whole number"),
        (lambda: cito.make("traverse", friction=None), "`friction` must be .* got None"),
        (lambda: cito.make(3), "`task` must be the name of a task, got 3"),
        (lambda: cito.Adaptive(ladder=3), "`ladder` must be a sequence of numbers, got 3"),
        (lambda: cito.Adaptive(steps="a"), "`steps` must be a whole number"),
        (lambda: cito.ContactDynamics(None, 0.1), "`system` must be .* got NoneType"),
        (lambda: reference(None), "`problem` must be a Problem, got NoneType"),
        (lambda: solve_complementarity(None), "`problem` must be a Problem"),
    ],
)
def test_a_wrong_type_is_a_value_error_too(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("solver", ["ddp", "mpcc", "miqp"])
def test_no_time_limit_is_a_time_limit(solver: str) -> None:
    problem = cito.make("lift-off", horizon=4)
    assert cito.solve(problem, solver=solver, time_limit=np.inf).converged


def test_a_gradient_that_sees_nothing_is_a_status_not_an_error(problem: cito.Problem) -> None:
    solution = cito.solve(problem, "exact")
    assert solution.status is cito.Status.NO_GRADIENT
    assert not solution.converged
    assert "adaptive" in solution.status.value


def test_a_solution_prints_on_one_line(problem: cito.Problem) -> None:
    text = repr(cito.solve(problem, "exact"))
    assert text == "<Solution of lift-off (ddp, exact): cost 27.5, NO_GRADIENT>"
