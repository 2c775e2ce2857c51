"""Finds for each row of a table the newest entry of a log with the row's tag at the row's time."""

from __future__ import annotations

import contextlib
import time as clock
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf

from zlog.entry import Entry
from zlog.errors import InvalidTag
from zlog.spark._handles import LogRef
from zlog.spark._hints import hints_shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from zlog import Log

_REQUESTS = 16  # how many tags a task searches for at the same time
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_FOUND = pa.struct(
    {"position": pa.int64(), "timestamp": pa.timestamp("us", "UTC"), "data": pa.binary()}
)
_Key = tuple[str | None, int | None]
_Found = tuple[int, int, bytes]


def lookup(
    rows: DataFrame,
    log: str,
    *,
    on: str,
    time: str,
    store: str,
    prefix: str = "",
    into: str = "found",
    clock_skew: float = 60.0,
    mac_key_file: str | None = None,
) -> DataFrame:
    """Add to each row of a batch or stream the newest entry with a tag at the row's time.

    This is the entry with the highest position among those that have the tag and whose timestamp is
    not above the row's time. The new column is a struct of position, timestamp and data. It is null
    if there is no such entry, or the row's tag or time is null. Trimmed, lost and damaged entries
    are not found.

    Args:
        on, time: the columns with the tags, of type string, and with the times, of type timestamp.
        store: the URL of the log's store, which every worker must reach.
        prefix: text to put before the value of ``on`` to get the tag.
        into: the name of the new column.
        clock_skew: how many seconds timestamps may decrease along the log because writers' clocks
            differ. If they decrease by more, the result may be an older entry or null.
        mac_key_file: the path of the file with the log's MAC key, on every machine.

    Raises:
        ValueError: a column has another type, the new column exists, or the skew is negative.
        LogNotFound: the log does not exist.
    """
    types = " and ".join(kind for _, kind in rows.select(on, time).dtypes)
    if types != "string and timestamp":
        raise ValueError(f"{on!r} and {time!r} must be of type string and timestamp, not {types}")
    if into in rows.columns:
        raise ValueError(f"the column {into!r} already exists: choose another name with `into`")
    if clock_skew < 0:
        raise ValueError(f"`clock_skew` must not be negative, as {clock_skew} is")
    skew = round(clock_skew * 1_000_000)
    ref = LogRef(store, log, mac_key_file=mac_key_file)
    with hints_shown(log):
        ref.forget()  # this process may have a handle on a log that was removed
        ref = replace(ref, log_id=ref.call(lambda handle: handle.view.log_id))

    def search(values: pa.Array, times: pa.Array) -> pa.Array:
        with hints_shown(log):
            keys = [*zip(values.to_pylist(), times.to_pylist(), strict=True)]
            found = _search(ref, prefix, skew, keys)
        return pa.array([found.get(key) for key in keys], _FOUND)

    column = arrow_udf(search, "position bigint, timestamp timestamp, data binary")  # type: ignore[call-overload]
    return rows.withColumn(into, column(f.col(on), f.unix_micros(f.col(time))))


def _search(ref: LogRef, prefix: str, skew: int, keys: Iterable[_Key]) -> dict[_Key, _Found]:
    """Return the entries for pairs of a tag and a time in microseconds since 1970, in a worker."""
    wanted: dict[str, list[int]] = {}
    for value, when in {*keys}:
        if value is not None and when is not None:
            wanted.setdefault(value, []).append(when)
    before = None
    end = max(map(max, wanted.values()), default=0) + skew + 1
    if end < clock.time() * 1_000_000:  # no entry with a later time is wanted
        moment = _EPOCH + max(0, end) * _MICROSECOND
        before = ref.call(lambda log: log.find_time(moment))

    def newest(value: str) -> dict[_Key, _Found]:
        times = wanted[value]
        found = ref.call(lambda log: _newest(log, prefix + value, sorted(times), before))
        return {(value, when): entry for when, entry in found.items()}

    with ThreadPoolExecutor(_REQUESTS) as pool:
        return {key: entry for some in pool.map(newest, wanted) for key, entry in some.items()}


def _newest(log: Log, tag: str, times: list[int], before: int | None) -> dict[int, _Found]:
    """Return the newest entry with a tag at each of the ascending times, if it exists."""
    found: dict[int, _Found] = {}
    with contextlib.suppress(InvalidTag):  # which no entry has
        first = log.last(tag, before=before)  # unlike a range, it does not return many entries
        older = log.read_range(0, first.position, tags=[tag], reverse=True) if first else ()
        for entry in chain([first], older):
            if isinstance(entry, Entry):
                timestamp = (entry.timestamp - _EPOCH) // _MICROSECOND
                while times and times[-1] >= timestamp:
                    found[times.pop()] = entry.position, timestamp, entry.data
            if not times:
                break
    return found
