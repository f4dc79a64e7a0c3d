"""Arguments of the commands that learn."""

from __future__ import annotations

from argparse import ArgumentTypeError

from cito.cli_parser import Commands, Parser, add_json


def add_train(commands: Commands[Parser]) -> None:
    """`cito train`. What was not given is None: algorithms refuse what is not for them."""
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
        metavar="NAME",
        help="of contacts: full-cone (default), exact, signorini, randomized or bundled",
    )
    command.add_argument("--rho", type=float, metavar="J", help="relaxation of the gradient [J]")
    command.add_argument("--robot", metavar="NAME|FILE", help="(go2)")
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
    command.add_argument(
        "--out", type=_folder, metavar="DIR", required=True, help="folder of the run"
    )
    command.add_argument("--resume", action="store_true", help="go on with the run in DIR")
    command.add_argument(
        "--tensorboard",
        action="store_const",
        const=True,
        help="write events for TensorBoard into DIR, too",
    )
    add_json(command)


def add_eval(commands: Commands[Parser]) -> None:
    """`cito eval`."""
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
    add_json(command)


def add_walk(commands: Commands[Parser]) -> None:
    """`cito walk`."""
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
    add_json(command)


def add_export(commands: Commands[Parser]) -> None:
    """`cito export`."""
    command = commands.add_parser("export", help="write a learned policy for other programs")
    command.add_argument("folder", metavar="DIR", help="folder of a training run")
    command.add_argument("--onnx", metavar="FILE", required=True, help="to be written")
    add_json(command)


def _folder(given: str) -> str:
    """A folder's name; an empty one would be the current folder."""
    if not given:
        raise ArgumentTypeError("it must name a folder, got ''")
    return given
