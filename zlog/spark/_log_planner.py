"""Plans reads of one log, in Spark's driver."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import zlog
from zlog.errors import BeyondTail, CursorAhead, CursorNotFound
from zlog.spark._given import Place
from zlog.spark._handles import LogRef, trimmed_error
from zlog.spark._options import SourceOptions
from zlog.spark._plan import Range

if TYPE_CHECKING:
    from zlog.view import Stripe, View

_logger = logging.getLogger(__name__)


class LogPlanner:
    """Plans reads of one log."""

    def __init__(self, options: SourceOptions, name: str) -> None:
        self.name = name
        self.committed = -1  # the cursor's position when this process last moved it
        self._options = options
        self._log = LogRef(options.store, name, mac_key_file=options.mac_key_file)

    @property
    def log(self) -> LogRef:
        """The log. It stays the same after the first call, even if another log gets its name."""
        if self._log.log_id is None:
            self._log.forget()  # this process may have a handle on a log that was removed
            log_id = self._log.call(lambda handle: handle.view.log_id)
            self._log = replace(self._log, log_id=log_id)
        return self._log

    @property
    def log_id(self) -> int:
        """The log's id."""
        assert self.log.log_id is not None
        return self.log.log_id

    def view(self) -> View:
        """Return a view of the log that may be old, without a request."""
        return self.log.open().view

    def tail(self) -> int:
        """Return the tail."""
        return self.log.call(lambda handle: handle.tail())

    def unchecked_tail(self) -> int:
        """Return a tail that costs little and may be old."""
        return self.log.call(lambda handle: handle.tail(checked=False))

    def trim_point(self) -> int:
        """Return a trim point that may be old, without a request."""
        return self.view().trim_point

    def start(self, place: Place) -> int:
        """Return the position at which a read begins. Raises BeyondTail if it is above the tail."""
        position = self.log.call(lambda handle: _resolve(handle, place))
        if isinstance(place, int) and position > (tail := self.tail()):
            raise BeyondTail(
                f"startingPosition={position} is beyond the tail of log {self.log.name!r}, which is"
                f" {tail}",
                hint="Set startingPosition to latest to read entries appended from now on.",
            )
        return position

    def batch(self) -> tuple[int, int]:
        """Return the start and the end of a batch read, which ends at the tail at the latest."""
        start, ending = self.start(self._options.starting), self._options.ending
        end = self.log.call(lambda handle: _resolve(handle, ending))
        return start, max(start, min(end, self.tail()))

    def hold(self, place: Place) -> int:
        """Return where a query begins, and make its cursor hold the log from there on.

        The cursor is never moved forward: Spark asks again when it replays a query's first batch,
        when "latest" may mean a higher position.
        """
        position, cursor = self.start(place), self._options.cursor
        if cursor is not None:
            self.log.call(lambda handle: _hold(handle, cursor, position))
        return position

    def entry_bytes(self, stripes: Sequence[Stripe]) -> float:
        """Return the average size of the entries in some neighbouring stripes."""
        stat = self.log.call(lambda handle: handle.stat(stripes[0].start, stripes[-1].end))
        return stat.bytes / max(1, stat.entries)

    def sizes(self, start: int, end: int, bytes_max: int) -> list[tuple[int, float]]:
        """Return the number of positions in each stripe, and the average size of its entries.

        These are the stripes of ``[start, end)``, up to the stripe that exceeds ``bytes_max``.
        Each trimmed position, and each position of an empty stripe, counts as a byte.
        """
        end = min(end, start + bytes_max)
        stripes = self.stripes(start, end)
        trimmed = (stripes[0].start if stripes else end) - start
        found = [(trimmed, 1.0)] if trimmed else []
        left = float(bytes_max - trimmed)
        for stripe in stripes:
            if left <= 0:
                break
            size = max(1.0, self.entry_bytes([stripe]))
            found.append((stripe.end - stripe.start, size))
            left -= found[-1][0] * size
        return found

    def stripes(self, start: int, end: int) -> list[Stripe]:
        """Return the stripes that hold the positions ``[start, end)``, which are below the tail.

        Raises:
            IncompletePlan: the log's stripes do not hold the whole range.
        """
        # In this order, positions that are missing from the stripes are below the trim point.
        stripes, trim_point = self.log.call(
            lambda handle: (handle.stripes(start, end), handle.view.trim_point)
        )
        first = min(max(start, trim_point), end)
        kept = [
            replace(each, start=max(first, each.start), end=min(end, each.end))
            for each in stripes
            if max(first, each.start) < min(end, each.end)
        ]
        Range(self.log, first, end, kept).shares()  # this raises before an offset names the range
        return kept

    def range(self, start: int, end: int, stripes: Sequence[Stripe]) -> Range:
        """Return the range ``[start, end)`` for a plan, from :meth:`stripes` of the same range.

        Raises:
            Invalidated: a part of the range is trimmed, and ``failOnDataLoss`` is set.
        """
        trim_point = self.log.call(lambda handle: handle.earliest())
        if start < trim_point:
            if self._options.fail_on_data_loss:
                raise trimmed_error(self.log, start, trim_point)
            _logger.warning(
                "log %r: positions [%d, %d) were trimmed before they were read",
                self.log.name,
                start,
                min(trim_point, end),
            )
        first = stripes[0].start if stripes else end
        if not self._options.include_gaps:
            start = first
        segments = self.log.call(lambda handle: _segments(handle, first, end))
        return Range(self.log, start, end, stripes, first, segments)

    def commit(self, position: int) -> None:
        """Move the query's cursor.

        Raises:
            CursorAhead: entries that the query has not read may be trimmed.
        """
        name = self._options.cursor
        assert name is not None
        try:
            self.log.call(lambda handle: commit_cursor(handle, name, position))
        except CursorAhead as ahead:
            if ahead.position > self.log.call(lambda handle: handle.earliest()):
                raise self._unprotected(position, ahead.position) from None
        self.committed = position

    def _unprotected(self, position: int, cursor: int) -> CursorAhead:
        name, log = self._options.cursor, self.log.name
        return CursorAhead(
            f"cursor {name!r} of log {log!r} is at {cursor}, but this query is at {position}, so"
            " entries that it has not read may be trimmed",
            position=cursor,
            hint="Give each query its own cursor (option cursor). If no other query uses this"
            f" cursor, remove it with `zlog cursor rm {log} {name}`; this query then recreates it.",
        )


def _segments(log: zlog.Log, start: int, end: int) -> list[tuple[int, int]]:
    """Return the segments of the files that have positions of a range."""
    files = log.stripe_files(start, end) if log.view.offloads else ()
    return [file.bounds(number) for file in files for number in range(len(file.segments))]


def _hold(log: zlog.Log, name: str, position: int) -> None:
    """Make a cursor hold the log from a position on, or from its own position if it is lower."""
    position = max(position, log.earliest())
    cursor = log.cursor(name, create=position)
    if cursor.position > position:
        cursor.reset(position)


def commit_cursor(log: zlog.Log, name: str, position: int) -> None:
    """Move a query's cursor; create it if it does not exist.

    Raises:
        CursorAhead: the cursor is already at a higher position, and stays there.
    """
    try:
        log.cursor(name, create=position).commit(position)
    except CursorNotFound:
        _logger.warning("cursor %r of log %r was removed", name, log.name)


def _resolve(log: zlog.Log, place: Place) -> int:
    """Return the position of a place."""
    if place == "earliest":
        return log.earliest()
    if place == "latest":
        return log.tail()
    return log.find_time(place) if isinstance(place, datetime) else place
