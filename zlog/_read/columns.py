"""Reading positions as columns: what tables are made of, without an object for each entry."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from zlog._base.codes import Code
from zlog._base.deadline import Deadline, Timeout
from zlog._base.names import check_range
from zlog._base.settings import Budget
from zlog._native import core
from zlog._read.doubt import trimmed_part
from zlog._read.holes import Patience
from zlog._read.items import Slot, join
from zlog._read.iterate import WINDOW_BYTES, WINDOW_POSITIONS_MAX, Ahead, Bounded, InOrder
from zlog._read.read import Reader, WindowRead
from zlog._read.select import Selection, Wanted
from zlog.entry import Entry, Gap, GapKind

_DATA_BYTES_MAX = 2**31 - 1
"""Data of one `Columns`: its offsets have 32 bits and a sign."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Entries in ascending position order, and the gaps between them.

    The four columns have the layout of Apache Arrow's buffers; :class:`memoryview` gives them to
    libraries that understand buffers (``pyarrow.py_buffer``, ``numpy.frombuffer``) without a copy.
    They may share the memory of a whole window: keep copies, not slices, of what is kept for long.

    Attributes:
        positions: where each entry stands; n × int64.
        timestamps: when its writer appended it, by the writer's clock; n × int64, µs since
            1970-01-01 UTC.
        offsets: entry i is ``data[offsets[i]:offsets[i + 1]]``; (n + 1) × int32, from 0.
        data: the bytes of all entries, one after the other.
        gaps: of the positions that were read, those that hold no entry; a gap covers all of them
            that lie in it.
        tags: those of each entry; None: they were not asked for.
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


def _only_gap(gap: Gap, *, tags: bool) -> Columns:
    nothing = memoryview(b"")
    numbers = nothing.cast("q")
    return Columns(
        numbers, numbers, memoryview(bytes(4)).cast("i"), nothing, [gap], [] if tags else None
    )


class _ColumnWindows:
    """Windows of one stripe each, or of some of its objects, as columns."""

    def __init__(
        self,
        reader: Reader,
        budget: Budget,
        indexes: frozenset[int] | None,
        hole_timeout: float | None,
        *,
        with_tags: bool,
    ) -> None:
        self._reader = reader
        self._budget = budget
        self._indexes = indexes
        self._with_tags = with_tags
        self._patience = Patience(hole_timeout)

    def positions_max(self, start: int) -> int:
        """As many positions between those that are read as there are objects left out."""
        width = self._reader.layout.width_at(start)
        wanted = range(width) if self._indexes is None else self._indexes
        read = sum(1 for index in wanted if index < width)
        return WINDOW_POSITIONS_MAX * width // max(1, read)

    def start(self, start: int, end: int, bytes_max: int) -> WindowRead:
        layout = self._reader.layout
        stripe = layout.stripe_of(layout.view, start)
        end = min(end, stripe.end)
        tags = self._with_tags or layout.macs.key is not None  # which MACs are about, too
        return self._reader.start(start, end, bytes_max, self._indexes, tags=tags)

    async def finish(self, read: WindowRead, tail: int) -> tuple[list[Columns], int, int]:
        if not read.parts:
            return [], 0, read.end
        reader = self._reader
        deadline = self._budget.longer(self._patience.seconds)
        if read.found is None:
            read.found = await self._bring(read, deadline)
        window, settled = read.found
        start = read.start
        hole = await reader.settle(settled, self._patience, tail, read.parts, deadline, first=start)
        read.start = end = read.end if hole is None else hole
        return *_columns_of(window, settled, start, end), end

    async def _bring(
        self, read: WindowRead, deadline: Deadline
    ) -> tuple[core.ColumnWindow, dict[int, Slot]]:
        """Return what the calls brought, and what the positions hold that it does not have."""
        reader = self._reader
        key = reader.layout.macs.key
        window = core.ColumnWindow(read.parts[0].spacing.packed, key, self._with_tags)
        replies = await read.started.finish(deadline)
        data_bytes = 0
        for asked, reply in zip(read.parts, replies, strict=True):
            payload = reply.payload if reply.code == Code.OK else None
            window.add(payload, asked.start, asked.stop)
            data_bytes += len(payload or b"")
        settled: dict[int, Slot] = {}
        rest = sorted(window.open())
        await reader.read_rest(read, rest, data_bytes, settled, deadline)
        read.start = read.parts[0].start
        return window, {position: slot for position, slot in settled.items() if position < read.end}

    def trimmed(self, gap: Gap) -> list[Columns]:
        own = trimmed_part(self._reader.layout, gap, self._indexes)
        return [] if own is None else [_only_gap(own, tags=self._with_tags)]

    def cut(self, content: list[Columns]) -> tuple[list[Columns], Gap | None]:
        last = content[-1] if content else None
        if last is None or not last.gaps:
            return content, None
        *gaps, gap = last.gaps
        if len(last) and last.positions[-1] > gap.position:
            return content, None
        rest = [replace(last, gaps=gaps)] if len(last) or gaps else []
        return [*content[:-1], *rest], gap

    def put(self, gap: Gap, content: list[Columns]) -> list[Columns]:
        if not content:
            return [_only_gap(gap, tags=self._with_tags)]
        first = content[0]
        entry = first.positions[0] if len(first) else None
        meet = bool(first.gaps) and (entry is None or first.gaps[0].position < entry)
        gaps = join([gap, *first.gaps[:meet]]) + first.gaps[meet:]
        return [replace(first, gaps=gaps), *content[1:]]


def _gap_of(item: Gap | range) -> Gap:
    return item if isinstance(item, Gap) else Gap(item.start, item.stop, GapKind.TRIMMED)


def _columns_of(
    window: core.ColumnWindow, settled: dict[int, Slot], start: int, end: int
) -> tuple[list[Columns], int]:
    """Return a window's columns: one `Columns`, or more where the data is too much for one."""
    result: list[Columns] = []
    data_bytes = 0
    at: int | None = start
    while at is not None:
        positions, timestamps, offsets, data, rows, at, tags = window.columns(
            settled, at, end, _DATA_BYTES_MAX
        )
        gaps = [gap for row in rows for gap in join(map(_gap_of, row))]
        result.append(Columns(positions, timestamps, offsets, data, gaps, tags))
        data_bytes += len(result[-1].data)
    return result, data_bytes


class _Selected:
    """What a selection finds, as columns: of entries that have tags in common there are few."""

    def __init__(self, selection: Selection, *, with_tags: bool) -> None:
        self._selection = selection
        self._with_tags = with_tags

    @property
    def position(self) -> int:
        return self._selection.position

    def go_to(self, position: int) -> None:
        self._selection.go_to(position)

    async def next(self, tail: int) -> list[Columns]:
        items = await self._selection.next(tail)
        return [_columns(some, tags=self._with_tags) for some in _split(items)]


def _split(items: Sequence[Entry | Gap]) -> Iterator[Sequence[Entry | Gap]]:
    """Cut items where the data is too much for one `Columns`."""
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
    return Columns(*core.entry_columns(entries), gaps, own)


class ColumnsAhead(InOrder[list[Columns]], Protocol):
    """Reads on from a position, as columns; the caller knows how far the log goes."""

    def go_to(self, position: int) -> None:
        """Read on from another position."""
        ...


def columns_ahead(
    reader: Reader,
    budget: Budget,
    start: int,
    hole_timeout: Timeout = ...,
    wanted: Wanted | None = None,
    *,
    indexes: frozenset[int] | None = None,
    window_bytes: int = WINDOW_BYTES,
    with_tags: bool = False,
    passes_holes: bool = False,
) -> ColumnsAhead:
    """Return what reads a log from ``start`` on as columns; see :meth:`zlog.Log.read_columns`."""
    hole_seconds = budget.hole_timeout(hole_timeout)
    if wanted is not None:
        selection = Selection(reader, budget, wanted, start, Patience(hole_seconds), indexes)
        return _Selected(selection, with_tags=with_tags)
    windows = _ColumnWindows(reader, budget, indexes, hole_seconds, with_tags=with_tags)
    return Ahead(reader, budget, windows, start, window_bytes, passes_holes=passes_holes)


class ColumnsReader(Bounded[list[Columns]]):
    """Reads ``[start, end)`` once as columns, as far as the tail at its beginning."""

    def __init__(
        self,
        reader: Reader,
        budget: Budget,
        start: int,
        end: int | None,
        indexes: Collection[int] | None,
        window_bytes: int | None,
        hole_timeout: Timeout,
        wanted: Wanted | None = None,
        *,
        with_tags: bool = False,
    ) -> None:
        check_range(start, end)
        if window_bytes is not None and window_bytes < 1:
            raise ValueError(f"a window takes at least one byte, not {window_bytes}")
        chosen = None if indexes is None else frozenset(indexes)
        if chosen is not None and any(index < 0 for index in chosen):
            raise ValueError("a stripe's objects are numbered from 0")
        ahead = columns_ahead(
            reader,
            budget,
            start,
            hole_timeout,
            wanted,
            indexes=chosen,
            window_bytes=window_bytes or WINDOW_BYTES,
            with_tags=with_tags,
            passes_holes=True,
        )
        super().__init__(reader.positions, budget, ahead, end)
