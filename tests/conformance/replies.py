"""Answers of every method: the code, and the reply parsed strictly into plain values.

A reply with a byte too many or too few, a boolean that is neither 0 nor 1, or a payload beside a
negative code is a failure of the host (`wire.Malformed`), whatever else the test looks at.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeVar

from .requests import StripeView, View
from .wire import Malformed, Reader, entry_crc

T = TypeVar("T")

WRITE_REPLY_BYTES_MAX = 64  # what an OSD lets through (osd_max_write_op_reply_len)


class Code(IntEnum):
    """Inner results of a method."""

    OK = 0
    STALE_EPOCH = 1
    READ_ONLY = 2
    NOT_WRITTEN = 3
    INVALIDATED = 4
    INVALID_EPOCH = 5
    CURSOR_AHEAD = 16
    HELD_BY_CURSOR = 17
    BELOW_TRIM_POINT = 18
    NOT_FOUND = 19
    EXISTS = 20
    SUPERSEDED = 21
    BATCH_DONE = 22
    LIMIT_REACHED = 23
    UNREADABLE = 24
    REQUEST_TOO_NEW = 25
    STORED_TOO_NEW = 26


class State(IntEnum):
    """What a position holds, as `read` reports it."""

    WRITTEN = 0
    UNWRITTEN = 1
    FILLED = 2
    TRIMMED = 3
    LOST = 4
    UNREADABLE = 5


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


def _elements(reader: Reader, form: Callable[[Reader], T]) -> tuple[T, ...]:
    """A list of frames."""
    found = []
    for _ in range(reader.u32()):
        element = reader.frame()
        found.append(form(element))
        element.done()
    return tuple(found)


def _stripe(reader: Reader) -> StripeView:
    return StripeView(reader.u64(), reader.u64(), reader.u64(), reader.u32())


def _stripes(reader: Reader) -> Stripes:
    return Stripes(reader.flag(), _elements(reader, _stripe))


def _loose(reader: Reader) -> Loose:
    newest, more = reader.u64(), reader.flag()
    return Loose(newest, more, _elements(reader, lambda each: (each.u64(), each.u32())))


def _stat(reader: Reader) -> Stat:
    epoch, highest = reader.u64(), reader.optional_u64()
    trim_point, entries, data_bytes, records, stream_bytes = (reader.u64() for _ in range(5))
    stride, residue = reader.u32(), reader.u32()
    return Stat(
        epoch, highest, trim_point, entries, data_bytes, stride, residue, records, stream_bytes
    )


def _verified(reader: Reader) -> Verified:
    highest, count = reader.optional_u64(), reader.u32()
    verified = Verified(highest, _elements(reader, _row))
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
    grants = _elements(reader, lambda each: (each.u64(), each.u64()))
    return Delivery(incarnation, attempt, grants)


def _source(reader: Reader) -> Source:
    return Source(reader.u64(), reader.u32(), reader.u64(), reader.u64())


def _sources(reader: Reader) -> tuple[bool, tuple[tuple[str, Source], ...]]:
    more = reader.flag()
    return more, _elements(reader, lambda each: (each.text(), _source(each)))


def _cursors(reader: Reader) -> tuple[bool, tuple[tuple[str, Cursor], ...]]:
    more = reader.flag()
    return more, _elements(reader, lambda each: (each.text(), _cursor(each)))


def _names(reader: Reader) -> tuple[bool, tuple[str, ...]]:
    more = reader.flag()
    return more, tuple(reader.text() for _ in range(reader.u32()))


_U64 = Reader.u64
_TOO_NEW = (Code.REQUEST_TOO_NEW, Code.STORED_TOO_NEW)  # any method may answer them
_STALE = (Code.STALE_EPOCH,)
_Form = Callable[[Reader], Any] | None

# What each method answers to OK (None: nothing), and its refusals, which come with a number.
_FORMS: dict[str, tuple[_Form, tuple[Code, ...]]] = {
    "seal": (_sealed, (Code.INVALID_EPOCH,)),
    "write": (_fullness, (Code.READ_ONLY, Code.UNREADABLE, *_STALE)),
    "fill": (None, (Code.READ_ONLY, Code.UNREADABLE, *_STALE)),
    "trim": (None, (Code.UNREADABLE, *_STALE)),
    "trim_to": (Reader.flag, (Code.UNREADABLE, *_STALE)),
    "max_position": (_highest, _STALE),
    "stat": (_stat, _STALE),
    "verify": (_verified, _STALE),
    "remove": (None, _STALE),
    "head_create": (None, ()),
    "epoch_next": (lambda r: (r.u64(), r.u64()), ()),
    "epoch_read": (_head_state, ()),
    "tail_raise": (None, _STALE),
    "trim_point_raise": (Reader.flag, (Code.HELD_BY_CURSOR,)),
    "view_propose": (None, (Code.INVALID_EPOCH, *_STALE)),
    "view_read": (_views, ()),
    "head_remove": (None, (Code.INVALID_EPOCH,)),
    "stripes_read": (_stripes, ()),
    "stripes_loose": (_loose, ()),
    "stripe_forget": (None, (Code.INVALID_EPOCH,)),
    "directory_add": (None, ()),
    "directory_remove": (None, ()),
    "directory_list": (_names, ()),
    "sequencer_announce": (None, ()),
    "sequencer_withdraw": (None, ()),
    "sequencer_find": (Reader.text, ()),
    "cursor_commit": (
        None,
        (
            Code.NOT_FOUND,
            Code.EXISTS,
            Code.CURSOR_AHEAD,
            Code.BELOW_TRIM_POINT,
            Code.LIMIT_REACHED,
        ),
    ),
    "cursor_read": (_cursor, (Code.NOT_FOUND,)),
    "cursor_list": (_cursors, ()),
    "cursor_remove": (None, (Code.NOT_FOUND,)),
    "delivery_begin": (
        lambda r: (r.u32(), r.u32(), r.u64()),
        (Code.BATCH_DONE, Code.LIMIT_REACHED),
    ),
    "delivery_grant": (
        _U64,
        (Code.SUPERSEDED, Code.NOT_FOUND, Code.LIMIT_REACHED, *_STALE),
    ),
    "delivery_read": (_delivery, (Code.NOT_FOUND,)),
    "delivery_done": (Reader.flag, (Code.SUPERSEDED, Code.NOT_FOUND, Code.LIMIT_REACHED)),
    "delivery_list": (_sources, ()),
    "read": (None, _STALE),  # OK needs the positions asked for: see `parse_read`
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
    form, refusals = _FORMS[method]
    if code != Code.OK and code not in (*refusals, *_TOO_NEW):
        raise Malformed(f"{method} may not answer {code_name(code)}")
    if code != Code.OK:
        form = _U64
    reader = Reader(payload)
    fields = reader.frame()
    value = None if form is None else form(fields)
    fields.done()
    reader.done()
    if code == Code.NOT_FOUND and value == 0:  # nothing to tell
        value = None
    return Answer(code, value)


def parse_read(code: int, payload: bytes, positions: Sequence[int], with_ids: bool) -> Answer:
    """The answer of a read of `positions`; data that fails its checksum makes a slot LOST."""
    if code != Code.OK:
        return parse("read", code, payload)
    behind = Reader(payload)
    reader = behind.frame()
    highest, count, told_ids = reader.optional_u64(), reader.u32(), reader.flag()
    if count > len(positions) or told_ids != with_ids:
        raise Malformed(f"{count} entries for {len(positions)} positions, ids: {told_ids}")
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
    reader.done()
    slots, start = [], 0
    for i in range(count):
        if ends[i] < start:
            raise Malformed("ends go down")
        data = behind.take(ends[i] - start)
        start = ends[i]
        slots.append(_slot(positions[i], states[i], data, crcs[i], times[i], ids[i : i + 1]))
    behind.done()
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
    whole = Reader(data)
    reader = whole.frame()
    epoch, log_id, removed = reader.u64(), reader.u64(), reader.flag()
    sequencer = reader.text()
    stripes = _elements(reader, _stripe)
    options = {reader.text(): reader.text() for _ in range(reader.u32())}
    reader.done()
    whole.done()
    return View(epoch, log_id, removed, sequencer, stripes, options)
