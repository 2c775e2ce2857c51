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


def arguments(
    words: list[str], grammar: list[str], striping: int, names: Mapping[str, str]
) -> dict[str, Any]:
    """All words of a command, by the names that its grammar or `names` gives them.

    Plain ones are taken in order; flags and options may stand anywhere.
    """
    found: dict[str, Any] = {"log_id": 7} if "[log_id=ID]" in grammar else {}
    named = {}
    for word in grammar:
        name, equals, _ = word.strip("[]").partition("=")
        named[name, equals] = names.get(word, name)
    plain: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if name.startswith("option."):
            found.setdefault("options", {})[name.removeprefix("option.")] = value
        elif (name, equals) in named:
            found[named[name, equals]] = (
                _argument(name.upper(), value, striping) if equals else True
            )
        else:
            plain.append(word)
    for word in grammar:
        name = word.strip("[]")
        if name == "ENTRIES":
            found["entries"] = [entry for each in plain for entry in entries_of(each, striping)]
        elif name == "PARTS":
            split = (each.partition("=") for each in plain)
            found["parts"] = [(int(count), _data(data)) for count, _, data in split]
        elif name == "STRIPES":
            found["stripes"] = tuple(map(stripe_view_of, plain))
        elif name.isupper() and (plain or not word.startswith("[")):
            found[name.lower()] = _argument(name, plain.pop(0), striping)
    return found


def _argument(name: str, word: str, striping: int) -> Any:
    if name in ("NAME", "AFTER", "PRODUCER", "ADDRESS", "SEQUENCER"):
        return word
    if name == "POSITIONS":
        return _positions(word, striping)
    if name == "TAGS":
        return _tags(word)
    if name == "UNLESS":
        return tuple(_tags(each) for each in word.split("+"))
    if name in ("STATE", "URL"):
        return _data(word)
    if name == "ENDS":
        return [_number(each) for each in word.split(",")]
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
