"""How long a sequencer has been out of reach, as far as this client's own attempts tell."""

from __future__ import annotations

import math

from zlog._base.io import Io

LOOK_SECONDS = 1.0
"""How long a request may hang before its client looks whether the log has another sequencer."""

_SLACK_SECONDS = 0.01
"""Timers may fire a little early."""


class Outage:
    """The time over which attempts to reach one view's sequencer have failed without a success.

    It counts from the beginning of the first failed attempt to the end of the last. Failures of
    different calls that lie further apart than the limit say nothing of the time between them, and
    do not add up.

    Args:
        io: the clock.
        limit: seconds after which the sequencer counts as lost.
    """

    def __init__(self, io: Io, limit: float) -> None:
        self.limit = limit
        self._io = io
        self._epoch = 0
        self._began = self._ended = self._answered = -math.inf

    def patience(self, epoch: int) -> float:
        """Seconds that an attempt in this epoch may take before it is time to look at the view."""
        left = self.limit
        if epoch == self._epoch:
            left -= self._io.monotonic() - self._began
        return min(LOOK_SECONDS, max(left, _SLACK_SECONDS))

    def failed(self, epoch: int, began: float) -> None:
        """Note attempts in this epoch, the first of which began then and the last failed now."""
        began = max(began, self._answered)  # others may have been answered meanwhile
        if epoch != self._epoch or began - self._ended > self.limit:
            self._epoch, self._began = epoch, began
        self._ended = self._io.monotonic()

    def answered(self) -> None:
        """Note that the sequencer was reached."""
        self._epoch = 0
        self._answered = self._io.monotonic()

    def lost(self, epoch: int) -> bool:
        """Whether the sequencer of the view with this epoch was out of reach for too long."""
        return epoch == self._epoch and self._ended - self._began + _SLACK_SECONDS >= self.limit
