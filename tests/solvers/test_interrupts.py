"""Ctrl-C in the middle of IPOPT: the solver stops, and says why."""

import os
import signal
import sys
import threading
import time

import pytest

import cito
from cito.solvers import complementarity
from cito.solvers.complementarity import solve_complementarity
from cito.solvers.interrupts import noticed_interrupts


def test_an_interrupt_is_noticed_and_raised_and_the_handler_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with noticed_interrupts() as noticed:
        assert not noticed
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        assert noticed == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_and_other_handlers_are_left_alone() -> None:
    def handler(number: int, frame: object) -> None:
        raise AssertionError("no signal is sent here")

    before = signal.signal(signal.SIGINT, handler)
    try:
        with noticed_interrupts() as noticed:
            assert signal.getsignal(signal.SIGINT) is handler and not noticed
    finally:
        signal.signal(signal.SIGINT, before)
    seen: list[list[int]] = []

    def work() -> None:
        with noticed_interrupts() as noticed:
            seen.append(noticed)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [[]] and signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("swallowed", [True, False])
def test_the_complementarity_program_ends_at_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, swallowed: bool
) -> None:
    """The signal comes in the second stage: while IPOPT is at work, which goes on, or before."""
    make_solver, stages = complementarity.ca.nlpsol, []

    def interrupted_solver(*arguments: object) -> object:
        stages.append(arguments)
        if len(stages) == 2:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)
            except KeyboardInterrupt:
                if not swallowed:
                    raise
        return make_solver(*arguments)

    monkeypatch.setattr(complementarity.ca, "nlpsol", interrupted_solver)
    solution = solve_complementarity(cito.make("hop"))
    assert solution.status is cito.Status.INTERRUPTED
    assert len(solution.history) == len(stages) == 2
    assert solution.contact_residual < 1e-9


def test_what_casadi_says_of_an_interrupt_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_solver = complementarity.ca.nlpsol

    class Loud:
        def __init__(self, *arguments: object) -> None:
            self._solver = make_solver(*arguments)
            self.stats = self._solver.stats

        def __call__(self, **arguments: object) -> object:
            print('WARNING("KeyboardInterruptException")', file=sys.stderr)
            return self._solver(**arguments)

    monkeypatch.setattr(complementarity.ca, "nlpsol", Loud)
    assert solve_complementarity(cito.make("lift-off", horizon=4)).converged
    assert capsys.readouterr().err == ""
