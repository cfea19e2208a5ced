# SPDX-License-Identifier: Apache-2.0
"""Ends a program on a signal, as continuous integration sends it to cancel a job, like an error: its begun work is
undone, its processes are ended, and its temporary folders are removed.

The command line and the pytest plugin do so by themselves. A script of one's own:

    from tinyet.build.ending import ended_by_signals

    with ended_by_signals():
        project.validate(on="qemu")

Emulators end with the process that started them without this, too.
"""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


class Ended(SystemExit):
    """A signal has come; the exit status is 128 and its number, as a shell has it."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.signal = signal.Signals(number).name


def _raise(number: int) -> None:
    raise Ended(number)


class _Wait:
    """In the main thread: the number of parts of the program that must not be disturbed, and the handling of a signal
    that waits for their end."""

    parts = 0
    waiting: Callable[[], None] | None = None


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """A short part of the program after which the needed clean-up is known: a signal that comes meanwhile ends the
    program after it."""
    if threading.current_thread() is not threading.main_thread():
        # Signals are handled in the main thread alone.
        yield
        return
    _Wait.parts += 1
    try:
        yield
    finally:
        _Wait.parts -= 1
        if _Wait.parts == 0 and _Wait.waiting is not None:
            waiting, _Wait.waiting = _Wait.waiting, None
            waiting()


@contextlib.contextmanager
def ended_by_signals(end: Callable[[int], None] = _raise) -> Iterator[None]:
    """While this lasts, the first SIGTERM or SIGHUP raises Ended in the main thread; those that follow change nothing,
    so that the way out is not cut short.

    end: called with the signal's number instead; it raises. A signal that other code handles or ignores is left
    alone, and outside the main thread nothing is changed.
    """

    def first(number: int, _frame: FrameType | None) -> None:
        for other in handled:
            signal.signal(other, signal.SIG_IGN)
        if _Wait.parts:
            _Wait.waiting = functools.partial(end, number)
        else:
            end(number)

    wanted = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    here = threading.current_thread() is threading.main_thread()
    handled = [number for number in wanted if here and signal.getsignal(number) == signal.SIG_DFL]
    for number in handled:
        signal.signal(number, first)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
