"""Committing a cursor, which follows the output and is never ahead of it."""

from __future__ import annotations

import contextlib
import operator
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from zlog import Cursor, Entry, Gap, Log, ZlogError
from zlog.cli.output import Output, OutputClosed, OutputFailed
from zlog.cli.ranges import PositionSpec, beginning
from zlog.cli.render import Renderer
from zlog.cli.signals import terminable

COMMIT_SECONDS = 1.0
"""How often a cursor is committed while entries are printed."""


def open_cursor(log: Log, name: str, begin: PositionSpec | None) -> Cursor:
    """Open a cursor, and create it at ``begin`` if it does not exist.

    If ``begin`` is None, a new cursor begins at the first position that is not trimmed.

    Raises:
        Invalidated: ``begin`` is trimmed.
        BeyondTail: ``begin`` is beyond the tail.
    """
    return log.cursor(name, create="earliest" if begin is None else beginning(log, begin))


def flushing(items: Iterator[Entry | Gap], out: Output) -> Iterator[Entry | Gap]:
    """Yield the items of a log's reader, and flush the output before each wait."""
    for item in items:
        yield item
        if not operator.length_hint(items):
            out.flush()


def print_items(
    items: Iterable[Entry | Gap],
    renderer: Renderer,
    out: Output,
    cursor: Cursor | None,
    end: int = 0,
) -> bool:
    """Print items, and advance the cursor past them. Returns False if an entry is lost.

    Args:
        cursor: the cursor to advance; None means no cursor.
        end: the cursor is advanced at least to this position, even if the last item is before it.
    """
    commit = None if cursor is None else CursorCommit(cursor, out)
    intact = True
    with commit.at_end() if commit else contextlib.nullcontext():
        for item in items:
            intact = renderer(item) and intact
            if commit:
                commit.printed(item.end)
        if commit:
            commit.printed(end)
    return intact


class CursorCommit:
    """Advances a cursor past the items that were printed, after it has flushed the output.

    If the program dies between the flush and the commit, its next run prints some items again. So
    each item is printed at least once.
    """

    def __init__(self, cursor: Cursor, out: Output) -> None:
        self._cursor = cursor
        self._out = out
        self._printed = self._committed = cursor.position
        self._next = time.monotonic() + COMMIT_SECONDS

    def printed(self, end: int) -> None:
        """Note the end of the printed items, and commit it if the last commit was a while ago."""
        self._printed = max(self._printed, end)
        if time.monotonic() >= self._next:
            self.commit()

    def commit(self) -> None:
        """Flush the printed items, and commit them."""
        if self._printed > self._committed:
            self._out.flush()
            self._cursor.commit(self._printed)
            self._committed = self._printed
        self._next = time.monotonic() + COMMIT_SECONDS

    @contextmanager
    def at_end(self) -> Iterator[None]:
        """Commit when the ``with`` block ends, even if an error or a signal ended it.

        If the output could not be written, nothing is committed.
        """
        try:
            with terminable():
                yield
        except (OutputClosed, OutputFailed):
            raise
        except BaseException:
            with contextlib.suppress(ZlogError):  # the first error is reported
                self.commit()
            raise
        self.commit()
