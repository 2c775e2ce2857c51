"""Encodes appends to an object that assigns the positions, and interprets its replies."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint64_t
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from zlog._native.host cimport text_view, view_of
from zlog._native.new_entries cimport TagsTaken, data_of, tags_taken
from zlog._native.writes cimport (
    AppendHead,
    CppAppendPart,
    CppNewEntry,
    TagSet,
    WriteEncoder,
    append_name,
    write_head,
)

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from zlog._base.codes import PartState
from zlog._native.messages import AppendOutcome, AppendReply
from zlog._native.new_entries import entries_owned

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from zlog._native.new_entries import Tagged


class AppendPart(NamedTuple):
    """Entries that are stored together or not at all, and the condition for that.

    Attributes:
        number: the append number of the first entry; the other entries have the following numbers.
        count: entries, at least 1.
        expect: the position that the first entry must get; None for any position.
        start: the first position that ``unless`` is about; 0 for all entries that exist.
        unless: up to 32 sets of tags. No entry at ``start`` or above may have all tags of a set.
    """

    number: int
    count: int
    expect: int | None
    start: int
    unless: tuple[tuple[str, ...], ...]


cdef CppAppendPart part_of(part) except *:
    cdef CppAppendPart out
    cdef TagSet tag_set
    out.entries, out.start = part.count, part.start
    if part.expect is not None:
        out.expect = <uint64_t> part.expect
    for tags in part.unless:
        tag_set.names.clear()
        for tag in tags:
            append_name(text_view(tag), &tag_set.names)
        out.unless.push_back(tag_set)
    return out


def encode_append(
    uint64_t epoch,
    uint64_t timestamp,
    bytes writer not None,
    uint64_t since,
    parts: Sequence[AppendPart],
    entries: Sequence[Buffer | Tagged],
    str compression not None="none",
) -> bytes:
    """Encode an append of parts, with the checksums of their entries.

    Args:
        epoch: the epoch of the writer's view.
        timestamp: µs since 1970-01-01 UTC.
        writer: the writer's id, 16 bytes.
        since: a position; no earlier copy of these parts is stored below it. Before the first
            request, it is a tail of the object that was read earlier, and afterwards the reply's.
        parts: up to 4096, with ascending numbers within 2**32 of each other. Together with
            ``writer``, a number identifies the append of an entry.
        entries: the entries of all parts, in order, at most 65536.
        compression: zstd or lz4; used for data that it makes smaller.

    Raises:
        ValueError: the append is not valid, or exceeds a limit.
    """
    cdef AppendHead append
    cdef vector[CppNewEntry] news
    cdef CppNewEntry entry
    cdef WriteEncoder encoder
    cdef list alive = []  # the objects that `news` points into
    cdef TagsTaken tags
    cdef bytes out
    owned = entries_owned(entries)
    numbers = [number for part in parts for number in range(part.number, part.number + part.count)]
    if len(numbers) != len(owned):
        raise ValueError(f"the parts have {len(numbers)} entries, but there are {len(owned)}")
    append.since = since
    for part in parts:
        append.parts.push_back(part_of(part))
    for number, content in zip(numbers, owned):
        entry.position, entry.number, entry.data = 0, number, view_of(data_of(content))
        alive.append(content)
        news.push_back(entry)
    head = write_head(epoch, timestamp, writer, 1, compression, None)
    head.append = &append
    tags = tags_taken(owned)
    if tags is not None:
        head.tags = &tags.taken
    if encoder.begin(head, news.data(), news.size(), False, 0) != 0:
        raise ValueError(
            "not a valid append: parts must have entries, ascending numbers within 2**32 of each"
            " other and valid tags, the writer's id must have 16 bytes, and no limit may be exceeded"
        )
    with nogil:
        encoder.compress()
    out = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> encoder.size())
    encoder.encode(PyBytes_AS_STRING(out))
    return out


def append_outcomes(reply: AppendReply, parts: Sequence[AppendPart]) -> list[AppendOutcome]:
    """Return what happened to each part of a request.

    ``APPENDED`` comes with the position of the part's first entry, and ``CONFLICT`` with that of the
    conflict. A part that is ``SEARCHED`` was not stored; send it again with ``start`` raised to the
    position, and with the reply's ``since``.
    """
    if not reply.stored:
        return reply.outcomes
    out = []
    position = reply.tail - sum(part.count for part in parts[: reply.stored])
    for i, part in enumerate(parts):
        if i < reply.stored:
            out.append(AppendOutcome(<int> PartState.APPENDED, position))
            position += part.count
        else:
            out.append(AppendOutcome(<int> PartState.SEARCHED, part.start))
    return out
