"""Robots by name: the models that come with the package."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from cito.dynamics import robot as _robot

MODELS = Path(__file__).parent / "models"


SUMMARIES = {
    "biped": "planar biped, 12 kg, hips and knees driven, two ball feet",
    "go2": "Unitree Go2 quadruped, 16.09 kg, 12 drives, four ball feet",
    "hopper": "planar hopper, 3.8 kg, hip and knee driven, one ball foot",
}


def robots() -> list[str]:
    """Names of the robots that come with the package."""
    return list(SUMMARIES)


def load_robot(
    name_or_path: str | Path,
    feet: Sequence[str] | None = None,
    floating_base: bool | None = None,
    contacts: Sequence[str] = (),
    joint_limits: bool = False,
) -> _robot.Robot:
    """A robot that comes with the package, or one of your own from a file.

    Args:
        name_or_path: "go2", "hopper", "biped", or the path of an MJCF (.xml) or URDF file; meshes
            it names are not needed.
        feet: names of geometries, sites, bodies or frames, in the order wanted; `*` stands for
            any letters. By default what is named after a leg (FL, RH, ...) or a foot.
        floating_base: whether the base moves freely; by default as the file has it, and a URDF
            without a link called world floats.
        contacts: what else may touch the ground, named in the same way: ["trunk", "*_knee"].
        joint_limits: whether the limits of the joints are contacts too, one-dimensional and after
            the others; else they are only stated.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: no such robot, or the file is none a tree can hold; names what and where.
    """
    if isinstance(name_or_path, str) and name_or_path in robots():
        path = MODELS / f"{name_or_path}.xml"
        return _robot.load_robot(path, feet, floating_base, contacts, joint_limits)
    path = Path(name_or_path)
    if not path.suffix and len(path.parts) <= 1 and not path.exists():
        near = difflib.get_close_matches(str(path), robots(), 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(robots())}"
        raise ValueError(f"`name_or_path` is no robot and no file: {str(path)!r}; {hint}")
    return _robot.load_robot(path, feet, floating_base, contacts, joint_limits)
