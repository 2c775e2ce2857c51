"""Lines in the log about connections that were refused or closed, a bounded number of them."""

from __future__ import annotations

import logging

from zlog.seqr.machine.admission import Reason

_logger = logging.getLogger(__name__)


class Complaints:
    """Logs the first of each kind at once, and how many followed with the next one.

    Args:
        seconds: between two lines about the same reason.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._told: dict[Reason, float] = {}
        self._untold: dict[Reason, int] = {}

    def tell(self, reason: Reason, peer: str, detail: str, now: float) -> None:
        """Log that a connection was refused or closed, unless one like it was a moment ago.

        Args:
            reason: of which one line is logged per interval.
            peer: the other side's IP address.
            detail: what happened, without anything that the peer has sent as text.
            now: the time in seconds, monotonic.
        """
        told = self._told.get(reason)
        if told is not None and now < told + self._seconds:
            self._untold[reason] = self._untold.get(reason, 0) + 1
            return
        self._told[reason] = now
        more = self._untold.pop(reason, 0)
        others = f" ({more} more since the last such line)" if more else ""
        _logger.info(
            "closed a connection reason=%s peer=%s: %s%s", reason.value, peer, detail, others
        )
