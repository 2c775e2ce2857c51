"""Reading a log in pieces, with all that a copy of it has to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from zlog._base.codes import Code, State
from zlog._base.deadline import Deadline
from zlog._base.settings import Budget
from zlog._layout.layout import Layout
from zlog._native.replies import decode_read
from zlog._read.items import Slot
from zlog._read.prefetch import Prefetcher
from zlog._read.read import Reader, Window
from zlog._transfer.pieces import Batch, Filled, Mark, Piece, Trimmed, joined, mark_of
from zlog.entry import Entry, Gap, GapKind
from zlog.errors import CorruptEntry, ForgedEntry, NotWritten, UnsupportedVersion

if TYPE_CHECKING:
    from zlog._native.completions import ReplyBytes
    from zlog._native.new_entries import NewEntry
    from zlog._native.replies import MacKey, ReadReply


class _Held(NamedTuple):
    """What a position holds."""

    state: int
    timestamp: int = 0
    writer: bytes = b""
    number: int = 0
    reason: int = 0
    data: NewEntry = b""


_TRIMMED = _Held(State.TRIMMED)
_SETTLED = (State.WRITTEN, State.FILLED, State.TRIMMED)


class Source(Prefetcher[list[Piece]]):
    """Reads a log's pieces in order, and settles its holes as every reader does.

    Args:
        reader: of the log.
        budget: of its handle.
        start: the first position.
    """

    with_ids = 1

    def __init__(self, reader: Reader, budget: Budget, start: int) -> None:
        super().__init__(reader, budget, start, budget.hole_timeout(...))
        self._hole: int | None = None  # a position of the last window that stays open

    async def next(self, tail: int) -> list[Piece]:
        """Return what is next, below ``tail``. Nothing: ``position`` is a hole that stays open.

        Raises:
            CorruptEntry: a position is lost.
            ForgedEntry: what is there was not made with the log's key.
        """
        pieces = await super().next(tail)
        if self._hole is not None:
            self.go_to(self._hole)
            self._hole = None
        return pieces

    def open_hole(self) -> NotWritten:
        """The error that says that ``position`` can't be copied."""
        return NotWritten(
            f"position {self.position} of log {self.reader.layout} is a hole that was not filled",
            hint="Open the log so that it can be filled: in a store that can be written, with a"
            " hole time-out. Or copy what lies below it.",
        )

    async def finish(
        self, window: Window, tail: int, deadline: Deadline
    ) -> tuple[list[Piece], int, int]:
        """See :class:`Prefetcher`."""
        reader = self.reader
        found: dict[int, _Held] = {}
        mac = reader.layout.macs.key
        for asked, reply in zip(window.parts, await window.started.finish(deadline), strict=True):
            if reply.code == Code.OK:
                _take(reply.payload, mac, asked, found)
        end = window.end
        while missing := [p for p in range(window.start, end) if p not in found]:
            left = window.bytes_max - _bytes_of(found)
            if missing[0] == self._hole or (left <= 0 and missing[0] > window.start):
                end = missing[0]
            elif not await self._read(missing, left // len(window.parts), found, deadline):
                slots = await reader.read(missing, deadline)
                await reader.settle(slots, self.holes, tail, window.parts, deadline)
                self._take_settled(slots, found)
        window.end = end
        return _pieces(found, window.start, end), _bytes_of(found), end

    async def _read(
        self, positions: Sequence[int], bytes_max: int, found: dict[int, _Held], deadline: Deadline
    ) -> bool:
        """Read positions that a window lacks; returns whether any of them holds something."""
        before = len(found)
        _, asked, replies = await self.reader.ask(positions, max(1, bytes_max), deadline)
        for (_, group), reply in zip(asked, replies, strict=True):
            if reply.code == Code.OK:
                _take(reply.payload, self.reader.layout.macs.key, group, found)
        return len(found) > before

    def _take_settled(self, slots: dict[int, Slot], found: dict[int, _Held]) -> None:
        """Take note of what was trimmed, and of a hole; raise where something is lost."""
        for position, slot in sorted(slots.items()):
            if isinstance(slot, Entry) or slot.kind is GapKind.FILLED:
                continue
            if slot.kind is GapKind.LOST:
                raise _lost(self.reader.layout, slot)
            if slot.kind is GapKind.FORGED:
                raise _forged(self.reader.layout, slot)
            if slot.kind is GapKind.UNREADABLE:
                what = f"position {position} of log {self.reader.layout}"
                raise UnsupportedVersion(f"{what} was stored by a newer version of zlog", gap=slot)
            if slot.kind is GapKind.UNWRITTEN:
                self._hole = position
                return
            found[position] = _TRIMMED

    def trimmed(self, gap: Gap) -> list[Piece]:
        """See :class:`Prefetcher`."""
        return [Trimmed(gap.position, gap.end)]


async def mark_at(reader: Reader, budget: Budget, position: int) -> Mark | None:
    """Return the mark of a position below the tail; None where it is trimmed."""
    source = Source(reader, budget, position)
    pieces = await source.next(position + 1)
    return mark_of(pieces[0], position) if pieces else None


def _take(
    payload: ReplyBytes, mac: MacKey | None, positions: Sequence[int], found: dict[int, _Held]
) -> None:
    reply = decode_read(payload, positions, mac)
    for i in range(reply.count):
        if reply.state(i) in _SETTLED:
            found[positions[i]] = _held(reply, i)


def _held(reply: ReadReply, i: int) -> _Held:
    state = reply.state(i)
    if state == State.WRITTEN:
        return _Held(state, reply.timestamp(i), reply.writer(i), reply.number(i), 0, reply.entry(i))
    if state == State.FILLED:
        return _Held(state, reply.timestamp(i), reply.writer(i), 0, reply.reason(i))
    return _TRIMMED


def _bytes_of(found: dict[int, _Held]) -> int:
    return sum(len(each.data) for each in found.values())


def _lost(layout: Layout, gap: Gap) -> CorruptEntry:
    return CorruptEntry(
        f"position {gap.position} of log {layout} is lost ({gap.detail}), so no copy can have it",
        hint="On Ceph `zlog check LOG --heal --copies 8` puts back what another copy has. Or give"
        f" it up for good, for readers and copies alike: trim position {gap.position}.",
        gap=gap,
    )


def _forged(layout: Layout, gap: Gap) -> ForgedEntry:
    return ForgedEntry(
        f"position {gap.position} of log {layout} holds no entry that was made with the log's key,"
        " so no copy can have it",
        hint=f"See who can write to the store. To go on without it: trim position {gap.position}.",
        gap=gap,
    )


def _pieces(found: dict[int, _Held], start: int, end: int) -> list[Piece]:
    pieces: list[Piece] = []
    last: Piece | None = None
    for position in range(start, end):
        held = found[position]
        if held.state == State.WRITTEN:
            if not isinstance(last, Batch) or not _goes_on(last, held):
                last = Batch(position, held.timestamp, held.writer, held.number, [])
                pieces.append(last)
            last.entries.append(held.data)
            continue
        piece: Piece = Trimmed(position, position + 1)
        if held.state == State.FILLED:
            piece = Filled(position, position + 1, held.timestamp, held.writer, held.reason)
        one = None if last is None else joined(last, piece)
        if one is None:
            pieces.append(piece)
        else:
            pieces[-1] = one
        last = pieces[-1]
    return pieces


def _goes_on(batch: Batch, held: _Held) -> bool:
    return (
        batch.writer == held.writer
        and batch.timestamp == held.timestamp
        and batch.number + len(batch.entries) == held.number
    )
