"""Segments of the files of offloaded stripes, as objects in memory or as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from zlog._base.codes import ENTRIES_MAX, WRITER_BYTES, Code
from zlog._base.io import OffloadedObject
from zlog._base.pieces import Batch, Filled, Lost, Trimmed
from zlog._native import messages
from zlog._native.local import MemoryStore
from zlog._native.new_entries import entries_cut
from zlog._native.writes import encode_writes
from zlog.errors import UnsupportedVersion, ZlogError
from zlog.view import ObjectRef, Stripe, StripeFile

Content = Batch | Filled | Trimmed | Lost
"""A piece of a segment."""

_WRITE_BYTES = 4 << 20
_EPOCH = 1
_NOBODY = bytes(WRITER_BYTES)


class SegmentColumns(NamedTuple):
    """A segment as columns; see :class:`zlog.Columns`.

    Attributes:
        positions, timestamps, offsets, data: a buffer of each.
        tags: a function that returns the tags of each entry.
        gaps: the positions without an entry, in ascending order.
    """

    positions: memoryview
    timestamps: memoryview
    offsets: memoryview
    data: memoryview
    tags: Callable[[], list[tuple[str, ...]]]
    gaps: Sequence[Filled | Trimmed | Lost]


class Form(NamedTuple):
    """How a segment is read.

    Attributes:
        columns: as a `ColumnPart`, if possible.
        tags: if not empty, without the entries that do not have any of these tags. Their positions
            are filled, so that a search for the tags passes them.
        every: whether entries must have all of the tags.
    """

    columns: bool = False
    tags: tuple[str, ...] = ()
    every: bool = False


WHOLE: Final = Form()
COLUMNS: Final = Form(columns=True)


@dataclass(frozen=True, slots=True)
class Part(Stripe):
    """A segment of an offloaded stripe, with the striping of the stripe.

    Attributes:
        objects: the objects of the stripe, which have only the positions of this segment.
        problem: why the file is missing or damaged; empty if it could be read.
    """

    objects: tuple[ObjectRef, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ColumnPart(Part):
    """A segment as columns. If the file could not be read, it has only objects."""

    columns: SegmentColumns | None = None


def name_of(file: StripeFile, number: int) -> str:
    """Return the name of a segment, with which the names of its objects begin."""
    return f"{file.url}#{number}"


def _fields(stripe: Stripe, file: StripeFile, number: int) -> tuple[int, int, int, int, int, bytes]:
    """Return the fields of a segment that are those of a stripe."""
    return stripe.id, *file.bounds(number), *stripe.striping, b""


def column_part(
    stripe: Stripe,
    file: StripeFile,
    number: int,
    columns: SegmentColumns | None,
    error: int = 0,
    problem: str = "",
) -> ColumnPart:
    """Return a segment with its columns, or one whose objects answer with an error."""
    refs = _refs(stripe, file, number, None, error)
    return ColumnPart(*_fields(stripe, file, number), refs, problem, columns)


def _refs(
    stripe: Stripe, file: StripeFile, number: int, store: MemoryStore | None, error: int = 0
) -> tuple[ObjectRef, ...]:
    names = (f"{name_of(file, number)}.{each}" for each in range(stripe.width))
    return tuple(
        ObjectRef(OffloadedObject(name, store, error), stripe.striping, each)
        for each, name in enumerate(names)
    )


def object_part(
    stripe: Stripe, file: StripeFile, number: int, form: Form, content: Iterable[Content]
) -> Part:
    """Put the content of a segment into objects in memory."""
    store = MemoryStore()
    refs = _refs(stripe, file, number, store)
    start, end = file.bounds(number)
    (width, unit), packed = stripe.striping, stripe.striping.packed

    def call(ref: ObjectRef, method: str, request: Any) -> None:
        code, _ = store.execute(str(ref.name), method, request)
        if code != Code.OK:
            raise UnsupportedVersion(f"{ref.name} has invalid content: {method} returned {code}")

    def call_each(method: str, piece: Filled | Trimmed | Lost, *fields: Any) -> None:
        make = getattr(messages, method)
        for at in range(piece.start, piece.end, ENTRIES_MAX):  # the limit of one request
            for part in stripe.striping.by_object(at, min(at + ENTRIES_MAX, piece.end)):
                call(refs[part.number], method, make(_EPOCH, *fields, packed, part))

    def omit(first: int, last: int) -> None:
        if not form.tags and first != last:
            raise UnsupportedVersion(f"{name_of(file, number)} lacks position {first}")
        call_each("fill", Filled(first, last, 0, _NOBODY, 0), 0, _NOBODY, 0)

    for ref in refs:
        call(ref, "seal", messages.seal(_EPOCH, width, ref.number, True, start, unit))
    position, entries, lost = start, 0, list[Lost]()
    for piece in content:
        omit(position, piece.start)
        position = piece.end
        if isinstance(piece, Batch):
            entries += len(piece.entries)
            begin = 0
            while begin < len(piece.entries):
                cut = entries_cut(piece.entries, begin, len(piece.entries) - begin, _WRITE_BYTES)
                ids = piece.start + begin, piece.number + begin, piece.entries[begin:cut]
                for each, request in encode_writes(
                    _EPOCH, piece.timestamp, piece.writer, packed, *ids
                ):
                    call(refs[each], "write", request)
                begin = cut
        elif isinstance(piece, Filled):
            call_each("fill", piece, piece.timestamp, piece.writer, piece.reason)
        elif isinstance(piece, Trimmed):
            call_each("trim", piece)
        else:
            lost.append(piece)
    omit(position, end)
    if not form.tags and entries != file.segments[number].entries:
        raise UnsupportedVersion(f"{name_of(file, number)} does not have the recorded entries")
    _lose(store, refs, lost, partial(call_each, "trim"))
    return Part(*_fields(stripe, file, number), refs)


def _lose(store: MemoryStore, refs: Sequence[ObjectRef], lost: Sequence[Lost], trim: Any) -> None:
    """Make positions read as lost, by deleting the keys of records that the header counts."""
    before = [store.peek(str(ref.name)) for ref in refs] if lost else []
    for piece in lost:
        trim(piece)
    for ref, content in zip(refs, before, strict=False):
        after = store.peek(str(ref.name))
        if content is None or after is None:
            raise ZlogError("an object in memory is missing")
        store.poke(str(ref.name), after[0], content[1], content[2])
