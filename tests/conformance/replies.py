"""Answers of every method: the code, and the reply parsed strictly into plain values.

A reply with a byte too many or too few, a boolean that is neither 0 nor 1, or a payload beside a
negative code is a failure of the host (`wire.Malformed`), whatever else the test looks at.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from .requests import StripeView, View
from .wire import Malformed, Reader, entry_crc

WRITE_REPLY_BYTES_MAX = 32  # what every OSD lets through (osd_max_write_op_reply_len was 32 once)


class Code(IntEnum):
    """Inner results of a method."""

    OK = 0
    STALE_EPOCH = 1
    READ_ONLY = 2
    NOT_WRITTEN = 3
    INVALIDATED = 4
    INVALID_EPOCH = 5


class State(IntEnum):
    """What a position holds, as `read` reports it."""

    WRITTEN = 0
    UNWRITTEN = 1
    FILLED = 2
    TRIMMED = 3
    LOST = 4


@dataclass(frozen=True)
class Answer:
    """A code (negative: an errno) and what came with it; its type depends on method and code."""

    code: int
    value: Any = None

    def __repr__(self) -> str:
        value = "" if self.value is None else f" {self.value!r}"
        return f"<{code_name(self.code)}{value}>"


@dataclass(frozen=True)
class Slot:
    """One position in a read's reply; ids are None when they were not asked for.

    Only a written entry has data and a number; written and filled ones have a time and a writer.
    """

    state: State
    data: bytes = b""
    timestamp: int = 0
    writer: bytes | None = None
    number: int | None = None
    reason: int | None = None


@dataclass(frozen=True)
class Read:
    """The reply of a read: the object's highest position and a prefix of what was asked."""

    highest: int | None
    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Row:
    """Positions in a row in a verify's reply; a writer only where appends are known."""

    length: int
    state: State
    writer: bytes | None = None
    number: int = 0
    step: int = 0
    data_bytes: int = 0


@dataclass(frozen=True)
class Verified:
    """The reply of verify: the highest position, and rows of a prefix of what was asked."""

    highest: int | None
    rows: tuple[Row, ...]

    @property
    def count(self) -> int:
        """How many positions it is about."""
        return sum(row.length for row in self.rows)


@dataclass(frozen=True)
class Stat:
    """The reply of stat; records and stream bytes belong to the layout and are not compared."""

    epoch: int
    highest: int | None
    trim_point: int
    entries: int
    data_bytes: int
    stride: int
    residue: int
    records: int = field(default=0, compare=False)
    stream_bytes: int = field(default=0, compare=False)


@dataclass(frozen=True)
class HeadState:
    """The reply of epoch_read."""

    counter: int
    newest: int
    tail_floor: int
    trim_point: int
    log_id: int


@dataclass(frozen=True)
class Delivery:
    """The reply of delivery_read; grants as (first position, count)."""

    incarnation: int
    attempt: int
    grants: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Source:
    """One source in the reply of delivery_list; times in µs since 1970."""

    batch: int
    parts: int
    created: int
    updated: int


@dataclass(frozen=True)
class Cursor:
    """The reply of cursor_read; times in µs since 1970."""

    position: int
    created: int
    updated: int


@dataclass(frozen=True)
class Views:
    """The reply of view_read: the head's state and some views' bytes."""

    head: HeadState
    more: bool
    views: tuple[bytes, ...]


@dataclass(frozen=True)
class Fullness:
    """The reply of write: what the object holds; both belong to the layout and are not compared."""

    records: int = field(default=0, compare=False)
    data_bytes: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Sealed:
    """The reply of seal."""

    highest: int | None
    fullness: Fullness = Fullness()


@dataclass(frozen=True)
class Stripes:
    """The reply of stripes_read: archived stripes, ascending."""

    more: bool
    stripes: tuple[StripeView, ...]


@dataclass(frozen=True)
class Loose:
    """The reply of stripes_loose: the newest view's epoch, and (id, width) of loose stripes."""

    newest: int
    more: bool
    stripes: tuple[tuple[int, int], ...]


def code_name(code: int) -> str:
    """OK, STALE_EPOCH, … or the errno's name."""
    if code == -errno.EOPNOTSUPP:
        return "EOPNOTSUPP"  # Linux has a second name for it
    if code < 0:
        return errno.errorcode.get(-code, f"errno {-code}")
    return Code(code).name


WRITTEN = Answer(Code.OK, Fullness())


def _highest(reader: Reader) -> int | None:
    return reader.optional_u64()


def _fullness(reader: Reader) -> Fullness:
    return Fullness(reader.u32(), reader.u64())


def _sealed(reader: Reader) -> Sealed:
    return Sealed(_highest(reader), _fullness(reader))


def _stripe(reader: Reader) -> StripeView:
    return StripeView(reader.u64(), reader.u64(), reader.u64(), reader.u32())


def _stripes(reader: Reader) -> Stripes:
    return Stripes(reader.flag(), tuple(_stripe(reader) for _ in range(reader.u32())))


def _loose(reader: Reader) -> Loose:
    newest, more = reader.u64(), reader.flag()
    return Loose(newest, more, tuple((reader.u64(), reader.u32()) for _ in range(reader.u32())))


def _stat(reader: Reader) -> Stat:
    epoch, highest = reader.u64(), reader.optional_u64()
    trim_point, entries, data_bytes, records, stream_bytes = (reader.u64() for _ in range(5))
    stride, residue = reader.u32(), reader.u32()
    return Stat(
        epoch, highest, trim_point, entries, data_bytes, stride, residue, records, stream_bytes
    )


def _verified(reader: Reader) -> Verified:
    highest, count = reader.optional_u64(), reader.u32()
    verified = Verified(highest, tuple(_row(reader) for _ in range(reader.u32())))
    if verified.count != count or count == 0:
        raise Malformed(f"rows of {verified.count} positions in a reply about {count}")
    return verified


def _row(reader: Reader) -> Row:
    length, state, writer = reader.u32(), State(reader.u8()), reader.take(16)
    number, step, data_bytes = reader.u64(), reader.u32(), reader.u64()
    nobody = writer == bytes(16)
    if length == 0 or (nobody and (number or step)) or (state != State.WRITTEN and data_bytes):
        raise Malformed(f"a row of {length} {state.name}: {writer.hex()} {number} {data_bytes}")
    return Row(length, state, None if nobody else writer, number, step, data_bytes)


def _head_state(reader: Reader) -> HeadState:
    return HeadState(*(reader.u64() for _ in range(5)))


def _views(reader: Reader) -> Views:
    head, more = _head_state(reader), reader.flag()
    return Views(head, more, tuple(reader.blob() for _ in range(reader.u32())))


def _cursor(reader: Reader) -> Cursor:
    return Cursor(reader.u64(), reader.u64(), reader.u64())


def _delivery(reader: Reader) -> Delivery:
    incarnation, attempt = reader.u64(), reader.u32()
    grants = tuple((reader.u64(), reader.u64()) for _ in range(reader.u32()))
    return Delivery(incarnation, attempt, grants)


def _source(reader: Reader) -> Source:
    return Source(reader.u64(), reader.u32(), reader.u64(), reader.u64())


def _sources(reader: Reader) -> tuple[bool, tuple[tuple[str, Source], ...]]:
    more = reader.flag()
    return more, tuple((reader.text(), _source(reader)) for _ in range(reader.u32()))


def _cursors(reader: Reader) -> tuple[bool, tuple[tuple[str, Cursor], ...]]:
    more = reader.flag()
    return more, tuple((reader.text(), _cursor(reader)) for _ in range(reader.u32()))


def _names(reader: Reader) -> tuple[bool, tuple[str, ...]]:
    more = reader.flag()
    return more, tuple(reader.text() for _ in range(reader.u32()))


_U64 = Reader.u64
_EPOCH = {Code.STALE_EPOCH: _U64}
_NO_REPLY: dict[Code, Any] = {Code.OK: None}

# What follows the version in each method's reply, by code; None: the reply is empty.
_FORMS: dict[str, dict[Code, Any]] = {
    "seal": {Code.OK: _sealed, Code.INVALID_EPOCH: _U64},
    "write": {Code.OK: _fullness, Code.READ_ONLY: _U64, **_EPOCH},
    "fill": {Code.OK: None, Code.READ_ONLY: _U64, **_EPOCH},
    "trim": {Code.OK: None, **_EPOCH},
    "trim_to": {Code.OK: Reader.flag, **_EPOCH},
    "max_position": {Code.OK: _highest, **_EPOCH},
    "stat": {Code.OK: _stat, **_EPOCH},
    "verify": {Code.OK: _verified, **_EPOCH},
    "remove": {Code.OK: None, **_EPOCH},
    "head_create": _NO_REPLY,
    "epoch_next": {Code.OK: lambda r: (r.u64(), r.u64())},
    "epoch_read": {Code.OK: _head_state},
    "tail_raise": {Code.OK: None, **_EPOCH},
    "trim_point_raise": {Code.OK: Reader.flag, Code.READ_ONLY: _U64},
    "view_propose": {Code.OK: None, Code.INVALID_EPOCH: _U64, **_EPOCH},
    "view_read": {Code.OK: _views},
    "head_remove": {Code.OK: None, Code.INVALID_EPOCH: _U64},
    "stripes_read": {Code.OK: _stripes},
    "stripes_loose": {Code.OK: _loose},
    "stripe_forget": {Code.OK: None, Code.INVALID_EPOCH: _U64},
    "directory_add": _NO_REPLY,
    "directory_remove": _NO_REPLY,
    "directory_list": {Code.OK: _names},
    "sequencer_announce": _NO_REPLY,
    "sequencer_withdraw": _NO_REPLY,
    "sequencer_find": {Code.OK: Reader.text},
    "cursor_commit": {
        Code.OK: None,
        Code.NOT_WRITTEN: None,
        Code.READ_ONLY: _U64,
        Code.INVALIDATED: _U64,
    },
    "cursor_read": {Code.OK: _cursor, Code.NOT_WRITTEN: None},
    "cursor_list": {Code.OK: _cursors},
    "cursor_remove": {Code.OK: None, Code.NOT_WRITTEN: None},
    "delivery_begin": {Code.OK: lambda r: (r.u32(), r.u32(), r.u64()), Code.INVALIDATED: _U64},
    "delivery_grant": {Code.OK: _U64, Code.READ_ONLY: _U64, Code.NOT_WRITTEN: None, **_EPOCH},
    "delivery_read": {Code.OK: _delivery, Code.NOT_WRITTEN: None},
    "delivery_done": {Code.OK: Reader.flag, Code.READ_ONLY: _U64, Code.NOT_WRITTEN: _U64},
    "delivery_list": {Code.OK: _sources},
    "read": _EPOCH,  # and OK, which needs the positions asked for: see `parse_read`
}
METHODS = tuple(_FORMS)
READ_METHODS = frozenset(
    [
        "read",
        "verify",
        "max_position",
        "stat",
        "epoch_read",
        "view_read",
        "stripes_read",
        "stripes_loose",
        "directory_list",
        "sequencer_find",
        "cursor_read",
        "cursor_list",
        "delivery_read",
        "delivery_list",
    ]
)


def parse(method: str, code: int, payload: bytes) -> Answer:
    """The answer of any method but a successful read."""
    if code < 0:
        if payload:
            raise Malformed(f"{method}: {code_name(code)} with a payload")
        return Answer(code)
    if method not in READ_METHODS and len(payload) > WRITE_REPLY_BYTES_MAX:
        raise Malformed(f"{method}: {len(payload)} bytes in a write method's reply")
    forms = _FORMS[method]
    if code not in forms:
        raise Malformed(f"{method} may not answer {code_name(code)}")
    form = forms[Code(code)]
    if form is None:
        if payload:
            raise Malformed(f"{method}: {code_name(code)} has no reply, got {payload.hex()}")
        return Answer(code)
    reader = Reader(payload)
    reader.version()
    value = form(reader)
    reader.done()
    return Answer(code, value)


def parse_read(code: int, payload: bytes, positions: Sequence[int], with_ids: bool) -> Answer:
    """The answer of a read of `positions`; data that fails its checksum makes a slot LOST."""
    if code != Code.OK:
        return parse("read", code, payload)
    reader = Reader(payload)
    reader.version()
    highest, count = reader.optional_u64(), reader.u32()
    if count > len(positions):
        raise Malformed(f"{count} entries for {len(positions)} positions")
    states = [State(reader.u8()) for _ in range(count)]
    times = [reader.u64() for _ in range(count)]
    ends = [reader.u32() for _ in range(count)]
    crcs = [reader.u32() for _ in range(count)]
    ids: list[tuple[bytes, int, int]] = []
    if with_ids:
        writers = [reader.take(16) for _ in range(count)]
        numbers = [reader.u64() for _ in range(count)]
        reasons = [reader.u8() for _ in range(count)]
        ids = list(zip(writers, numbers, reasons, strict=True))
    slots, start = [], 0
    for i in range(count):
        if ends[i] < start:
            raise Malformed("ends go down")
        data = reader.take(ends[i] - start)
        start = ends[i]
        slots.append(_slot(positions[i], states[i], data, crcs[i], times[i], ids[i : i + 1]))
    reader.done()
    return Answer(code, Read(highest, tuple(slots)))


def _slot(
    position: int,
    state: State,
    data: bytes,
    crc: int,
    timestamp: int,
    ids: list[tuple[bytes, int, int]],
) -> Slot:
    if state != State.WRITTEN and data:
        raise Malformed(f"{state.name} with data")
    if state == State.WRITTEN:
        if entry_crc(position, data) != crc:
            return Slot(State.LOST)
        writer, number, _ = ids[0] if ids else (None, None, None)
        return Slot(state, data, timestamp, writer, number)
    if state == State.FILLED:
        writer, _, reason = ids[0] if ids else (None, None, None)
        return Slot(state, b"", timestamp, writer, None, reason)
    return Slot(state)


def parse_view(data: bytes) -> View:
    """A view's bytes as a `View`."""
    reader = Reader(data)
    reader.version()
    epoch, log_id, removed = reader.u64(), reader.u64(), reader.flag()
    sequencer = reader.text()
    stripes = tuple(_stripe(reader) for _ in range(reader.u32()))
    options = {reader.text(): reader.text() for _ in range(reader.u32())}
    reader.done()
    return View(epoch, log_id, removed, sequencer, stripes, options)
