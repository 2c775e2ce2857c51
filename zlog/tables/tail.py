"""Copies a log into a table, for ``zlog table tail`` and for programs."""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from zlog import Log, Match
from zlog.entry import Gap, GapKind
from zlog.errors import Invalidated, ZlogError
from zlog.extension import no_entry
from zlog.tables.common import DATE, LogProgress, Progress, partitions_of
from zlog.tables.entries import entries_of
from zlog.tables.parse import Parser, unparsed
from zlog.tables.sink import Sink, State, TableError, WrongTable, not_ours, sink_of

_PATIENCE_SECONDS = 120.0
"""How long the store may be unreachable before the copy ends."""

_RETRY_SECONDS = 1.0
_WINDOW_BYTES = 4 << 20
_ENTRIES = pa.schema(
    [
        ("position", pa.int64()),
        ("stripe", pa.int32()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("data", pa.binary()),
    ]
)
_LOSS_HINT = "To continue without the lost entries, use --allow-data-loss."

_logger = logging.getLogger(__name__)


@dataclass
class TableTail:
    """A copy of a log in a table.

    Attributes:
        log: the log.
        table: the path or URL of the table.
        format: the format of the table: ``parquet``, ``delta`` or ``iceberg``.
        catalog: the catalog of an Iceberg table; see :class:`zlog.tables.iceberg.IcebergSink`.
        parser: the parser that makes columns from entries.
        partition_by: the columns to partition the table by; None means the day of the append.
        drop_raw: whether to leave out the column ``data``.
        cursor: the name of the log's cursor that follows the table; None means no cursor.
        start: returns the position at which a new copy begins; None means the oldest entry.
        interval: how many seconds pass between the beginnings of two batches, unless there is a
            backlog; None means that the copy ends at the present tail.
        entries_max: the maximum number of positions of a batch.
        bytes_max: the approximate maximum of the entries' bytes in a batch.
        allow_data_loss: whether the copy continues if entries are lost, or were trimmed before they
            were copied.
        tags, match: copy only entries with these tags, as in :meth:`zlog.Log.read_range`.
    """

    log: Log
    table: str
    format: str = "parquet"
    catalog: str | None = None
    parser: Parser = unparsed
    partition_by: Sequence[str] | None = None
    drop_raw: bool = False
    cursor: str | None = None
    start: Callable[[], int] | None = None
    interval: float | None = 5.0
    entries_max: int = 1_000_000
    bytes_max: int = 128 << 20
    allow_data_loss: bool = False
    tags: Sequence[str] | None = None
    match: Match = "any"

    def __post_init__(self) -> None:
        # A signal handler may fill this kind of queue at any point.
        self._stops: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._partitions: list[str] = []
        self._schema: pa.Schema | None = None

    def stop(self) -> None:
        """End the copy after it has committed the entries that it has read."""
        self._stops.put(None)

    def run(self) -> Iterator[Progress]:
        """Copy, and yield the progress after each commit.

        Raises:
            ImportError: a package of the extra ``tables`` is missing.
            ValueError: the columns are invalid.
            WrongTable: the table is not a copy of this log with these settings, or the copy begins
                beyond the tail.
            TableConflict: another process copies into the table.
            TableError: reading or writing the table failed.
            Invalidated: entries were trimmed before they were copied.
            CorruptEntry, ForgedEntry, UnsupportedVersion: an entry is lost.
            CursorAhead: the cursor has left entries unprotected that were not copied.
        """
        with contextlib.closing(sink_of(self.table, self.format, self.catalog)) as sink:
            position = held = self._begin(sink)
            last = self.log.tail() if self.interval is None else None
            number, patience = 0, time.monotonic() + _PATIENCE_SECONDS
            while True:
                began = time.monotonic()
                try:
                    if self.cursor is not None and held < position:
                        self.log.cursor(self.cursor, create=position).commit(position)
                        held = position
                    if not self._stops.empty() or position == last:
                        return
                    tail = self.log.tail() if last is None else last
                    entries, end = self._read(position, tail)
                except ZlogError as error:
                    if not error.retryable or began >= patience or not self._stops.empty():
                        raise
                    _logger.warning("%s; trying again", error)
                    self._wait(_RETRY_SECONDS)
                    continue
                patience = time.monotonic() + _PATIENCE_SECONDS
                if end > position:
                    with self._failures():
                        rows = self._rows(entries)
                        sink.append(rows, position, end)
                    took, progress = time.monotonic() - began, LogProgress(position, end, tail)
                    yield Progress(number, len(rows), took, {self.log.name: progress})
                    number, position = number + 1, end
                if position == tail and self.interval is not None:
                    self._wait(began + self.interval - time.monotonic())

    def _begin(self, sink: Sink) -> int:
        """Load or create the table, and return its position, from which the cursor holds the log.

        The columns are checked before anything is created.
        """
        columns = self._parsed(_ENTRIES.empty_table()).column_names
        self._partitions = partitions_of(columns, self.partition_by)
        schema = self._schema = self._rows(_ENTRIES.empty_table()).schema
        origin = {
            "log": self.log.name,
            "id": f"{self.log.view.log_id:016x}",  # a later log may have the same name
            "tags": self.tags and [self.match, *sorted(self.tags)],
            "columns": [f"{each.name} {each.type}" for each in schema],
            "partitions": self._partitions,
        }
        with self._failures():
            state = sink.load()
        if state is not None:
            self._check_origin(origin, state.origin)
            position = state.position
        else:
            position = self.log.earliest() if self.start is None else self.start()
        if position > (tail := self.log.tail()):
            raise WrongTable(
                f"the copy begins at position {position}, but the tail of log {self.log.name!r} is"
                f" {tail}",
                hint="Give a new table a lower --from. If the log was restored from a backup, start"
                " a new table (--to).",
            )
        if state is None:
            with self._failures():
                sink.create(State(json.dumps(origin), position), schema, self._partitions)
        if self.cursor is not None:  # no cursor remains if there is no table
            first = max(position, self.log.earliest())
            cursor = self.log.cursor(self.cursor, create=first)
            if cursor.position != first:  # the process died, or the table was restored
                cursor.reset(first)
        return position

    def _check_origin(self, origin: dict[str, Any], text: str) -> None:
        """Raise WrongTable if a table that exists has another origin."""
        try:
            found = dict(json.loads(text))
        except (TypeError, ValueError):
            raise not_ours(self.table) from None
        if found.get("id") != origin["id"]:
            raise WrongTable(
                f"{self.table} is a copy of log {found.get('log')!r} with the id {found.get('id')},"
                f" but log {origin['log']!r} has the id {origin['id']}"
            )
        for name in ("tags", "columns", "partitions"):
            if found.get(name) != origin[name]:
                there, here = json.dumps(found.get(name)), json.dumps(origin[name])
                raise WrongTable(f"{self.table} was made with the {name} {there}, not {here}")

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn the errors of the table's library, which have no common class, into TableError."""
        try:
            yield
        except ZlogError:
            raise
        except Exception as error:
            reason = next(iter(str(error).strip().splitlines()), "")
            raise TableError(f"{self.table}: {type(error).__name__}: {reason}") from error

    def _wait(self, seconds: float) -> None:
        with contextlib.suppress(queue.Empty):
            self._stops.put(self._stops.get(timeout=max(0.0, seconds)))

    def _read(self, start: int, tail: int) -> tuple[pa.Table, int]:
        """Read a batch that begins at ``start``. Returns its entries and its end."""
        if start == tail:
            return _ENTRIES.empty_table(), tail
        first = min(tail, max(start, self.log.earliest()))
        if first > start:
            self._trimmed(start, first)
        at, end = first, min(tail, first + self.entries_max)
        stripes = self.log.stripes(first, end) if first < end else []
        tables, gaps, size = [_ENTRIES.empty_table()], list[Gap](), 0
        for columns in self.log.read_columns(
            first, end, window_bytes=_WINDOW_BYTES, tags=self.tags, match=self.match
        ):
            if len(columns):
                stripe = next(each for each in stripes if columns.positions[0] < each.end)
                tables.append(entries_of(columns, stripe.width, stripe.stripe_unit))
                at = columns.positions[-1] + 1
            gaps += columns.gaps
            size += columns.data_bytes
            if size >= self.bytes_max or not self._stops.empty():
                break
        else:
            at = end
        self._check(gaps)
        return pa.concat_tables(tables), at

    def _check(self, gaps: Sequence[Gap]) -> None:
        """Raise if a gap is a loss of entries."""
        for gap in gaps:
            if gap.kind is GapKind.UNWRITTEN:
                raise ZlogError(
                    f"position {gap.position} is still unwritten and could not be filled",
                    hint="If the log has the hole timeout never, use --hole-timeout.",
                )
            if not self.allow_data_loss and gap.kind.hides_entry:
                error = no_entry(gap, self.log.name)
                error.hint = _LOSS_HINT
                raise error
        trimmed = [gap.position for gap in gaps if gap.kind is GapKind.TRIMMED]
        if trimmed and trimmed[0] < (earliest := self.log.earliest()):
            self._trimmed(trimmed[0], earliest)

    def _trimmed(self, start: int, end: int) -> None:
        text = f"log {self.log.name!r}: positions [{start}, {end}) were trimmed before the copy"
        if not self.allow_data_loss:
            hint = f"{_LOSS_HINT} A cursor (--cursor) keeps a log from being trimmed too early."
            raise Invalidated(text, hint=hint)
        _logger.warning("%s", text)

    def _parsed(self, entries: pa.Table) -> pa.Table:
        table = self.parser(entries)
        kept = [name for name in table.column_names if name != "data" or not self.drop_raw]
        return table.select(kept)

    def _rows(self, entries: pa.Table) -> pa.Table:
        """Return the rows of some entries, with the columns of the table."""
        table = self._parsed(entries)
        if DATE in self._partitions and DATE not in table.column_names:
            table = table.append_column(DATE, pc.cast(table["timestamp"], pa.date32()))
        return table if self._schema is None else table.cast(self._schema)
