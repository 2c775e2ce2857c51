"""Appends to one object: what ends a search, and what must not be taken for an earlier copy."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from . import requests, zstd
from .appended import Appended, PartState
from .messages import request
from .objects import Store, Stripe
from .replies import Answer, Code
from .requests import TIME, WRITER, AppendPart, Entry, writer_id
from .stored import HEADER, LATER, STORES_WITH_DOORS, Door, of_version
from .wire import crc32c, u32

APPENDERS = 128
INVALID = Answer(-errno.EINVAL)
with_door = pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)


@pytest.fixture
def stripe(store: Store, prefix: str) -> Stripe:
    made = Stripe(store, prefix)
    assert made.seal(1).code == Code.OK
    return made


def part(number: int, *data: bytes, tags: tuple[bytes, ...] = (), **condition: Any) -> AppendPart:
    entries = tuple(Entry(0, n, each, tags) for n, each in enumerate(data, number))
    return AppendPart(entries, **condition)


def stored(tail: int, parts: int = 1) -> Answer:
    return Answer(Code.OK, Appended(tail=tail, since=tail, stored=parts))


def reported(tail: int, *outcomes: tuple[PartState, int], since: int | None = None) -> Answer:
    since = tail if since is None else since
    return Answer(Code.OK, Appended(tail=tail, since=since, outcomes=outcomes))


def appended(tail: int, position: int) -> Answer:
    return reported(tail, (PartState.APPENDED, position))


def conflict(tail: int, position: int) -> Answer:
    return reported(tail, (PartState.CONFLICT, position))


def writer(number: int) -> bytes:
    return b"writer %08d " % number


def fill_chunk(stripe: Stripe, tags: Sequence[bytes]) -> None:
    """As many entries with as many tags as the next append puts into the index."""
    many = tuple(b"%d" % i for i in range(62))
    assert stripe.append(1, [part(1000, *[b""] * 300, tags=(*many, *tags))]).code == Code.OK


def test_writer_that_was_dropped_is_still_recognized(stripe: Stripe) -> None:
    for number in range(APPENDERS + 1):
        assert stripe.append(1, [part(100, b"x")], writer(number), number) == stored(number + 1)
    tail = APPENDERS + 1
    assert stripe.append(1, [part(100, b"x")], writer(0), 0) == appended(tail, 0)
    assert stripe.append(1, [part(100, b"x")], writer(APPENDERS), 128) == appended(tail, 128)
    # A lower number brings the writer back, but says nothing of its higher ones.
    assert stripe.append(1, [part(50, b"late")], writer(0), 0) == stored(tail + 1)
    assert stripe.append(1, [part(100, b"x")], writer(0), 0) == appended(tail + 1, 0)
    assert stripe.append(1, [part(100, b"x")], writer(1), 1) == appended(tail + 1, 1)


@with_door
def test_table_of_writers_is_bounded(stripe: Stripe, door: Door) -> None:
    for number in range(APPENDERS):
        stripe.append(1, [part(0, b"x")], writer(number))
    stripe.append(1, [part(1, b"again")], writer(0))
    full = len(door.load(stripe.name).attrs[HEADER])
    stripe.append(1, [part(0, b"x")], writer(APPENDERS))
    header = door.load(stripe.name).attrs[HEADER]
    assert len(header) == full
    assert (writer(0) in header, writer(1) in header) == (True, False)


def large(number: int) -> AppendPart:
    """A part that is stored in two records, each with about half a MiB of tags."""
    names = [b"%04d" % i * 32 for i in range(64 * 64)]
    entries = [
        Entry(0, number + i, b"data", tuple(names[64 * i + k] for k in range(64)))
        for i in range(64)
    ]
    return AppendPart(tuple(entries))


def append_large(stripe: Stripe, count: int) -> None:
    """Much to search: records of 40 MiB, by one writer with gaps between its numbers."""
    for i in range(count):
        answer = stripe.append(1, [large(100 * i)], since=64 * i, in_block=32)
        assert answer == stored(64 * (i + 1))


@with_door
def test_long_searches_go_on_where_they_stopped(stripe: Stripe, door: Door) -> None:
    append_large(stripe, 80)
    tail = 80 * 64
    # A number that was left out: each record may have it.
    since, stops, answer = 0, [], reported(0)
    while not answer.value.stored:
        stops.append(since)
        answer = stripe.append(1, [part(99, b"between")], since=since)
        since = answer.value.since
    assert answer == stored(tail + 1)
    assert len(stops) > 1
    assert stripe.append(0, [part(98, b"stale")]) == reported(
        tail + 1, (PartState.SEARCHED, 0), since=stops[1]
    )
    # Parts near the stop, one of which the search has only begun to find there.
    for near in range(stops[1] // 64 - 1, stops[1] // 64 + 2):
        answer, since = reported(0, since=0), 0
        while answer.value.outcomes[:1] != ((PartState.APPENDED, 64 * near),):
            answer = stripe.append(0, [large(100 * near)], since=since, in_block=32)
            assert answer.value.stored == 0
            since = answer.value.since
    # Conditions without an index.
    content = door.load(stripe.name)
    door.save(stripe.name, content.without(*(key for key in content.omap if key[:1] in b"ct")))
    start, searches = 0, 0
    while not answer.value.stored:
        sent = [part(9000, b"x", start=start, unless=((b"none",),)), part(9001, b"y")]
        answer = stripe.append(1, sent, since=tail)
        searches += 1
        if not answer.value.stored:
            (state, position), other = answer.value.outcomes
            assert (state, other) == (PartState.SEARCHED, (PartState.SEARCHED, 0))
            assert position > start
            start = position
    assert searches > 1
    assert answer == stored(tail + 3, 2)


def test_conditions_by_index_and_by_record(stripe: Stripe) -> None:
    fill_chunk(stripe, (b"a", b"b"))
    assert stripe.append(1, [part(2000, b"", tags=(b"a", b"c"))]) == stored(301)
    tail = 301
    for start, unless, found in [
        (0, (b"a",), 0),
        (7, (b"a", b"b"), 7),
        (299, (b"b", b"a"), 299),
        (300, (b"a",), 300),
        (0, (b"a", b"c"), 300),
        (0, (b"c",), 300),
    ]:
        sent = part(3000, b"x", start=start, unless=((b"none",), unless))
        assert stripe.append(1, [sent], since=tail) == conflict(tail, found)
    free = [(0, (b"b", b"c")), (300, (b"b",)), (301, (b"a",)), (0, (b"none", b"a"))]
    sent = [part(3000 + i, b"x", start=s, unless=(u,)) for i, (s, u) in enumerate(free)]
    assert stripe.append(1, sent, since=tail) == stored(tail + 4, 4)
    assert stripe.trim(1, range(300)).code == Code.OK
    assert stripe.append(1, [part(3010, b"x", unless=((b"b",),))]) == stored(tail + 5)


def test_many_conditions_are_compared_in_several_calls(stripe: Stripe) -> None:
    """Each of 4,096 sets with each of 2,000 entries."""
    assert stripe.append(1, [part(0, *[b""] * 2000, tags=(b"a",))]) == stored(2000)
    sets = [tuple((b"a", b"%d" % (32 * i + k)) for k in range(32)) for i in range(128)]
    start, calls, answer = 0, 0, reported(0)
    while not answer.value.stored:
        sent = [part(3000 + i, b"x", start=start, unless=each) for i, each in enumerate(sets)]
        answer = stripe.append(1, sent, since=2000)
        calls += 1
        if not answer.value.stored:
            assert {state for state, _ in answer.value.outcomes} == {PartState.SEARCHED}
            assert start < answer.value.outcomes[0][1] < 2000
            start = answer.value.outcomes[0][1]
    assert (calls, answer) == (2, stored(2128, 128))


@with_door
@pytest.mark.parametrize("how", ["lost", "damaged", "unreadable"])
def test_records_that_may_hide_an_entry(stripe: Stripe, door: Door, how: str) -> None:
    fill_chunk(stripe, (b"a",))
    for number in (2000, 2001):
        assert stripe.append(1, [part(number, b"x")]).code == Code.OK
    content = door.load(stripe.name)
    for key, position in ((b"e.000000000000012b.12c", 0), (b"e.000000000000012c.1", 300)):
        value = content.omap[key]
        if how == "lost":
            door.save(stripe.name, content.without(key))
        else:
            newer = of_version(key, value, LATER, compat=LATER)
            changed = newer if how == "unreadable" else value[:-1]
            door.save(stripe.name, content.with_value(key, changed))
        number = 1000 if position == 0 else 2000
        code = Code.UNREADABLE if how == "unreadable" else Code.LOST
        assert stripe.append(1, [part(number, b"x")], since=0) == Answer(code, position)
        assert stripe.append(0, [part(number, b"x")], since=0) == Answer(code, position)
        # One part is found: the others stay unknown.
        sent = [part(number, b"x"), part(2001, b"x")]
        searched, found = (PartState.SEARCHED, 0), (PartState.APPENDED, 301)
        assert stripe.append(1, sent, since=0) == reported(302, searched, found, since=0)
        unless = ((b"a",),) if position == 0 else ((b"none",),)
        sent = [part(3000, b"x", start=position, unless=unless)]
        assert stripe.append(1, sent, since=302) == conflict(302, position)


def test_trimmed_positions_that_may_have_had_a_copy(stripe: Stripe) -> None:
    """The ids of an entry outlive its trim, but not a compaction."""
    sent = [part(number, b"x", tags=(b"a",)) for number in (10, 11, 12)]
    assert stripe.append(1, sent) == stored(3, 3)
    assert stripe.trim(1, [0]).code == Code.OK
    assert stripe.append(1, sent[:1]) == appended(3, 0)
    assert stripe.append(1, [part(5, b"new")]) == stored(4)
    assert stripe.compact(1, 0, 3, [0, 1]).code == Code.OK
    assert stripe.append(1, sent[:1]) == Answer(Code.BELOW_TRIM_POINT, 2)
    assert stripe.append(1, sent[2:]) == appended(4, 2)
    assert stripe.append(1, [part(6, b"new")], since=2) == stored(5)
    assert stripe.append(1, [part(13, b"y", start=1, unless=((b"a",),))], since=5) == conflict(5, 2)


def test_entries_that_are_not_an_earlier_copy(stripe: Stripe) -> None:
    """A hostile client has seen the request, and stores entries with its ids."""
    mine = part(7, b"one", b"two")
    assert stripe.append(1, [part(9, b"later")]) == stored(1)
    for at, number, data in [(1, 7, b"one"), (2, 8, b"2wo"), (3, 8, b"two"), (4, 7, b"one")]:
        assert stripe.write(1, [Entry(at, number, data)], WRITER).code == Code.OK
    assert stripe.append(1, [mine]) == stored(7)
    assert stripe.append(1, [mine]) == appended(7, 5)
    assert stripe.append(1, [mine], writer_id("x")) == stored(9)
    tagged = replace(mine, entries=tuple(replace(e, tags=(b"t",)) for e in mine.entries))
    assert stripe.append(1, [tagged]) == stored(11)


def test_block_is_compared_as_in_a_write(stripe: Stripe) -> None:
    parts = [part(0, b"a" * 50, b"b" * 50), part(2, b"c" * 50)]
    assert stripe.append(1, parts, in_block=2) == stored(3, 2)
    copies = (PartState.APPENDED, 0), (PartState.APPENDED, 2)
    assert stripe.append(0, parts, in_block=2) == reported(3, *copies)
    assert stripe.append(0, parts) == Answer(Code.SAME_ID, 0)
    assert stripe.append(0, parts, in_block=1) == Answer(Code.SAME_ID, 0)
    assert stripe.append(0, parts[1:], in_block=1) == appended(3, 2)
    assert [slot.data[:1] for slot in stripe.read(1, range(3)).value.slots] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("conditional", [None, 0, 1])
def test_block_of_several_parts(stripe: Stripe, conditional: int | None) -> None:
    """A part with a condition may have to be stored, or left out, alone."""
    block = zstd.pack(b"onetwo")
    told = [(1, i if i == conditional else None, 0, []) for i in (0, 1)]
    crcs = [crc32c(b"one"), crc32c(b"two")]
    head = 1, TIME, WRITER, 0, 0, told, [3, 6], crcs, [0, 1]
    sent = request("append", *head, 1, [(2, len(block), crc32c(block))], b"", [], []) + block
    assert stripe.send("append", sent) == (stored(2, 2) if conditional is None else INVALID)


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ([part(i, b"") for i in range(4096)], 0),
        ([part(i, b"") for i in range(4097)], -errno.EINVAL),
        ([part(0, b"", unless=((b"a",),) * 32)], 0),
        ([part(0, b"", unless=((b"a",),) * 33)], -errno.EINVAL),
        ([part(i, b"", unless=((b"a",),) * 32) for i in range(129)], -errno.EINVAL),
        ([part(0, b"", unless=(tuple(b"%d" % i for i in range(65)),))], -errno.EINVAL),
        ([part(0, b"", unless=((b"x" * 129,),))], -errno.EINVAL),
        ([part(1, b""), part(1, b"")], -errno.EINVAL),
        ([part(0, *[b""] * 65536), part(65536, b"")], -errno.EINVAL),
    ],
    ids=[
        "most parts",
        "parts",
        "most sets",
        "sets of a part",
        "sets of all parts",
        "tags of a set",
        "tag",
        "numbers",
        "entries",
    ],
)
def test_limits_of_one_append(stripe: Stripe, parts: list[AppendPart], code: int) -> None:
    sent = requests.append(1, TIME, WRITER, 0, parts)
    assert stripe.store.execute(stripe.name, "append", sent)[0] == code


def test_checksums_are_of_the_data_alone(stripe: Stripe) -> None:
    sent = requests.append(1, TIME, WRITER, 0, [part(0, b"data")])
    assert sent.count(u32(crc32c(b"data"))) == 1
    wrong = sent.replace(u32(crc32c(b"data")), u32(crc32c(b"data") ^ 1))
    assert stripe.send("append", wrong) == INVALID
    assert stripe.send("append", sent) == stored(1)
