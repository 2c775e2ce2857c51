"""Segments of the files of offloaded stripes, as objects in memory or as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from zlog._base.codes import ENTRIES_MAX, WRITER_BYTES, Code
from zlog._base.io import OffloadedObject
from zlog._base.pieces import Batch, Filled, Lost, Trimmed
from zlog._base.wanted import Wanted
from zlog._native import messages
from zlog._native.local import MemoryStore
from zlog._native.new_entries import entries_cut
from zlog._native.writes import encode_writes
from zlog.errors import UnsupportedVersion
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


Form = Literal["objects", "columns"] | Wanted
"""How a segment is read. With tags, only the matching entries are put into objects. The positions
of the other entries are filled, so that a search for the tags passes them."""


@dataclass(frozen=True, slots=True)
class Part(Stripe):
    """A segment of an offloaded stripe, with the striping of the stripe.

    Attributes:
        objects: the objects of the stripe, which have only the positions of this segment.
        columns: the segment as columns. If set, its objects cannot be called.
        problem: why the file is missing or damaged; empty if it could be read.
    """

    objects: tuple[ObjectRef, ...] = ()
    columns: SegmentColumns | None = None
    problem: str = ""


def part_of(
    stripe: Stripe,
    file: StripeFile,
    number: int,
    *,
    store: MemoryStore | None = None,
    error: int = 0,
    columns: SegmentColumns | None = None,
    problem: str = "",
) -> Part:
    """Return a segment whose objects are in a store, or answer with an error."""
    refs = (
        ObjectRef(
            OffloadedObject(f"{file.url}#{number}.{each}", store, error), stripe.striping, each
        )
        for each in range(stripe.width)
    )
    fields = stripe.id, *file.bounds(number), *stripe.striping, b"", tuple(refs)
    return Part(*fields, columns, problem)


def object_part(
    stripe: Stripe, file: StripeFile, number: int, content: Iterable[Content], *, whole: bool
) -> Part:
    """Put the content of a segment into objects in memory. If ``whole``, no position may lack."""
    store = MemoryStore()
    part = part_of(stripe, file, number, store=store)
    start, end, refs = part.start, part.end, part.objects
    (width, unit), packed = stripe.striping, stripe.striping.packed

    def call(ref: ObjectRef, method: str, request: Any) -> None:
        code, _ = store.execute(str(ref.name), method, request)
        if code != Code.OK:
            raise UnsupportedVersion(f"{ref.name} has invalid content: {method} returned {code}")

    def call_each(method: str, piece: Filled | Trimmed | Lost, *fields: Any) -> None:
        make = getattr(messages, method)
        for at in range(piece.start, piece.end, ENTRIES_MAX):  # the limit of one request
            for some in stripe.striping.by_object(at, min(at + ENTRIES_MAX, piece.end)):
                call(refs[some.number], method, make(_EPOCH, *fields, packed, some))

    def omit(first: int, last: int) -> None:
        if whole and first != last:
            raise UnsupportedVersion(f"{file.url} lacks position {first}")
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
    if whole and entries != file.segments[number].entries:
        raise UnsupportedVersion(f"{file.url} does not have the entries of segment {number}")
    if lost:
        # Delete the keys of records that the header counts.
        before = [store.peek(str(ref.name)) for ref in refs]
        for piece in lost:
            call_each("trim", piece)
        for ref, old in zip(refs, before, strict=True):
            new = store.peek(str(ref.name))
            assert old is not None
            assert new is not None
            store.poke(str(ref.name), new[0], *old[1:])
    return part
