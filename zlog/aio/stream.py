"""The entries of a log with one tag, as :meth:`zlog.aio.Log.stream` returns them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Coroutine, Iterable
from typing import Any

from zlog._base.deadline import Timeout
from zlog._base.process import ProcessBound
from zlog._client import Tags
from zlog._positions.positions import PositionSpec
from zlog.aio._writing import Writing
from zlog.aio.cursor import Cursor
from zlog.entry import Entry, Gap
from zlog.names import check_tags

_ESCAPED = re.compile(r"[^A-Za-z0-9_]")


def cursor_name(stream: str, name: str) -> str:
    """Return the name of a stream's cursor in the log: ``stream.TAG.NAME``.

    In the tag's UTF-8, every byte other than a letter, a digit or ``_`` becomes ``-`` and two hex
    digits, so that no two streams share a cursor.
    """
    escaped = _ESCAPED.sub(lambda found: "".join(f"-{b:02x}" for b in found[0].encode()), stream)
    return f"stream.{escaped}.{name}"


def with_tag(stream: str, tags: Tags) -> Tags:
    """Return the tags of a stream's entry: the stream's own tag and the given tags.

    Raises:
        TypeError: ``tags`` is a single str.
        InvalidTag: a tag is invalid.
    """
    return (stream, *check_tags(tags))


class Stream(ProcessBound):
    """The entries with one tag, at their positions in the log.

    An entry with several tags is in the stream of each tag, at the same position.

    Attributes:
        tag: the tag of the stream's entries.
    """

    def __init__(self, log: Writing, tag: str) -> None:
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
        """Iterate over the entries in ``[start, end)``; see :meth:`zlog.aio.Log.read_range`."""
        return self._log.read_range(
            start, end, tags=(self.tag,), reverse=reverse, hole_timeout=hole_timeout
        )

    def follow(self, start: int = 0, *, hole_timeout: Timeout = ...) -> AsyncIterator[Entry | Gap]:
        """Iterate from ``start`` on, without end; see :meth:`zlog.aio.Log.follow`."""
        return self._log.follow(start, tags=(self.tag,), hole_timeout=hole_timeout)

    async def first(self) -> Entry | None:
        """Return the oldest entry that is not trimmed, or None."""
        async for item in self._log.read_range(tags=(self.tag,)):
            if isinstance(item, Entry):
                return item
        return None

    async def last(self, *, timeout: Timeout = ...) -> Entry | None:
        """Return the newest entry, or None."""
        return await self._log.last(self.tag, timeout=timeout)

    async def tail(self, *, timeout: Timeout = ...) -> int:
        """Return one past the position of the newest entry, or 0 if there is no entry."""
        last = await self.last(timeout=timeout)
        return 0 if last is None else last.end

    async def cursor(
        self, name: str, *, create: PositionSpec | None = None, timeout: Timeout = ...
    ) -> Cursor:
        """Open a cursor of this stream; see :meth:`zlog.aio.Log.cursor`.

        The cursor's name in the log is ``stream.TAG.NAME`` (:func:`cursor_name`). Like any other
        cursor, it holds back trims of the whole log. So advance it from time to time, even if the
        stream gets no entries: commit the log's tail, or the ``end`` of a gap from a follower.
        """
        return await self._log.cursor(cursor_name(self.tag, name), create=create, timeout=timeout)

    def __repr__(self) -> str:
        return f"<zlog.aio.Stream {self.tag!r} of {self._log.name!r}>"
