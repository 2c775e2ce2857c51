"""Pieces of a log: what positions in a row hold, as one log tells it and another takes it over."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from zlog._native.new_entries import tags_bytes
from zlog.errors import ExportDamaged

if TYPE_CHECKING:
    from zlog._native.new_entries import NewEntry

ENTRIES_MAX = 16384
BYTES_MAX = 1 << 20
"""Entries in one batch of an export, and their data with their tags; an entry that is larger is
alone in its."""

_ROUND_PIECES = 512
_ROUND_POSITIONS = 16384
_ROUND_BYTES = 8 << 20
"""What is written to a copy at the same time."""


class Batch(NamedTuple):
    """Entries that one writer appended at one time, with numbers in a row."""

    start: int
    timestamp: int
    writer: bytes
    number: int
    entries: list[NewEntry]

    @property
    def end(self) -> int:
        """One past the last position."""
        return self.start + len(self.entries)


class Filled(NamedTuple):
    """Positions that one reader filled at one time, for one reason (a FillCode)."""

    start: int
    end: int
    timestamp: int
    writer: bytes
    reason: int


class Trimmed(NamedTuple):
    """Positions that are trimmed, whatever they held."""

    start: int
    end: int


Piece = Batch | Filled | Trimmed


class Mark(NamedTuple):
    """What tells that two logs hold the very same at a position.

    Attributes:
        kind: 1 an entry, 2 a fill.
        writer: whose append or fill it is.
        number: of the append, or when the position was filled.
    """

    kind: int
    writer: bytes
    number: int


def mark_of(piece: Piece, position: int) -> Mark | None:
    """Return the mark of a position of a piece; None where it is trimmed."""
    if isinstance(piece, Batch):
        return Mark(1, piece.writer, piece.number + position - piece.start)
    if isinstance(piece, Filled):
        return Mark(2, piece.writer, piece.timestamp)
    return None


def part_from(piece: Piece, position: int) -> Piece:
    """Return the part of a piece that begins at ``position``, which lies below its end."""
    skipped = position - piece.start
    if skipped <= 0:
        return piece
    if isinstance(piece, Batch):
        return piece._replace(
            start=position, number=piece.number + skipped, entries=piece.entries[skipped:]
        )
    return piece._replace(start=position)


def parts_without(piece: Piece, positions: Container[int]) -> Iterator[Piece]:
    """Cut these positions out of a piece that holds entries; leave others as they are."""
    if not isinstance(piece, Batch):
        yield piece
        return
    for out, run in groupby(range(piece.start, piece.end), lambda p: p in positions):
        kept = list(run)
        if not out:
            first = part_from(piece, kept[0])
            assert isinstance(first, Batch)
            yield first._replace(entries=first.entries[: len(kept)])


def joined(gap: Piece, following: Piece) -> Piece | None:
    """Return two neighbouring gaps as one; None where they differ, or one of them is a batch."""
    if isinstance(gap, Batch) or type(gap) is not type(following) or gap[2:] != following[2:]:
        return None
    return gap._replace(end=following.end)


class Joiner:
    """Makes the same pieces of a log each time, however it was read: as long as they may be."""

    def __init__(self) -> None:
        self._open: Piece | None = None
        self._bytes = 0

    def add(self, piece: Piece) -> Iterator[Piece]:
        """Take the next piece; returns those that are complete now."""
        if isinstance(piece, Batch):
            yield from self._add_batch(piece)
            return
        one = None if self._open is None else joined(self._open, piece)
        if one is None:
            yield from self.end()
        self._open = one or piece

    def end(self) -> Iterator[Piece]:
        """Return what is left."""
        if self._open is not None:
            yield self._open
            self._open = None

    def _add_batch(self, batch: Batch) -> Iterator[Piece]:
        for index, entry in enumerate(batch.entries):
            one = self._open
            if not isinstance(one, Batch) or not self._goes_on(one, batch, index):
                yield from self.end()
                start, number = batch.start + index, batch.number + index
                one = self._open = Batch(start, batch.timestamp, batch.writer, number, [])
                self._bytes = 0
            one.entries.append(entry)
            self._bytes += _size(entry)

    def _goes_on(self, one: Batch, batch: Batch, index: int) -> bool:
        return (
            one.writer == batch.writer
            and one.timestamp == batch.timestamp
            and one.number + len(one.entries) == batch.number + index
            and len(one.entries) < ENTRIES_MAX
            and self._bytes + _size(batch.entries[index]) <= BYTES_MAX
        )


def _size(entry: NewEntry) -> int:
    return len(entry) + tags_bytes((entry,))


def rounds(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Cut pieces into rounds, each of which is written at the same time.

    Where the pieces end by ExportDamaged, those before it come first.
    """
    some: list[Piece] = []
    positions = size = 0
    damage: list[ExportDamaged] = []
    for piece in _bounded(_whole(pieces, damage)):
        count = piece.end - piece.start
        data = sum(map(len, piece.entries)) if isinstance(piece, Batch) else 0
        if some and (
            len(some) == _ROUND_PIECES
            or positions + count > _ROUND_POSITIONS
            or size + data > _ROUND_BYTES
        ):
            yield some
            some, positions, size = [], 0, 0
        some.append(piece)
        positions += count
        size += data
    if some:
        yield some
    for error in damage:
        raise error


def _whole(pieces: Iterable[Piece], damage: list[ExportDamaged]) -> Iterator[Piece]:
    try:
        yield from pieces
    except ExportDamaged as error:
        damage.append(error)


def _bounded(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Cut gaps that are too long for one round."""
    for piece in pieces:
        if isinstance(piece, Batch):
            yield piece
            continue
        for start in range(piece.start, piece.end, _ROUND_POSITIONS):
            yield piece._replace(start=start, end=min(start + _ROUND_POSITIONS, piece.end))
