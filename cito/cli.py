"""The command line: arguments, and what becomes of errors.

Exit status: 0 where there is a result, 1 where the work failed (the reason is on standard error),
2 for misuse, 130 after Ctrl-C. A solver that stopped without converging has a result: that is
status 0, and `converged` in the JSON is false.

With --json, standard output holds one JSON object and nothing else; where there is no result, it
is {"error": the sentence on standard error}.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

import cito
from cito import benchmarks, figures

TASK = "a name that `cito list` tells, or path/to/file.py:name for a task of your own"
EXIT_STATUS = """exit status:
  0  there is a result (whether it converged: `converged` in the JSON)
  1  the work failed; the reason is on standard error
  2  misuse
  130  interrupted; the best result so far is printed
"""
DEBUG = "CITO_DEBUG"  # set in the environment, it shows where an error came from


class Misuse(ValueError):
    """A command line that cannot be understood."""


class Parser(argparse.ArgumentParser):
    """An argument parser that complains in one sentence."""

    def error(self, message: str) -> NoReturn:
        raise Misuse(f"{message} (see {self.prog} --help)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `cito` with these arguments (those of the process by default); the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if sys.stdout is None:  # closed by the caller
        return complain("standard output is closed", 1)
    try:
        status = run(parser().parse_args(given))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader, `head` for example, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        sentence, status = "interrupted", 130
    except Exception as error:
        if os.environ.get(DEBUG):
            traceback.print_exc()
        sentence, status = failure(error)
    if "--json" in given:
        from cito.cli_output import print_json

        print_json({"error": sentence})
    return complain(sentence, status)


def run(arguments: argparse.Namespace) -> int:
    """Run one command; only the modules that it needs are imported."""
    match arguments.command:
        case "list":
            from cito.cli_list import list_all, list_task

            return list_task(arguments) if arguments.task else list_all(arguments)
        case "check":
            from cito.cli_check import check

            return check(arguments)
        case "solve":
            from cito.cli_solve import solve

            return solve(arguments)
        case "mpc":
            from cito.cli_mpc import mpc

            return mpc(arguments)
        case "bench":
            from cito.cli_bench import bench

            return bench(arguments)
        case "figure":
            from cito.cli_bench import figure

            return figure(arguments)
        case "train":
            if arguments.algorithm.startswith("sac"):
                from cito.cli_sac import run_sac

                return run_sac(arguments)
            from cito.cli_train import run_training

            return run_training(arguments)
        case "eval":
            from cito.cli_train import run_evaluation

            return run_evaluation(arguments)
        case "walk":
            from cito.cli_walk import run_walk

            return run_walk(arguments)
        case "export":
            from cito.cli_train import run_export

            return run_export(arguments)
        case "plot":
            from cito.cli_view import plot

            return plot(arguments)
        case "render":
            from cito.cli_view import render

            return render(arguments)
        case "view":
            from cito.cli_view import view

            return view(arguments)
    parser().print_help()
    return 0


def failure(error: Exception) -> tuple[str, int]:
    """What to say of an error, on one line, and the exit status."""
    told = " ".join(str(error).split())
    match error:
        case ValueError() | FileNotFoundError():
            return told, 2
        case OSError() | ImportError():
            return told, 1
        case MemoryError():
            return "there is not enough memory for this", 1
    return f"unexpected {type(error).__name__}: {told} ({DEBUG}=1 shows the traceback)", 1


def complain(message: str, status: int) -> int:
    """Say what went wrong on standard error."""
    if sys.stderr is not None:
        print(f"cito: {message}", file=sys.stderr)
    return status


def names(known: Iterable[str]) -> str:
    """Names as a sentence lists them: "a, b or c"."""
    *most, last = known
    return f"{', '.join(most)} or {last}"


def described(title: str, summaries: Mapping[str, str]) -> str:
    """Names and what they stand for, below each other."""
    width = max(map(len, summaries))
    lines = [f"  {name:{width}}  {summary}" for name, summary in summaries.items()]
    return "\n".join([f"{title}:", *lines])


def parser() -> Parser:
    """All commands and their options."""
    top = Parser(
        prog="cito",
        description=(cito.__doc__ or "").splitlines()[0],
        epilog=EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"cito {cito.__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _add_list(commands)
    _add_solve(commands)
    _add_bench(commands)
    _add_figure(commands)
    _add_check(commands)
    _add_mpc(commands)
    _add_train(commands)
    _add_eval(commands)
    _add_walk(commands)
    _add_export(commands)
    _add_plot(commands)
    _add_render(commands)
    _add_view(commands)
    return top


Commands = argparse._SubParsersAction  # the type has no public name


def _add_list(commands: Commands[Parser]) -> None:
    command = commands.add_parser(
        "list", help="tasks, robots, gradients, solvers; a task's parameters"
    )
    command.add_argument("task", nargs="?", metavar="TASK", help=f"show its parameters; {TASK}")
    _add_json(command)


def _add_solve(commands: Commands[Parser]) -> None:
    command = commands.add_parser("solve", help="solve a task")
    command.add_argument("task", metavar="TASK", help=TASK)
    command.add_argument("--solver", default="ddp", help="ddp (default), mpcc or miqp")
    command.add_argument(
        "--gradient",
        metavar="NAME",
        help="of ddp: adaptive (default), exact, signorini, full-cone, randomized or bundled",
    )
    numbers = command.add_argument_group("numbers of the gradient")
    numbers.add_argument("--rho", type=float, metavar="J", help="relaxation [J]")
    numbers.add_argument("--delta", type=float, metavar="V", help="free-velocity offset [m/s]")
    numbers.add_argument("--std", type=float, metavar="V", help="of randomized [m/s]")
    numbers.add_argument("--offset", type=float, metavar="M", help="of bundled [m]")
    numbers.add_argument(
        "--threshold", type=float, metavar="I", help="of bundled: least loaded impulse [N s]"
    )
    numbers.add_argument("--eps", type=float, metavar="V", help="of full-cone: smooth slip [m/s]")
    numbers.add_argument("--samples", type=int, metavar="N", help="of randomized and bundled")
    numbers.add_argument("--seed", type=int, metavar="N", help="of randomized and bundled")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the task, e.g. friction=0.5 or target=1,0,0,0; may be repeated",
    )
    command.add_argument(
        "--max-iterations", type=int, metavar="N", help="of ddp and mpcc, in total"
    )
    command.add_argument("--time-limit", type=float, metavar="S", help="wall clock [s]")
    command.add_argument(
        "--monotone", action="store_true", help="of ddp: accept only steps that lower the cost"
    )
    command.add_argument("--out", metavar="DIR", help="save the solution there, as .npz")
    _add_json(command)


def _add_mpc(commands: Commands[Parser]) -> None:
    command = commands.add_parser("mpc", help="control a robot by solving a task again and again")
    command.add_argument("task", metavar="TASK", help=TASK)
    command.add_argument("--robot", default="self", help="self (default) or mujoco, in real time")
    command.add_argument(
        "--gradient", metavar="NAME", help="exact, signorini, full-cone, ... (chosen by the robot)"
    )
    command.add_argument("--rho", type=float, metavar="J", help="relaxation [J]")
    command.add_argument("--delta", type=float, metavar="V", help="free-velocity offset [m/s]")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the task, or pull=FX,FY,FZ and pull_time=START,DURATION",
    )
    command.add_argument("--duration", type=float, default=10.0, metavar="S", help="(10 s)")
    command.add_argument("--rate", type=float, metavar="HZ", help="of plans (one a time step)")
    command.add_argument(
        "--control-rate", type=float, default=400.0, metavar="HZ", help="of the loop (400)"
    )
    command.add_argument("--iterations", type=int, default=2, metavar="N", help="of a plan (2)")
    command.add_argument(
        "--delay",
        type=float,
        metavar="S",
        help="to compensate: solve time (0 in lockstep, else 10 ms, at most 0.8 of their period)",
    )
    command.add_argument(
        "--no-priority",
        dest="priority",
        action="store_false",
        help="of mujoco: do not ask for real-time priorities",
    )
    command.add_argument(
        "--lockstep", action="store_true", help="of mujoco: as fast as it goes, equal each time"
    )
    command.add_argument("--out", metavar="DIR", help="keep the log there")
    _add_json(command)


def _add_train(commands: Commands[Parser]) -> None:
    command = commands.add_parser("train", help="learn a policy that walks")
    command.add_argument(
        "task",
        metavar="TASK",
        help="trot, pace, gait-free, gait-free-slippery; of sac: links-1 ... links-5, hopper-run",
    )
    command.add_argument(
        "--algorithm",
        default="bptt",
        metavar="NAME",
        help="bptt (default) or ppo; sac, sac-policy, sac-sample or sac-both",
    )
    command.add_argument(
        "--gradient",
        default="full-cone",
        metavar="NAME",
        help="of contacts: full-cone (default), exact, signorini, randomized or bundled",
    )
    command.add_argument("--rho", type=float, metavar="J", help="relaxation of the gradient [J]")
    command.add_argument("--robot", default="go2", metavar="NAME|FILE", help="(go2)")
    command.add_argument(
        "--envs", type=int, metavar="N", help="robots that learn together (16; 256)"
    )
    command.add_argument(
        "--steps", type=int, metavar="N", help="control steps of all robots (by the task)"
    )
    command.add_argument("--seed", type=int, metavar="S", help="(0)")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the algorithm, e.g. critic=true or rate=0.004; may be repeated",
    )
    command.add_argument("--out", metavar="DIR", required=True, help="folder of the run")
    command.add_argument("--resume", action="store_true", help="go on with the run in DIR")
    command.add_argument(
        "--tensorboard", action="store_true", help="write events for TensorBoard into DIR, too"
    )
    _add_json(command)


def _add_eval(commands: Commands[Parser]) -> None:
    command = commands.add_parser("eval", help="walk with a policy over commands and frictions")
    command.add_argument("folder", metavar="DIR", help="folder of a training run")
    command.add_argument("--robot", default="self", help="self (default) or mujoco")
    command.add_argument("--model", metavar="FILE", help="of mujoco: an MJCF file (the task's)")
    command.add_argument("--friction", type=float, metavar="MU", help="one, not the task's range")
    command.add_argument(
        "--push", type=float, default=0.0, metavar="V", help="of mujoco: every 2 s, up to [m/s] (0)"
    )
    command.add_argument(
        "--bumps",
        type=float,
        default=0.0,
        metavar="H",
        help="of mujoco: boxes on the ground, H/3 to H high [m] (0)",
    )
    _add_json(command)


def _add_walk(commands: Commands[Parser]) -> None:
    command = commands.add_parser("walk", help="a learned policy in the real-time loop")
    command.add_argument("folder", metavar="DIR", help="folder of a training run")
    command.add_argument("--robot", default="self", help="self (default) or mujoco, in real time")
    command.add_argument(
        "--command",
        dest="velocity",
        type=float,
        nargs=3,
        default=[0.5, 0.0, 0.0],
        metavar=("VX", "VY", "YAW"),
        help="[m/s, rad/s] (0.5 0 0)",
    )
    command.add_argument("--duration", type=float, default=10.0, metavar="S", help="(10 s)")
    command.add_argument("--friction", type=float, default=0.8, metavar="MU", help="(0.8)")
    command.add_argument(
        "--pull",
        type=float,
        nargs=5,
        default=[0.0] * 5,
        metavar=("FX", "FY", "FZ", "START", "DURATION"),
        help="on the base [N, s]",
    )
    command.add_argument(
        "--lockstep", action="store_true", help="of mujoco: as fast as it goes, equal each time"
    )
    command.add_argument("--out", metavar="FILE", help="log of the run")
    _add_json(command)


def _add_export(commands: Commands[Parser]) -> None:
    command = commands.add_parser("export", help="write a learned policy for other programs")
    command.add_argument("folder", metavar="DIR", help="folder of a training run")
    command.add_argument("--onnx", metavar="FILE", required=True, help="to be written")
    _add_json(command)


def _add_bench(commands: Commands[Parser]) -> None:
    command = commands.add_parser(
        "bench",
        help="measure, and compare with the optimum",
        epilog=described("benchmarks", benchmarks.SUMMARIES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("name", metavar="NAME", help=names(benchmarks.SUMMARIES))
    command.add_argument("--quick", action="store_true", help="a smaller version")
    command.add_argument(
        "--seeds", metavar="A:B", help="of random: seeds A..B-1 (default 1000:1100)"
    )
    command.add_argument(
        "--crocoddyl-python", metavar="PATH", help="of peers and mpc: a Python that has crocoddyl"
    )
    command.add_argument(
        "--out", metavar="DIR", default="runs", help="for figures and partial results (runs)"
    )
    _add_json(command)


def _add_figure(commands: Commands[Parser]) -> None:
    command = commands.add_parser(
        "figure",
        help="draw a figure",
        epilog=described("figures", figures.SUMMARIES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("number", metavar="N|all", help=names([*figures.SUMMARIES, "all"]))
    command.add_argument("--out", metavar="DIR", default="runs", help="folder (runs)")
    command.add_argument("--quick", action="store_true", help="a coarser version")
    _add_json(command)


def _add_check(commands: Commands[Parser]) -> None:
    command = commands.add_parser(
        "check",
        help="what a robot's file says; derivatives of a robot or a task by finite differences",
    )
    command.add_argument(
        "model",
        metavar="MODEL|TASK",
        help=f"a robot (go2, hopper, biped, or an MJCF or URDF file), or a task: {TASK}",
    )
    named = "names in the file with commas between, * for any letters; may be repeated"
    command.add_argument(
        "--feet", action="append", metavar="NAMES", help=f"of a robot: {named} (guessed)"
    )
    command.add_argument(
        "--contacts", action="append", metavar="NAMES", help="what else may touch the ground"
    )
    command.add_argument(
        "--fixed-base", action="store_true", help="the robot's base is held by the world"
    )
    command.add_argument(
        "--samples", type=int, metavar="N", help="states: in each mode (2), of a task in all (200)"
    )
    command.add_argument("--seed", type=int, default=0, metavar="N", help="of the samples (0)")
    _add_json(command)


def _add_plot(commands: Commands[Parser]) -> None:
    command = commands.add_parser("plot", help="draw the log of a run on one sheet")
    command.add_argument("file", metavar="RUN", help="log of a run")
    command.add_argument("--out", metavar="FILE", help=".png, .pdf or .svg (RUN.png)")
    _add_json(command)


def _add_render(commands: Commands[Parser]) -> None:
    command = commands.add_parser("render", help="draw a motion as pictures, without a screen")
    command.add_argument("file", metavar="FILE", help="log of a run, or a saved solution")
    command.add_argument(
        "--out",
        metavar="DIR|FILE.gif",
        help="folder for numbered .png files, or one .gif (FILE.gif)",
    )
    command.add_argument("--fps", type=float, default=25.0, metavar="N", help="a second (25)")
    command.add_argument("--size", default="640x480", metavar="WxH", help="in pixels (640x480)")
    command.add_argument(
        "--renderer", default="auto", help="mujoco, sticks, or auto: the first where it works"
    )
    _add_json(command)


def _add_view(commands: Commands[Parser]) -> None:
    command = commands.add_parser("view", help="show a motion in the browser")
    command.add_argument("file", metavar="FILE", help="log of a run, or a saved solution")
    command.add_argument("--port", type=int, default=8080, metavar="N", help="0: any (8080)")
    command.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="who may look (127.0.0.1: nobody else)",
    )
    _add_json(command)


def _add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
