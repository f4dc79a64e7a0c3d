"""Ctrl-C while a foreign solver runs that would swallow it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noticed_interrupts() -> Iterator[list[int]]:
    """A list that is no longer empty once Ctrl-C was pressed; KeyboardInterrupt is raised as ever.

    CasADi turns the KeyboardInterrupt into a failed evaluation, from which IPOPT recovers: the list
    tells that there was one. Outside the main thread, where no signal arrives, it stays empty.
    """
    noticed: list[int] = []
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield noticed
        return

    def notice(number: int, frame: FrameType | None) -> None:
        noticed.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, notice)
    try:
        yield noticed
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
