"""The entries of a log that have one tag: what :meth:`zlog.Log.stream` returns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from zlog._base.deadline import Timeout
from zlog._base.process import ProcessBound
from zlog._client import Tags
from zlog._positions.positions import PositionSpec
from zlog.cursor import Cursor
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


class _Log(Protocol):
    """What a stream calls of its log."""

    @property
    def name(self) -> str: ...
    def append(self, data: bytes, *, tags: Tags, timeout: Timeout) -> int: ...
    def append_many(
        self, entries: Iterable[bytes], *, tags: Tags, timeout: Timeout
    ) -> list[int]: ...
    def read_range(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        tags: Collection[str],
        reverse: bool = False,
        hole_timeout: Timeout = ...,
    ) -> Iterator[Entry | Gap]: ...
    def follow(
        self, start: int, *, tags: Collection[str], hole_timeout: Timeout
    ) -> Iterator[Entry | Gap]: ...
    def last(self, *tags: str, timeout: Timeout) -> Entry | None: ...
    def cursor(self, name: str, *, create: PositionSpec | None, timeout: Timeout) -> Cursor: ...


class Stream(ProcessBound):
    """The entries with one tag. Positions are those of the log, with others between them.

    An entry that is appended with several tags is in all their streams at once, at one position.

    Attributes:
        tag: which.
    """

    def __init__(self, log: _Log, tag: str) -> None:
        """Wrap a log; programs call :meth:`zlog.Log.stream`."""
        self._log = log
        self.tag = tag

    def append(self, data: bytes, *, tags: Collection[str] = (), timeout: Timeout = ...) -> int:
        """Append an entry with this tag, and ``tags`` beside it; see :meth:`zlog.Log.append`."""
        return self._log.append(data, tags=with_tag(self.tag, tags), timeout=timeout)

    def append_many(
        self, entries: Iterable[bytes], *, tags: Collection[str] = (), timeout: Timeout = ...
    ) -> list[int]:
        """Append entries with this tag, and ``tags`` beside; see :meth:`zlog.Log.append_many`."""
        return self._log.append_many(entries, tags=with_tag(self.tag, tags), timeout=timeout)

    def read_range(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        reverse: bool = False,
        hole_timeout: Timeout = ...,
    ) -> Iterator[Entry | Gap]:
        """Iterate over its entries in ``[start, end)``; see :meth:`zlog.Log.read_range`."""
        return self._log.read_range(
            start, end, tags=(self.tag,), reverse=reverse, hole_timeout=hole_timeout
        )

    def follow(self, start: int = 0, *, hole_timeout: Timeout = ...) -> Iterator[Entry | Gap]:
        """Iterate from ``start`` on, for ever; see :meth:`zlog.Log.follow`."""
        return self._log.follow(start, tags=(self.tag,), hole_timeout=hole_timeout)

    def first(self) -> Entry | None:
        """Return the oldest entry that is left; None: there is none."""
        items = self._log.read_range(tags=(self.tag,))
        return next((item for item in items if isinstance(item, Entry)), None)

    def last(self, *, timeout: Timeout = ...) -> Entry | None:
        """Return the newest entry; None: there is none."""
        return self._log.last(self.tag, timeout=timeout)

    def tail(self, *, timeout: Timeout = ...) -> int:
        """Return one past the newest entry's position; 0: there is none."""
        last = self.last(timeout=timeout)
        return 0 if last is None else last.end

    def cursor(
        self, name: str, *, create: PositionSpec | None = None, timeout: Timeout = ...
    ) -> Cursor:
        """Open a cursor of this stream, which no other stream's has the name of.

        In the log it is called ``stream.TAG.NAME`` (:func:`cursor_name`), and holds trims back as
        every cursor does: commit also while no entry comes, with the positions of a follower's
        gaps or with the log's tail. See :meth:`zlog.Log.cursor`.
        """
        return self._log.cursor(cursor_name(self.tag, name), create=create, timeout=timeout)

    def __repr__(self) -> str:
        return f"<zlog.Stream {self.tag!r} of {self._log.name!r}>"
