"""The entries that benchmarks append."""

from __future__ import annotations

import os

_WORDS = tuple(os.urandom(1 + number % 5).hex().encode() for number in range(256))


def entries_of(size: int, count: int, *, words: bool) -> list[bytes]:
    """Return entries of ``size`` bytes: random bytes, which do not compress, or words.

    A word stands for one random byte, and takes 7 bytes on average with the space after it.
    """
    if not words:
        return [os.urandom(size) for _ in range(count)]
    return [_text(size) for _ in range(count)]


def _text(size: int) -> bytes:
    return b" ".join([_WORDS[byte] for byte in os.urandom(size // 3 + 1)])[:size]
