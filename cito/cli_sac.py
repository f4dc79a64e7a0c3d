"""`cito train TASK --algorithm sac...`: soft actor-critic on the episodic tasks."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from rich.progress import Progress, TaskID

from cito.cli_output import console, print_json, print_table
from cito.solvers.learning.settings import assignments, changed

METHODS = {"sac": "sac", "sac-policy": "policy", "sac-sample": "sample", "sac-both": "both"}
FOREIGN = ("gradient", "rho", "robot", "envs", "tensorboard")  # of the other algorithms


def run_sac(arguments: argparse.Namespace) -> int:
    """Train, or go on with a training."""
    from cito.solvers.learning.sac_training import SacConfig, train_sac

    if arguments.algorithm not in METHODS:
        raise ValueError(
            f"--algorithm must be bptt, ppo, {', '.join(METHODS)}, got {arguments.algorithm!r}"
        )
    for name in FOREIGN:
        if getattr(arguments, name) is not None:
            raise ValueError(f"--{name} is for bptt and ppo, not for {arguments.algorithm}")
    given = {"steps": arguments.steps, "seed": arguments.seed}
    config = SacConfig(
        arguments.task,
        METHODS[arguments.algorithm],
        **{name: value for name, value in given.items() if value is not None},
    )
    config = changed(config, assignments(arguments.set))
    with Progress(console=console(stderr=True), disable=arguments.json) as progress:
        bar = progress.add_task(config.task, total=config.steps)
        summary = train_sac(config, arguments.out, arguments.resume, _follow(progress, bar))
    if arguments.json:
        print_json(summary)
        return 0
    print_table(("", ""), [(name, _told(value)) for name, value in summary.items()])
    console().print(f"saved in {arguments.out}")
    return 0


def _follow(progress: Progress, bar: TaskID) -> Callable[[Mapping[str, float]], None]:
    """A callback that moves the progress bar."""

    def move(row: Mapping[str, float]) -> None:
        told = f"return {row['return']:.1f}"
        progress.update(bar, completed=row["steps"], description=told)

    return move


def _told(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
