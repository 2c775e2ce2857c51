"""As much of zstd's format (RFC 8878) as needs no compressor: literal and run-length blocks.

Slow and independent of the library, as the rest of this codec; what it makes any zstd reads.
"""

from __future__ import annotations

_MAGIC = 0xFD2FB528
_SINGLE_SEGMENT_AND_U32_SIZE = 0xA0
_LITERAL, _RUN = 0, 1
_BLOCK_BYTES_MAX = 128 << 10


def pack(plain: bytes) -> bytes:
    """A frame; a block of one byte, repeated, becomes a run."""
    blocks = [plain[i : i + _BLOCK_BYTES_MAX] for i in range(0, len(plain), _BLOCK_BYTES_MAX)]
    head = _MAGIC.to_bytes(4, "little") + bytes([_SINGLE_SEGMENT_AND_U32_SIZE])
    return head + len(plain).to_bytes(4, "little") + _joined(blocks or [b""])


def _joined(blocks: list[bytes]) -> bytes:
    found = b""
    for i, block in enumerate(blocks):
        run = len(block) > 1 and block == block[:1] * len(block)
        kind, last = _RUN if run else _LITERAL, i + 1 == len(blocks)
        found += (last | kind << 1 | len(block) << 3).to_bytes(3, "little")
        found += block[:1] if run else block
    return found


def unpack(frame: bytes) -> bytes:
    """The plain bytes of such a frame; anything else is an AssertionError."""
    assert int.from_bytes(frame[:4], "little") == _MAGIC
    assert frame[4] == _SINGLE_SEGMENT_AND_U32_SIZE
    plain, at, last = b"", 9, False
    while not last:
        header = int.from_bytes(frame[at : at + 3], "little")
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        stored = 1 if kind == _RUN else size
        part = frame[at + 3 : at + 3 + stored]
        assert kind in (_LITERAL, _RUN)
        assert len(part) == stored
        plain += part * size if kind == _RUN else part
        at += 3 + stored
    assert at == len(frame)
    assert len(plain) == int.from_bytes(frame[5:9], "little")
    return plain
