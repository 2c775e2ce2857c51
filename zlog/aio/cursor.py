"""Where a reader is in a log, for asyncio: what :meth:`zlog.aio.Log.cursor` returns."""

from __future__ import annotations

from zlog._base.deadline import Timeout
from zlog._log.handle import CursorHandle
from zlog._positions.positions import PositionSpec
from zlog._read.cursors import CursorState


class Cursor(CursorHandle):
    """A handle on one named cursor of a log. See :class:`zlog.Cursor` for what each call does."""

    async def state(self, *, timeout: Timeout = ...) -> CursorState:
        """Return the cursor as the log keeps it now."""
        return await self._client.state(timeout)

    async def commit(self, position: int, *, timeout: Timeout = ...) -> None:
        """Record that everything below ``position`` is done; see :meth:`zlog.Cursor.commit`."""
        await self._client.commit(position, timeout)

    async def reset(self, position: PositionSpec, *, timeout: Timeout = ...) -> None:
        """Put the cursor anywhere; see :meth:`zlog.Cursor.reset`."""
        await self._client.reset(position, timeout)

    async def lag(self, *, timeout: Timeout = ...) -> int:
        """Return how many positions are between the cursor and the tail."""
        return await self._client.lag(timeout)

    async def remove(self, *, timeout: Timeout = ...) -> None:
        """Remove the cursor from its log. It holds no trim back any more."""
        await self._client.remove(timeout)

    def __repr__(self) -> str:
        return f"<zlog.aio.Cursor {self.name!r} at {self.position}>"
