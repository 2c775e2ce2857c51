"""Named cursors, each of which stores a reader's next position in the log's head object.

A commit moves a cursor only forward, and a reset also moves it back. The head refuses a trim that
would pass a cursor, except if the trim ignores cursors. Each of these operations is atomic
(cls_zlog/head/cursors.cc).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Reply
from zlog._base.names import check_position
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog._native.entry import from_timestamp
from zlog._positions.positions import Positions, PositionSpec
from zlog.errors import CursorAhead, CursorNotFound, Invalidated, LimitReached
from zlog.names import check_cursor_name

_CURSORS_PER_READ = 256
_ADVANCE, _CREATE, _SET = 0, 1, 2
_COMMIT_REFUSALS = (
    Code.NOT_FOUND,
    Code.EXISTS,
    Code.CURSOR_AHEAD,
    Code.BELOW_TRIM_POINT,
    Code.LIMIT_REACHED,
)


class CursorState(NamedTuple):
    """A cursor as its log stores it.

    Attributes:
        name: the cursor's name.
        position: the next position to read.
        created: when it was created, by the creator's clock, UTC.
        updated: when it was last committed, by the reader's clock, UTC.
    """

    name: str
    position: int
    created: datetime
    updated: datetime


class Cursors:
    """Calls on the cursors of one log."""

    def __init__(self, layout: Layout) -> None:
        self._head = layout.head
        self._address = layout.address
        self._now = layout.io.wall_clock_us

    async def read(self, name: str, deadline: Deadline) -> CursorState | None:
        """Return a cursor, or None if it does not exist."""
        request = messages.cursor_read(self._address.log_id, check_cursor_name(name))
        reply = await self._head.call("cursor_read", request, deadline, Code.NOT_FOUND)
        if reply.code == Code.NOT_FOUND:
            return None
        return _state(name, *messages.cursor_read_reply(reply.payload))

    async def list(self, deadline: Deadline) -> list[CursorState]:
        """Return all cursors, in the order of their names."""
        found: list[CursorState] = []
        more = True
        while more:
            after = found[-1].name if found else ""
            request = messages.cursor_list(self._address.log_id, after, _CURSORS_PER_READ)
            reply = await self._head.call("cursor_list", request, deadline)
            more, page = messages.cursor_list_reply(reply.payload)
            found += (_state(*each) for each in page)
        return found

    async def create(self, name: str, position: int, deadline: Deadline) -> int:
        """Create a cursor if it does not exist; return its position. Raises as :meth:`set` does."""
        reply = await self._commit(_CREATE, name, position, deadline)
        return reply.number if reply.code == Code.EXISTS else position

    async def advance(self, name: str, position: int, deadline: Deadline) -> None:
        """Move a cursor forward. Raises CursorAhead if it is already ahead, or CursorNotFound."""
        reply = await self._commit(_ADVANCE, name, position, deadline)
        if reply.code == Code.NOT_FOUND:
            raise self.missing(name)
        if reply.code == Code.CURSOR_AHEAD:
            kept = reply.number
            raise CursorAhead(
                f"cursor {name!r} of log {self._address.name!r} is already at {kept}, beyond"
                f" {position}",
                position=kept,
            )

    async def set(self, name: str, position: int, deadline: Deadline) -> int:
        """Move or create a cursor, and return its position. Raises Invalidated if it is trimmed."""
        await self._commit(_SET, name, position, deadline)
        return position

    async def remove(self, name: str, deadline: Deadline) -> None:
        """Remove a cursor. Raises CursorNotFound if it does not exist."""
        request = messages.cursor_remove(self._address.log_id, check_cursor_name(name))
        reply = await self._head.call("cursor_remove", request, deadline, Code.NOT_FOUND)
        if reply.code == Code.NOT_FOUND:
            raise self.missing(name)

    def missing(self, name: str) -> CursorNotFound:
        """Return the error for a cursor that does not exist."""
        return CursorNotFound(f"log {self._address.name!r} has no cursor {name!r}")

    async def _commit(self, mode: int, name: str, position: int, deadline: Deadline) -> Reply:
        log_id, now = self._address.log_id, self._now()
        request = messages.cursor_commit(log_id, check_cursor_name(name), mode, position, now)
        reply = await self._head.call("cursor_commit", request, deadline, *_COMMIT_REFUSALS)
        if reply.code == Code.LIMIT_REACHED:
            raise LimitReached(
                f"log {self._address.name!r} has {reply.number} cursors, which is the limit",
                hint="`zlog cursor ls` lists them, and `zlog cursor rm` removes those"
                " without a reader.",
            )
        if reply.code == Code.BELOW_TRIM_POINT:
            raise Invalidated(
                f"cursor {name!r} cannot be set to {position}: log {self._address.name!r} is"
                f" trimmed below {reply.number}",
                hint="Start at `earliest`, the oldest position that has not been trimmed.",
            )
        return reply


def _state(name: str, position: int, created: int, updated: int) -> CursorState:
    return CursorState(name, position, from_timestamp(created), from_timestamp(updated))


async def put_at(
    positions: Positions,
    put: Callable[[str, int, Deadline], Awaitable[int]],
    name: str,
    spec: PositionSpec,
    deadline: Deadline,
) -> int:
    """Create or set a cursor by calling ``put``. Returns its position."""
    while True:
        position = await positions.resolve(spec, deadline)
        try:
            return await put(name, position, deadline)
        except Invalidated:
            if spec != "earliest":  # a trim has just moved the earliest position
                raise


def check_spec(spec: PositionSpec | None) -> None:
    """Raise TypeError or ValueError if this is neither a position nor a name for one."""
    if isinstance(spec, str):
        if spec not in ("earliest", "latest"):
            raise ValueError(
                f"a cursor must start at 'earliest', 'latest' or a position, not {spec!r}"
            )
    elif spec is not None:
        check_position(spec)
