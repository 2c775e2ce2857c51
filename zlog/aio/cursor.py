"""Where a reader is in a log, kept by the log: what :meth:`zlog.aio.Log.cursor` returns."""

from __future__ import annotations

from zlog._base.deadline import Timeout
from zlog._base.process import ProcessBound
from zlog._io.aio import drive
from zlog._positions.positions import PositionSpec
from zlog._read.cursors import CursorClient, CursorState


class Cursor(ProcessBound):
    """A handle on one named cursor of a log.

    The position is the next one to read. A reader that commits after it has worked on an entry
    sees each entry at least once, also when it dies; one that commits before, at most once.

        cursor = await log.cursor("billing", create="earliest")
        async for item in log.follow(cursor.position):
            ...
            await cursor.commit(item.end)

    No trim passes a cursor unless it says so. Remove the cursor of a reader that is given up.

    Raises, from every method: CursorNotFound when the cursor was removed, and what every call on
    the log raises.
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
        """The next position to read, as this handle found or left it; no request is made."""
        return self._client.position

    async def state(self, *, timeout: Timeout = ...) -> CursorState:
        """Return the cursor as the log keeps it now."""
        return await drive(self._client.state(timeout))

    async def commit(self, position: int, *, timeout: Timeout = ...) -> None:
        """Record that everything below ``position`` is done: after an item, its ``end``.

        Durable when it returns. Of several readers that use one cursor, the one that is ahead
        wins, and the others learn of it.

        Raises:
            CursorAhead: it is at a later position already, and stays there.
            BeyondTail: no reader can have read as far.
        """
        await drive(self._client.commit(position, timeout))

    async def reset(self, position: PositionSpec, *, timeout: Timeout = ...) -> None:
        """Put the cursor anywhere, back too; make it again if it was removed.

        Args:
            position: a number, ``"earliest"`` or ``"latest"``.
            timeout: budget of the call.

        Raises:
            Invalidated: below the trim point nothing is left to read.
            BeyondTail: it has not been handed out yet.
        """
        await drive(self._client.reset(position, timeout))

    async def lag(self, *, timeout: Timeout = ...) -> int:
        """Return how many positions are between the cursor and the tail: what is left to read."""
        return await drive(self._client.lag(timeout))

    async def remove(self, *, timeout: Timeout = ...) -> None:
        """Remove the cursor from its log. It holds no trim back any more."""
        await drive(self._client.remove(timeout))

    def __repr__(self) -> str:
        return f"<zlog.aio.Cursor {self.name!r} at {self.position}>"
