"""The index of tags: whatever becomes of it, a select finds what the records hold, and ends."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

import zlog
from zlog._native.replies import NewestOfTags

from . import requests, wire
from .damage import flip
from .messages import request
from .model import POSITION_MAX
from .objects import Store, Stripe
from .replies import Code, Selected, State
from .requests import BYTES_MAX, Entry
from .stored import LATER, Content, MemoryDoor, envelope, fields_of, of_version

A, B = b"a", b"b"
EVERYTHING = POSITION_MAX + 1


def select(
    stripe: Stripe,
    tags: Sequence[bytes],
    start: int = 0,
    end: int = EVERYTHING,
    reverse: bool = False,
    entries_max: int = 1000,
    bytes_max: int = BYTES_MAX,
) -> tuple[list[tuple[int, bytes]], list[tuple[int, int, State]]]:
    """All that a select finds, page by page: what is written, and the gaps."""
    found: list[tuple[int, bytes]] = []
    gaps: list[tuple[int, int, State]] = []
    for _ in range(10_000):
        answer = stripe.select(1, start, end, tags, False, reverse, entries_max, bytes_max)
        assert isinstance(answer.value, Selected), answer
        page = answer.value
        for position, slot in page.found:
            assert start <= position < end
            if slot.state == State.WRITTEN:
                assert slot.tags & {*tags}
                found.append((position, slot.data))
            else:
                gaps.append((position, position, slot.state))
        gaps += page.gaps
        start, end = (start, page.end) if reverse else (page.end, end)
        if start == end:
            return found, gaps
    raise AssertionError("select never ends")


def positions(stripe: Stripe, tag: bytes, **options: int) -> list[int]:
    """Where a tag is found, upwards, which is the same as downwards."""
    up = [position for position, _ in select(stripe, [tag], **options)[0]]
    down = [position for position, _ in select(stripe, [tag], reverse=True, **options)[0]]
    assert down[::-1] == up
    return up


@pytest.fixture
def stripe(store: Store, prefix: str) -> Stripe:
    made = Stripe(store, prefix)
    assert made.seal(1).code == Code.OK
    return made


def write(stripe: Stripe, at: Sequence[int], *tags: bytes, size: int = 1) -> None:
    entries = [Entry(p, p, wire.u64(p)[:size] * max(size // 8, 1), tags) for p in at]
    assert stripe.write(1, entries).code == Code.OK


def fill_chunk(stripe: Stripe, start: int, *tags: bytes) -> int:
    """As many tags as make a chunk with the next write that goes on; where that is."""
    names = tuple(b"%d" % i for i in range(62 - len(tags)))
    write(stripe, range(start, start + 300), *names, *tags)
    return start + 300


@pytest.mark.parametrize("first", [0, 2**33, 2**40, POSITION_MAX - 700])
def test_select_finds_very_high_positions(stripe: Stripe, first: int) -> None:
    top = fill_chunk(stripe, first, A)
    top = fill_chunk(stripe, top + 2, B)
    write(stripe, [top], A)
    write(stripe, [first + 300], A)  # late, into a chunk
    assert positions(stripe, A) == [*range(first, first + 301), top]
    assert stripe.tags_check(1).value.wrong == ()
    assert stripe.select(1, EVERYTHING, EVERYTHING, [A]).value.end == EVERYTHING
    assert stripe.select(1, 9, 5, [A]).value.found == ()
    start = 0
    while start < EVERYTHING:
        reached = stripe.tags_rebuild(1, start).value
        assert reached > start
        start = reached
    assert positions(stripe, A) == [*range(first, first + 301), top]


def test_late_entries_below_first_chunks(stripe: Stripe) -> None:
    """Two chunks index the entries before the first tag; the lower is too long for some tags."""
    top = 2**34
    write(stripe, range(0, 2 * 1024, 2))  # records that the next chunk does not count
    write(stripe, [top])
    write(stripe, [top + 1], A)
    write(stripe, [1], A)
    write(stripe, [top - 1], A)
    write(stripe, [top + 2], A)
    assert stripe.tags_check(1).value == (EVERYTHING, 2, ())
    write(stripe, [2**33], A)
    assert stripe.tags_check(1).value == (EVERYTHING, 1, ((0, top - 2**31),))
    assert positions(stripe, A) == [1, 2**33, top - 1, top + 1, top + 2]


def test_first_tag_below_all_entries(stripe: Stripe) -> None:
    write(stripe, [5])
    write(stripe, [0], A)
    assert stripe.tags_check(1).value.tags == 0
    write(stripe, [6], A)
    assert stripe.tags_check(1).value.tags == 1
    assert positions(stripe, A) == [0, 6]


@pytest.mark.parametrize("reverse", [False, True])
def test_select_by_index_and_by_record(stripe: Stripe, reverse: bool) -> None:
    """In turns, in one reply; with little space, in many."""
    tags = [(A,), (A, b"c"), (A,), (B,), (A, b"d")]
    entries = [Entry(p, p, b"%d" % (p % 10) * 8_000, tags[p % 5]) for p in range(40)]
    stripe.write(1, entries)
    top = fill_chunk(stripe, 40)
    write(stripe, [top], B)
    expected = [(e.position, e.data) for e in entries if A in e.tags]
    for bytes_max in (0, 8_000, 20_000, BYTES_MAX):
        found, _ = select(stripe, [A], reverse=reverse, bytes_max=bytes_max)
        assert (found[::-1] if reverse else found) == expected
        both, _ = select(stripe, [A, B], reverse=reverse, bytes_max=bytes_max)
        assert len(both) == 41
    page = stripe.select(1, 0, 40, [A, B]).value
    assert {p: slot.tags for p, slot in page.found} == {p: {*tags[p % 5]} for p in range(40)}


def test_many_tag_names_fit_a_reply(stripe: Stripe) -> None:
    """Where each entry's tag is another than the one before, a reply names each anew."""
    names = [bytes([65 + i]) * 128 for i in range(2)]
    count = 18_000
    stripe.write(1, [Entry(p, p, b"xy", (names[p % 2],)) for p in range(count)])
    write(stripe, [count], B)
    found, _ = select(stripe, names, entries_max=65_536, bytes_max=1 << 25)
    assert len(found) == count


def test_shared_tag_names_are_stored_once(stripe: Stripe) -> None:
    """A record whose every other entry is trimmed has no more names than it had."""
    names = tuple(bytes([65 + i]) * 128 for i in range(8))
    count = 2_400
    stripe.write(1, [Entry(p, p, b"xy", names) for p in range(count)])
    assert stripe.trim(1, range(0, count, 2)).code == Code.OK
    slots = stripe.read(1, range(1, count, 2), tags=True).value.slots
    assert {(slot.state, slot.tags) for slot in slots} == {(State.WRITTEN, frozenset(names))}


def test_shared_tag_names_are_listed_once(stripe: Stripe) -> None:
    names = tuple(b"%c" % (65 + i) * 128 for i in range(32))
    count = 1_200
    stripe.write(1, [Entry(p, p, b"", names if p % 2 else ()) for p in range(count)])
    _, reply = stripe.store.execute(
        stripe.name, "tags_list", request("tags_list", 1, 0, EVERYTHING)
    )
    assert NewestOfTags().note(reply) == EVERYTHING
    listed = stripe.tags_list(1).value
    assert listed.tags == tuple((p, frozenset(names)) for p in range(1, count, 2))


def cut_tags() -> Iterator[bytes]:
    sound = requests.write(1, 1, b"w" * 16, 1, [Entry(0, 0, b"", (A, B)), Entry(1, 1, b"")])
    fields = sound[6:]
    for length in range(len(fields) - 17, len(fields)):
        yield wire.frame(fields[:length], 3, 3)


def columns(names: bytes, counts: list[int], ids: list[int]) -> bytes:
    common = (1, 1, b"w" * 16, 0, (1, [0, 1]), [0, 0], [wire.entry_crc(p, b"") for p in (0, 1)])
    return request("write", *common, [0, 1], 0, (), names, counts, ids, compat=3)


@pytest.mark.usefixtures("daemons_stay_up")
def test_malformed_tags_are_refused(stripe: Stripe) -> None:
    bad = [
        columns(b"\1a", [0, 0], []),  # no entry has it
        columns(b"\1a\1b", [1, 0], [0]),
        columns(b"\1a", [1, 0], [1]),
        columns(b"\1a\1b", [2, 0], [1, 0]),
        columns(b"\1a\1b", [2, 0], [0, 0]),
        columns(b"\0", [1, 0], [0]),
        columns(b"\2a", [1, 0], [0]),
        columns(b"\x81" + b"a" * 129, [1, 0], [0]),
        columns(b"".join(b"\1%c" % i for i in range(65)), [65, 0], [*range(65)]),
    ]
    for each in (*bad, *cut_tags()):
        answer = stripe.store.execute(stripe.name, "write", each)
        assert answer == (-errno.EINVAL, b""), each.hex()


@pytest.fixture
def damageable(memory: zlog.Store, prefix: str) -> tuple[Stripe, MemoryDoor]:
    made = Stripe(memory, prefix)
    made.seal(1)
    return made, MemoryDoor(memory)


def indexed(stripe: Stripe) -> list[int]:
    """Two chunks, an entry in each, and late ones; where their tag is."""
    write(stripe, [0, 5], A, size=1)
    top = fill_chunk(stripe, 6, b"c")
    write(stripe, [top, top + 5], A)
    end = fill_chunk(stripe, top + 6, b"c")
    write(stripe, [end], A)
    write(stripe, [2, top + 1], A)
    return [0, 2, 5, top, top + 1, top + 5, end]


def chunked(stripe: Stripe) -> list[tuple[int, bytes]]:
    """One chunk of many entries; those with the tag A."""
    entries = [Entry(p, p, b"%0100d" % p, (A,) if p % 100 == 0 else (B,)) for p in range(17_000)]
    stripe.write(1, entries)
    stripe.write(1, [Entry(17_000, 17_000, b"", (B,))])  # makes the chunk
    return [(entry.position, entry.data) for entry in entries if A in entry.tags]


def index_keys(content: Content) -> list[bytes]:
    return [key for key in content.omap if key.startswith((b"c.", b"t."))]


def _bucket(tag: bytes) -> bytes:
    return b"t.%02x" % (wire.crc32c(tag) % 64)


def test_trim_drops_index_chunks(damageable: tuple[Stripe, MemoryDoor]) -> None:
    stripe, door = damageable
    tagged = indexed(stripe)
    before = index_keys(door.load(stripe.name))
    stripe.trim_to(1, tagged[3])
    left = index_keys(door.load(stripe.name))
    assert 0 < len(left) < len(before)
    assert positions(stripe, A) == tagged[3:]
    stripe.trim_to(1, tagged[-1] + 1)
    assert index_keys(door.load(stripe.name)) == []


def test_late_entry_replaces_damaged_chunk(damageable: tuple[Stripe, MemoryDoor]) -> None:
    """Another copy of the object may have the chunk whole, and serve it later."""
    stripe, door = damageable
    expected = indexed(stripe)
    sound = door.load(stripe.name)
    first, second = sorted(key for key in sound.omap if key.startswith(b"c."))
    for damaged in (
        flip(sound.omap[first], 20),
        of_version(first, sound.omap[first], LATER, LATER),
    ):
        door.save(stripe.name, sound.with_value(first, damaged))
        write(stripe, [3], A)
        after = door.load(stripe.name)
        assert second in after.omap
        assert first not in after.omap
        assert positions(stripe, A) == sorted([*expected, 3])


def test_malformed_index_keys(damageable: tuple[Stripe, MemoryDoor]) -> None:
    stripe, door = damageable
    expected = indexed(stripe)
    sound = door.load(stripe.name)
    for key in (
        b"c.",
        b"c.x",
        b"c." + b"0" * 16,
        b"c.ffffffffffffffff.1",
        b"c.0000000000000001.99",
    ):
        door.save(stripe.name, sound.with_value(key, b"x"))
        assert positions(stripe, A) == expected, key


def test_malformed_tags_of_record(damageable: tuple[Stripe, MemoryDoor]) -> None:
    stripe, door = damageable
    write(stripe, [0], A)
    sound = door.load(stripe.name)
    ((key, value),) = sound.omap.items()
    fields, data = fields_of(value)
    assert fields.endswith(wire.u32(0))  # the only tag's index
    changed = fields[:-4] + wire.u32(1)
    door.save(stripe.name, sound.with_value(key, envelope(key, changed, data, *value[:2])))
    assert stripe.read(1, [0]).value.slots[0].state == State.LOST


def test_damaged_record_is_a_gap(damageable: tuple[Stripe, MemoryDoor]) -> None:
    stripe, door = damageable
    expected = indexed(stripe)
    sound = door.load(stripe.name)
    key = b"e.%016x.1" % expected[-1]
    for content in (sound.with_value(key, flip(sound.omap[key], 12)), sound.without(key)):
        door.save(stripe.name, content)
        found, gaps = select(stripe, [A])
        assert [position for position, _ in found] == expected[:-1]
        assert (expected[-1], expected[-1], State.LOST) in gaps
    later = sound.with_value(key, b"\x63\x63" + sound.omap[key][2:])
    door.save(stripe.name, later)  # its checksum does not fit
    assert (expected[-1], expected[-1], State.LOST) in select(stripe, [A])[1]


def test_many_gaps_span_several_replies(damageable: tuple[Stripe, MemoryDoor]) -> None:
    stripe, door = damageable
    write(stripe, [0], A)
    count = 10_000
    entries = [Entry(p, p, b"") for p in range(2, 2 * count, 2)]
    for i in range(0, len(entries), 5_000):
        stripe.write(1, entries[i : i + 5_000])
    sound = door.load(stripe.name)
    records = {k: v[:-1] if k.startswith(b"e.") else v for k, v in sound.omap.items()}
    door.save(stripe.name, replace(sound, omap=records).without(*index_keys(sound)))
    for reverse in (False, True):
        _, gaps = select(stripe, [A], reverse=reverse)
        lost = {p for first, last, s in gaps if s == State.LOST for p in range(first, last + 1)}
        assert lost == {0, *range(2, 2 * count, 2)}


def test_chunk_spares_its_records(damageable: tuple[Stripe, MemoryDoor]) -> None:
    """Records that are damaged are not noticed, where the places of their tags tell all."""
    stripe, door = damageable
    expected = chunked(stripe)
    sound = door.load(stripe.name)
    damaged = {key: flip(value, 40) for key, value in sound.omap.items() if key.startswith(b"e.")}
    door.save(stripe.name, replace(sound, omap={**sound.omap, **damaged}))
    for reverse in (False, True):
        found, gaps = select(stripe, [A], end=17_000, reverse=reverse)
        assert (found[::-1] if reverse else found, gaps) == (expected, [])
    door.save(stripe.name, door.load(stripe.name).without(*index_keys(sound)))
    assert select(stripe, [A], end=17_000)[1]  # else nothing would have been noticed anyway


def test_wrong_index_location_does_not_hide_entries(damageable: tuple[Stripe, MemoryDoor]) -> None:
    """Its checksum is right, and where an entry's data lies, how much, or its checksum is not."""
    stripe, door = damageable
    expected = chunked(stripe)
    sound = door.load(stripe.name)
    (key,) = (key for key in index_keys(sound) if key.startswith(_bucket(A)))
    fields, _ = fields_of(sound.omap[key])
    for column in (4, 3, 2):  # from the last one of four: places, sizes, checksums
        at = len(fields) - column * 4 * len(expected) + 40
        door.save(stripe.name, sound.with_value(key, envelope(key, flip(fields, at))))
        assert select(stripe, [A])[0] == expected, column


def test_wrong_ends_of_records_do_not_hide_entries(damageable: tuple[Stripe, MemoryDoor]) -> None:
    """A chunk of three records, two of which have the tag, that locates the records wrongly."""
    stripe, door = damageable
    for start, tag in ((0, A), (100, B), (200, A)):
        write(stripe, range(start, start + 100), *(b"%d" % i for i in range(60)), tag)
    write(stripe, [300], B)  # makes the chunk
    expected = [*range(100), *range(200, 300)]
    sound = door.load(stripe.name)
    (key,) = (key for key in sound.omap if key.startswith(b"c."))
    fields, _ = fields_of(sound.omap[key])
    assert fields.endswith(wire.u32(12) + b"".join(map(wire.u32, (100, 200, 300))))
    for ends in ((100, 200, 300), (50, 200, 300), (100, 150, 300), (300, 200, 100), (2**32 - 1,)):
        forged = fields[:-16] + wire.u32(4 * len(ends)) + b"".join(map(wire.u32, ends))
        door.save(stripe.name, sound.with_value(key, of_version(key, envelope(key, forged), 2, 1)))
        assert positions(stripe, A) == expected, ends
    door.save(stripe.name, sound.with_value(key, envelope(key, fields[:-16])))  # of version 1
    assert positions(stripe, A) == expected


def test_calls_end_after_32_mib(damageable: tuple[Stripe, MemoryDoor]) -> None:
    stripe, door = damageable
    for position in range(9):
        write(stripe, [position])
    write(stripe, [9], A)
    sound = door.load(stripe.name)
    (key,) = index_keys(sound)  # one chunk, which becomes two
    fields, _ = fields_of(sound.omap[key])
    chunks = {each: envelope(each, fields) for each in (b"c.%016x.1" % 0, b"c.%016x.8" % 8)}
    large = {b"e.%016x.1" % position: bytes(4 << 20) for position in range(9)}
    door.save(stripe.name, replace(sound, omap={**sound.without(key).omap, **chunks, **large}))
    for call, *rest in ((stripe.tags_check,), (stripe.tags_list,), (stripe.compact, [9])):
        ends = [0]
        while ends[-1] < EVERYTHING:
            ends.append(call(1, ends[-1], EVERYTHING, *rest).value.end)
        assert ends == [0, 1, 2, EVERYTHING]


def test_rebuild_replaces_64_chunks_per_call(damageable: tuple[Stripe, MemoryDoor]) -> None:
    stripe, door = damageable
    write(stripe, range(70))
    write(stripe, [70], A)
    sound = door.load(stripe.name)
    (key,) = index_keys(sound)  # one chunk, which becomes 70
    fields, _ = fields_of(sound.omap[key])
    chunks = {each: envelope(each, fields) for each in (b"c.%016x.1" % p for p in range(70))}
    door.save(stripe.name, replace(sound, omap={**sound.without(key).omap, **chunks}))
    assert stripe.tags_rebuild(1).value == 64
    assert stripe.tags_rebuild(1, 64).value == EVERYTHING
    assert index_keys(door.load(stripe.name)) == [b"c.%016x.40" % 63, b"c.%016x.6" % 69]
