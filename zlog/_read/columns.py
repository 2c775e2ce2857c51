"""Reads a log as columns, without a Python object for each entry."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Answered
from zlog._layout.segments import Part
from zlog._native.arrow import stream_of
from zlog._native.columns import ColumnWindow, entry_columns
from zlog._read.items import Slot, gaps_of, in_order
from zlog._read.iterate import OrderedReader, Prefetcher, ReadOptions
from zlog._read.read import Reader, Window
from zlog._read.select import TagReader, trimmed_part
from zlog.entry import Entry, Gap, GapKind

_DATA_BYTES_MAX = 2**31 - 1
"""How much data one `Columns` can have, because its offsets are signed 32-bit numbers."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Entries in ascending order of position, and the gaps between them.

    The first four attributes are buffers in Apache Arrow's layout, which other libraries can use
    without a copy (``pyarrow.py_buffer``, ``numpy.frombuffer``). They may share the memory of a
    whole window, so copy the parts that you want to keep. The entries are also a table for Arrow
    libraries (``pyarrow.table``, ``polars.DataFrame``), as those of a :class:`ColumnIterator`.

    Attributes:
        positions: the position of each entry; n × int64.
        timestamps: when each entry was appended, by its writer's clock; n × int64, µs since 1970,
            UTC.
        offsets: where each entry's data begins and ends; (n + 1) × int32. Entry i is
            ``data[offsets[i]:offsets[i + 1]]``. The first offset may be above 0.
        data: the bytes of all entries, one after another. It may contain other entries before and
            after them.
        gaps: the positions that hold no entry. If only some stripe objects are read, a gap covers
            only positions of these objects.
        tags: the tags of each entry; None if they were not requested.
    """

    positions: memoryview
    timestamps: memoryview
    offsets: memoryview
    data: memoryview
    gaps: list[Gap]
    tags: list[tuple[str, ...]] | None = None

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.positions)

    @property
    def data_bytes(self) -> int:
        """The size of the entries' data in bytes; ``data`` may be longer."""
        return self.offsets[-1] - self.offsets[0]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the entries as a stream of Arrow. The request for a schema is ignored."""
        return stream_of(iter([self]), self.tags is not None)


class ColumnIterator(Iterator[Columns]):
    """Iterates over a range of a log. It is also a table for libraries that read Arrow streams.

    Such a library (``pyarrow.RecordBatchReader.from_stream``, ``polars.DataFrame``) gets the
    entries without the gaps, in the columns position, timestamp, data and, if requested, tags. Each
    stream reads the range from its start. An error of the log ends it with the error's message.
    """

    def __init__(self, read: Callable[[], Iterator[Columns]], *, with_tags: bool) -> None:
        """Wrap a function that starts to read the range."""
        self._read, self._windows = read, read()
        self._with_tags = with_tags

    def __next__(self) -> Columns:
        """Return the next window."""
        return next(self._windows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a new stream of Arrow. The request for a schema is ignored."""
        return stream_of(self._read(), self._with_tags)


def _only_gap(gap: Gap, *, tags: bool) -> Columns:
    nothing = memoryview(b"")
    numbers = nothing.cast("q")
    return Columns(
        numbers, numbers, memoryview(bytes(4)).cast("i"), nothing, [gap], [] if tags else None
    )


class ColumnReader(Prefetcher[list[Columns]]):
    """Reads windows as columns. A window stays in one stripe, and may skip some objects."""

    def __init__(self, reader: Reader, position: int, options: ReadOptions) -> None:
        super().__init__(reader, position, options)
        self._indexes = _indexes_of(options)
        self._with_tags = options.with_tags
        # Objects check MACs, and select positions of some objects.
        direct = self._indexes is None and reader.layout.view.mac is None
        self.form = "columns" if direct else "objects"

    def positions_max(self, start: int) -> int:
        """See :class:`Prefetcher`. Positions of objects that are not read do not count."""
        width = self.reader.layout.width_at(start)
        wanted = range(width) if self._indexes is None else self._indexes
        read = sum(1 for index in wanted if index < width)
        return super().positions_max(start) * width // max(1, read)

    def start(self, start: int, end: int, bytes_max: int) -> Window:
        """See :class:`Prefetcher`."""
        layout = self.reader.layout
        part = layout.part_of(layout.view, start, self.form)
        end = min(end, part.end)
        if isinstance(part, Part) and part.columns is not None:
            return Window(start, end, bytes_max, False, [], Answered([]), part)
        macs = layout.macs.key is not None and self.reader.with_data
        tags = self._with_tags or macs  # MACs cover the tags
        return self.reader.start(
            start, end, bytes_max, self._indexes, with_ids=self.with_ids > 0, tags=tags
        )

    async def finish(
        self, window: Window, tail: int, deadline: Deadline
    ) -> tuple[list[Columns], int, int]:
        """See :class:`Prefetcher`."""
        if isinstance(window.decoded, Part):
            own = self._cut(window.decoded, window.start, window.end)
            return [own], own.data_bytes, window.end
        if not window.parts:
            return [], 0, window.end
        if window.found is None:
            key, parts = self.reader.layout.macs.key, window.parts
            decoded = ColumnWindow(
                parts[0].striping.packed, key, self._with_tags, self.reader.with_data
            )
            replies = await window.started.finish(deadline)
            data_bytes = 0
            for asked, reply in zip(parts, replies, strict=True):
                payload = reply.payload if reply.code == Code.OK else None
                decoded.add(payload, asked.start, asked.stop)
                data_bytes += len(payload or b"")
            window.start, window.found = parts[0].start, {}
            window.decoded = decoded
            await self.read_rest(window, replies, sorted(decoded.open()), data_bytes, deadline)
        end = await self.settle(window, tail, deadline)
        columns, data_bytes = _columns_of(window.decoded, window.found, window.start, end)
        return columns, data_bytes, end

    def _cut(self, part: Part, start: int, end: int) -> Columns:
        """Return the positions ``[start, end)`` of a segment, without copying them."""
        content = part.columns
        assert content is not None
        first, last = bisect_left(content.positions, start), bisect_left(content.positions, end)
        gaps = in_order(
            slot
            for piece in content.gaps
            for slot in gaps_of(piece, max(start, piece.start), min(end, piece.end), part.objects)
        )
        offsets, data = content.offsets[first : last + 1], content.data
        if not self.reader.with_data:
            offsets, data = memoryview(bytes(offsets.nbytes)).cast("i"), memoryview(b"")
        return Columns(
            content.positions[first:last],
            content.timestamps[first:last],
            offsets,
            data,
            gaps,
            content.tags()[first:last] if self._with_tags else None,
        )

    def trimmed(self, gap: Gap) -> list[Columns]:
        """See :class:`Prefetcher`."""
        own = trimmed_part(self.reader.layout, gap, self._indexes)
        return [] if own is None else [_only_gap(own, tags=self._with_tags)]

    def join(
        self, kept: Gap | None, content: list[Columns], *, ends: bool
    ) -> tuple[list[Columns], Gap | None]:
        """See :class:`Prefetcher`."""
        if kept is not None and content:
            first = content[0]
            entry = first.positions[0] if len(first) else None
            meet = bool(first.gaps) and (entry is None or first.gaps[0].position < entry)
            gaps = in_order([kept, *first.gaps[:meet]], apart=True) + first.gaps[meet:]
            content = [replace(first, gaps=gaps), *content[1:]]
        elif kept is not None:
            content = [_only_gap(kept, tags=self._with_tags)]
        last = content[-1] if content else None
        if ends or last is None or not last.gaps:
            return content, None
        *gaps, gap = last.gaps
        if not self.keeps(gap) or (len(last) and last.positions[-1] > gap.position):
            return content, None
        rest = [replace(last, gaps=gaps)] if len(last) or gaps else []
        return [*content[:-1], *rest], gap


def _columns_of(
    window: ColumnWindow, settled: dict[int, Slot], start: int, end: int
) -> tuple[list[Columns], int]:
    """Return a window as `Columns`, as many as its data requires, and the size of the data."""
    result: list[Columns] = []
    data_bytes = 0
    at: int | None = start
    while at is not None:
        positions, timestamps, offsets, data, rows, at, tags = window.columns(
            settled, at, end, _DATA_BYTES_MAX
        )
        gaps: list[Gap] = []
        for row in rows:
            found = (
                each if isinstance(each, Gap) else Gap(each.start, each.stop, GapKind.TRIMMED)
                for each in row
            )
            gaps += in_order(found, apart=True)
        result.append(Columns(positions, timestamps, offsets, data, gaps, tags))
        data_bytes += result[-1].data_bytes
    return result, data_bytes


class _TagColumns:
    """Reads entries by tags, and builds columns from one object per entry."""

    def __init__(self, entries: TagReader, *, with_tags: bool) -> None:
        self._entries = entries
        self._with_tags = with_tags
        self.go_to = entries.go_to

    @property
    def position(self) -> int:
        return self._entries.position

    async def next(self, tail: int) -> list[Columns]:
        items = await self._entries.next(tail)
        return [_columns(some, tags=self._with_tags) for some in _split(items)]


def _split(items: Sequence[Entry | Gap]) -> Iterator[Sequence[Entry | Gap]]:
    """Split items into parts, each with data that fits into one `Columns`."""
    begin = size = 0
    for i, item in enumerate(items):
        more = len(item.data) if isinstance(item, Entry) else 0
        if size + more > _DATA_BYTES_MAX:
            yield items[begin:i]
            begin, size = i, 0
        size += more
    if begin < len(items):
        yield items[begin:]


def _columns(items: Sequence[Entry | Gap], *, tags: bool) -> Columns:
    entries = [item for item in items if isinstance(item, Entry)]
    gaps = [item for item in items if isinstance(item, Gap)]
    own = [entry.tags for entry in entries] if tags else None
    return Columns(*entry_columns(entries), gaps, own)


def _indexes_of(options: ReadOptions) -> frozenset[int] | None:
    return None if options.indexes is None else frozenset(options.indexes)


def column_reader(reader: Reader, start: int, options: ReadOptions) -> OrderedReader[list[Columns]]:
    """Return a reader of columns from ``start`` on: of all entries, or of those with some tags."""
    if (wanted := options.wanted) is None:
        return ColumnReader(reader, start, options)
    entries = TagReader(reader, wanted, start, options.hole_timeout, _indexes_of(options))
    return _TagColumns(entries, with_tags=options.with_tags)
