"""Sorted keys, for ranges, in lists of bounded length, so that a change moves few keys."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

_LENGTH = 1024


class SortedKeys:
    """A sorted set of text. A change takes a few microseconds with a million keys."""

    __slots__ = ("_lasts", "_lists")

    def __init__(self, keys: Iterable[str]) -> None:
        ordered = sorted(keys)
        self._lists = [ordered[i : i + _LENGTH] for i in range(0, len(ordered), _LENGTH)]
        self._lasts = [each[-1] for each in self._lists]

    def add(self, key: str) -> None:
        """Add a new key."""
        if not self._lists:
            self._lists, self._lasts = [[key]], [key]
            return
        i = min(bisect_left(self._lasts, key), len(self._lists) - 1)
        part = self._lists[i]
        insort(part, key)
        if len(part) > 2 * _LENGTH:
            self._lists[i : i + 1] = [part[:_LENGTH], part[_LENGTH:]]
            self._lasts[i : i + 1] = [part[_LENGTH - 1], part[-1]]
        else:
            self._lasts[i] = part[-1]

    def remove(self, key: str) -> None:
        """Remove an existing key."""
        i = bisect_left(self._lasts, key)
        part = self._lists[i]
        del part[bisect_left(part, key)]
        if part:
            self._lasts[i] = part[-1]
        else:
            del self._lists[i], self._lasts[i]

    def between(self, start: str, end: str | None) -> Iterator[str]:
        """Iterate over the keys from ``start`` on, up to ``end`` if it is given."""
        first = bisect_left(self._lasts, start)
        for i in range(first, len(self._lists)):
            part = self._lists[i]
            begin = bisect_left(part, start) if i == first else 0
            if end is not None and self._lasts[i] >= end:
                yield from part[begin : bisect_left(part, end)]
                return
            yield from part[begin:] if begin else part


def after_prefix(prefix: str) -> str | None:
    """Return the least text above all texts that begin with ``prefix``, or None."""
    for i in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[i])
        if code < 0x10FFFF:
            return prefix[:i] + chr(0xE000 if code == 0xD7FF else code + 1)
    return None
