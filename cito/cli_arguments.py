"""The commands and their arguments."""

from __future__ import annotations

import argparse

import cito
from cito import benchmarks, figures
from cito.cli_arguments_learning import add_eval, add_export, add_train, add_walk
from cito.cli_parser import TASK, Commands, Parser, add_json, described, names

EXIT_STATUS = """exit status:
  0  there is a result (whether it converged: `converged` in the JSON)
  1  the work failed; the reason is on standard error
  2  misuse
  130  interrupted; the best result so far is printed
"""


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
    add_train(commands)
    add_eval(commands)
    add_walk(commands)
    add_export(commands)
    _add_plot(commands)
    _add_render(commands)
    _add_view(commands)
    return top


def _add_list(commands: Commands[Parser]) -> None:
    command = commands.add_parser(
        "list", help="tasks, robots, gradients, solvers; a task's parameters"
    )
    command.add_argument("task", nargs="?", metavar="TASK", help=f"show its parameters; {TASK}")
    add_json(command)


def _add_solve(commands: Commands[Parser]) -> None:
    command = commands.add_parser("solve", help="solve a task")
    command.add_argument("task", metavar="TASK", help=TASK)
    command.add_argument("--solver", default="ddp", help="ddp (default), mpcc or miqp")
    command.add_argument(
        "--gradient",
        metavar="NAME",
        help="of ddp: adaptive (default), portfolio, exact, signorini, full-cone, randomized, "
        "bundled",
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
    add_json(command)


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
    add_json(command)


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
    add_json(command)


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
    add_json(command)


def _add_plot(commands: Commands[Parser]) -> None:
    command = commands.add_parser("plot", help="draw the log of a run on one sheet")
    command.add_argument("file", metavar="RUN", help="log of a run")
    command.add_argument("--out", metavar="FILE", help=".png, .pdf or .svg (RUN.png)")
    add_json(command)


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
    add_json(command)


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
    add_json(command)


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
    add_json(command)
