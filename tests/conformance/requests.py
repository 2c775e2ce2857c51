"""What requests are made of, and those that are more than their fields (see `messages`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate, pairwise
from typing import Any

from . import wire, zstd
from .messages import STRUCTS, decode, encode, request

ZSTD = 1  # a compression
NUMBER_BASE_MAX = 2**64 - 2**32  # so that base and u32 delta never overflow
TIME = 1_500_000_000_000_000  # µs since 1970, where a test does not care
BYTES_MAX = 1 << 20
RECORDS_MAX = 1024  # the most that one trim_to may be asked to free
ADVANCE, CREATE, SET = 0, 1, 2  # what cursor_commit does
StripeView: Any = STRUCTS["Stripe"].type
"""One stripe in a view: positions `[start, end)` over `width` objects."""

Offload: Any = STRUCTS["Offload"].type
_Segment: Any = STRUCTS["OffloadSegment"].type


def offload(
    id_: int, start: int, end: int, url: bytes = b"file:///a", ends: Sequence[int] = (), **more: Any
) -> Any:
    """The record of an offloaded stripe full of entries of 10 bytes, in segments with `ends`."""
    ends = ends or [end]
    spans = [max(b - a, 0) for a, b in pairwise([start, *ends])]
    segments = tuple(_Segment(b, n, 10 * n, 1, 2) for b, n in zip(ends, spans, strict=True))
    counts = sum(spans), 10 * sum(spans)
    record = Offload(id_, start, end, 1, url, 100, b"s" * 32, TIME, *counts, segments)
    return record._replace(**more)


def writer_id(letter: str) -> bytes:
    """A writer's 16-byte id for tests: one letter, repeated."""
    return letter.encode() * 16


WRITER = writer_id("w")


@dataclass(frozen=True)
class Entry:
    """One entry of a write: where it goes, its number in its writer's own count, data, tags."""

    position: int
    number: int
    data: bytes
    tags: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class AppendPart:
    """A part of an append, and its condition; the positions of its entries say nothing."""

    entries: tuple[Entry, ...]
    expect: int | None = None
    start: int = 0
    unless: tuple[tuple[bytes, ...], ...] = ()


@dataclass(frozen=True)
class View:
    """A log's layout in one epoch; `removed` is the state of a log on its way out.

    Options are sent in ascending order of their keys, so that a view has one encoding.
    """

    epoch: int
    log_id: int
    removed: bool = False
    sequencer: str = ""
    stripes: tuple[Any, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    read_only: bool = False
    writer: tuple[Any, ...] = ()
    mac: tuple[Any, ...] = ()
    offloads: bool = False
    ordered: bool = False


@dataclass(frozen=True)
class Part:
    """What is delivered: a part of a batch of a producer, to a log."""

    producer: str
    sequence: int = 0
    part: int = 0
    log_id: int = 7


@dataclass(frozen=True)
class Grant:
    """What one attempt at a part asks for: `count` positions, from `first` on.

    With `reserve` they are above the tail floor, else they were granted by a sequencer already.
    With `open` they are just the first ones that it may write.
    """

    part: Part
    attempt: int
    epoch: int
    first: int
    count: int
    reserve: bool = False
    incarnation: int = 1
    open: bool = False


def write(
    epoch: int,
    timestamp: int,
    writer: bytes,
    striping: int,
    entries: Sequence[Entry],
    crcs: Sequence[int] | None = None,
    in_block: int = 0,
) -> bytes:
    """write: ascending entries, `timestamp` in µs since 1970; `crcs` replaces the right ones.

    `in_block`: entries in each block; 0 for none, and where the entries have no data.
    """
    runs = striping, [e.position for e in entries]
    if crcs is None:
        crcs = [wire.entry_crc(e.position, e.data) for e in entries]
    size = in_block or max(1, len(entries))
    blocks = [entries[i : i + size] for i in range(0, len(entries), size)]
    tagged = any(entry.tags for entry in entries)
    compats = (3 if tagged else 1), (3 if tagged else 2)
    head = epoch, timestamp, writer
    return _with_data("write", head, (runs,), entries, crcs, in_block and blocks, compats)


def append(
    epoch: int,
    timestamp: int,
    writer: bytes,
    since: int,
    parts: Sequence[AppendPart],
    crcs: Sequence[int] | None = None,
    in_block: int = 0,
) -> bytes:
    """append: like write; each block has entries of one part."""
    entries = [entry for part in parts for entry in part.entries]
    if crcs is None:
        crcs = [wire.crc32c(entry.data) for entry in entries]
    size = in_block or 1
    each = [part.entries for part in parts]
    blocks = [own[i : i + size] for own in each for i in range(0, len(own), size)]
    told = [
        (len(part.entries), part.expect, part.start, [(_names(tags),) for tags in part.unless])
        for part in parts
    ]
    head = epoch, timestamp, writer
    return _with_data("append", head, (since, told), entries, crcs, in_block and blocks, (1, 1))


def _with_data(
    method: str,
    head: tuple[Any, ...],
    where: tuple[Any, ...],
    entries: Sequence[Entry],
    crcs: Sequence[int],
    blocks: Sequence[Sequence[Entry]] | int,
    compats: tuple[int, int],
) -> bytes:
    """A request with entries, in these blocks or plain; the second compat is for blocks."""
    base = min([NUMBER_BASE_MAX, *(e.number for e in entries)])
    ends = [*accumulate(len(entry.data) for entry in entries)]
    end = ends[-1] if ends else 0
    given = (*head, base, *where, ends, crcs, [e.number - base for e in entries])
    tags = tag_columns([entry.tags for entry in entries])
    plain = [b"".join(entry.data for entry in block) for block in blocks or [entries]]
    if not blocks or not all(plain):
        columns = request(method, *given, 0, (), *tags, compat=compats[0])
        return columns + _padding(method, len(columns), end) + b"".join(plain)
    stored = [zstd.pack(each) for each in plain]
    rows = [(len(b), len(s), wire.crc32c(s)) for b, s in zip(blocks, stored, strict=True)]
    columns = request(method, *given, ZSTD, rows, *tags, compat=compats[1])
    return columns + b"".join(stored)


def _names(tags: Sequence[bytes]) -> bytes:
    return b"".join(wire.u8(len(name)) + name for name in tags)


def tag_columns(tags: Sequence[Sequence[bytes]]) -> tuple[bytes, list[int], list[int]]:
    """The names, each once, by their bytes; of each entry how many, and which."""
    names = {name: i for i, name in enumerate(sorted({tag for each in tags for tag in each}))}
    own = [sorted(names[tag] for tag in each) for each in tags]
    if not names:
        return b"", [], []
    return _names([*names]), [len(each) for each in own], [which for each in own for which in each]


def _padding(method: str, offset: int, data_bytes: int) -> bytes:
    """Zeros that let much data begin with a page in an OSD, behind the class and the method."""
    return bytes(-(len("zlog" + method) + offset) % 4096 if data_bytes >= 32 << 10 else 0)


def view(value: View) -> bytes:
    """A view's bytes, as stored and as proposed."""
    rest = [getattr(value, each.name) for each in fields(View)[3:]]
    return encode("View", value.epoch, value.log_id, value.removed, *rest)


def parse_view(data: bytes) -> View:
    """A view's bytes as a `View`."""
    found = decode("View", data)
    return View(found.epoch, found.log_id, bool(found.state), *found[3:])
