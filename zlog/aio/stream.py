"""The entries of a log that have one tag: what :meth:`zlog.aio.Log.stream` returns."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Coroutine, Iterable
from typing import Any

from zlog._base.deadline import Timeout
from zlog._base.process import ProcessBound
from zlog._client import Tags
from zlog._positions.positions import PositionSpec
from zlog.aio._reading import Reading
from zlog.aio._writing import Writing
from zlog.aio.cursor import Cursor
from zlog.entry import Entry, Gap
from zlog.names import check_tags

_ESCAPED = re.compile(r"[^A-Za-z0-9_]")


def cursor_name(stream: str, name: str) -> str:
    """Return what a stream's cursor is called in the log: ``stream.TAG.NAME``.

    Of the tag, letters, digits and ``_`` stay; each other byte of its UTF-8 becomes ``-`` and two
    hex digits. So no two streams share a cursor.
    """
    escaped = _ESCAPED.sub(lambda found: "".join(f"-{b:02x}" for b in found[0].encode()), stream)
    return f"stream.{escaped}.{name}"


def with_tag(stream: str, tags: Tags) -> Tags:
    """Return the tags of an entry of a stream that has others beside.

    Raises:
        TypeError: the others are one str, and no collection.
        InvalidTag: one of them is invalid.
    """
    return (stream, *check_tags(tags))


class Tagged(Writing, Reading):
    """What streams call of their log."""


class Stream(ProcessBound):
    """The entries with one tag. Positions are those of the log, with others between them.

    An entry that is appended with several tags is in all their streams at once, at one position.

    Attributes:
        tag: which.
    """

    def __init__(self, log: Tagged, tag: str) -> None:
        """Wrap a log; programs call :meth:`zlog.aio.Log.stream`."""
        self._log = log
        self.tag = tag

    def append(
        self, data: bytes, *, tags: Collection[str] = (), timeout: Timeout = ...
    ) -> Coroutine[Any, Any, int]:
        """Append an entry with this tag and other ``tags``; see :meth:`zlog.aio.Log.append`."""
        return self._log.append(data, tags=with_tag(self.tag, tags), timeout=timeout)

    async def append_many(
        self, entries: Iterable[bytes], *, tags: Collection[str] = (), timeout: Timeout = ...
    ) -> list[int]:
        """Append entries with this tag and other ``tags``.

        See :meth:`zlog.aio.Log.append_many`.
        """
        return await self._log.append_many(entries, tags=with_tag(self.tag, tags), timeout=timeout)

    def read_range(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        reverse: bool = False,
        hole_timeout: Timeout = ...,
    ) -> AsyncIterator[Entry | Gap]:
        """Iterate over its entries in ``[start, end)``; see :meth:`zlog.aio.Log.read_range`."""
        return self._log.read_range(
            start, end, tags=(self.tag,), reverse=reverse, hole_timeout=hole_timeout
        )

    def follow(self, start: int = 0, *, hole_timeout: Timeout = ...) -> AsyncIterator[Entry | Gap]:
        """Iterate from ``start`` on, for ever; see :meth:`zlog.aio.Log.follow`."""
        return self._log.follow(start, tags=(self.tag,), hole_timeout=hole_timeout)

    async def first(self) -> Entry | None:
        """Return the oldest entry that is left; None: there is none."""
        async for item in self._log.read_range(tags=(self.tag,)):
            if isinstance(item, Entry):
                return item
        return None

    async def last(self, *, timeout: Timeout = ...) -> Entry | None:
        """Return the newest entry; None: there is none."""
        return await self._log.last(self.tag, timeout=timeout)

    async def tail(self, *, timeout: Timeout = ...) -> int:
        """Return one past the newest entry's position; 0: there is none."""
        last = await self.last(timeout=timeout)
        return 0 if last is None else last.end

    async def cursor(
        self, name: str, *, create: PositionSpec | None = None, timeout: Timeout = ...
    ) -> Cursor:
        """Open a cursor of this stream, which no other stream's has the name of.

        In the log it is called ``stream.TAG.NAME`` (:func:`cursor_name`), and holds trims back as
        every cursor does: commit also while no entry comes, with the positions of a follower's
        gaps or with the log's tail. See :meth:`zlog.aio.Log.cursor`.
        """
        return await self._log.cursor(cursor_name(self.tag, name), create=create, timeout=timeout)

    def __repr__(self) -> str:
        return f"<zlog.aio.Stream {self.tag!r} of {self._log.name!r}>"
