"""At the limits: the largest entries, more records than a page, a full bytestream, freed space.

Requests come from `zlog._native.writes` where they are too large for the suite's own slow codec.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from zlog._native import messages
from zlog._native.completions import CompletionQueue
from zlog._native.replies import ReadReply, crc32c, decode_read
from zlog._native.writes import encode_write

from ..native.support import answers
from . import hostile, wire
from .head_model import CURSORS_MAX, OFFLOAD_SEGMENTS_MAX, OFFLOAD_URL_BYTES_MAX
from .messages import request
from .objects import Head, Store, Stripe
from .producers_model import GRANTS_MAX, PARTS_MAX, PARTS_REMOVED_MAX, PRODUCERS_MAX
from .replies import WRITTEN, Answer, Code, Slot, State, parse
from .requests import (
    ADVANCE,
    CREATE,
    SET,
    TIME,
    WRITER,
    Entry,
    Grant,
    Part,
    StripeView,
    View,
    offload,
)
from .stored import STORES_WITH_DOORS, Door, envelope
from .wire import OPEN_END

MIB = 1 << 20
ENTRY_BYTES_MAX = 16 * MIB
STREAM_BYTES_MAX = 120 * MIB
RECORDS = 1200  # more than an OSD gives in one listing (1024), and than several of our own pages


def write_large(stripe: Stripe, entries: dict[int, bytes]) -> Answer:
    """A write by the native codec, whose checksums take no time."""
    positions = list(entries)
    request = encode_write(
        1, TIME, WRITER, stripe.stride, positions, positions, list(entries.values())
    )
    return stripe.send("write", request)


def read_large(stripe: Stripe, positions: list[int], bytes_max: int) -> ReadReply:
    """A read by the native codec."""
    request = messages.read(1, False, bytes_max, stripe.stride, positions)
    code, reply = stripe.store.execute(stripe.name, "read", request)
    assert code == Code.OK
    return decode_read(reply, positions, None)


def together(head: Head, calls: Iterable[tuple[Any, ...]]) -> list[Answer]:
    """Run methods, each with its request's values, which are submitted together and in order."""
    queue, calls = CompletionQueue(), [*calls]
    requests = [(head.name, method, request(method, *values)) for method, *values in calls]
    head.store.submit(queue, 0, requests)
    found = answers(queue, len(calls))
    return [parse(method, *found[number]) for number, (method, *_) in enumerate(calls)]


@pytest.fixture
def stripe(store: Store, prefix: str) -> Stripe:
    """A new object."""
    made = Stripe(store, prefix)
    assert made.seal(1).code == Code.OK
    return made


@pytest.fixture
def head(store: Store, prefix: str) -> Head:
    """A new log's head."""
    made = Head(store, prefix)
    assert made.create("orders", 7).code == Code.OK
    return made


def test_largest_entry_round_trips(stripe: Stripe) -> None:
    data = b"0123456789abcdef" * MIB
    assert len(data) == ENTRY_BYTES_MAX
    assert write_large(stripe, {0: data, 1: b"small"}).code == Code.OK
    reply = read_large(stripe, [0, 1], ENTRY_BYTES_MAX)
    assert (len(reply), reply.data(0) == data) == (1, True)
    reply = read_large(stripe, [0, 1], 2 * ENTRY_BYTES_MAX)
    assert (len(reply), reply.data(0) == data, reply.data(1)) == (2, True, b"small")


def test_oversized_entry_is_refused(stripe: Stripe) -> None:
    """The native codec builds no such request, and the class checks for itself."""
    data = bytes(ENTRY_BYTES_MAX + 1)
    with pytest.raises(ValueError, match=r"."):
        write_large(stripe, {0: data})
    for oversized, code in ((data, -errno.EINVAL), (data[1:], Code.OK)):
        crcs = [crc32c(wire.u64(0) + oversized)]
        fields = (1, TIME, WRITER, 0, (1, [0]), [len(oversized)], crcs, [0])
        sent = request("write", *fields) + oversized
        assert stripe.store.execute(stripe.name, "write", sent)[0] == code


def test_write_padding_is_zero_and_bounded(stripe: Stripe) -> None:
    """Up to 4,095 bytes, all of them zero."""
    write = encode_write(1, 1, WRITER, 1, [0], [0], [b"entry"])
    head = write.removesuffix(b"entry")

    def written(padding: bytes) -> int:
        return stripe.store.execute(stripe.name, "write", head + padding + b"entry")[0]

    for wrong in (b"\1", bytes(100) + b"\1", b"\1" + bytes(100), bytes(4096)):
        assert written(wrong) == -errno.EINVAL
    assert stripe.max_position(1).value.highest is None
    assert [written(bytes(length)) for length in (4095, 1, 0)] == [Code.OK] * 3
    assert read_large(stripe, [0], 100).data(0) == b"entry"


def test_reads_stop_at_reply_limit(stripe: Stripe) -> None:
    """32 MiB of data is the most that one reply holds, whatever was asked."""
    for position in range(3):
        data = bytes([position]) * ENTRY_BYTES_MAX
        assert write_large(stripe, {position: data}).code == Code.OK
    reply = read_large(stripe, [0, 1, 2], 2**32 - 1)
    assert len(reply) == 2
    assert [reply.data(i)[:1] for i in range(2)] == [b"\0", b"\1"]


@pytest.mark.parametrize("store_url", ["mem", "embedded"], indirect=True)
def test_full_bytestream(stripe: Stripe) -> None:
    """What fits it no longer goes into values, of which one call touches a bounded number."""
    data = {position: bytes([65 + position]) * (15 * MIB) for position in range(14)}
    for position in range(0, 14, 2):
        pair = {each: data[each] for each in (position, position + 1)}
        assert write_large(stripe, pair).code == Code.OK
    stat = stripe.stat(1).value
    assert (stat.entries, stat.data_bytes) == (14, 14 * 15 * MIB)
    assert stat.stream_bytes == STREAM_BYTES_MAX
    batch = {14 + i: bytes([97 + i]) * 10_000 for i in range(20)}  # several records now
    assert write_large(stripe, batch).code == Code.OK
    for position in range(14):
        assert read_large(stripe, [position], 15 * MIB).data(0) == data[position]
    reply = read_large(stripe, list(batch), MIB)
    assert [reply.data(i) for i in range(len(batch))] == list(batch.values())
    assert stripe.trim(1, range(8, 14)) == Answer(-errno.E2BIG)
    assert stripe.stat(1).value.entries == 34
    assert stripe.trim(1, [3, 9, 15]).code == Code.OK
    reply = read_large(stripe, [3, 9, 15, 16], MIB)
    assert [reply.state(i) for i in range(3)] == [State.TRIMMED] * 3
    assert reply.data(3) == batch[16]
    assert stripe.stat(1).value.entries == 31
    calls = 1
    while stripe.trim_to(1, 40).value:
        calls += 1
    assert calls > 1
    assert stripe.stat(1).value.data_bytes == 0


@pytest.fixture
def crowded(stripe: Stripe) -> Iterator[Stripe]:
    """An object of many records, one entry each: no two of a write are neighbours."""
    for start in (0, 1):
        entries = [Entry(p, p, b"%d" % p) for p in range(start, RECORDS, 2)]
        assert stripe.write(1, entries).code == Code.OK
    assert stripe.stat(1).value.records == RECORDS
    yield stripe
    assert stripe.put(1, 10 * RECORDS, b"goes on").code == Code.OK


def test_read_of_many_records(crowded: Stripe) -> None:
    slots = crowded.read(1, range(RECORDS + 1)).value.slots
    assert [slot.data for slot in slots[:-1]] == [b"%d" % p for p in range(RECORDS)]
    assert slots[-1] == Slot(State.UNWRITTEN)
    sparse = list(range(3, RECORDS, 7))
    assert [s.data for s in crowded.read(1, sparse).value.slots] == [b"%d" % p for p in sparse]


def test_retry_and_fill_of_many_records(crowded: Stripe) -> None:
    entries = [Entry(p, p, b"%d" % p) for p in range(RECORDS)]
    assert crowded.write(1, entries) == WRITTEN
    wrong = [*entries[:-1], Entry(RECORDS - 1, 0, b"x"), Entry(RECORDS, 1, b"x")]
    assert crowded.write(1, wrong) == Answer(Code.READ_ONLY, RECORDS - 1)
    holes = range(RECORDS, RECORDS + 10)
    assert crowded.fill(1, [RECORDS - 1, *holes]) == Answer(Code.READ_ONLY, RECORDS - 1)
    assert crowded.stat(1).value.entries == RECORDS
    assert crowded.trim(1, range(RECORDS + 5)).code == Code.OK
    assert {s.state for s in crowded.read(1, range(RECORDS + 5)).value.slots} == {State.TRIMMED}


@pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)
def test_trim_removes_data_from_storage(stripe: Stripe, door: Door) -> None:
    """P10 of the reliability properties: trim frees space; nothing of an entry is kept."""
    small = {p: b"small%d" % p for p in range(5)}
    large = {10 + i: (b"large%d" % i) * 2_000 for i in range(5)}
    assert stripe.write(1, [Entry(p, p, d) for p, d in small.items()]).code == Code.OK
    assert stripe.write(1, [Entry(p, p, d) for p, d in large.items()]).code == Code.OK
    assert stripe.trim(1, [1, 3, 11, 13]).code == Code.OK
    content = door.load(stripe.name)
    held = b"".join(content.omap.values()) + content.stream
    for position, data in {**small, **large}.items():
        assert (data in held) == (position not in (1, 3, 11, 13)), position
    assert stripe.trim_to(1, 12) == Answer(Code.OK, False)
    content = door.load(stripe.name)
    assert list(content.omap) == [b"e.000000000000000e.5"]
    held = b"".join(content.omap.values()) + content.stream
    assert [p for p, data in {**small, **large}.items() if data in held] == [12, 14]


def test_sources_max(head: Head) -> None:
    """One that is done altogether makes space."""
    done = [("delivery_done", 7, f"query-{n}", 5, n + 1, TIME) for n in range(PRODUCERS_MAX)]
    assert together(head, done) == [Answer(Code.OK, False)] * PRODUCERS_MAX
    full = Answer(Code.LIMIT_REACHED, 1024)
    assert head.delivery_begin(Part("more")) == full
    assert head.delivery_done("more", 1, PRODUCERS_MAX + 1) == full
    assert head.delivery_done("more", 2**64 - 1) == Answer(Code.OK, False)
    more, producers = head.delivery_list(count_max=PRODUCERS_MAX).value
    assert (more, len(producers)) == (False, PRODUCERS_MAX)
    assert head.delivery_begin(Part("query-0", 5)).code == Code.OK
    assert head.delivery_done("query-7", 2**64 - 1, 8).code == Code.OK
    assert head.delivery_begin(Part("more")).code == Code.OK
    assert head.delivery_begin(Part("still.more")) == full


@pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)
def test_parts_max(head: Head, prefix: str, door: Door) -> None:
    """That is another error than too many producers, for other things help."""
    assert head.delivery_begin(Part("query", 3, 1)).code == Code.OK
    full = wire.u64(1) + wire.u64(0) + wire.u32(PARTS_MAX) + 2 * wire.u64(TIME)
    sound = door.load(prefix)
    door.save(prefix, sound.with_value(b"s.query", envelope(b"s.query", full)))
    assert head.delivery_begin(Part("query", 3, 2)) == Answer(Code.LIMIT_REACHED, 65536)
    assert head.delivery_begin(Part("query", 3, 1)) == Answer(Code.OK, (2, 0, 1))
    assert head.delivery_begin(Part("other", 3, 2)).code == Code.OK
    assert head.delivery_done("query", 4).code == Code.OK
    assert head.delivery_begin(Part("query", 4, 2)).code == Code.OK


def test_parts_are_removed_in_steps(head: Head) -> None:
    parts = [Part("query", n // 100, n) for n in range(2 * PARTS_REMOVED_MAX + 1)]
    begun = together(
        head, (("delivery_begin", 7, "query", p.sequence, p.part, TIME) for p in parts)
    )
    assert begun == [Answer(Code.OK, (1, 0, 1))] * len(parts)
    assert head.delivery_begin(Part("query.more")).code == Code.OK
    assert head.delivery_done("query", 5) == Answer(Code.OK, True)
    assert head.delivery_done("query", 0) == Answer(Code.OK, False)
    assert head.delivery_read(Part("query", 4, 499)).code == Code.NOT_FOUND
    assert head.delivery_read(Part("query", 5, 500)).code == Code.OK
    assert head.delivery_done("query", 2**64 - 1) == Answer(Code.OK, False)
    assert head.delivery_read(Part("query", 5, 500)).code == Code.NOT_FOUND
    assert head.delivery_read(Part("query.more")).code == Code.OK


@pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)
def test_grants_max(head: Head, prefix: str, door: Door) -> None:
    """Those that follow each other count once."""
    part = Part("query")
    assert head.delivery_begin(part).code == Code.OK
    last = 10 * (GRANTS_MAX - 1)
    grants = [wire.frame(wire.u64(p) + wire.u64(5)) for p in range(0, last, 10)]
    key = b"p.query/%016x.%08x" % (0, 0)
    most = wire.u64(1) + wire.u32(1) + wire.u32(len(grants)) + b"".join(grants)
    door.save(prefix, door.load(prefix).with_value(key, envelope(key, most)))
    assert head.delivery_grant(Grant(part, 1, 0, last, 5)) == Answer(Code.OK, last)
    full = Answer(Code.LIMIT_REACHED, 4096)
    assert head.delivery_grant(Grant(part, 1, 0, last + 10, 5)) == full
    assert head.delivery_grant(Grant(part, 1, 0, last + 5, 3)) == Answer(Code.OK, last + 5)
    granted = head.delivery_read(part).value.grants
    assert len(granted) == GRANTS_MAX
    assert granted[-2:] == ((last - 10, 5), (last, 8))


def test_cursors_max(head: Head) -> None:
    """The last may be moved and replaced; of a thousand, the lowest holds a trim back."""
    names = [f"reader-{n}" for n in range(CURSORS_MAX)]
    made = [("cursor_commit", 7, name, CREATE, 5000 - n, TIME) for n, name in enumerate(names)]
    assert together(head, made) == [Answer(Code.OK)] * CURSORS_MAX
    full = Answer(Code.LIMIT_REACHED, 1024)
    assert head.cursor_commit("more", CREATE, 9000) == full
    assert head.cursor_commit("more", SET, 9000) == full
    assert head.cursor_commit("reader-0", SET, 6000).code == Code.OK
    assert head.cursor_commit("reader-1", ADVANCE, 6000).code == Code.OK
    lowest = 5000 - (CURSORS_MAX - 1)
    assert head.tail_raise(0, 9000).code == Code.OK
    assert head.trim_point_raise(lowest + 1) == Answer(Code.HELD_BY_CURSOR, lowest)
    assert head.trim_point_raise(lowest).code == Code.OK
    more, cursors = head.cursor_list(count_max=CURSORS_MAX).value
    assert (more, len(cursors)) == (False, CURSORS_MAX)
    assert [each.name for each in cursors] == sorted(names)
    assert head.cursor_remove("reader-7").code == Code.OK
    assert head.cursor_commit("more", CREATE, 9000).code == Code.OK
    assert head.cursor_commit("still.more", CREATE, 9000) == full


def test_largest_offload_record(head: Head) -> None:
    end = OFFLOAD_SEGMENTS_MAX + 1
    first = StripeView(1, 0, OPEN_END, 1)
    for stripes in [(first,), (first._replace(end=end), StripeView(2, end, OPEN_END, 1))]:
        epoch = head.epoch_next(1).value.epoch
        view = View(epoch, 7, stripes=stripes, offloads=True)
        assert head.view_propose(epoch - 1, view).code == Code.OK
    larger = offload(1, 0, end, ends=range(1, end + 1))
    assert head.offload_put(larger) == Answer(-errno.EINVAL)
    largest = offload(1, 0, end, b"x" * OFFLOAD_URL_BYTES_MAX, range(2, end + 1))
    assert head.offload_put(largest).code == Code.OK
    assert head.offload_list(0).value == (False, (largest,))


def test_empty_object_name_is_refused(store: Store) -> None:
    for method, sound in hostile.SOUND.items():
        assert store.execute("", method, sound) == (-errno.EINVAL, b""), method
