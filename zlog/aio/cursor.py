"""A reader's position, stored in the log, as :meth:`zlog.aio.Log.cursor` returns it."""

from __future__ import annotations

from zlog._base.deadline import Timeout
from zlog._base.names import check_position
from zlog._base.process import ProcessBound
from zlog._client import LogClient
from zlog._io.aio import drive
from zlog._positions.positions import PositionSpec
from zlog._read.cursors import CursorState, check_spec, put_at


class Cursor(ProcessBound):
    """A handle on one named cursor of a log.

    A cursor's position is the next one to read. A reader that commits after it has processed an
    entry processes each entry at least once, even if it dies. A reader that commits first processes
    each entry at most once.

        cursor = await log.cursor("billing", create="earliest")
        async for item in log.follow(cursor.position):
            ...
            await cursor.commit(item.end)

    Trims do not pass a cursor, except with ``past_cursors``, so remove unused cursors.

    Every method raises CursorNotFound if the cursor was removed.
    """

    def __init__(self, client: LogClient, name: str, position: int) -> None:
        """Wrap a client; programs call the method ``cursor`` of a log."""
        self._cursors = client.cursors
        self._positions = client.positions
        self._deadline = client.deadline
        self._name = name
        self._position = position

    @property
    def name(self) -> str:
        """The cursor's name."""
        return self._name

    @property
    def position(self) -> int:
        """The next position to read, as this handle last saw it. This needs no request."""
        return self._position

    async def state(self, *, timeout: Timeout = ...) -> CursorState:
        """Return the current state of the cursor in the log."""
        state = await drive(self._cursors.read(self._name, self._deadline(timeout)))
        if state is None:
            raise self._cursors.missing(self._name)
        return state

    async def commit(self, position: int, *, timeout: Timeout = ...) -> None:
        """Record that all entries below ``position`` were processed.

        Usually this position is the ``end`` of the last item. The commit is durable when the call
        returns. If several readers use one cursor, it keeps the highest position, and commits of
        lower ones raise CursorAhead.

        Raises:
            CursorAhead: the cursor is already at a higher position, and stays there.
            BeyondTail: the position is above the tail.
        """
        deadline = self._deadline(timeout)
        check_position(position)
        await drive(self._positions.check_reached("commit", position, position, deadline))
        await drive(self._cursors.advance(self._name, position, deadline))
        self._position = position

    async def reset(self, position: PositionSpec, *, timeout: Timeout = ...) -> None:
        """Move the cursor to any position, forward or back. A removed cursor is created again.

        Args:
            position: a number, ``"earliest"`` or ``"latest"``.

        Raises:
            Invalidated: the position is below the trim point.
            BeyondTail: the position was not granted yet.
        """
        deadline, put = self._deadline(timeout), self._cursors.set
        check_spec(position)
        self._position = await drive(put_at(self._positions, put, self._name, position, deadline))

    async def lag(self, *, timeout: Timeout = ...) -> int:
        """Return the number of positions between the cursor and the tail."""
        state = await self.state(timeout=timeout)
        self._position = state.position
        tail = await drive(self._positions.tail(self._deadline(timeout)))
        return max(0, tail - state.position)

    async def remove(self, *, timeout: Timeout = ...) -> None:
        """Remove the cursor from its log, so that it no longer limits trims."""
        await drive(self._cursors.remove(self._name, self._deadline(timeout)))

    def __repr__(self) -> str:
        return f"<zlog.aio.Cursor {self.name!r} at {self.position}>"
