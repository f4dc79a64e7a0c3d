"""The metrics of a training as TensorBoard reads them.

    tensorboard --logdir runs/trot

One scalar a column of the metrics, over the control steps of all robots: `cost/total`, `cost/NAME`
for each term, and `training/NAME` for the rest. A run that goes on after it was killed drops what
was written after its checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any

FOLDER = "tensorboard"  # in that of a run
TERM = "cost_"  # how the columns of the cost's terms begin


class EventLog:
    """A writer of event files.

    Args:
        run: folder of the run.
        steps: control steps that it goes on from.

    Raises:
        ImportError: see `writer`.
    """

    def __init__(self, run: str | os.PathLike[str], steps: int = 0) -> None:
        # The suffix: files that begin in one second would have one name.
        self._writer: Any = writer()(
            os.path.join(run, FOLDER), purge_step=steps + 1, filename_suffix=f".{steps}"
        )

    def __enter__(self) -> EventLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close()

    def write(self, row: Mapping[str, float]) -> None:
        """The metrics of an update."""
        for name, value in row.items():
            if name != "steps":
                self._writer.add_scalar(tag(name), value, int(row["steps"]))


def tag(column: str) -> str:
    """What a column of the metrics is called in TensorBoard."""
    if column == "cost":
        return "cost/total"
    if column.startswith(TERM):
        return f"cost/{column.removeprefix(TERM)}"
    return f"training/{column}"


def writer() -> Any:
    """The class that writes event files.

    Raises:
        ImportError: tensorboardX is not installed.
    """
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise ImportError(
            "events for TensorBoard need tensorboardX: "
            "pip install '.[tensorboard]' in cito's folder"
        ) from error
    return SummaryWriter
