"""Reads a task's shares of logs as Arrow record batches, without copying data."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from zlog import Columns
from zlog.entry import Gap, GapKind
from zlog.errors import CorruptEntry, LogNotFound, ZlogError
from zlog.extension import no_entry
from zlog.spark._handles import LogRef, trimmed_error
from zlog.spark._hints import hints_shown
from zlog.spark._options import SourceOptions
from zlog.spark._plan import Share
from zlog.tables.entries import entries_of, object_numbers

_logger = logging.getLogger(__name__)

WINDOW_BYTES = 4 << 20
"""The maximum data of one record batch in bytes. A task holds about three batches."""

_GAP_ROWS_MAX = 1 << 16
"""The maximum number of rows in a record batch for a gap."""

_WRITTEN = "written"

_TYPES = {
    "log": pa.string(),
    "position": pa.int64(),
    "stripe": pa.int32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "data": pa.binary(),
    "tags": pa.list_(pa.string()),
    "state": pa.string(),
}


@dataclass(frozen=True, slots=True)
class Task:
    """A part of a batch, which any worker can read.

    Attributes:
        shares: the positions to read, of one or several logs.
        options: the options of the read.
    """

    shares: tuple[Share, ...]
    options: SourceOptions


def read_task(task: Task) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a task. Reading the task again yields the same rows.

    If ``failOnDataLoss`` is not set, lost entries are skipped without an error.

    Raises:
        Invalidated: positions were trimmed after the task was planned.
        CorruptEntry: stored bytes are damaged.
        ForgedEntry: an entry has a wrong MAC.
    """
    for share in task.shares:
        if share.trimmed:
            yield from _gap_rows(task, share, Gap(share.start, share.end, GapKind.TRIMMED))
            continue
        try:
            with hints_shown(share.log.name):
                yield from _read_share(task, share)
        except LogNotFound as error:
            if not task.options.skip_removed:
                raise
            _logger.warning("log %r is left out: %s", share.log.name, error)


def _read_share(task: Task, share: Share) -> Iterator[pa.RecordBatch]:
    patience, options = share.log.patience(), task.options
    at, rows = share.start, 0
    while rows < len(share):
        try:
            for columns in share.log.open().read_columns(
                at,
                share.end,
                indexes=share.indexes if len(share.indexes) < share.striping.width else None,
                window_bytes=WINDOW_BYTES,
                hole_timeout=... if options.hole_timeout is None else options.hole_timeout,
                with_data="data" in options.columns,
                with_tags="tags" in options.columns,
                tags=options.tags,
                match=options.match,
            ):
                yield from _batches(task, share, columns)
                rows += len(columns)
                rows += sum(share.count(gap.position, gap.end) for gap in columns.gaps)
                if len(columns):
                    at = columns.positions[-1] + 1
                at = max([at, *(gap.end for gap in columns.gaps)])
                patience.renew()
        except ZlogError as error:
            patience.after(error)
        else:
            if options.tags is not None:
                return  # the objects have searched all positions
            if rows < len(share):
                raise CorruptEntry(
                    f"log {share.log.name!r} reports {rows} positions of {share}, which has"
                    f" {len(share)} positions",
                    hint="The store may have been restored from a backup.",
                )


def _batches(task: Task, share: Share, columns: Columns) -> Iterator[pa.RecordBatch]:
    for gap in columns.gaps:
        _check_gap(task, share.log, gap)
    if len(columns):
        yield _entries(task, columns, share)
    if task.options.include_gaps:
        for gap in columns.gaps:
            yield from _gap_rows(task, share, gap)


def _check_gap(task: Task, log: LogRef, gap: Gap) -> None:
    """Raise if a gap is a loss of entries."""
    if gap.kind is GapKind.UNWRITTEN:
        raise ZlogError(
            f"position {gap.position} is still unwritten and could not be filled",
            hint="If the log has the hole timeout never, set the option holeTimeout.",
        )
    if not task.options.fail_on_data_loss:
        return
    if gap.kind.hides_entry:
        raise no_entry(gap, log.name)
    if gap.kind is GapKind.TRIMMED:
        earliest = log.call(lambda handle: handle.earliest())
        if gap.position < earliest:
            raise trimmed_error(log, gap.position, earliest)


def _entries(task: Task, columns: Columns, share: Share) -> pa.RecordBatch:
    names, table = task.options.columns, entries_of(columns, *share.striping)
    for name, value in (("log", share.log.name), ("state", _WRITTEN)):
        if name in names:
            table = table.append_column(name, pa.repeat(value, len(table)))
    (batch,) = table.select(names).to_batches()
    return batch


def _gap_rows(task: Task, share: Share, gap: Gap) -> Iterator[pa.RecordBatch]:
    names = task.options.columns
    for positions in share.positions(gap.position, gap.end):
        for first in range(0, len(positions), _GAP_ROWS_MAX):
            array = pa.array([*positions[first : first + _GAP_ROWS_MAX]], pa.int64())
            known = {"position": array, "state": pa.repeat(gap.kind.value, len(array))}
            if "log" in names:
                known["log"] = pa.repeat(share.log.name, len(array))
            if not share.trimmed:
                known["stripe"] = object_numbers(array, *share.striping)
            arrays = [known.get(name, pa.nulls(len(array), _TYPES[name])) for name in names]
            yield pa.record_batch(arrays, names=names)
