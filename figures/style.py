"""How all figures look: fonts, one colour for each gradient, one shade for each contact mode.

The colours are those of Okabe and Ito, told apart with any colour vision; every gradient also has
its own marker or line style. Contact modes are greys, so that they never compete with a gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cito.figures.runs import replacing


class Look(NamedTuple):
    """How the curve or the points of one method are drawn."""

    label: str
    color: str
    marker: str
    line: Any = "-"
    width: float = 1.6


EXACT = Look("exact", "#000000", "s")
SIGNORINI = Look("Signorini", "#E69F00", "^", (0, (5, 2)))
FULL_CONE = Look("full-cone", "#1F7FC4", "o")
ADAPTIVE = Look("adaptive", "#D55E00", "D", (0, (4, 1, 1, 1)))
RANDOMIZED_0 = Look("randomized, zeroth order", "#CC79A7", "v", "-", 1.1)
RANDOMIZED_1 = Look("randomized, first order", "#8A4FBF", "P", "-", 1.1)
OPTIMUM = Look("mixed-integer optimum", "#009E73", "*", (0, (3, 1.5)), 2.4)
LOOKS = {"exact": EXACT, "signorini": SIGNORINI, "full-cone": FULL_CONE, "adaptive": ADAPTIVE}

MODE_NAMES = ("separating", "sliding", "clamping")
MODE_SHADES = ("#F0F0F0", "#B4B4B4", "#5E5E5E")
MODE_TINTS = ("#FFFFFF", "#F1F1F1", "#DFDFDF")  # the same order, as backgrounds of curves

_SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": False,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "figure.dpi": 160,
    "savefig.dpi": 160,
}


@contextmanager
def sheet(width: float, height: float) -> Iterator[Figure]:
    """A figure of width x height inches; what is drawn within the block has this style."""
    with matplotlib.rc_context(_SETTINGS):
        yield Figure(figsize=(width, height), layout="constrained")


def write(figure: Figure, out: Path, dpi: int = 160) -> Path:
    """Write the picture under a temporary name, then rename it."""
    with replacing(out) as temporary:
        figure.savefig(temporary, dpi=dpi, format="png", metadata={"Software": None})
    return out


def blues(count: int) -> list[str]:
    """Shades of the full-cone colour, from light to dark."""
    color_map = matplotlib.colors.LinearSegmentedColormap.from_list("blues", BLUES)
    return [matplotlib.colors.to_hex(color_map(k / max(count - 1, 1))) for k in range(count)]


BLUES = ("#85C8F2", "#1F7FC4", "#0A3A82")


def mode_patches(shades: Sequence[str]) -> list[Patch]:
    """Legend entries of the contact modes."""
    return [
        Patch(facecolor=shade, edgecolor="#808080", linewidth=0.6, label=name)
        for name, shade in zip(MODE_NAMES, shades)
    ]


def panel_letter(axes: Axes, letter: str) -> None:
    """(a), (b), ... above the upper left corner of a panel."""
    axes.set_title(f"({letter})", loc="left", fontweight="bold")
