"""The Parquet files of offloaded stripes (docs/formats/offload.md).

A file has one row for each entry, and one row group for each segment. Positions without an entry
are in the file's metadata, so that programs that count the rows count entries.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise, repeat
from typing import Any, NamedTuple
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zlog.errors import CorruptEntry, UnsupportedVersion
from zlog.extension import (
    Batch,
    Filled,
    Lost,
    NewEntry,
    SegmentColumns,
    Trimmed,
    Wanted,
    tagged_each,
)
from zlog.view import WRITTEN, FileSegment, Stripe, StripeFile

SEGMENT_ROWS = 1 << 17
SEGMENT_BYTES = 32 << 20
SEGMENTS_MAX = 4096
"""When a row group is full, and how many there can be. Readers fetch and keep whole row groups."""

_VERSION = 1
_ABOUT, _GAPS = b"zlog", b"zlog.gaps."
"""The metadata's keys: about the file, and the gaps of a segment, whose number follows."""

_MAC_BYTES = 16

Content = Batch | Filled | Trimmed | Lost

COLUMNS = ["position", "timestamp", "data", "tags"]
"""The columns for users. The others restore append ids and MACs."""


def schema(*, macs: bool) -> pa.Schema:
    """Return the columns of a file."""
    fields = [
        ("position", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("data", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("writer", pa.binary(16)),
        ("number", pa.int64()),
    ]
    if macs:
        fields.append(("mac", pa.binary()))
    return pa.schema([pa.field(name, kind, nullable=name == "mac") for name, kind in fields])


class _Sink(io.RawIOBase):
    """Passes bytes on to a stream, and computes their SHA-256."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self.digest.update(view)
        self._stream.write(view)
        self.size += view.nbytes
        return view.nbytes


def write(
    stream: pa.NativeFile,
    url: str,
    stripe: Stripe,
    log_id: int,
    pieces: Iterable[Content],
    *,
    macs: bool,
) -> StripeFile:
    """Write a stripe's pieces as a Parquet file. The caller opens and closes the stream."""
    sink = _Sink(stream)
    columns = schema(macs=macs)
    segments: list[FileSegment] = []
    checksum = 0
    with pq.ParquetWriter(
        pa.PythonFile(sink, mode="w"),
        columns,
        compression="zstd",
        use_dictionary=["tags.list.element", "writer"],
        write_page_checksum=True,
        sorting_columns=[pq.SortingColumn(0)],
    ) as writer:
        for number, segment in enumerate(_segments(pieces, stripe, len(columns))):
            segments.append(segment.counts)
            if segment.counts.entries:
                batch = pa.record_batch(segment.rows, schema=columns)
                writer.write_batch(batch, row_group_size=batch.num_rows)
            gaps = json.dumps(segment.gaps, separators=(",", ":"))
            checksum = crc32(gaps.encode(), checksum)
            if segment.gaps:
                writer.add_key_value_metadata({_GAPS + b"%d" % number: gaps})
        about = {
            "version": _VERSION,
            "log_id": f"{log_id:016x}",
            "stripe": stripe.id,
            "start": stripe.start,
            "end": stripe.end,
            "segments": [each.end for each in segments],
            "gaps": checksum,
        }
        writer.add_key_value_metadata({_ABOUT: json.dumps(about)})
    return StripeFile(
        id=stripe.id,
        start=stripe.start,
        end=stripe.end,
        state=WRITTEN,
        url=url,
        size=sink.size,
        checksum=sink.digest.digest(),
        written=time.time_ns() // 1000,
        entries=sum(each.entries for each in segments),
        bytes=sum(each.bytes for each in segments),
        segments=tuple(segments),
    )


class _Segment(NamedTuple):
    counts: FileSegment
    rows: list[list[Any]]
    gaps: list[list[Any]]


def _segments(pieces: Iterable[Content], stripe: Stripe, columns: int) -> Iterator[_Segment]:
    """Divide a stripe into segments, each of which is full or has all of the rest."""
    rows: list[list[Any]] = [[] for _ in range(columns)]
    gaps: list[list[Any]] = []
    size, end, made = 0, stripe.start, 1

    def segment() -> _Segment:
        times = [each & _MASK for each in rows[1]]
        bounds = (min(times), max(times)) if times else (0, 0)
        return _Segment(FileSegment(end, len(times), size, *bounds), rows, gaps)

    for piece in pieces:
        if piece.start != end:
            raise CorruptEntry(f"position {end} was not read")
        if not isinstance(piece, Batch):
            gaps.append(_gap(piece))
            end = piece.end
            continue
        for begin in range(0, len(piece.entries), SEGMENT_ROWS):
            entries = piece.entries[begin : begin + SEGMENT_ROWS]
            more = sum(map(len, entries))
            full = len(rows[0]) + len(entries) > SEGMENT_ROWS or size + more > SEGMENT_BYTES
            if full and rows[0] and made < SEGMENTS_MAX:
                yield segment()
                rows, gaps, size, made = [[] for _ in rows], [], 0, made + 1
            _add(rows, piece, begin, entries)
            size += more
            end += len(entries)
    yield segment()


def _add(rows: list[list[Any]], batch: Batch, first: int, entries: Sequence[NewEntry]) -> None:
    start, number = batch.start + first, batch.number + first
    data = [each if isinstance(each, bytes) else each.data for each in entries]
    columns: list[Iterable[Any]] = [
        range(start, start + len(entries)),
        repeat(_signed(batch.timestamp), len(entries)),
        data,
        [() if isinstance(each, bytes) else each.tags for each in entries],
        repeat(batch.writer, len(entries)),
        map(_signed, range(number, number + len(entries))),
    ]
    if len(rows) > len(columns):
        cuts = [max(0, len(each) - _MAC_BYTES) for each in data]
        columns[2] = [each[:cut] for each, cut in zip(data, cuts, strict=True)]
        columns.append([each[cut:] for each, cut in zip(data, cuts, strict=True)])
    for column, values in zip(rows, columns, strict=True):
        column.extend(values)


_MASK = (1 << 64) - 1


def _signed(number: int) -> int:
    """Return an unsigned 64-bit number as a signed one with the same bits."""
    return number - (1 << 64) if number >> 63 else number


def _gap(piece: Filled | Trimmed | Lost) -> list[Any]:
    kind = type(piece).__name__.lower()
    if not isinstance(piece, Filled):
        return [piece.start, piece.end, kind]
    return [piece.start, piece.end, kind, piece.timestamp, piece.writer.hex(), piece.reason]


def check(metadata: pq.FileMetaData, file: StripeFile) -> None:
    """Raise CorruptEntry if a file is not the recorded one, or its metadata is damaged.

    The checksums of pages do not cover the metadata. The name of a log's folder ends with its id.
    """
    stored = metadata.metadata or {}
    about = json.loads(stored.get(_ABOUT, b"{}"))
    wanted = {
        "stripe": file.id,
        "start": file.start,
        "end": file.end,
        "segments": [each.end for each in file.segments],
        "gaps": crc32(b"".join(_stored_gaps(stored, each) for each in range(len(file.segments)))),
    }
    if about.get("version", _VERSION) > _VERSION:
        raise UnsupportedVersion(f"{file.url} was written by a newer version of zlog")
    of_log = file.folder.partition("?")[0].endswith(f"-{about.get('log_id')}")
    if not of_log or any(about.get(key) != value for key, value in wanted.items()):
        raise CorruptEntry(
            f"{file.url} is not the file of positions {file.start} to {file.end - 1}"
        )
    columns = metadata.schema.to_arrow_schema()
    if not columns.equals(schema(macs="mac" in columns.names)):
        raise CorruptEntry(f"{file.url} has other columns: {columns.names}")
    if metadata.num_rows != file.entries:
        raise CorruptEntry(f"{file.url} has {metadata.num_rows} rows instead of {file.entries}")


def _stored_gaps(stored: Mapping[bytes, bytes], number: int) -> bytes:
    return stored.get(_GAPS + b"%d" % number, b"[]")


def columns_of(parquet: pq.ParquetFile, file: StripeFile, number: int) -> SegmentColumns:
    """Return the columns of a segment, as buffers of Arrow's arrays."""
    gaps = _gaps(parquet, number)
    if file.segments[number].entries:
        table = parquet.read_row_group(number, columns=COLUMNS)
    else:
        table = schema(macs=False).empty_table().select(COLUMNS)
    positions, times, data, tags = (each.combine_chunks() for each in table.columns)
    times = times.cast(pa.int64())
    times = pc.if_else(pc.less(times, 0), _MASK >> 1, times)  # as for objects: at most 2^63 - 1
    (_, ends, content), count = data.buffers(), len(data)
    return SegmentColumns(
        _numbers(positions),
        _numbers(times),
        memoryview(ends or bytes(4)).cast("B").cast("i")[data.offset : data.offset + count + 1],
        memoryview(content or b""),
        cache(partial(_tags, tags)),
        gaps,
    )


def _numbers(column: pa.Array) -> memoryview:
    content = memoryview(column.buffers()[1] or b"").cast("B").cast("q")
    return content[column.offset : column.offset + len(column)]


def _tags(column: pa.Array) -> list[tuple[str, ...]]:
    """Return the tags of each row; several times as fast as ``to_pylist``."""
    names, ends = pc.list_flatten(column).to_pylist(), column.offsets.to_pylist()
    begin = ends[0] if ends else 0
    return [(*names[a - begin : b - begin],) for a, b in pairwise(ends)]


def _gaps(parquet: pq.ParquetFile, number: int) -> list[Filled | Trimmed | Lost]:
    gaps = json.loads(_stored_gaps(parquet.metadata.metadata, number))
    return [*map(_piece, gaps)]


def pieces_of(
    parquet: pq.ParquetFile, file: StripeFile, number: int, wanted: Wanted | None
) -> list[Content]:
    """Return the content of a segment, in order, with all entries or those that are wanted."""
    found: list[Content] = [*_gaps(parquet, number)]
    if file.segments[number].entries:
        rows = None if wanted is None else _rows_with(parquet, number, wanted)
        if rows is None or len(rows):
            table = parquet.read_row_group(number)
            found += _batches(table if rows is None else table.take(rows))
            found.sort(key=lambda piece: piece.start)
    return found


def _rows_with(parquet: pq.ParquetFile, number: int, wanted: Wanted) -> pa.Array:
    """Return the numbers of the rows with some tags. This reads only the column of tags."""
    column = parquet.read_row_group(number, columns=["tags"]).column("tags").combine_chunks()
    found = pc.is_in(pc.list_flatten(column), pa.array(wanted.tags, pa.string()))
    rows = pc.list_parent_indices(column).filter(found)
    counts = pc.value_counts(rows)
    if wanted.every:
        counts = counts.filter(pc.equal(counts.field("counts"), len(wanted.tags)))
    return counts.field("values")


def _piece(gap: Sequence[Any]) -> Filled | Trimmed | Lost:
    start, end, kind, *rest = gap
    if kind == "filled":
        timestamp, writer, reason = rest
        return Filled(start, end, timestamp, bytes.fromhex(writer), reason)
    return Lost(start, end) if kind == "lost" else Trimmed(start, end)


def _batches(table: pa.Table) -> Iterator[Batch]:
    """Yield the rows as batches of consecutive appends."""
    (rows,) = table.combine_chunks().to_batches()
    data = rows.column("data").to_pylist()
    if "mac" in table.column_names:
        macs = rows.column("mac").to_pylist()
        data = [some + (mac or b"") for some, mac in zip(data, macs, strict=True)]
    entries = tagged_each(data, _tags(rows.column("tags")))
    positions, numbers, writers = (rows.column(each) for each in ("position", "number", "writer"))
    times = rows.column("timestamp").cast(pa.int64())
    before, after = slice(None, -1), slice(1, None)
    breaks = pc.not_equal(times[after], times[before])
    for column in (positions, numbers):
        apart = pc.not_equal(pc.subtract(column[after], column[before]), 1)
        breaks = pc.or_(breaks, apart)
    breaks = pc.or_(breaks, pc.not_equal(writers[after], writers[before]))
    firsts = [0, *(each + 1 for each in pc.indices_nonzero(breaks).to_pylist())]
    for first, end in zip(firsts, [*firsts[1:], len(entries)], strict=True):
        place, number, time = (each[first].as_py() for each in (positions, numbers, times))
        writer = writers[first].as_py()
        yield Batch(place, time & _MASK, writer, number & _MASK, entries[first:end])
