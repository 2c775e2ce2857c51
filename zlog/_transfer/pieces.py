"""Pieces of a log: consecutive positions, in the form in which they are copied."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from zlog._base.pieces import Batch, Filled, Lost, Trimmed
from zlog._native.new_entries import NewEntry, tags_bytes
from zlog.errors import ExportDamaged

ENTRIES_MAX = 16384
BYTES_MAX = 1 << 20
"""Limits of a batch in an export: entries, and bytes of data and tags. A larger entry is alone."""

_ROUND_PIECES = 512
_ROUND_POSITIONS = 16384
_ROUND_BYTES = 8 << 20
"""Limits of one round of writes to a copy."""


Piece = Batch | Filled | Trimmed | Lost


class Mark(NamedTuple):
    """The identity of an append or a fill. Positions with equal marks have equal contents.

    Attributes:
        kind: 1 for an entry, 2 for a fill.
        writer: the id of the client that wrote or filled.
        number: the number of the append, or the time of the fill.
    """

    kind: int
    writer: bytes
    number: int


def mark_of(piece: Piece, position: int) -> Mark | None:
    """Return the mark of a position in a piece, or None if it is trimmed."""
    if isinstance(piece, Batch):
        return Mark(1, piece.writer, piece.number + position - piece.start)
    if isinstance(piece, Filled):
        return Mark(2, piece.writer, piece.timestamp)
    return None


def part_from(piece: Piece, position: int) -> Piece:
    """Return the part of a piece from ``position`` on, which must be below the piece's end."""
    skipped = position - piece.start
    if skipped <= 0:
        return piece
    if isinstance(piece, Batch):
        return piece._replace(
            start=position, number=piece.number + skipped, entries=piece.entries[skipped:]
        )
    return piece._replace(start=position)


def parts_without(piece: Piece, positions: Container[int]) -> Iterator[Piece]:
    """Cut positions out of a batch. Other pieces are returned whole."""
    if not isinstance(piece, Batch):
        yield piece
        return
    for out, run in groupby(range(piece.start, piece.end), lambda p: p in positions):
        kept = list(run)
        if not out:
            first = part_from(piece, kept[0])
            assert isinstance(first, Batch)
            yield first._replace(entries=first.entries[: len(kept)])


def joined(piece: Piece, following: Piece) -> Piece | None:
    """Join two adjacent pieces. Returns None if they differ. Batches are joined in place."""
    if isinstance(piece, Batch):
        if isinstance(following, Batch) and piece.precedes(
            following.writer, following.timestamp, following.number
        ):
            piece.entries.extend(following.entries)
            return piece
        return None
    if type(piece) is not type(following) or piece[2:] != following[2:]:
        return None
    return piece._replace(end=following.end)


class Joiner:
    """Joins pieces into pieces of maximum length, so that equal logs give equal pieces."""

    def __init__(self) -> None:
        self._open: Piece | None = None
        self._bytes = 0

    def add(self, piece: Piece) -> Iterator[Piece]:
        """Add the next piece. Returns the pieces that are complete."""
        if isinstance(piece, Batch):
            yield from self._add_batch(piece)
            return
        one = None if self._open is None else joined(self._open, piece)
        if one is None:
            yield from self.end()
        self._open = one or piece

    def end(self) -> Iterator[Piece]:
        """Return the last piece."""
        if self._open is not None:
            yield self._open
            self._open = None

    def _add_batch(self, batch: Batch) -> Iterator[Piece]:
        for index, entry in enumerate(batch.entries):
            one = self._open
            number, size = batch.number + index, _size(entry)
            if not (
                isinstance(one, Batch)
                and one.precedes(batch.writer, batch.timestamp, number)
                and len(one.entries) < ENTRIES_MAX
                and self._bytes + size <= BYTES_MAX
            ):
                yield from self.end()
                start = batch.start + index
                one = self._open = Batch(start, batch.timestamp, batch.writer, number, [])
                self._bytes = 0
            one.entries.append(entry)
            self._bytes += size


def _size(entry: NewEntry) -> int:
    return len(entry) + tags_bytes((entry,))


def rounds(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Group pieces into rounds. All pieces of a round can be written at the same time.

    If reading the pieces raises ExportDamaged, the pieces before the damage are yielded first.
    """
    some: list[Piece] = []
    positions = size = 0
    try:
        for piece in _bounded(pieces):
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
    except ExportDamaged:
        if some:
            yield some
        raise
    if some:
        yield some


def _bounded(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Split gaps that are too long for one round."""
    for piece in pieces:
        if isinstance(piece, Batch):
            yield piece
            continue
        for start in range(piece.start, piece.end, _ROUND_POSITIONS):
            yield piece._replace(start=start, end=min(start + _ROUND_POSITIONS, piece.end))
