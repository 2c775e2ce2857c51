"""The planning in Spark's driver: the range of a read, and the part of it that each task reads."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import zlog
from zlog.errors import BeyondTail, CursorAhead, CursorNotFound
from zlog.spark._handles import LogRef, trimmed_error
from zlog.spark._offset import Offset, Recorded, Selection
from zlog.spark._options import Place, SourceOptions
from zlog.spark._plan import (
    JOINED_BYTES_MAX,
    JOINED_POSITIONS_MAX,
    Shares,
    Sizes,
    split,
)

if TYPE_CHECKING:
    from zlog.view import Stripe

_logger = logging.getLogger(__name__)

_SAMPLED_STRIPES = 8
"""The number of stripes whose objects report their entries' size before others are joined."""


def _resolve(log: zlog.Log, place: Place) -> int:
    """Return the position of a place."""
    if place == "earliest":
        return log.earliest()
    if place == "latest":
        return log.tail()
    return log.find_time(place) if isinstance(place, datetime) else place


class Planner:
    """Plans reads of one log."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self._log = LogRef(options.store, options.log, mac_key_file=options.mac_key_file)

    @property
    def log(self) -> LogRef:
        """The log. It stays the same after the first call, even if another log gets its name."""
        if self._log.log_id is None:
            self._log.forget()  # this process may have a handle on a log that was removed
            log_id = self._log.call(lambda handle: handle.view.log_id)
            self._log = replace(self._log, log_id=log_id)
        return self._log

    def tail(self) -> int:
        """Return the tail."""
        return self.log.call(lambda handle: handle.tail())

    def position(self, place: Place) -> int:
        """Return the position of a place."""
        return self.log.call(lambda handle: _resolve(handle, place))

    def start(self) -> int:
        """Return the position at which a read begins. Raises BeyondTail if it is above the tail."""
        place = self.options.starting
        position = self.position(place)
        if isinstance(place, int) and position > (tail := self.tail()):
            raise BeyondTail(
                f"startingPosition={position} is beyond the tail of log {self.log.name!r}, which is"
                f" {tail}",
                hint="Set startingPosition to latest to read entries appended from now on.",
            )
        return position

    def plan_batch(self) -> list[Shares]:
        """Return the tasks of a batch read, which ends at the tail at the latest."""
        start, end = self.start(), min(self.position(self.options.ending), self.tail())
        return self.plan(start, end, self.record(start, end)) if start < end else []

    @property
    def selection(self) -> Selection:
        """Return the options that decide which positions become rows."""
        options = self.options
        tags = None if options.tags is None else sorted(options.tags)
        match = options.match if tags and len(tags) > 1 else "any"
        return {"includeGaps": options.include_gaps, "tags": tags, "match": match}

    def record(self, start: int, end: int) -> Recorded:
        """Return what is needed to plan ``[start, end)`` again later, with the same tasks.

        The range must be below the tail.

        Raises:
            IncompletePlan: the log's stripes do not hold the whole range.
        """
        # In this order, positions that are missing from the stripes are below the trim point.
        stripes, trim_point = self.log.call(
            lambda handle: (handle.stripes(start, end), handle.view.trim_point)
        )
        options = self.options
        sizes = Sizes(self._joined_max(stripes), options.tasks_min, options.tasks_max)
        first = min(max(start, trim_point), end)
        split(self.log.name, stripes, first, end, sizes)  # this raises before the name is recorded
        kept = [
            replace(each, start=max(first, each.start), end=min(end, each.end))
            for each in stripes
            if max(first, each.start) < min(end, each.end)
        ]
        return Recorded(kept, sizes, self.selection)

    def plan(self, start: int, end: int, recorded: Recorded) -> list[Shares]:
        """Return the tasks that read ``[start, end)``. The same arguments lead to the same tasks.

        Raises:
            Invalidated: a part of the range is trimmed, and ``failOnDataLoss`` is set.
        """
        trim_point = self.log.call(lambda handle: handle.earliest())
        if start < trim_point:
            if self.options.fail_on_data_loss:
                raise trimmed_error(self.log, start, trim_point)
            _logger.warning(
                "log %r: positions [%d, %d) were trimmed before they were read",
                self.log.name,
                start,
                min(trim_point, end),
            )
        first = recorded.stripes[0].start if recorded.stripes else end
        if not self.options.include_gaps:
            start = first
        return split(self.log.name, recorded.stripes, start, end, recorded.sizes, trimmed=first)

    def _joined_max(self, stripes: list[Stripe]) -> int:
        """Return the largest task, in positions, to which stripes are joined, by entry size."""
        if len(stripes) < 2:
            return JOINED_POSITIONS_MAX
        newest = stripes[-_SAMPLED_STRIPES:]
        stat = self.log.call(lambda handle: handle.stat(newest[0].start, newest[-1].end))
        if not stat.bytes:
            return JOINED_POSITIONS_MAX
        return min(JOINED_POSITIONS_MAX, JOINED_BYTES_MAX * stat.entries // stat.bytes)


class StreamPlanner:
    """Plans the batches of a streaming query.

    All results depend only on Spark's offsets and on the log, so another process can continue the
    query at any point.
    """

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self._planner = Planner(options)
        self._last: int | None = None  # the end of a query that has one
        self._committed = -1  # the cursor's position when this process last moved it

    @property
    def log(self) -> LogRef:
        """The log that is read."""
        return self._planner.log

    def initial(self) -> Offset:
        """Return where a new query begins, and set its cursor there, so that no trim overtakes it.

        Spark calls this again when it runs or replays the first batch. By then, "latest" may mean a
        higher position. So an existing cursor is never moved forward. It is moved back if another
        query left it at a higher position.

        Raises:
            ValueError: the options let the query begin at a time in the future.
        """
        starting = self.options.starting
        if isinstance(starting, datetime) and starting > datetime.now(timezone.utc):
            raise ValueError(
                f"startingTimestamp={starting.isoformat()} is in the future, but a stream would"
                " also contain entries appended before that time. Start the query later, or set"
                " startingPosition to latest and filter by timestamp"
            )
        position = self._planner.start()
        if (name := self.options.cursor) is not None:
            self.log.call(lambda handle: _hold(handle, name, position))
        return self._offset(position, position)

    def end_now(self) -> None:
        """End the query at the current tail."""
        self._last = self._planner.tail()

    def latest(self, start: Offset, entries_max: int | None) -> Offset:
        """Return the end of the batch that begins at ``start``, or ``start`` if nothing is new.

        Spark calls this when all earlier batches are done, so the cursor is moved to ``start``. The
        method ``commit`` could not do this after a query's last batch, because Spark does not call
        it then.
        """
        self._check(start)
        self._commit(start.position)
        end = self._end(start.position)
        if entries_max is not None:
            first = start.position
            if not self.options.include_gaps:  # trimmed positions are not rows and do not count
                first = max(first, self.log.open().view.trim_point)
            end = min(end, first + entries_max)
        if end <= start.position:
            return start
        recorded = self._planner.record(start.position, end)
        return self._offset(end, start.position, recorded)

    def _end(self, start: int) -> int:
        if self._last is not None:
            return self._last
        # Spark asks a hundred times a second, so the answer must be cheap if nothing is new.
        unchecked = self.log.call(lambda handle: handle.tail(checked=False))
        return self._planner.tail() if unchecked > start else start

    def tail(self) -> Offset:
        """Return the end of the log, for the query's progress."""
        tail = self.log.call(lambda handle: handle.tail(checked=False))
        return self._offset(tail, tail)

    def plan(self, end: Offset) -> list[Shares]:
        """Return the tasks of the batch that ends at ``end``; see :meth:`Planner.plan`.

        An offset made by this or a newer version of zlog always leads to the same tasks.
        """
        self._check(end)
        if end.since == end.position:
            return []
        recorded = end.recorded or self._planner.record(end.since, end.position)
        return self._planner.plan(end.since, end.position, recorded)

    def _commit(self, position: int) -> None:
        name = self.options.cursor
        if name is None or position <= self._committed:
            return
        try:
            self.log.call(lambda handle: commit_cursor(handle, name, position))
        except CursorAhead as ahead:
            if ahead.position > self.log.call(lambda handle: handle.earliest()):
                raise self._unprotected(position, ahead.position) from None
        self._committed = position

    def _unprotected(self, position: int, cursor: int) -> CursorAhead:
        name, log = self.options.cursor, self.log.name
        return CursorAhead(
            f"cursor {name!r} of log {log!r} is at {cursor}, but this query is at {position}, so"
            " entries that it has not read may be trimmed",
            position=cursor,
            hint="Give each query its own cursor (option cursor). If no other query uses this"
            f" cursor, remove it with `zlog cursor rm {log} {name}`; this query then recreates it.",
        )

    def _offset(self, position: int, since: int, recorded: Recorded | None = None) -> Offset:
        log_id = self.log.log_id
        assert log_id is not None
        return Offset(position, since, self.log.name, log_id, recorded)

    def _check(self, offset: Offset) -> None:
        offset.check(self.log.name, self.log.log_id, self._planner.selection)


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
