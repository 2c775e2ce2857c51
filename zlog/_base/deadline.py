"""The time budget of a call, which all its attempts share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import EllipsisType

Timeout = float | EllipsisType | None
"""The time limit of a call in seconds. None means no limit, and ``...`` the handle's limit."""


def check_seconds(what: str, seconds: float | None, *, optional: bool = True) -> None:
    """Check that ``seconds`` is a valid timeout. If not, raise TypeError or ValueError.

    Errors call the timeout ``what``. If ``optional`` is set, None is valid and means no limit.
    """
    if seconds is None and optional:
        return
    if seconds is None or not hasattr(seconds, "__float__"):  # which NumPy's numbers have too
        kind = "a number of seconds or None" if optional else "a number of seconds"
        raise TypeError(f"{what} must be {kind}, not {seconds!r}")
    if not seconds >= 0:
        raise ValueError(f"{what} must be a number of seconds, 0 or more, not {seconds}")


def _endless(seconds: float) -> bool:
    try:
        return seconds >= threading.TIMEOUT_MAX
    except TypeError:
        check_seconds("a time-out", seconds)
        raise


class Deadline:
    """The time at which a call must end.

    A public call makes a deadline from its ``timeout=`` and passes it down, so that retries,
    reconnections and view changes share the budget.

    Args:
        seconds: how long the call may take. None, or more than a lock can wait, means no limit.
        clock: a monotonic clock in seconds.

    Raises:
        TypeError, ValueError: ``seconds`` is not a number, or is negative or NaN.
    """

    __slots__ = ("_clock", "_end")

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        if seconds is None or _endless(seconds):
            self._end = None
        else:
            check_seconds("a time-out", seconds)
            self._end = clock() + seconds

    @property
    def expired(self) -> bool:
        """Whether the budget is used up."""
        return self._end is not None and self._clock() >= self._end

    def remaining(self) -> float | None:
        """Return how many seconds are left, at least 0.0. Returns None if there is no limit."""
        if self._end is None:
            return None
        return max(0.0, self._end - self._clock())

    def within(self, seconds: float) -> float:
        """Return ``seconds``, or the time that is left if that is shorter."""
        left = self.remaining()
        return seconds if left is None else min(seconds, left)

    def sooner(self, seconds: float) -> Deadline:
        """Return a deadline ``seconds`` from now, but not later than this deadline."""
        return Deadline(self.within(seconds), self._clock)
