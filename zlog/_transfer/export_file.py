"""Export files, which are written and read in one pass (docs/formats/export.md)."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, islice, pairwise
from typing import NamedTuple, Protocol, TypeVar, cast

from zlog._base.pieces import Batch, Filled, Trimmed
from zlog._native.new_entries import NewEntry, Tagged, tagged_each
from zlog._native.replies import crc32c
from zlog._transfer.pieces import BYTES_MAX, ENTRIES_MAX, Joiner, Mark, Piece
from zlog.errors import ExportDamaged

T = TypeVar("T")

MAGIC = b"zlog-export 1\n"

_INFO, _ENTRIES, _FILLED, _TRIMMED, _CURSORS, _END, _TAGGED = range(1, 8)

_FRAME = struct.Struct("<BII")
_LENGTH = struct.Struct("<I")
_BYTE = struct.Struct("<B")
_INFO_HEAD = struct.Struct("<QIB16sQ")
_BATCH_HEAD = struct.Struct("<QQ16sQI")
_FILLED_BODY = struct.Struct("<QQQ16sB")
_TRIMMED_BODY = struct.Struct("<QQ")
_END_BODY = struct.Struct("<QQ")
_POSITION = struct.Struct("<Q")

_NO_MARK = Mark(0, bytes(16), 0)
_ENTRY_BYTES_LIMIT = 16 << 20
_BODY_BYTES_MAX = _ENTRY_BYTES_LIMIT + 4 * BYTES_MAX + 5 * ENTRIES_MAX + _BATCH_HEAD.size
"""The maximum size of a frame."""


class Writable(Protocol):
    """A file or pipe, opened for writing bytes."""

    def write(self, data: bytes, /) -> object:
        """Write all the bytes."""


class Readable(Protocol):
    """A file or pipe, opened for reading bytes."""

    def read(self, count: int, /) -> bytes:
        """Return up to ``count`` bytes, or no bytes at the end."""


class Info(NamedTuple):
    """The first frame of an export.

    Attributes:
        start: the first position.
        width: the width of the log's live stripe.
        before: the mark that identifies the content of the position below ``start``. None if
            ``start`` is 0 or that position is trimmed.
        options: the log's options.
    """

    start: int
    width: int
    before: Mark | None
    options: Mapping[str, str]


class ExportWriter:
    """Writes an export. Call ``end`` to complete it.

    Attributes:
        entries: the number of entries written so far.
    """

    def __init__(self, file: Writable, info: Info) -> None:
        self._file = file
        self._joiner = Joiner()
        self._position = info.start
        self.entries = 0
        file.write(MAGIC)
        self._frame(_INFO, _encode_info(info))

    def add(self, piece: Piece) -> None:
        """Write the next piece."""
        self._position = piece.end
        for whole in self._joiner.add(piece):
            self._piece(whole)

    def end(self, cursors: Mapping[str, int] | None) -> None:
        """Write the cursors, if any, and the end of the export."""
        for whole in self._joiner.end():
            self._piece(whole)
        if cursors is not None:
            parts = [_string(name) + _POSITION.pack(at) for name, at in sorted(cursors.items())]
            self._frame(_CURSORS, _LENGTH.pack(len(parts)), *parts)
        self._frame(_END, _END_BODY.pack(self._position, self.entries))

    def _piece(self, piece: Piece) -> None:
        if isinstance(piece, Batch):
            self.entries += len(piece.entries)
            ends = accumulate(map(len, piece.entries))
            head = _BATCH_HEAD.pack(
                piece.start, piece.timestamp, piece.writer, piece.number, len(piece.entries)
            )
            columns = struct.pack(f"<{len(piece.entries)}I", *ends)
            if any(isinstance(entry, Tagged) for entry in piece.entries):
                data = [e.data if isinstance(e, Tagged) else e for e in piece.entries]
                self._frame(_TAGGED, head, columns, _encode_tags(piece.entries), *data)
            else:
                self._frame(_ENTRIES, head, columns, *cast("list[bytes]", piece.entries))
        elif isinstance(piece, Filled):
            self._frame(_FILLED, _FILLED_BODY.pack(*piece))
        else:
            self._frame(_TRIMMED, _TRIMMED_BODY.pack(*piece))

    def _frame(self, kind: int, *parts: bytes) -> None:
        body = b"".join(parts)
        self._file.write(_FRAME.pack(kind, len(body), _crc(kind, body)) + body)


class ExportReader:
    """Reads an export. The checksum of every frame is checked before the frame is used.

    Attributes:
        info: the first frame.
        cursors: the cursors, once all pieces were read; None if the export has none.
        position: the position at which the next piece begins.

    Raises:
        ExportDamaged: the constructor and every method may raise this.
    """

    def __init__(self, file: Readable) -> None:
        self._file = file
        magic = b""
        self._frame_at = self._at = 0
        self._entries = 0
        self.position = 0
        self.cursors: dict[str, int] | None = None
        with contextlib.suppress(ExportDamaged):
            magic = self._read(len(MAGIC))
        if magic != MAGIC:
            raise ExportDamaged(
                "the input is not an export of this version of zlog",
                hint="`zlog export LOG > FILE` writes an export.",
            )
        kind, body = self._frame()
        if kind != _INFO:
            raise self._malformed()
        self.info = self._decoded(_decode_info, body)
        self.position = self.info.start

    def pieces(self) -> Iterator[Piece]:
        """Iterate over the pieces. Each piece begins where the previous one ends."""
        while True:
            kind, body = self._frame()
            if kind == _CURSORS:
                self.cursors = self._decoded(_decode_cursors, body)
            elif kind == _END:
                end, entries = self._decoded(_END_BODY.unpack, body)
                if (end, entries) != (self.position, self._entries) or self._file.read(1):
                    raise self._malformed()
                return
            else:
                piece = self._decoded(_DECODERS[kind], body) if kind in _DECODERS else None
                if piece is None or piece.start != self.position or piece.end <= piece.start:
                    raise self._malformed()
                self.position = piece.end
                self._entries += len(piece.entries) if isinstance(piece, Batch) else 0
                yield piece

    def _frame(self) -> tuple[int, bytes]:
        self._frame_at = self._at
        kind, length, crc = _FRAME.unpack(self._read(_FRAME.size))
        if length > _BODY_BYTES_MAX:
            raise self._damaged("a frame is longer than the format allows")
        body = self._read(length)
        if _crc(kind, body) != crc:
            raise self._damaged("a frame fails its checksum")
        return kind, body

    def _read(self, count: int) -> bytes:
        parts: list[bytes] = []
        left = count
        while left:
            part = self._file.read(left)
            if not part:
                raise self._damaged("it is truncated")
            parts.append(part)
            left -= len(part)
        self._at += count
        return b"".join(parts)

    def _decoded(self, decode: Callable[[bytes], T], body: bytes) -> T:
        try:
            return decode(body)
        except (struct.error, ValueError):
            raise self._malformed() from None

    def _malformed(self) -> ExportDamaged:
        return self._damaged("a frame has invalid content")

    def _damaged(self, why: str) -> ExportDamaged:
        return ExportDamaged(
            f"the export is damaged in the frame at byte {self._frame_at}: {why}. It is"
            f" intact up to position {self.position}"
        )


def _crc(kind: int, body: bytes) -> int:
    return crc32c(body, crc32c(bytes((kind,)) + _LENGTH.pack(len(body))))


def _string(text: str) -> bytes:
    data = text.encode()
    return _LENGTH.pack(len(data)) + data


def _encode_info(info: Info) -> bytes:
    options = [_string(key) + _string(value) for key, value in sorted(info.options.items())]
    head = _INFO_HEAD.pack(info.start, info.width, *(info.before or _NO_MARK))
    return b"".join((head, _LENGTH.pack(len(options)), *options))


def _decode_info(body: bytes) -> Info:
    start, width, *mark = _INFO_HEAD.unpack_from(body)
    fields = _Fields(body, _INFO_HEAD.size)
    options = {fields.string(): fields.string() for _ in range(fields.take(_LENGTH))}
    fields.end()
    before = None if mark[0] == _NO_MARK.kind else Mark(*mark)
    return Info(start, width, before, options)


def _decode_cursors(body: bytes) -> dict[str, int]:
    fields = _Fields(body, 0)
    cursors = {fields.string(): fields.take(_POSITION) for _ in range(fields.take(_LENGTH))}
    fields.end()
    return cursors


def _encode_tags(entries: Sequence[NewEntry]) -> bytes:
    """Encode the tags of entries. The result does not depend on the order of an entry's tags."""
    tags = [entry.tags if isinstance(entry, Tagged) else () for entry in entries]
    names = sorted({tag.encode() for own in tags for tag in own})
    index = {name.decode(): i for i, name in enumerate(names)}
    ids = [i for own in tags for i in sorted(index[tag] for tag in own)]
    parts = [bytes((len(name),)) + name for name in names]
    columns = struct.pack(f"<{len(entries)}B{len(ids)}I", *map(len, tags), *ids)
    return b"".join((_LENGTH.pack(len(names)), *parts, columns))


def _decode_batch(body: bytes, *, tagged: bool = False) -> Batch:
    start, timestamp, writer, number, count = _BATCH_HEAD.unpack_from(body)
    ends = struct.unpack_from(f"<{count}I", body, _BATCH_HEAD.size)
    at = _BATCH_HEAD.size + 4 * count
    tags: list[tuple[str, ...]] = []
    if tagged:
        fields = _Fields(body, at)
        tags = fields.tags(count)
        at = fields.at
    data = body[at:]
    entries = [data[begin:end] for begin, end in pairwise((0, *ends))]
    if sum(map(len, entries)) != len(data):  # ends decrease, or some data is in no entry
        raise ValueError
    if tagged:
        return Batch(start, timestamp, writer, number, tagged_each(entries, tags))
    return Batch(start, timestamp, writer, number, [*entries])


_DECODERS: dict[int, Callable[[bytes], Piece]] = {
    _ENTRIES: _decode_batch,
    _TAGGED: partial(_decode_batch, tagged=True),
    _FILLED: lambda body: Filled(*_FILLED_BODY.unpack(body)),
    _TRIMMED: lambda body: Trimmed(*_TRIMMED_BODY.unpack(body)),
}


class _Fields:
    """Decodes a body. Raises struct.error or ValueError if it is malformed."""

    def __init__(self, body: bytes, at: int) -> None:
        self._body = body
        self.at = at

    def take(self, form: struct.Struct) -> int:
        (value,) = form.unpack_from(self._body, self.at)
        self.at += form.size
        return int(value)

    def string(self, length_form: struct.Struct = _LENGTH) -> str:
        length = self.take(length_form)
        self.at += length
        if self.at > len(self._body):
            raise ValueError
        return self._body[self.at - length : self.at].decode()

    def tags(self, count: int) -> list[tuple[str, ...]]:
        """Return the tags of ``count`` entries."""
        names = [self.string(_BYTE) for _ in range(self.take(_LENGTH))]
        counts = struct.unpack_from(f"<{count}B", self._body, self.at)
        self.at += count
        ids = struct.unpack_from(f"<{sum(counts)}I", self._body, self.at)
        self.at += 4 * len(ids)
        if any(each >= len(names) for each in ids):
            raise ValueError
        left = iter(ids)
        return [tuple(names[i] for i in islice(left, each)) for each in counts]

    def end(self) -> None:
        if self.at != len(self._body):
            raise ValueError
