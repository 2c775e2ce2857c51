"""The calls of a log that report what it consists of, and what its positions hold."""

from __future__ import annotations

from zlog._audit.position_map import PositionMap, map_of
from zlog._base.deadline import Timeout
from zlog._io.aio import drive
from zlog._positions.stat import LogStat, stat
from zlog.aio._handle import LogHandle
from zlog.view import Stripe, View


class Inspection(LogHandle):
    """Reports stripes, views and positions."""

    async def stripes(
        self, start: int = 0, end: int | None = None, *, timeout: Timeout = ...
    ) -> list[Stripe]:
        """Return all stripes that hold positions of ``[start, end)``, in ascending order.

        The archived ones too, which a :attr:`view` does not name. Every position of the range that
        was handed out before the call, and that is not trimmed, lies in one of them. Stripes that
        are trimmed as a whole are left out. Asks the head object: once, and once more for every
        1,024 archived stripes that this handle has not looked up yet.

        Args:
            start: the first position.
            end: one past the last; None: the range has no end, and the open stripe is the last.
            timeout: budget of the call.

        Raises:
            CorruptEntry: the head has lost a stripe.
        """
        return await drive(self._client.stripes(start, end, self._deadline(timeout)))

    async def stat(
        self, start: int = 0, end: int | None = None, *, timeout: Timeout = ...
    ) -> LogStat:
        """Return the log at a glance; asks every stripe object once.

        Args:
            start, end: count only the stripes that hold positions of ``[start, end)``, each as a
                whole; None: the range has no end.
            timeout: budget of the call.
        """
        return await drive(stat(self._client.positions, start, end, self._deadline(timeout)))

    async def position_map(
        self, start: int = 0, end: int | None = None, *, cells: int = 512, timeout: Timeout = ...
    ) -> PositionMap:
        """Return what the positions of ``[start, end)`` hold, in cells of equal length.

        Objects tell of up to 256 positions of each cell, and send no entry. So a call costs the
        same for a hundred positions as for a hundred million, and is exact where cells are short.

        Args:
            start: the first position.
            end: one past the last one; None, and what lies above it, is the tail.
            cells: how many at most, 1 to 4,096.
            timeout: budget of the call.
        """
        return await drive(
            map_of(self._client.positions, start, end, cells, self._deadline(timeout))
        )

    async def views(self, *, timeout: Timeout = ...) -> list[View]:
        """Return the layouts of the last 128 epochs, oldest first."""
        return await drive(self._client.layout.head.views(self._deadline(timeout)))
