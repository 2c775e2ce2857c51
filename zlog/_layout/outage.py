"""Measures how long this client has been unable to reach a sequencer."""

from __future__ import annotations

import math

from zlog._base.io import Io

LOOK_SECONDS = 1.0
"""How long a request may hang before the client checks whether the log has another sequencer."""

_SLACK_SECONDS = 0.01
"""A tolerance, because timers may fire a little early."""


class Outage:
    """Measures how long a view's sequencer has been unreachable.

    The sequencer counts as lost once all attempts have failed for ``limit`` seconds. A successful
    attempt starts the measurement again. So does a pause of more than ``limit`` seconds between two
    failures, during which the sequencer may have been reachable.
    """

    def __init__(self, io: Io, limit: float) -> None:
        self.limit = limit
        self._io = io
        self._epoch = 0
        self._began = self._ended = self._answered = -math.inf

    def patience(self, epoch: int) -> float:
        """Return how many seconds an attempt may take before the client looks at the view."""
        left = self.limit
        if epoch == self._epoch:
            left -= self._io.monotonic() - self._began
        return min(LOOK_SECONDS, max(left, _SLACK_SECONDS))

    def failed(self, epoch: int, began: float) -> None:
        """Record that attempts in this epoch failed, from ``began`` until now."""
        began = max(began, self._answered)  # another call may have been answered since
        if epoch != self._epoch or began - self._ended > self.limit:
            self._epoch, self._began = epoch, began
        self._ended = self._io.monotonic()

    def answered(self) -> None:
        """Record that the sequencer was reached."""
        self._epoch = 0
        self._answered = self._io.monotonic()

    def lost(self, epoch: int) -> bool:
        """Whether the sequencer of this epoch's view was unreachable for too long."""
        return epoch == self._epoch and self._ended - self._began + _SLACK_SECONDS >= self.limit
