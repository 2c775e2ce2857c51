"""Answers of every method: the code, and the reply parsed strictly into plain values.

A reply with a byte too many or too few, a boolean that is neither 0 nor 1, or a payload beside a
negative code is a failure of the host (`wire.Malformed`), whatever else the test looks at.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from . import zstd
from .appended import appended, reports
from .messages import METHODS, STRUCTS, decode, decode_frame
from .wire import Malformed, Reader, entry_crc

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
    SEQUENCE_DONE = 22
    LIMIT_REACHED = 23
    UNREADABLE = 24
    REQUEST_TOO_NEW = 25
    STORED_TOO_NEW = 26
    BEYOND_STRIPE = 27
    LOST = 28
    BEYOND_TAIL = 29
    SAME_ID = 30
    FROZEN = 31


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
    """A code (negative: an errno) and what came with it.

    That is nothing, the one field of the reply (of a refusal: its number), or all of them as a
    tuple, for which some methods have a class below.
    """

    code: int
    value: Any = None

    def __repr__(self) -> str:
        value = "" if self.value is None else f" {self.value!r}"
        return f"<{code_name(self.code)}{value}>"


@dataclass(frozen=True)
class Slot:
    """One position in a read's reply; ids are None when they were not asked for.

    Only a written entry has data, a number and tags; only it and a filled one a time and a writer.
    """

    state: State
    data: bytes = b""
    timestamp: int = 0
    writer: bytes | None = None
    number: int | None = None
    reason: int | None = None
    tags: frozenset[bytes] = frozenset()


@dataclass(frozen=True)
class Listed:
    """The reply of tags_list: how far it came, and the tags by position."""

    end: int
    tags: tuple[tuple[int, frozenset[bytes]], ...]


@dataclass(frozen=True)
class Selected:
    """The reply of select: how far it came, what may hide more, and what was found there."""

    highest: int | None
    end: int
    gaps: tuple[tuple[int, int, State], ...]
    found: tuple[tuple[int, Slot], ...]


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

    def joined(self, other: Row) -> Row | None:
        """This row with the one position of another, if that is like its others."""
        if (self.state, self.writer) != (other.state, other.writer):
            return None
        step = other.number - self.number if self.length == 1 else self.step
        if not 0 <= step < 2**32 or other.number != self.number + step * self.length:
            return None
        size = self.data_bytes + other.data_bytes
        return replace(self, length=self.length + 1, step=step, data_bytes=size)


@dataclass(frozen=True)
class Verified:
    """The reply of verify: the highest position, and rows of a prefix of what was asked."""

    highest: int | None
    rows: tuple[Row, ...]

    @property
    def count(self) -> int:
        """How many positions it is about."""
        return sum(row.length for row in self.rows)

    def slots(self) -> list[tuple[State, bytes | None, int]]:
        """The state and append id of each position, without the ids of trimmed ones."""
        return [
            (row.state, None, 0)
            if row.state == State.TRIMMED
            else (row.state, row.writer, row.number + i * row.step)
            for row in self.rows
            for i in range(row.length)
        ]


@dataclass(frozen=True)
class Stat:
    """The reply of stat; records and stream bytes belong to the layout and are not compared."""

    epoch: int
    highest: int | None
    trim_point: int
    entries: int
    data_bytes: int
    records: int = field(default=0, compare=False)
    stream_bytes: int = field(default=0, compare=False)
    stride: int = 1
    residue: int = 0
    stripe_unit: int = 1
    stored_bytes: int | None = field(default=None, compare=False)
    frozen: bool = False


@dataclass(frozen=True)
class Fullness:
    """The reply of write: what the object holds; both belong to the layout and are not compared."""

    records: int = field(default=0, compare=False)
    data_bytes: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Sealed:
    """The reply of seal; how full the object is belongs to the layout and is not compared."""

    highest: int | None
    records: int = field(default=0, compare=False)
    data_bytes: int = field(default=0, compare=False)
    start: int | None = None
    made: bool = field(default=True, compare=False)


def code_name(code: int) -> str:
    """OK, STALE_EPOCH, … or the errno's name."""
    if code == -errno.EOPNOTSUPP:
        return "EOPNOTSUPP"  # Linux has a second name for it
    if code < 0:
        return errno.errorcode.get(-code, f"errno {-code}")
    return Code(code).name


WRITTEN = Answer(Code.OK, Fullness())

_STALE = {Code.STALE_EPOCH}
_BEYOND = {Code.BEYOND_STRIPE, *_STALE}
_TAKEN = {Code.READ_ONLY, Code.UNREADABLE, Code.LOST, *_BEYOND}
_TAKEN_OR_SAME_ID = {Code.SAME_ID, *_TAKEN}
_OF_CURSORS = {Code.NOT_FOUND, Code.EXISTS, Code.CURSOR_AHEAD, Code.BELOW_TRIM_POINT}
_OF_ATTEMPTS = {Code.SUPERSEDED, Code.NOT_FOUND, Code.LIMIT_REACHED}
_TOO_NEW = {Code.REQUEST_TOO_NEW, Code.STORED_TOO_NEW}  # any method may answer them
_REFUSALS: dict[str, set[Code]] = {
    "seal": {Code.INVALID_EPOCH},
    "write": _TAKEN_OR_SAME_ID,
    "read": _STALE,
    "select": _STALE,
    "tags_check": _STALE,
    "tags_rebuild": _STALE,
    "tags_list": _STALE,
    "compact": {Code.FROZEN, *_STALE},
    "verify": _STALE,
    "count": _STALE,
    "fill": _TAKEN,
    "trim": {Code.UNREADABLE, Code.FROZEN, *_BEYOND},
    "trim_to": {Code.UNREADABLE, *_STALE},
    "max_position": _STALE,
    "stat": _STALE,
    "remove": _STALE,
    "freeze": _STALE,
    "append": {Code.BELOW_TRIM_POINT, *_TAKEN_OR_SAME_ID} - {Code.READ_ONLY},
    "tail_raise": _BEYOND,
    "trim_point_raise": {Code.HELD_BY_CURSOR, Code.BEYOND_TAIL},
    "view_propose": {Code.INVALID_EPOCH, *_STALE},
    "head_remove": {Code.INVALID_EPOCH},
    "stripe_forget": {Code.INVALID_EPOCH},
    "offload_put": {Code.BELOW_TRIM_POINT, Code.EXISTS},
    "offload_forget": {Code.EXISTS},
    "cursor_commit": {Code.LIMIT_REACHED, *_OF_CURSORS},
    "cursor_read": {Code.NOT_FOUND},
    "cursor_remove": {Code.NOT_FOUND},
    "retention_write": {Code.SUPERSEDED},
    "delivery_begin": {Code.SEQUENCE_DONE, Code.LIMIT_REACHED},
    "delivery_grant": {*_OF_ATTEMPTS, *_BEYOND},
    "delivery_read": {Code.NOT_FOUND},
    "delivery_done": {*_OF_ATTEMPTS, *_STALE},
    "producer_copy": {Code.SUPERSEDED, Code.LIMIT_REACHED, *_STALE},
    "salvage": {Code.LOST, Code.UNREADABLE},
    "heal": {Code.READ_ONLY, Code.BELOW_TRIM_POINT},
}


def answered(method: str, *fields: Any) -> Answer:
    """OK, with these fields of the method's reply."""
    return Answer(Code.OK, STRUCTS[METHODS[method].reply].type(*fields))


def parse(method: str, code: int, payload: bytes, asked: Mapping[str, Any] | None = None) -> Answer:
    """The answer of a method; `asked`: the call's arguments, which some replies depend on."""
    if code < 0:
        if payload:
            raise Malformed(f"{method}: {code_name(code)} with a payload")
        return Answer(code)
    if (
        not (METHODS[method].reads or reports(method, code, payload))
        and len(payload) > WRITE_REPLY_BYTES_MAX
    ):
        raise Malformed(f"{method}: {len(payload)} bytes in a write method's reply")
    if code == Code.OK and method in _COLUMNS:
        return Answer(code, _COLUMNS[method](Reader(payload), **asked or {}))
    if code == Code.OK:
        return Answer(code, _value(METHODS[method].reply, payload))
    if code not in _REFUSALS.get(method, set()) | _TOO_NEW:
        raise Malformed(f"{method} may not answer {code_name(code)}")
    number = _value("RefusalReply", payload)
    return Answer(code, None if code == Code.NOT_FOUND and number == 0 else number)


def _value(message: str, payload: bytes) -> Any:
    found = decode(message, payload)
    if message == "VerifyReply":
        return _verified(*found)
    if message in _CLASSES:
        return _CLASSES[message](*found)
    return found if len(found) > 1 else next(iter(found), None)


_CLASSES = {"AppendReply": appended, "SealReply": Sealed, "Fullness": Fullness, "StatReply": Stat}


def _verified(highest: int | None, count: int, rows: Sequence[Any]) -> Verified:
    verified = Verified(highest, tuple(_row(*row) for row in rows))
    if verified.count != count or count == 0:
        raise Malformed(f"rows of {verified.count} positions in a reply about {count}")
    return verified


def _row(length: int, state: int, writer: bytes, number: int, step: int, data_bytes: int) -> Row:
    none = writer == bytes(16)
    if length == 0 or (none and (number or step)) or (state != State.WRITTEN and data_bytes):
        raise Malformed(f"a row of {length} {state}: {writer.hex()} {number} {data_bytes}")
    return Row(length, State(state), None if none else writer, number, step, data_bytes)


def _selected(behind: Reader, with_ids: bool, without_data: bool, **_: Any) -> Selected:
    compat, reader = behind.frame()
    if compat > 1:
        raise Malformed(f"compat {compat}")
    highest, end = reader.optional_u64(), reader.u64()
    gaps = [decode_frame("SelectGap", reader) for _ in range(reader.u32())]
    positions = [reader.u64() for _ in range(reader.u32())]
    reader.done()
    if any(last < first for first, last, _ in gaps) or gaps != sorted(gaps):
        raise Malformed(f"gaps {gaps}")
    found: tuple[tuple[int, Slot], ...] = ()
    if positions:
        slots = _read(behind, positions, with_ids, without_data).slots
        found = tuple(zip(positions, slots, strict=True))
    behind.done()
    told = tuple((first, last, State(state)) for first, last, state in gaps)
    return Selected(highest, end, told, found)


def _listed(behind: Reader, **_: Any) -> Listed:
    _, reader = behind.frame()
    behind.done()
    end, count = reader.u64(), reader.u32()
    positions = [reader.u64() for _ in range(count)]
    tags = _tags(reader, count)
    reader.done()
    if positions != sorted(set(positions)) or not all(tags):
        raise Malformed(f"positions {positions} with {tags}")
    return Listed(end, tuple(zip(positions, tags, strict=True)))


def _read(
    behind: Reader,
    positions: Sequence[int],
    with_ids: bool,
    without_data: bool = False,
    **_: Any,
) -> Read:
    """A prefix of `positions`; data that fails its checksum makes a slot LOST."""
    compat, reader = behind.frame(version=STRUCTS["ReadReply"].version)
    if compat > 2:
        raise Malformed(f"compat {compat}")
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
    blocks = [decode_frame("ReadBlock", reader) for _ in range(reader.u32())]
    tags = _tags(reader, count)
    reader.done()
    if without_data and (blocks or any(ends)):
        raise Malformed(f"{blocks} and {ends[-1]} bytes of data that were not asked for")
    plain = Reader(_plain(blocks, behind, [0, *ends]))
    behind.done()
    slots, start = [], 0
    for i in range(count):
        if ends[i] < start:
            raise Malformed("ends go down")
        data = plain.take(ends[i] - start)
        start = ends[i]
        crc = entry_crc(positions[i], b"") if without_data else crcs[i]
        slot = _slot(positions[i], states[i], data, crc, times[i], ids[i : i + 1])
        slots.append(replace(slot, tags=tags[i]) if slot.state == State.WRITTEN else slot)
    plain.done()
    return Read(highest, tuple(slots))


def _tags(reader: Reader, count: int) -> list[frozenset[bytes]]:
    """The tags of each entry."""
    packed = Reader(reader.blob())
    names = []
    while packed.left():
        names.append(packed.take(packed.u8()))
    if not names:
        return [frozenset()] * count
    counts = [reader.u8() for _ in range(count)]
    own = [[reader.u32() for _ in range(each)] for each in counts]
    if any(ids != sorted(set(ids)) for ids in own) or not all(1 <= len(n) <= 128 for n in names):
        raise Malformed(f"tags {names} of entries {own}")
    return [frozenset(names[which] for which in ids) for ids in own]


def _plain(blocks: Sequence[Any], behind: Reader, begins: Sequence[int]) -> bytes:
    """The data of all entries, of which some is in blocks; `begins` has one more than them."""
    found, at, last = b"", 0, b""
    for block in blocks:
        if not at <= block.first < block.first + block.entries < len(begins):
            raise Malformed(f"{block} behind entry {at}, of {len(begins) - 1}")
        found += behind.take(begins[block.first] - begins[at])
        at = block.first + block.entries
        last = zstd.unpack(behind.take(block.stored_bytes)) if block.stored_bytes else last
        if len(last) != block.plain_bytes:
            raise Malformed(f"{len(last)} bytes in {block}")
        found += last[block.skip :][: begins[at] - begins[block.first]]
    return found + behind.take(begins[-1] - begins[at])


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


_COLUMNS: Mapping[str, Callable[..., Any]] = {
    "read": _read,
    "select": _selected,
    "tags_list": _listed,
}
"""Parsers of replies that have columns, and data after their fields."""
