"""The time budget of a call: one for everything the call does, however often it tries."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import EllipsisType

Timeout = float | EllipsisType | None
"""Seconds that a call may take; None: without limit; ``...``: as its handle was opened."""


def check_seconds(what: str, seconds: float | None, *, optional: bool = True) -> None:
    """Raise TypeError or ValueError unless ``seconds`` is a valid time-out.

    Args:
        what: the time-out's name.
        seconds: it.
        optional: whether None is valid, for no limit.
    """
    if seconds is None and optional:
        return
    if seconds is None or not hasattr(seconds, "__float__"):  # which NumPy's numbers have too
        kind = "a number of seconds or None" if optional else "a number of seconds"
        raise TypeError(f"{what} is {kind}, not {seconds!r}")
    if not seconds >= 0:
        raise ValueError(f"{what} is a number of seconds, 0 or more, not {seconds}")


def _endless(seconds: float) -> bool:
    try:
        return seconds >= threading.TIMEOUT_MAX
    except TypeError:
        check_seconds("a time-out", seconds)
        raise


class Deadline:
    """A point in time that a call must not outlive.

    A public call makes one from its ``timeout=`` and hands it down, so that retries, reconnections
    and view changes all draw on the same budget.

    Args:
        seconds: the budget from now on; None for no limit, and so is what no lock can wait for,
            which is centuries. Zero has expired already.
        clock: a monotonic clock in seconds; tests and simulations pass their own.

    Raises:
        TypeError: no number.
        ValueError: less than nothing, or NaN.
    """

    __slots__ = ("_clock", "_end")

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        if seconds is None or _endless(seconds):
            self._end = None
        else:
            check_seconds("a time-out", seconds)
            self._end = clock() + seconds

    @classmethod
    def never(cls) -> Deadline:
        """Return the deadline that never comes."""
        return _NEVER

    @property
    def expired(self) -> bool:
        """Whether the budget is used up."""
        return self._end is not None and self._clock() >= self._end

    def remaining(self) -> float | None:
        """Return the seconds that are left, at least 0.0; None when there is no limit."""
        if self._end is None:
            return None
        return max(0.0, self._end - self._clock())

    def within(self, seconds: float) -> float:
        """Return the seconds that one step may take: ``seconds``, or what is left if less."""
        left = self.remaining()
        return seconds if left is None else min(seconds, left)

    def sooner(self, seconds: float) -> Deadline:
        """Return a deadline for one step: ``seconds`` from now, but not after this one."""
        return Deadline(self.within(seconds), self._clock)


_NEVER = Deadline(None)
