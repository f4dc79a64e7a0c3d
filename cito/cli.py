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
from collections.abc import Sequence

from cito.cli_arguments import parser

DEBUG = "CITO_DEBUG"  # set in the environment, it shows where an error came from


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
        case ArithmeticError():
            from cito.problems.locomotion.finite import NotFinite

            if isinstance(error, NotFinite):
                return told, 1
    return f"unexpected {type(error).__name__}: {told} ({DEBUG}=1 shows the traceback)", 1


def complain(message: str, status: int) -> int:
    """Say what went wrong on standard error."""
    if sys.stderr is not None:
        print(f"cito: {message}", file=sys.stderr)
    return status
