"""Separates late rows from a stream, because Spark's stateful operators drop them silently.

Which rows Spark drops depends on its batches. The splitter decides once, and writes the other rows
in an order for which Spark drops none, regardless of batches:

1. Rows that are older than the newest row of earlier batches by the delay go to the late log.
2. The others go to the on-time log in slices of time as long as the delay. A slice is complete
   before the next begins. Within a slice, a failure may change the order.
3. The newest time goes to the log of marks, which later batches read.

All appends are exactly-once appends of the query and the batch. So a repeated batch reads the same
mark, makes the same decisions, and appends only the missing rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pyspark import TaskContext
from pyspark.sql import functions as f

import zlog
from zlog.entry import Entry, GapKind
from zlog.errors import CorruptEntry
from zlog.extension import tagged_each
from zlog.spark._handles import LogRef
from zlog.spark._hints import hints_shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from zlog.extension import NewEntry

_MARKS = ".marks"


@dataclass(frozen=True)
class LateSplitter:
    """A function for ``foreachBatch`` that writes each row to one of two logs, exactly once.

    The rows must have the columns ``data``, with text or bytes, and ``time``. They may have a
    column ``tags``, an array of strings. The time is not written, so the data must contain it.

    An entry of the on-time log is newer than each earlier entry minus ``delay``. So Spark drops
    none of them if a query reads this log with a watermark of this delay or a longer one. Rows
    without a time go to the late log.

    Attributes:
        store: the URL of the store, which every worker must reach.
        on_time, late: the names of the logs, which must exist. Only one query at a time may write
            to an on-time log. The splitter creates another log with the suffix ``.marks`` for it.
        time: the name of the column with the times.
        delay: how many seconds older than the newest row of earlier batches a row may be.
        mac_key_file: the path of the file with the MAC key of these logs, on every machine.

    Raises:
        ValueError: the delay is not positive, or the two logs are the same.
        LogNotFound: a log does not exist.
    """

    store: str
    on_time: str
    late: str
    time: str
    delay: float
    mac_key_file: str | None = None

    def __post_init__(self) -> None:
        if self.delay < 1e-6:
            raise ValueError(f"the delay must be positive, not {self.delay} seconds")
        if self.on_time == self.late:
            raise ValueError(f"the late rows need another log than {self.late!r}")
        for name in (self.late, self.on_time):
            with hints_shown(name):
                self._log(name).forget()  # it may be a handle on a log that was removed
                log = self._log(name).call(lambda handle: handle)
        key = None if self.mac_key_file is None else Path(self.mac_key_file)
        zlog.Log.open(log.store, self.on_time + _MARKS, create=True, mac_key=key).close()

    def _log(self, name: str) -> LogRef:
        return LogRef(self.store, name, mac_key_file=self.mac_key_file)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Write the rows of a batch, whose number Spark passes.

        Raises:
            ValueError: the rows do not have the columns described above.
        """
        types = dict(rows.dtypes)
        if types.get(self.time) != "timestamp" or types.get("data") not in ("string", "binary"):
            raise ValueError(
                f"the rows must have a column {self.time} of type timestamp and a column data of"
                f" type string or binary; they have {types}"
            )
        tags = f.col("tags") if "tags" in types else f.lit(None).cast("array<string>")
        columns = rows.select(f.unix_micros(self.time).alias("time"), "data", tags)
        ordered = columns.repartition(1).sortWithinPartitions("time")  # null comes first
        ordered.foreachPartition(partial(self._write, batch))

    def _write(self, batch: int, rows: Iterable[Row]) -> None:
        """Write the rows of a batch, which are in the order of their times, in a worker."""
        context = TaskContext.get()
        query = context and context.getLocalProperty("sql.streaming.queryId")
        if not query:
            raise RuntimeError("a LateSplitter works only in foreachBatch of a stream")
        with hints_shown(self.on_time):
            names = self.late, self.on_time, self.on_time + _MARKS
            late, on_time, marks = logs = [self._log(name).open() for name in names]
            for log in logs:
                log.complete_sequences(query, before=batch)
            before = newest = _newest(marks, query, batch)
            delay = round(self.delay * 1_000_000)

            def slice_of(row: Row) -> int | None:
                nonlocal newest
                when: int | None = row[0]
                if when is None or (before is not None and when <= before - delay):
                    return None
                newest = when if newest is None else max(newest, when)
                return when // delay

            for part, (number, some) in enumerate(groupby(rows, slice_of)):
                log = late if number is None else on_time
                entries = cast("Iterator[bytes]", map(_entry, some))  # or entries with tags
                log.append_once(entries, producer=query, sequence=batch, part=part)
            if newest != before:
                mark = {"query": query, "batch": batch, "newest": newest}
                marks.append_once([json.dumps(mark).encode()], producer=query, sequence=batch)


def _entry(row: Row) -> NewEntry:
    _, data, tags = row
    if data is None:
        raise ValueError("a row is null; remove such rows, or write empty entries")
    content = data.encode() if isinstance(data, str) else bytes(data)
    return tagged_each([content], [tags])[0] if tags else content


def _newest(marks: zlog.Log, query: str, batch: int) -> int | None:
    """Return the newest time before a batch, and trim older marks. None means no time."""
    for item in marks.read_range(reverse=True):
        if isinstance(item, Entry):
            mark = json.loads(item.data)
            if mark["query"] != query or mark["batch"] < batch:
                marks.trim_to(item.position)
                return int(mark["newest"])
        elif item.kind not in (GapKind.FILLED, GapKind.TRIMMED):
            raise CorruptEntry(f"log {marks.name!r}: {item}", gap=item)
    return None
