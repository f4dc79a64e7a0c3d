"""The registry of tasks: what is registered, and how it answers misspelt names."""

from __future__ import annotations

import pytest

from cito.problems import Problem, make, task, tasks
from cito.problems.registry import get_task

SHARED = {"friction", "time_step", "horizon", "mass", "gravity", "start", "target"}
WEIGHTS = {"state_weight", "control_weight", "terminal_weight"}


def test_planar_tasks_are_registered_with_the_shared_parameters():
    for name in ("lift-off", "traverse", "friction-braking"):
        registered = tasks()[name]
        assert registered.name == name and len(registered.summary) > 20
        assert SHARED | WEIGHTS <= set(registered.parameters)


def test_list_is_a_copy():
    tasks().clear()
    assert "lift-off" in tasks()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("lift-of", "did you mean lift-off"),
        ("travers", "did you mean traverse"),
        ("juggling", "there are .*lift-off"),
    ],
)
def test_unknown_task_gets_suggestions(name, hint):
    with pytest.raises(ValueError, match=f"`task` must be a registered task, got '{name}': {hint}"):
        make(name)


def test_unknown_parameter_names_the_known_ones():
    with pytest.raises(
        ValueError, match="`frictoin` is no parameter.*did you mean friction.*time_step"
    ):
        make("lift-off", frictoin=0.3)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("friction", -1), ("time_step", 0), ("mass", "heavy"), ("horizon", 0), ("start", [0, 0])]
    + [("target", [1, 0]), ("control_weight", [[0.01]]), ("control_weight", [-1, -1])]
    + [("state_weight", [1]), ("terminal_weight", [[1]])],
)
@pytest.mark.parametrize("name", ["traverse", "push-box-planar", "hop", "tip-box"])
def test_value_that_a_task_refuses_is_named(name, parameter, value):
    with pytest.raises(ValueError, match=f"`{parameter}`"):
        make(name, **{parameter: value})


def test_names_are_registered_once():
    with pytest.raises(ValueError, match="already registered"):
        task("lift-off", "again")(lambda: None)
    assert isinstance(get_task("lift-off").build(), Problem)


def test_registered_function_stays_callable_and_is_found(monkeypatch):
    import cito.problems.registry as registry

    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))

    @task("tiny lift-off", "lift-off in five steps")
    def tiny(horizon: int = 5) -> Problem:
        return make("lift-off", horizon=horizon)

    assert tiny().horizon == make("tiny lift-off").horizon == 5
    assert make("tiny lift-off", horizon=7).horizon == 7
    assert tasks()["tiny lift-off"].parameters == {"horizon": 5}
