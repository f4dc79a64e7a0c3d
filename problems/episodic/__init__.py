"""Tasks to be learned in episodes, with rewards and steps that have derivatives."""

from __future__ import annotations

from collections.abc import Callable

from cito.problems.episodic.hopper import HopperRun
from cito.problems.episodic.links import LinkPendulum
from cito.problems.episodic.task import EpisodicTask, Reward

__all__ = ["EPISODIC", "EpisodicTask", "HopperRun", "LinkPendulum", "Reward", "episodic_task"]

EPISODIC: dict[str, str] = {
    **{f"links-{n}": f"a pendulum of {n} driven links stands up" for n in range(1, 6)},
    "hopper-run": "a leg on a boom hops along",
}
_MADE: dict[str, Callable[[], EpisodicTask]] = {"hopper-run": HopperRun}


def episodic_task(name: str) -> EpisodicTask:
    """The task called `name`.

    Raises:
        ValueError: there is none.
    """
    if name not in EPISODIC:
        raise ValueError(f"`task` must be one of {', '.join(EPISODIC)}, got {name!r}")
    if name in _MADE:
        return _MADE[name]()
    return LinkPendulum(int(name.removeprefix("links-")))
