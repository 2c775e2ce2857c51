"""Reads a log in pieces, which contain everything that a copy must keep."""

from __future__ import annotations

from collections.abc import Sequence

from zlog._base.codes import Code, State
from zlog._base.deadline import Deadline
from zlog._base.pieces import Batch, Filled, Lost, Trimmed
from zlog._native.completions import ReplyBytes
from zlog._native.replies import MacKey, ReadReply, decode_read
from zlog._read.items import Slot, is_bad, no_entry
from zlog._read.iterate import Prefetcher, ReadOptions
from zlog._read.read import Reader, ReplicaReplies, Window
from zlog._transfer.pieces import Mark, Piece, joined, mark_of
from zlog.entry import Entry, Gap, GapKind
from zlog.errors import NotWritten

_SETTLED = (State.WRITTEN, State.FILLED, State.TRIMMED)

_HINTS = {
    GapKind.LOST: (
        "On Ceph, `zlog check LOG --repair --replicas 8` restores the entry if another replica"
        " has it. To copy the log without the entry, trim position {1}."
    ),
    GapKind.FORGED: "{0} To copy the log without the entry, trim position {1}.",
}
"""Hints for positions that cannot be copied. They take the error's own hint and the position."""


class Source(Prefetcher[list[Piece]]):
    """Reads a log's pieces in order. Like any reader, it waits for holes and fills them.

    Args:
        start: the first position.
        raw: whether entries have their MACs, which are not checked.
        keep_lost: whether lost positions are returned, instead of raising an error.
    """

    with_ids = 1

    def __init__(
        self, reader: Reader, start: int, *, raw: bool = False, keep_lost: bool = False
    ) -> None:
        super().__init__(reader, start, ReadOptions(passes_holes=False))
        self._mac = None if raw else reader.layout.macs.key
        self._keep_lost = keep_lost
        self._hole: int | None = None  # a hole in the last window that was not filled

    async def next(self, tail: int) -> list[Piece]:
        """Return the next pieces below ``tail``, or none if ``position`` is a hole that stays open.

        Raises:
            CorruptEntry: a position is lost.
            ForgedEntry: an entry was not made with the log's key.
        """
        pieces = await super().next(tail)
        if self._hole is not None:
            self.go_to(self._hole)
            self._hole = None
        return pieces

    def open_hole(self) -> NotWritten:
        """Return an error which says that the hole at ``position`` cannot be copied."""
        return NotWritten(
            f"position {self.position} of log {self.reader.layout} is a hole that was not filled",
            hint="To fill the hole, open the log in a writable store with a hole timeout."
            " Or copy only the positions below it.",
        )

    async def finish(
        self, window: Window, tail: int, deadline: Deadline
    ) -> tuple[list[Piece], int, int]:
        """See :class:`Prefetcher`."""
        reader = self.reader
        found: dict[int, Piece] = {}
        for asked, reply in zip(window.parts, await window.started.finish(deadline), strict=True):
            if reply.code == Code.OK:
                _take(reply.payload, self._mac, asked, found)
        end = window.end
        while missing := [p for p in range(window.start, end) if p not in found]:
            left = window.bytes_max - _bytes_of(found)
            if missing[0] == self._hole or (left <= 0 and missing[0] > window.start):
                end = missing[0]
            elif not await self._read(missing, left // len(window.parts), found, deadline):
                others: ReplicaReplies = []
                slots = await reader.read(missing, deadline, others)
                await reader.settle(slots, self.holes, tail, window.parts, deadline)
                self._take_settled(slots, found)
                self._take_from_replicas(others, slots, found)
        window.end = end
        return _pieces(found, window.start, end), _bytes_of(found), end

    async def _read(
        self, positions: Sequence[int], bytes_max: int, found: dict[int, Piece], deadline: Deadline
    ) -> bool:
        """Read positions that a window lacks. Returns whether any of them is settled."""
        before = len(found)
        _, asked, replies = await self.reader.ask(positions, max(1, bytes_max), deadline)
        for (_, group), reply in zip(asked, replies, strict=True):
            if reply.code == Code.OK:
                _take(reply.payload, self._mac, group, found)
        return len(found) > before

    def _take_settled(self, slots: dict[int, Slot], found: dict[int, Piece]) -> None:
        """Record trimmed positions and a hole. Raises if a position cannot be copied."""
        for position, slot in sorted(slots.items()):
            if isinstance(slot, Entry) or slot.kind is GapKind.FILLED:
                continue
            if slot.kind is GapKind.UNWRITTEN:
                self._hole = position
                return
            if slot.kind is GapKind.LOST and self._keep_lost:
                found[position] = Lost(position, position + 1)
                continue
            if slot.kind is not GapKind.TRIMMED:
                error = no_entry(slot, self.reader.layout.view.log)
                error.args = (f"{error}, so it can't be copied",)
                error.hint = _HINTS.get(slot.kind, "{}").format(error.hint, position)
                raise error
            found[position] = Trimmed(position, position + 1)

    def _take_from_replicas(
        self, others: ReplicaReplies, slots: dict[int, Slot], found: dict[int, Piece]
    ) -> None:
        """Record the entries that only other replicas have."""
        pieces: dict[int, Piece] = {}
        for payload, asked in others:
            _take(payload, self._mac, asked, pieces)
        found.update((p, piece) for p, piece in pieces.items() if not is_bad(slots[p]))

    def trimmed(self, gap: Gap) -> list[Piece]:
        """See :class:`Prefetcher`."""
        return [Trimmed(gap.position, gap.end)]


async def mark_at(reader: Reader, position: int) -> Mark | None:
    """Return the mark of a position below the tail, or None if it is trimmed."""
    source = Source(reader, position)
    pieces = await source.next(position + 1)
    return mark_of(pieces[0], position) if pieces else None


def _take(
    payload: ReplyBytes, mac: MacKey | None, positions: Sequence[int], found: dict[int, Piece]
) -> None:
    reply = decode_read(payload, positions, mac)
    for i, position in zip(range(len(reply)), positions, strict=False):
        if reply.state(i) in _SETTLED:
            found[position] = _piece(reply, i, position)


def _piece(reply: ReadReply, i: int, position: int) -> Piece:
    state = reply.state(i)
    if state == State.WRITTEN:
        entries = [reply.entry(i)]
        return Batch(position, reply.timestamp(i), reply.writer(i), reply.number(i), entries)
    if state == State.FILLED:
        end = position + 1
        return Filled(position, end, reply.timestamp(i), reply.writer(i), reply.reason(i))
    return Trimmed(position, position + 1)


def _bytes_of(found: dict[int, Piece]) -> int:
    return sum(len(each.entries[0]) for each in found.values() if isinstance(each, Batch))


def _pieces(found: dict[int, Piece], start: int, end: int) -> list[Piece]:
    pieces: list[Piece] = []
    for position in range(start, end):
        piece = found[position]
        one = joined(pieces[-1], piece) if pieces else None
        if one is None:
            pieces.append(piece)
        else:
            pieces[-1] = one
    return pieces
