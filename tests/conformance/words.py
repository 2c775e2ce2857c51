"""The words of a transcript's command: numbers, positions, data, entries, options.

`POSITIONS` are `3`, `0,2,4` or `0..8` (8 not included, those of 0's object); data is a word,
`"a text"`, `""`, `x*1000` or `0xff00`; a writer is a letter or 0x and 16 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .requests import Entry, StripeView, writer_id
from .wire import OPEN_END, following

_MODES = ("advance", "create", "set")  # of cursor_commit, by their values


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

    def rest(self) -> list[str]:
        """The words left."""
        left, self._words = self._words, []
        return left

    def arguments(
        self, grammar: list[str], striping: int, names: Mapping[str, str]
    ) -> dict[str, Any]:
        """All words of a command, by the names that its grammar or `names` gives them."""
        found: dict[str, Any] = {}
        for word in grammar:
            name, equals, _ = word.strip("[]").partition("=")
            if equals and (value := self.option(name)) is not None:
                told = _tags(value) if name == "tags" else _number(value)
                found[names.get(word, name)] = told
            elif name.islower() and self.flag(name):
                found[names.get(word, name)] = True
        for word in grammar:
            name = word.strip("[]")
            if name.isupper() and (self._words or not word.startswith("[")):
                found[name.lower()] = self._argument(name, striping)
        if "[log_id=ID]" in grammar:
            found.setdefault("log_id", 7)
        return found

    def _argument(self, name: str, striping: int) -> Any:
        if name == "ENTRIES":
            return [entry for word in self.rest() for entry in entries_of(word, striping)]
        word = self.next()
        if name in ("NAME", "AFTER", "PRODUCER", "ADDRESS"):
            return word
        if name == "POSITIONS":
            return _positions(word, striping)
        if name == "TAGS":
            return _tags(word)
        if name == "STATE":
            return _data(word)
        if name == "WRITER":
            return _data(word) if word.startswith("0x") else writer_id(word)
        return _MODES.index(word) if name == "MODE" else _number(word)


def _number(word: str) -> int:
    return OPEN_END if word == "max" else int(word, 0)


def _tags(word: str) -> tuple[bytes, ...]:
    return tuple(tag.encode() for tag in word.split(","))


def _positions(word: str, striping: int) -> list[int]:
    positions: list[int] = []
    for part in word.split(",") if word != "none" else []:
        start, dots, end = part.partition("..")
        stop = _number(end) if dots else _number(start) + 1
        position = _number(start)
        while position < stop:
            positions.append(position)
            position = following(striping, position)
    return positions


def entries_of(word: str, striping: int) -> list[Entry]:
    """The entries of `POSITIONS[#NUMBER]=DATA`, numbered on from the first position's number."""
    where, _, data = word.partition("=")
    if where == "none":
        return []
    where, _, number = where.partition("#")
    positions = _positions(where, striping)
    base = int(number) if number else positions[0]
    content = _data(data)
    return [Entry(p, base + p - positions[0], content) for p in positions]


def _data(word: str) -> bytes:
    if word.startswith("0x"):
        return bytes.fromhex(word[2:])
    stripe_unit, star, count = word.rpartition("*")
    return stripe_unit.encode() * int(count) if star else word.encode()


def stripe_view_of(word: str) -> Any:
    """The stripe of `ID:START-[END]/WIDTH[*UNIT]`."""
    id_, _, rest = word.partition(":")
    span, _, spread = rest.partition("/")
    width, _, stripe_unit = spread.partition("*")
    start, _, end = span.partition("-")
    last = int(end) if end else OPEN_END
    return StripeView(int(id_), int(start), last, int(width), int(stripe_unit or 1))
