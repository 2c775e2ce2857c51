"""Splitting a stream of bytes into batches of entries, in bounded memory."""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from zlog.cli.input import BadInput, Input, load_json, too_long
from zlog.names import check_tags

_QUIET_SECONDS = 0.003
"""The time without input after which pending entries are appended."""

_LINGER_SECONDS = 0.03
"""The maximum time that the first entry of a batch waits for others."""

Parser = Callable[[bytes], "bytes | None"]
"""Parses a line into an entry, or None if the line has none. Raises ValueError. ``bytes`` returns
the line itself."""


class TaggedLine(bytes):
    """An entry and its own tags."""

    tags: tuple[str, ...]


def tags_each(batch: Sequence[bytes], tags: tuple[str, ...]) -> list[tuple[str, ...]] | None:
    """Return the tags of each entry: its own and ``tags``. Returns None if no entry has tags."""
    if not tags and not any(isinstance(entry, TaggedLine) for entry in batch):
        return None
    return [(*tags, *entry.tags) if isinstance(entry, TaggedLine) else tags for entry in batch]


def from_json(line: bytes) -> bytes | None:
    """Return the entry, with its tags, from one line of ``read --json`` output.

    Returns None if the line is blank or describes a gap. Raises ValueError if the line is invalid.
    """
    if not line.strip():
        return None
    fields = load_json(line)
    if isinstance(fields, dict):
        entry = _data_of(fields)
        if entry is None or "tags" not in fields:
            return entry
        tags = fields["tags"]
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise ValueError("tags must be a list of strings")
        tagged = TaggedLine(entry)
        tagged.tags = check_tags(tags)
        return tagged
    raise ValueError(_NO_ENTRY)


_NO_ENTRY = 'neither {"data": "text"} nor {"data_b64": "base64"}'


def _data_of(fields: dict[str, object]) -> bytes | None:
    if "data" in fields and "data_b64" in fields:
        raise ValueError("both data and data_b64 are given")
    if isinstance(text := fields.get("data"), str):
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"data has an unpaired surrogate, {text[error.start]!r}, which UTF-8 cannot encode"
            ) from error
    if isinstance(coded := fields.get("data_b64"), str):
        try:
            return b64decode(coded, validate=True)
        except ValueError as error:
            raise ValueError(f"data_b64 is not base64: {error}") from error
    if "gap" in fields:
        return None
    raise ValueError(_NO_ENTRY)


class Splitter:
    """Splits a stream of bytes at a separator.

    Args:
        keep: whether each line keeps the separator at its end.

    Attributes:
        unfinished: the beginning of a line whose separator has not arrived yet.
    """

    def __init__(self, separator: bytes, *, keep: bool = False) -> None:
        self._separator = separator
        self._suffix = separator if keep else b""
        self._parts: list[bytes] = []
        self.unfinished = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take a chunk of any length. Returns the lines that end in it."""
        *lines, rest = chunk.split(self._separator)
        if lines:
            lines[0] = b"".join((*self._parts, lines[0]))
            self._parts.clear()
            self.unfinished = 0
            if self._suffix:
                lines = [line + self._suffix for line in lines]
        if rest:
            self._parts.append(rest)
            self.unfinished += len(rest)
        return lines

    def finish(self) -> list[bytes]:
        """Return the last line if it has no separator."""
        line = b"".join(self._parts)
        self._parts.clear()
        self.unfinished = 0
        return [line] if line else []


@dataclass(frozen=True)
class Limits:
    """Limits of memory and batches."""

    entries: int
    bytes: int
    entry_bytes: int
    line_bytes: int


class Batches:
    """Splits a stream into batches of entries.

    A batch ends when it is full or when the input pauses, so lines from a slow pipe need not wait.

    Attributes:
        consumed: the number of bytes read from the stream.
    """

    def __init__(self, stream: Input, splitter: Splitter, parse: Parser, limits: Limits) -> None:
        self._input = stream
        self._splitter = splitter
        self._parse = parse
        self._limits = limits
        self._lines = 0
        self._pending: list[bytes] = []
        self._size = 0
        self._since = 0.0
        self._failure: BadInput | None = None
        self.consumed = 0

    def __iter__(self) -> Iterator[list[bytes]]:
        """Iterate over the batches. Raises BadInput after all entries before an invalid line."""
        while self._failure is None and (chunk := self._input.read()):
            self.consumed += len(chunk)
            yield from self._take(self._splitter.feed(chunk))
            if self._splitter.unfinished > self._limits.line_bytes:
                limit = self._limits.entry_bytes
                self._fail(self._lines + 1, f"entry {too_long(limit)}")
            if self._pending and not self._more_soon():
                yield self._drain()
        if self._failure is None:
            yield from self._take(self._splitter.finish())
        if self._pending:
            yield self._drain()
        if self._failure is not None:
            raise self._failure

    def _take(self, lines: Sequence[bytes]) -> Iterator[list[bytes]]:
        """Add the entries of lines, and yield full batches."""
        limits = self._limits
        for line in lines:
            self._lines += 1
            try:
                entry = self._parse(line)
            except ValueError as error:
                self._fail(self._lines, str(error))
                return
            if entry is None:
                continue
            size, limit = len(entry), limits.entry_bytes
            if size > limit:
                self._fail(self._lines, f"entry of {size} bytes {too_long(limit)}")
                return
            if not self._pending:
                self._since = time.monotonic()
            self._pending.append(entry)
            self._size += size
            if len(self._pending) >= limits.entries or self._size >= limits.bytes:
                yield self._drain()

    def _more_soon(self) -> bool:
        """Whether more input comes before the first pending entry has waited too long."""
        patience = self._since + _LINGER_SECONDS - time.monotonic()
        return patience > 0 and self._input.ready(min(_QUIET_SECONDS, patience))

    def _drain(self) -> list[bytes]:
        batch, self._pending = self._pending, []
        self._size = 0
        return batch

    def _fail(self, line: int, reason: str) -> None:
        if self._failure is None:
            self._failure = BadInput(f"{self._input.name}, line {line}: {reason}")
