"""The bytes of a checkpoint: chunks, each behind its length, cut into pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from zlog.objects._records import digest

PIECE_BYTES = 1 << 20
"""Of a piece, at most."""

PIECES_AT_ONCE = 8
"""Pieces that are written, or read, at the same time."""

_LENGTH_BYTES = 4
"""Of the length before each chunk, little-endian."""


def cut(chunks: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """Cut chunks into pieces of up to ``limit`` bytes."""
    buffer = bytearray()
    for chunk in chunks:
        buffer += len(chunk).to_bytes(_LENGTH_BYTES, "little")
        buffer += chunk
        while len(buffer) >= limit:
            yield bytes(buffer[:limit])
            del buffer[:limit]
    if buffer:
        yield bytes(buffer)


class Joined:
    """Pieces put together to chunks again.

    Attributes:
        rest: what has come of a chunk that is not complete.
    """

    def __init__(self) -> None:
        self.rest = bytearray()

    def add(self, piece: bytes | memoryview) -> Iterator[bytes]:
        """Add a piece; returns the chunks that are complete with it."""
        rest = self.rest
        rest += piece
        at = 0
        while at + _LENGTH_BYTES <= len(rest):
            begin = at + _LENGTH_BYTES
            end = begin + int.from_bytes(rest[at:begin], "little")
            if end > len(rest):
                break
            yield bytes(rest[begin:end])
            at = end
        del rest[:at]


class Sum:
    """What a manifest says of all pieces together.

    Attributes:
        size: their bytes.
    """

    def __init__(self) -> None:
        self.size = 0
        self._digest = digest()

    def add(self, piece: bytes | memoryview) -> None:
        """Count a piece."""
        self.size += len(piece)
        self._digest.update(piece)

    @property
    def digest(self) -> str:
        """Of their bytes."""
        return self._digest.hexdigest()
