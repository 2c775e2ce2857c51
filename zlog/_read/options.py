"""Options of a read of many positions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from zlog._base.deadline import Timeout
from zlog._read.select import Match, Wanted


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a range is read, or a log is followed.

    Attributes:
        tags, match: of the entries that are wanted; see :meth:`zlog.Log.read_range`.
        hole_timeout: seconds to wait for a hole; if not given, the handle's own.
        reverse: from the end to the start.
        indexes, window_bytes, with_data, with_tags: of columns; see
            :meth:`zlog.Log.read_columns`.

    Raises:
        ValueError: a negative index, or no room for a window.
    """

    tags: Collection[str] | None = None
    match: Match = "any"
    hole_timeout: Timeout = ...
    reverse: bool = False
    indexes: Collection[int] | None = None
    window_bytes: int | None = None
    with_data: bool = True
    with_tags: bool = False

    def __post_init__(self) -> None:
        if self.window_bytes is not None and self.window_bytes < 1:
            raise ValueError(f"a window takes at least one byte, not {self.window_bytes}")
        if self.indexes is not None and any(index < 0 for index in self.indexes):
            raise ValueError("a stripe's objects are numbered from 0")

    @property
    def wanted(self) -> Wanted | None:
        """Which entries are wanted; None means all.

        Raises:
            ValueError, InvalidTag, TypeError: the tags or the match are invalid.
        """
        return None if self.tags is None else Wanted.of(self.tags, self.match)
