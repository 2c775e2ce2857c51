"""The wire's primitives in pure Python: little-endian fixed-width integers, bytes, runs and CRC32C.

Slow, short and independent of the C++ codec on purpose: the suite compares the two.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache

VERSION = 1
COMPAT = 1
OPEN_END = 2**64 - 1
_POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), reflected


def _make_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE = _make_table()


def crc32c(data: bytes) -> int:
    """CRC-32C of `data`; the check value of b"123456789" is 0xE3069283."""
    value = 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        value = (value >> 8) ^ table[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


@lru_cache(maxsize=4096)
def entry_crc(position: int, data: bytes) -> int:
    """The checksum that travels with an entry: over its position and its data.

    The position is part of it so that data which turns up at another position is caught.
    """
    return crc32c(u64(position) + data)


def u8(value: int) -> bytes:
    """One byte."""
    return struct.pack("<B", value)


def u32(value: int) -> bytes:
    """Four bytes, little-endian."""
    return struct.pack("<I", value)


def u64(value: int) -> bytes:
    """Eight bytes, little-endian."""
    return struct.pack("<Q", value)


def blob(data: bytes) -> bytes:
    """Bytes of any length: a u32 length, then the bytes."""
    return u32(len(data)) + data


def text(value: str) -> bytes:
    """A string: its UTF-8 bytes as a `blob`."""
    return blob(value.encode())


def column_u32(values: Iterable[int]) -> bytes:
    """A column of four-byte values."""
    return b"".join(map(u32, values))


def following(striping: int, position: int) -> int:
    """The next position of the object that has one: the least one further up."""
    width, stripe_unit = striping & 0xFFFF, 1 << (striping >> 16)
    own, position = position // stripe_unit % width, position + 1
    return (
        position if position // stripe_unit % width == own else position + (width - 1) * stripe_unit
    )


def striping_of(stride: int, stripe_unit: int) -> int:
    """The objects of a stripe, and the positions in a row of one of them, as one number."""
    return stride | (stripe_unit.bit_length() - 1) << 16


def raw_runs(striping: int, runs: Sequence[tuple[int, int]]) -> bytes:
    """Runs as given, sound or not: `(first position, length)` each."""
    return u32(striping) + u32(len(runs)) + b"".join(u64(f) + u32(n) for f, n in runs)


def runs_of(striping: int, positions: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending positions of one object as the fewest runs `(first, length)`."""
    runs: list[tuple[int, int]] = []
    expected = None
    for position in positions:
        if position == expected:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((position, 1))
        expected = following(striping, position)
    return runs


def frame(fields: bytes, version: int = VERSION, compat: int = COMPAT) -> bytes:
    """Fields in a frame, as every message and every element of a list of them is."""
    return u8(version) + u8(compat) + blob(fields)


def positions_in(striping: int, positions: Sequence[int]) -> bytes:
    """Ascending positions, encoded as runs."""
    return raw_runs(striping, runs_of(striping, positions))


class Malformed(AssertionError):
    """A host sent a reply that does not follow the wire format."""


class Reader:
    """Reads a reply from its start; every read is checked, and `done` that nothing is left over."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        end = self._offset + length
        if end > len(self._data):
            raise Malformed(f"{length} bytes wanted at {self._offset} of {len(self._data)}")
        part = self._data[self._offset : end]
        self._offset = end
        return part

    def u8(self) -> int:
        """One byte."""
        return self.take(1)[0]

    def u32(self) -> int:
        """Four bytes."""
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        """Eight bytes."""
        return int.from_bytes(self.take(8), "little")

    def blob(self) -> bytes:
        """A u32 length and that many bytes."""
        return self.take(self.u32())

    def text(self) -> str:
        """A string."""
        return self.blob().decode()

    def flag(self) -> bool:
        """A byte that is 0 or 1."""
        value = self.u8()
        if value > 1:
            raise Malformed(f"{value} is no boolean")
        return value == 1

    def optional_u64(self) -> int | None:
        """A flag, then a u64 that counts only when the flag is set (and is 0 otherwise)."""
        present, value = self.flag(), self.u64()
        if not present and value != 0:
            raise Malformed(f"absent, yet {value}")
        return value if present else None

    def frame(self, version: int = VERSION) -> tuple[int, Reader]:
        """The compat of a frame, and its fields: version, compat, length, fields."""
        found, compat = self.u8(), self.u8()
        if found != version:
            raise Malformed(f"version {found}, compat {compat}")
        return compat, Reader(self.blob())

    def left(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._offset

    def done(self) -> None:
        """Nothing may follow."""
        if self._offset != len(self._data):
            raise Malformed(f"{len(self._data) - self._offset} bytes too many")


def with_same_checksum(data: bytes) -> bytes:
    """Other bytes of the same length and CRC.

    A CRC is linear: of 64 changes of one bit each, some together change nothing of 32 bits.
    """
    at = len(data) - 8
    changes: dict[int, tuple[int, int]] = {}  # by its highest bit: a change of the CRC, the bits
    for bit in range(64):
        flipped = bytes(at) + (1 << bit).to_bytes(8, "little")
        crc, bits = crc32c(flipped) ^ crc32c(bytes(len(data))), 1 << bit
        while crc and crc.bit_length() in changes:
            other = changes[crc.bit_length()]
            crc, bits = crc ^ other[0], bits ^ other[1]
        if not crc:
            tail = int.from_bytes(data[at:], "little") ^ bits
            return data[:at] + tail.to_bytes(8, "little")
        changes[crc.bit_length()] = crc, bits
    raise AssertionError("32 bits have no more than 32 independent changes")
