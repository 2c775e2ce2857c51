"""The bytes of a checkpoint: chunks, each preceded by its length, cut into pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from zlog.objects._records import digest

PIECE_BYTES = 1 << 20
"""The maximum size of a piece in bytes."""

PIECES_AT_ONCE = 8
"""The number of pieces that are written or read at the same time."""

_LENGTH_BYTES = 4
"""The format of the length before each chunk."""

_PART_BYTES = 1 << 18
"""The size in bytes at which a part of an object accepts no more items."""

_MAP, _LIST = b"\xdf", b"\xdd"
"""The first byte of a msgpack map and list whose number of items has four bytes, big-endian."""

_encode_into = msgspec.msgpack.Encoder().encode_into


def map_parts(items: Iterable[tuple[str, object]]) -> Iterator[msgspec.Raw]:
    """Encode items as maps of about equal size, whatever the sizes of the values."""
    return _parts(_MAP, items)


def list_parts(items: Iterable[object]) -> Iterator[msgspec.Raw]:
    """Encode items as lists of about equal size, whatever the sizes of the items."""
    return _parts(_LIST, ((item,) for item in items))


def _parts(kind: bytes, items: Iterable[tuple[object, ...]]) -> Iterator[msgspec.Raw]:
    begin = len(kind) + 4
    part, count = bytearray(begin), 0
    for item in items:
        for value in item:
            _encode_into(value, part, -1)
        count += 1
        if len(part) >= _PART_BYTES:
            part[:begin] = kind + count.to_bytes(4, "big")
            yield msgspec.Raw(part)
            part, count = bytearray(begin), 0
    if count:
        part[:begin] = kind + count.to_bytes(4, "big")
        yield msgspec.Raw(part)


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
    """Joins the pieces of a checkpoint, and splits the result into chunks again.

    Attributes:
        rest: the bytes of a chunk that is not complete yet.
    """

    def __init__(self) -> None:
        self.rest = bytearray()

    def add(self, piece: bytes | memoryview) -> Iterator[bytes]:
        """Add a piece; returns the chunks that it completes."""
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
    """Computes the size and digest of a checkpoint's pieces for the checkpoint's manifest.

    Attributes:
        size: the total size of the pieces so far, in bytes.
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
        """Return the digest of the pieces' bytes."""
        return self._digest.hexdigest()
