"""The words of a transcript's command: numbers, positions, data, entries, options."""

from __future__ import annotations

from .requests import Entry, StripeView
from .wire import OPEN_END


class Words:
    """A command's words: plain ones are taken in order, options by name."""

    def __init__(self, words: list[str]) -> None:
        self._words = words

    def next(self, default: str | None = None) -> str:
        """The next plain word."""
        if not self._words and default is not None:
            return default
        return self._words.pop(0)

    def number(self) -> int:
        """The next plain word, a number; `max` is the highest position there can be."""
        return _number(self.next())

    def positions(self, stride: int) -> list[int]:
        """The next plain word, positions."""
        return _positions(self.next(), stride)

    def flag(self, name: str) -> bool:
        """Whether the word stands there; it is taken."""
        found = name in self._words
        if found:
            self._words.remove(name)
        return found

    def option(self, name: str, default: object = None) -> str:
        """The value of `name=value`; it is taken."""
        for word in self._words:
            if word.startswith(f"{name}="):
                self._words.remove(word)
                return word.partition("=")[2]
        return default  # type: ignore[return-value]

    def prefixed(self, prefix: str) -> dict[str, str]:
        """All `prefixKEY=VALUE`, taken."""
        found = [word for word in self._words if word.startswith(prefix)]
        self._words = [word for word in self._words if word not in found]
        pairs = (word.removeprefix(prefix).partition("=") for word in found)
        return {key: value for key, _, value in pairs}

    def plain(self) -> list[str]:
        """The words left that are no options."""
        return [word for word in self._words if not word.startswith(("time=", "crc="))]


def _number(word: str) -> int:
    return OPEN_END if word == "max" else int(word, 0)


def _positions(word: str, stride: int) -> list[int]:
    positions: list[int] = []
    for part in word.split(",") if word != "none" else []:
        start, dots, end = part.partition("..")
        stop = _number(end) if dots else _number(start) + 1
        positions += range(_number(start), stop, stride)
    return positions


def entries_of(word: str, stride: int) -> list[Entry]:
    """The entries of `POSITIONS[#NUMBER]=DATA`, numbered on from the first position's number."""
    where, _, data = word.partition("=")
    if where == "none":
        return []
    where, _, number = where.partition("#")
    positions = _positions(where, stride)
    base = int(number) if number else positions[0]
    content = _data(data)
    return [Entry(p, base + p - positions[0], content) for p in positions]


def _data(word: str) -> bytes:
    if word.startswith("0x"):
        return bytes.fromhex(word[2:])
    unit, star, count = word.rpartition("*")
    return unit.encode() * int(count) if star else word.encode()


def stripe_view_of(word: str) -> StripeView:
    """The stripe of `ID:START-[END]/WIDTH`."""
    id_, _, rest = word.partition(":")
    span, _, width = rest.partition("/")
    start, _, end = span.partition("-")
    return StripeView(int(id_), int(start), int(end) if end else OPEN_END, int(width))
