"""Figure soft-body: shapes that an actuated body shall take, and fields that make it take them.

A column for each task of `cito.problems.soft_bodies`. Above: targets of three times (grey) and the
shapes that the trained SIREN makes (blue), drawn on the refined mesh, which it was not trained on.
Middle: RMS distance over the size while training, of three fields with as many parameters. Below:
that distance at the end on the mesh of the training and, hatched, on the refined one; the decoder
belongs to one mesh and has none there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb

from cito.dynamics.types import Array
from cito.figures import runs, style
from cito.figures.style import Look

LOOKS = {
    "siren": Look("SIREN", "#1F7FC4", "o", "-", 2.0),
    "decoder": Look("decoder of elements", "#D55E00", "s", (0, (4, 1, 1, 1))),
    "mlp": Look("plain network", "#7F7F7F", "^", (0, (5, 2))),
}
TARGET = "#B4B4B4"
SHOWN = 3  # shapes of a sequence
# Directions to the right and up in the picture, by task; planar ones are drawn as they are.
VIEWS = {
    "twisting-bar": ((0.86, -0.5, 0.0), (0.22, 0.38, 0.9)),
    "inflating-slab": ((0.8, -0.6, 0.0), (0.3, 0.4, 0.87)),
    "face": ((0.92, 0.0, -0.39), (-0.08, 0.98, -0.19)),
}


def settings(quick: bool) -> dict[str, Any]:
    """What a saved run depends on."""
    from cito.benchmarks import soft_body

    return {
        "figure": "soft-body",
        "trainings": [list(t) for t in _trainings(quick)],
        "poses": soft_body.QUICK_POSES if quick else list(soft_body.POSES.values()),
        "steps": list((soft_body.QUICK_STEPS if quick else soft_body.STEPS).values()),
    }


def compute(path: Path, quick: bool) -> None:
    """Train, and keep what is drawn.

    Arrays by task: faces (k, d) of the refined mesh, targets and shapes (SHOWN, n, d) there;
    by task and field: history (steps,). Facts: the rows of the benchmark.
    """
    from cito.benchmarks import soft_body

    arrays: dict[str, Any] = {}
    rows = []
    for name, field, seed in _trainings(quick):
        learner, times, made, seconds = soft_body.trained(name, field, seed, quick)
        rows.append(soft_body.measured(learner, times, made, seconds))
        arrays[f"{name}/{field}/history"] = np.array([step.error for step in learner.history])
        if field == "siren":
            mesh = learner.task.levels[1][0]
            shown = np.linspace(0, len(times) - 1, SHOWN).round().astype(int)
            arrays[f"{name}/faces"] = _faces(mesh)
            arrays[f"{name}/targets"] = made.positions[shown, : len(mesh.vertices)]
            arrays[f"{name}/shapes"] = learner.shapes(level=1).positions[shown]
    runs.save(path, arrays, {"rows": rows}, settings(quick))


def draw(path: Path, out: Path) -> Path:
    """The figure of the saved run at `path`."""
    run = runs.load(path)
    rows = run.facts["rows"]
    names = list(dict.fromkeys(row["name"] for row in rows))
    with style.sheet(2.9 * len(names), 7.2) as figure:
        panels = figure.subplots(3, len(names), height_ratios=(2.4, 1.2, 1.2), squeeze=False)
        for column, name in zip(panels.T, names):
            column[0].set_title(name.replace("-", " "))
            _draw_shapes(column[0], run, name)
            _draw_histories(column[1], run, name)
            _draw_errors(column[2], [row for row in rows if row["name"] == name])
        panels[1, 0].set_ylabel("RMS distance [% of size]")
        panels[2, 0].set_ylabel("at the end [% of size]")
        handles, labels = panels[1, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(LOOKS))
        return style.write(figure, out)


def _trainings(quick: bool) -> list[tuple[str, str, int]]:
    """Of the benchmark's, those of its first seed."""
    from cito.benchmarks import soft_body

    return [t for t in soft_body.trainings(quick) if t[2] == 0]


def _faces(mesh: Any) -> Any:
    """What is drawn of a mesh: its triangles, or those of its surface, corners only."""
    return mesh.corners if mesh.dimension == 2 else mesh.boundary


def _draw_shapes(axes: Axes, run: runs.Run, name: str) -> None:
    faces, targets, shapes = (run.arrays[f"{name}/{k}"] for k in ("faces", "targets", "shapes"))
    d = targets.shape[2]
    right, up = (np.array(v) for v in VIEWS.get(name, ((1.0, 0.0), (0.0, 1.0))))
    tall = np.ptp(targets @ up) if d == 2 else max(np.ptp(x @ up) for x in targets)
    for k, (target, shape) in enumerate(zip(targets, shapes)):
        down = -1.15 * k * tall if d == 3 else -0.7 * k * tall
        for x, color, alpha in ((target, TARGET, 1.0), (shape, LOOKS["siren"].color, 0.75)):
            shift = 0.0 if color == TARGET or d == 2 else 1.15 * np.ptp(targets[0] @ right)
            corners = np.stack([x @ right + shift, x @ up + down], axis=1)[faces]
            order, shade = _lit(x[faces], right, up) if d == 3 else (np.arange(len(faces)), 1.0)
            colors = np.outer(np.atleast_1d(shade), to_rgb(color))
            colors = np.broadcast_to(colors, (len(faces), 3))
            axes.add_collection(
                PolyCollection(
                    list(corners[order]), facecolors=colors[order], alpha=alpha,
                    edgecolors="#FFFFFF" if d == 2 else colors[order] * 0.85, linewidths=0.2,
                )
            )  # fmt: skip
    axes.autoscale_view()
    axes.set_aspect("equal")
    axes.axis("off")


def _lit(triangles: Array, right: Array, up: Array) -> tuple[Any, Array]:
    """Triangles (k, 3, 3) from the back to the front, and how much light each gets."""
    front = np.cross(right, up)
    front /= np.linalg.norm(front)
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True) + 1e-300
    light = 0.5 * front + 0.7 * up + 0.3 * right
    shade: Array = 0.62 + 0.38 * np.clip(normals @ light / np.linalg.norm(light), 0, 1)
    return np.argsort(triangles.mean(axis=1) @ front), shade


def _draw_histories(axes: Axes, run: runs.Run, name: str) -> None:
    for field, look in LOOKS.items():
        key = f"{name}/{field}/history"
        if key in run.arrays:
            axes.plot(
                100 * run.arrays[key], label=look.label, color=look.color, linestyle=look.line,
                linewidth=look.width,
            )  # fmt: skip
    axes.set(yscale="log", xlabel="step")


def _draw_errors(axes: Axes, rows: list[dict[str, Any]]) -> None:
    for k, row in enumerate(rows):
        look = LOOKS[row["field"]]
        axes.bar(k - 0.2, 100 * row["error"], 0.38, color=look.color)
        if row["refined_error"] is not None:
            axes.bar(
                k + 0.2, 100 * row["refined_error"], 0.38, color="white", edgecolor=look.color,
                hatch="////",
            )  # fmt: skip
        else:
            axes.text(k + 0.2, 0, "none", rotation=90, ha="center", va="bottom", fontsize=7)
    axes.axhline(100 * rows[0]["bar"], color="black", linewidth=0.8, linestyle=(0, (1, 1)))
    axes.set_xticks(range(len(rows)), [row["field"] for row in rows])


SCRIPT = runs.Script("soft-body", settings, compute, draw)


def make(out: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Draw the figure into the folder `out`; returns the picture and the saved run."""
    return SCRIPT.make(out, quick, fresh)


if __name__ == "__main__":
    SCRIPT.main()
