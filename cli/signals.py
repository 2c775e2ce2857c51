"""Turns SIGTERM and SIGHUP into an exception, so that the command can clean up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


class Terminated(BaseException):
    """Raised when a signal ends the command. Like KeyboardInterrupt, it is not an ``Exception``.

    Attributes:
        number: the number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def ending() -> list[signal.Signals]:
    """Return the signals that end a command: SIGTERM and SIGHUP, if they are not ignored.

    A process gets SIGHUP when it loses its terminal. ``nohup`` makes a process ignore it.
    """
    signals = (signal.SIGTERM, signal.SIGHUP)
    return [each for each in signals if signal.getsignal(each) is not signal.SIG_IGN]


@contextmanager
def terminable() -> Iterator[None]:
    """Raise Terminated at SIGTERM and SIGHUP during a ``with`` block."""
    before = {number: signal.signal(number, _raise) for number in ending()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise(number: int, _frame: FrameType | None) -> NoReturn:
    if number == signal.SIGHUP:  # sent by both the kernel and a shell: the second is not impatience
        signal.signal(number, signal.SIG_IGN)
    raise Terminated(number)
