"""Reading a log in pieces, with all that a copy of it has to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from zlog._base.codes import Code, State
from zlog._base.deadline import Deadline
from zlog._base.settings import Budget
from zlog._layout.layout import Layout
from zlog._native import core
from zlog._read.holes import Patience
from zlog._read.items import Slot
from zlog._read.iterate import WINDOW_BYTES, WINDOW_POSITIONS_MAX, Ahead
from zlog._read.read import Reader, WindowRead
from zlog._transfer.pieces import Batch, Filled, Mark, Piece, Trimmed, joined, mark_of
from zlog.entry import Entry, Gap, GapKind
from zlog.errors import CorruptEntry, ForgedEntry, NotWritten, UnsupportedVersion

if TYPE_CHECKING:
    from zlog._native.core import MacKey, NewEntry, ReadReply, ReplyBytes


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


class Source:
    """Reads a log's pieces in order, and settles its holes as every reader does.

    Args:
        reader: of the log.
        budget: of its handle.
        start: the first position.
    """

    def __init__(self, reader: Reader, budget: Budget, start: int) -> None:
        self._layout = reader.layout
        self._windows = _PieceWindows(reader, budget)
        self._ahead: Ahead[list[Piece]] = Ahead(reader, budget, self._windows, start, WINDOW_BYTES)

    @property
    def position(self) -> int:
        """The next position."""
        return self._ahead.position

    async def next(self, tail: int) -> list[Piece]:
        """Return what is next, below ``tail``. Nothing: ``position`` is a hole that stays open.

        Raises:
            CorruptEntry: a position is lost.
            ForgedEntry: what is there was not made with the log's key.
        """
        pieces = await self._ahead.next(tail)
        if self._windows.hole is not None:
            self._ahead.go_to(self._windows.hole)
            self._windows.hole = None
        return pieces

    def open_hole(self) -> NotWritten:
        """The error that says that ``position`` can't be copied."""
        return NotWritten(
            f"position {self.position} of log {self._layout} is a hole that was not filled",
            hint="Open the log so that it can be filled: in a store that can be written, with a"
            " hole time-out. Or copy what lies below it.",
        )


async def mark_at(reader: Reader, budget: Budget, position: int) -> Mark | None:
    """Return the mark of a position below the tail; None where it is trimmed."""
    source = Source(reader, budget, position)
    pieces = await source.next(position + 1)
    return mark_of(pieces[0], position) if pieces else None


class _PieceWindows:
    """Windows as pieces. ``hole``: a position of the last one that stays open, if there is any."""

    def __init__(self, reader: Reader, budget: Budget) -> None:
        self._reader = reader
        self._budget = budget
        self._patience = Patience(budget.hole_timeout(...))
        self.hole: int | None = None

    def positions_max(self, _: int) -> int:
        return WINDOW_POSITIONS_MAX

    def start(self, start: int, end: int, bytes_max: int) -> WindowRead:
        return self._reader.start(start, end, bytes_max, with_ids=True)

    async def finish(self, read: WindowRead, tail: int) -> tuple[list[Piece], int, int]:
        deadline = self._budget.longer(self._patience.seconds)
        found: dict[int, _Held] = {}
        mac = self._reader.layout.macs.key
        for asked, reply in zip(read.parts, await read.started.finish(deadline), strict=True):
            if reply.code == Code.OK:
                _take(reply.payload, mac, asked, found)
        end = read.end
        while missing := [p for p in range(read.start, end) if p not in found]:
            left = read.bytes_max - _bytes_of(found)
            if missing[0] == self.hole or (left <= 0 and missing[0] > read.start):
                end = missing[0]
            elif not await self._read(missing, left // len(read.parts), found, deadline):
                slots = await self._reader.read(missing, deadline)
                await self._reader.settle(slots, self._patience, tail, read.parts, deadline)
                self._take_settled(slots, found)
        read.end = end
        return _pieces(found, read.start, end), _bytes_of(found), end

    async def _read(
        self, positions: Sequence[int], bytes_max: int, found: dict[int, _Held], deadline: Deadline
    ) -> bool:
        """Read positions that a window lacks; returns whether any of them holds something."""
        before = len(found)
        _, asked, replies = await self._reader.read_once(positions, max(1, bytes_max), deadline)
        for (_, group), reply in zip(asked, replies, strict=True):
            if reply.code == Code.OK:
                _take(reply.payload, self._reader.layout.macs.key, group, found)
        return len(found) > before

    def _take_settled(self, slots: dict[int, Slot], found: dict[int, _Held]) -> None:
        """Take note of what was trimmed, and of a hole; raise where something is lost."""
        for position, slot in sorted(slots.items()):
            if isinstance(slot, Entry) or slot.kind is GapKind.FILLED:
                continue
            if slot.kind is GapKind.LOST:
                raise _lost(self._reader.layout, slot)
            if slot.kind is GapKind.FORGED:
                raise _forged(self._reader.layout, slot)
            if slot.kind is GapKind.UNREADABLE:
                what = f"position {position} of log {self._reader.layout}"
                raise UnsupportedVersion(f"{what} was stored by a newer version of zlog", gap=slot)
            if slot.kind is GapKind.UNWRITTEN:
                self.hole = position
                return
            found[position] = _TRIMMED

    def trimmed(self, gap: Gap) -> list[Piece]:
        return [Trimmed(gap.position, gap.end)]

    def cut(self, content: list[Piece]) -> tuple[list[Piece], Gap | None]:
        return content, None  # pieces are joined where that matters

    def put(self, gap: Gap, content: list[Piece]) -> list[Piece]:
        return [Trimmed(gap.position, gap.end), *content]


def _take(
    payload: ReplyBytes, mac: MacKey | None, positions: Sequence[int], found: dict[int, _Held]
) -> None:
    reply = core.decode_read(payload, positions, mac)
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
