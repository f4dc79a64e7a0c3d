"""`cito train` and `cito eval`: policies learned, and what they are worth."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from cito.cli_output import console, print_json, print_table
from cito.solvers.learning.evaluation import evaluate
from cito.solvers.learning.settings import assignments
from cito.solvers.learning.training import STEPS, Learner, TrainingConfig, load_policy, train

FIGURES = ("fall_rate", "velocity_rmse", "yaw_rate_rmse", "cost", "gait_phase", "rollouts")
PPO_STEPS, PPO_ENVS = 5_000_000, 256


def run_training(arguments: argparse.Namespace) -> int:
    """Train, or go on with a training."""
    steps, envs = STEPS.get(arguments.task, STEPS["trot"]), arguments.envs
    if arguments.algorithm == "ppo":
        steps, envs = PPO_STEPS, PPO_ENVS if envs is None else envs
    given = {
        "steps": steps if arguments.steps is None else arguments.steps,
        "envs": envs,
        "seed": arguments.seed,
        "rho": arguments.rho,
        "gradient": arguments.gradient,
        "robot": arguments.robot,
    }
    config = TrainingConfig(
        arguments.task,
        algorithm=arguments.algorithm,
        settings=assignments(arguments.set),
        **{name: value for name, value in given.items() if value is not None},
    )
    out = Path(arguments.out)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(stderr=True), disable=arguments.json) as progress:
        told = _follow(progress, config)
        summary = train(config, out, arguments.resume, told, bool(arguments.tensorboard))
    if arguments.json:
        print_json(summary)
        return 0
    print_table(("", ""), [(name, _told(value)) for name, value in summary.items()])
    console().print(f"saved in {out}; next: cito eval {out}")
    return 0


def _follow(
    progress: Progress, config: TrainingConfig
) -> Callable[[Learner, Mapping[str, float]], None]:
    """A callback that moves the progress bar."""
    bar = progress.add_task(config.task, total=config.steps, told="")
    falls = 0.0

    def move(learner: Learner, row: Mapping[str, float]) -> None:
        nonlocal falls
        falls += row["falls"]
        speed = progress.tasks[bar].finished_speed or progress.tasks[bar].speed or 0.0
        told = f"cost {row['cost']:.3f}  falls {falls:.0f}  {speed:.0f} steps/s"
        progress.update(bar, completed=learner.steps, told=told)

    return move


def run_evaluation(arguments: argparse.Namespace) -> int:
    """Roll a policy out over commands and frictions."""
    config, policy = load_policy(arguments.folder)
    task = config.locomotion()
    if arguments.robot == "self":
        if arguments.model or arguments.push or arguments.bumps:
            raise ValueError("--model, --push and --bumps need --robot mujoco")
        found = evaluate(task, policy, arguments.friction)
    elif arguments.robot == "mujoco":
        from cito.learning.mujoco_rollouts import evaluate_in_mujoco

        disturbed = {"push": arguments.push, "bumps": arguments.bumps}
        found = (
            evaluate_in_mujoco(task, policy, arguments.model, arguments.friction, **disturbed)
            | disturbed
        )
    else:
        raise ValueError(f"--robot must be self or mujoco, got {arguments.robot!r}")
    if arguments.json:
        print_json(found | {"robot": arguments.robot, "task": config.task})
        return 0
    kinds = {"all": found, "mild starts": found["mild"], "rough starts": found["rough"]}
    rows = [(name, *(_told(own[key]) for key in FIGURES)) for name, own in kinds.items()]
    print_table(("", *FIGURES), rows)
    return 0


def run_export(arguments: argparse.Namespace) -> int:
    """Write the policy of a run as ONNX."""
    from cito.learning.onnx_export import export

    config, policy = load_policy(arguments.folder)
    difference = export(policy, arguments.onnx, config.locomotion())
    if arguments.json:
        print_json({"onnx": arguments.onnx, "largest_difference": difference})
    else:
        console().print(f"{arguments.onnx}: its actions are the policy's up to {difference:.1g}")
    return 0


def _told(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
