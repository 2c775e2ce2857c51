"""A reader's position, stored in the log, as :meth:`zlog.aio.Log.cursor` returns it."""

from __future__ import annotations

from zlog._base.deadline import Timeout
from zlog._base.process import ProcessBound
from zlog._io.aio import drive
from zlog._positions.positions import PositionSpec
from zlog._read.cursors import CursorClient, CursorState


class Cursor(ProcessBound):
    """A handle on one named cursor of a log.

    The position is the next one to read. A reader that commits after processing an entry gets each
    entry at least once, even if it dies; a reader that commits before, at most once.

        cursor = await log.cursor("billing", create="earliest")
        async for item in log.follow(cursor.position):
            ...
            await cursor.commit(item.end)

    No trim passes a cursor unless it says so. Remove the cursors of readers that are gone.

    Every method raises CursorNotFound if the cursor was removed, and the errors of every call on
    the log.
    """

    def __init__(self, client: CursorClient) -> None:
        """Wrap a client; programs call ``cursor`` of a log."""
        self._client = client

    @property
    def name(self) -> str:
        """The cursor's name."""
        return self._client.name

    @property
    def position(self) -> int:
        """The next position to read, as this handle last saw it, without a request."""
        return self._client.position

    async def state(self, *, timeout: Timeout = ...) -> CursorState:
        """Return the current state of the cursor in the log."""
        return await drive(self._client.state(timeout))

    async def commit(self, position: int, *, timeout: Timeout = ...) -> None:
        """Record that everything below ``position`` is done; after an item, pass its ``end``.

        Durable when it returns. If several readers use one cursor, the highest position counts, and
        the others get CursorAhead.

        Raises:
            CursorAhead: the cursor is at a higher position, and stays there.
            BeyondTail: the position is above the tail.
        """
        await drive(self._client.commit(position, timeout))

    async def reset(self, position: PositionSpec, *, timeout: Timeout = ...) -> None:
        """Move the cursor anywhere, also back. A removed cursor is created again.

        Args:
            position: a number, ``"earliest"`` or ``"latest"``.

        Raises:
            Invalidated: the position is below the trim point.
            BeyondTail: it was not granted yet.
        """
        await drive(self._client.reset(position, timeout))

    async def lag(self, *, timeout: Timeout = ...) -> int:
        """Return the number of positions between the cursor and the tail."""
        return await drive(self._client.lag(timeout))

    async def remove(self, *, timeout: Timeout = ...) -> None:
        """Remove the cursor from its log. It no longer limits trims."""
        await drive(self._client.remove(timeout))

    def __repr__(self) -> str:
        return f"<zlog.aio.Cursor {self.name!r} at {self.position}>"
