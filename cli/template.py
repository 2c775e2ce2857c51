"""The format language of ``--format``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from zlog import Entry
from zlog.cli.output import subject

_Piece = Callable[[Entry], bytes]

_TOKENS: dict[str, bytes | _Piece] = {
    "p": lambda entry: b"%d" % entry.position,
    "s": lambda entry: entry.data,
    "S": lambda entry: b"%d" % len(entry.data),
    "t": lambda entry: iso(entry.timestamp).encode(),
    "l": lambda _entry: subject().encode(),
    "T": lambda entry: ",".join(sorted(entry.tags)).encode(),
    "%": b"%",
}
_ESCAPES: dict[str, bytes | _Piece] = {
    "n": b"\n",
    "t": b"\t",
    "r": b"\r",
    "0": b"\0",
    "\\": b"\\",
}

HELP = (
    "Print each entry in this format: %p position, %s data, %S size of the data, %t time, %T tags"
    r" (sorted, separated by commas), %l log (if several are read), %% percent sign, and"
    r" \n \r \t \0 \\. No newline is added."
)


def iso(moment: datetime) -> str:
    """Return a time as ISO 8601 in UTC, with microseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"


class Template:
    """A parsed format. Raises ValueError if it has an unknown token or escape."""

    def __init__(self, text: str) -> None:
        self._pieces = _parse(text)

    @property
    def constant(self) -> bool:
        """Whether the format prints the same text for every entry."""
        return all(isinstance(piece, bytes) for piece in self._pieces)

    def render(self, entry: Entry) -> bytes:
        """Return an entry in this format."""
        return b"".join(
            piece if isinstance(piece, bytes) else piece(entry) for piece in self._pieces
        )


def _parse(text: str) -> list[bytes | _Piece]:
    pieces: list[bytes | _Piece] = []
    characters = iter(text)
    for character in characters:
        if character == "%":
            pieces.append(_take(_TOKENS, next(characters, ""), "%"))
        elif character == "\\":
            pieces.append(_take(_ESCAPES, next(characters, ""), "\\"))
        else:
            pieces.append(character.encode("utf-8", "surrogateescape"))
    return pieces


def _take(table: dict[str, bytes | _Piece], key: str, sign: str) -> bytes | _Piece:
    found = table.get(key)
    if found is None:
        known = " ".join(sign + each for each in table)
        raise ValueError(f"{sign + key!r} is not a token of a format; the tokens are {known}")
    return found
